#include "report/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "collcast/base/units.hpp"
#include "report/breakdown.hpp"
#include "report/metrics.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

void add_jitter(const std::optional<Jitter>& jitter, Json& out) {
  if (!jitter) return;
  out["jitter"] = jitter->spread;
  out["distribution"] = to_string(jitter->shape);
  out["seed"] = jitter->seed;
}

Json gpu_json(const GpuFault& fault) {
  Json out;
  if (!fault.gpus.of_nodes && fault.gpus.first == fault.gpus.last)
    out["gpu"] = fault.gpus.first;
  else
    out["gpus"] = to_text(fault.gpus);
  out["compute"] = fault.compute;
  add_jitter(fault.jitter, out);
  return out;
}

Json what_json(const MachineFault& fault) {
  if (const GpuFault* gpu = fault.gpu()) return gpu_json(*gpu);
  const LinkFault& link = *fault.link();
  Json out{{"link", link.link}, {"failed", link.failed}};
  if (link.failed) return out;
  out["bandwidth_share"] = link.bandwidth ? Json() : Json(link.share);
  out["bandwidth_bytes_per_s"] = link.bandwidth ? Json(link.bandwidth->value()) : Json();
  out["added_latency_s"] = link.added_latency.count();
  add_jitter(link.jitter, out);
  return out;
}

Json fault_json(const MachineFault& fault) {
  Json out = what_json(fault);
  if (fault.from > Seconds{}) out["from_s"] = fault.from.count();
  if (fault.until) out["until_s"] = fault.until->count();
  return out;
}

Json waits_json(const RankWaits& w) {
  return {{"tp_s", w.tp.count()},
          {"cp_s", w.cp.count()},
          {"ep_s", w.ep.count()},
          {"pipeline_s", w.pipeline.count()},
          {"gradients_s", w.gradients.count()},
          {"norm_s", w.norm.count()},
          {"end_s", w.end.count()}};
}

Json class_json(const RankClassTimes& one) {
  return {{"stage", one.stage},
          {"first_rank", one.first.value()},
          {"ranks", one.ranks},
          {"compute", one.compute},
          {"breakdown", breakdown_json(one.breakdown)},
          {"waits", waits_json(one.waits)}};
}

/// "+1.2 s (+7.1%)".
std::string more_text(Seconds before, Seconds after) {
  const std::string share = relative_text(before.count(), after.count());
  return change_text((after - before).count(), Unit::seconds) + (share.empty() ? "" : fmt::format(" ({})", share));
}

bool counts(Seconds time, Seconds step) { return std::abs(time.count()) > 1e-9 * step.count(); }

Table cost_table(const FaultEffect& effect, const StepResult& r) {
  const bool is_one = effect.machine.faults.empty();  // placement
  const std::string stages =
      effect.stage == r.stage.stage
          ? std::string()
          : fmt::format(", of the stage with the most work without {} (stage {}) and with (stage {})",
                        is_one ? "it" : "them", effect.stage, r.stage.stage);
  Table out{
      fmt::format("what {} {}{}", cause_text(effect.machine), is_one ? "costs" : "cost", stages),
      {{"", "", Align::left}, {"without", "", Align::right}, {"with", "", Align::right}, {"more", "", Align::right}},
      {}};
  const auto row = [&](const char* name, Seconds before, Seconds after) {
    if (!counts(before, r.step) && !counts(after, r.step)) return;
    out.rows.push_back({name, format_seconds(before), format_seconds(after),
                        counts(after - before, r.step) ? more_text(before, after) : "-"});
  };
  row("step time", effect.step, r.step);
  if (r.simulate) row("closed form", effect.estimate, r.estimate);
  for (const BreakdownPart& part : breakdown_parts) row(part.name, effect.breakdown.*part.time, r.breakdown.*part.time);
  return out;
}

constexpr std::size_t most_classes = 8;

/// All, or where they are many those of the stage that the breakdown is of.
std::vector<const RankClassTimes*> classes_beside(const FaultEffect& effect) {
  std::vector<const RankClassTimes*> out;
  const bool all = effect.classes.size() <= most_classes;
  for (const RankClassTimes& one : effect.classes)
    if ((all || one.stage == effect.classes[effect.slowest].stage) && out.size() < most_classes) out.push_back(&one);
  return out;
}

constexpr std::array<std::pair<const char*, Seconds RankWaits::*>, 7> kinds_of_waits{
    {{"for TP", &RankWaits::tp},
     {"for CP", &RankWaits::cp},
     {"for EP", &RankWaits::ep},
     {"in the pipeline", &RankWaits::pipeline},
     {"for gradients", &RankWaits::gradients},
     {"for the norm", &RankWaits::norm},
     {"at the end", &RankWaits::end}}};

}  // namespace

Table classes_table(const FaultEffect& effect, const StepResult& r) {
  const std::vector<const RankClassTimes*> shown = classes_beside(effect);
  Table out{fmt::format("who waits for whom, {} in {}", counted(effect.ranks, "rank"),
                        effect.classes.size() == 1 ? "1 class" : fmt::format("{} classes", effect.classes.size())),
            {{"stage", "", Align::right},
             {"ranks", "", Align::right},
             {"first", "", Align::right},
             {"speed", "", Align::right},
             {"busy", "", Align::right}},
            {}};
  for (const RankClassTimes* one : shown) {
    const Seconds busy = one->breakdown.total() - one->waits.total();
    out.rows.push_back({fmt::format("{}", one->stage), fmt::format("{}", one->ranks),
                        fmt::format("{}", one->first.value()), fmt::format("{:.4g}%", 100 * one->compute),
                        format_seconds(busy)});
  }
  for (const auto& [name, wait] : kinds_of_waits) {
    bool any = false;
    for (const RankClassTimes* one : shown) any = any || counts(one->waits.*wait, r.step);
    if (!any) continue;
    out.columns.push_back({name, "", Align::right});
    for (std::size_t i = 0; i < shown.size(); ++i) out.rows[i].push_back(format_seconds(shown[i]->waits.*wait));
  }
  return out;
}

std::string more_classes(const FaultEffect& effect) {
  const std::size_t shown = classes_beside(effect).size();
  if (shown == effect.classes.size()) return {};
  return fmt::format("{} more classes, of which `collcast step --format json` has all the times",
                     effect.classes.size() - shown);
}

std::string cause_text(const MachineState& machine) {
  if (!machine.placement.any()) return "the faults";
  return machine.faults.empty() ? "the placement" : "the faults and the placement";
}

std::string faults_text(std::span<const MachineFault> faults) {
  std::string out;
  for (const MachineFault& fault : faults) out += (out.empty() ? "" : "; ") + to_text(fault);
  return out;
}

std::string fault_argument(const LinkFault& fault) {
  std::string out = "link: " + fault.link;
  if (fault.failed) return out + ", failed: true";
  if (fault.bandwidth)
    out += fmt::format(", bandwidth: {:.15g}B/s", fault.bandwidth->value());
  else if (fault.share < 1 || fault.added_latency == Seconds{})
    out += fmt::format(", bandwidth: {:.15g}%", 100 * fault.share);
  if (fault.added_latency > Seconds{}) out += fmt::format(", added_latency: {:.15g}s", fault.added_latency.count());
  return out;
}

Json faults_json(std::span<const MachineFault> faults) {
  Json out = Json::array();
  for (const MachineFault& fault : faults) out.push_back(fault_json(fault));
  return out;
}

namespace {

/// The least of the draws that at least `share` of them do not exceed.
Seconds quantile(const std::vector<Seconds>& sorted, double share) {
  const auto count = static_cast<double>(sorted.size());
  const auto rank = static_cast<std::size_t>(std::ceil(share * count - 1e-9));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

struct DrawFigures {
  Seconds mean{}, least{}, p50{}, p90{}, p99{}, most{};
};

DrawFigures figures_of(std::vector<Seconds> draws) {
  std::sort(draws.begin(), draws.end());
  Seconds sum{};
  for (const Seconds draw : draws) sum += draw;
  return {sum / static_cast<double>(draws.size()),
          draws.front(),
          quantile(draws, 0.5),
          quantile(draws, 0.9),
          quantile(draws, 0.99),
          draws.back()};
}

Json jitter_json(const JitterEffect& jitter) {
  const DrawFigures of = figures_of(jitter.draws);
  Json draws = Json::array();
  for (const Seconds draw : jitter.draws) draws.push_back(draw.count());
  return {{"without_s", jitter.without.count()},
          {"cost_s", (of.mean - jitter.without).count()},
          {"slowdown", of.mean / jitter.without},
          {"draws", jitter.draws.size()},
          {"mean_s", of.mean.count()},
          {"least_s", of.least.count()},
          {"p50_s", of.p50.count()},
          {"p90_s", of.p90.count()},
          {"p99_s", of.p99.count()},
          {"most_s", of.most.count()},
          {"draws_s", std::move(draws)},
          {"busy_without_s", jitter.busy_without.count()},
          {"busy_s", jitter.busy.count()},
          {"waits_without", waits_json(jitter.waits_without)},
          {"waits", waits_json(jitter.waits)}};
}

Table jitter_table(const JitterEffect& jitter, const FaultEffect& effect, const StepResult& r) {
  Table out{
      fmt::format("what the jitter costs, of the first draw, mean of {}", counted(effect.ranks, "rank")),
      {{"", "", Align::left}, {"without", "", Align::right}, {"with", "", Align::right}, {"more", "", Align::right}},
      {}};
  const auto row = [&](const std::string& name, Seconds before, Seconds after) {
    if (!counts(before, r.step) && !counts(after, r.step)) return;
    out.rows.push_back({name, format_seconds(before), format_seconds(after),
                        counts(after - before, r.step) ? more_text(before, after) : "-"});
  };
  // A wait that hardly is one grows by no percentage that says anything.
  const auto wait_row = [&](const std::string& name, Seconds before, Seconds after) {
    row(name, before < 1e-6 * r.step ? Seconds{} : before, after);
  };
  row("step time", jitter.without, jitter.draws.front());
  row("busy", jitter.busy_without, jitter.busy);
  for (const auto& [name, wait] : kinds_of_waits)
    wait_row(fmt::format("waits {}", name), jitter.waits_without.*wait, jitter.waits.*wait);
  return out;
}

Table draws_table(const JitterEffect& jitter) {
  const DrawFigures of = figures_of(jitter.draws);
  Table out{fmt::format("step time of {} draws", jitter.draws.size()),
            {{"", "", Align::left}, {"step time", "", Align::right}, {"over no jitter", "", Align::right}},
            {}};
  for (const auto& [name, time] : {std::pair("mean", of.mean),
                                   {"least", of.least},
                                   {"p50", of.p50},
                                   {"p90", of.p90},
                                   {"p99", of.p99},
                                   {"most", of.most}})
    out.rows.push_back({name, format_seconds(time), more_text(jitter.without, time)});
  return out;
}

}  // namespace

Json placement_json(const Placement& placement) {
  if (placement.random) return {{"nodes", "random"}, {"seed", placement.seed}};
  return {{"nodes", placement.nodes}};
}

Json effect_json(const FaultEffect& effect, const StepResult& r) {
  Json out{{"healthy",
            {{"step_s", effect.step.count()},
             {"estimate_s", effect.estimate.count()},
             {"simulate_s", number(effect.simulate)},
             {"breakdown_stage", effect.stage},
             {"breakdown", breakdown_json(effect.breakdown)}}},
           {"cost_s", (r.step - effect.step).count()},
           {"slowdown", r.step / effect.step},
           {"ranks", effect.ranks}};
  const bool simulated = !effect.classes.empty();
  if (effect.jitter) out["jitter"] = jitter_json(*effect.jitter);
  out["classes"] = simulated ? Json(effect.classes.size()) : Json();
  out["slowest_class"] = simulated ? Json(effect.slowest) : Json();
  out["rank_classes"] = Json::array();
  for (const RankClassTimes& one : effect.classes) out["rank_classes"].push_back(class_json(one));
  return out;
}

void add_effect(Page& page, const FaultEffect& effect, const StepResult& r) {
  page.blocks.push_back(cost_table(effect, r));
  if (effect.jitter) {
    page.blocks.push_back(jitter_table(*effect.jitter, effect, r));
    if (effect.jitter->draws.size() > 1) page.blocks.push_back(draws_table(*effect.jitter));
  }
  if (effect.classes.empty()) return;
  page.blocks.push_back(classes_table(effect, r));
  if (const std::string more = more_classes(effect); !more.empty())
    page.blocks.push_back(Paragraph{more, Paragraph::Tone::note});
}

}  // namespace collcast
