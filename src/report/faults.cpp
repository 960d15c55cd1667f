#include "report/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "collcast/base/units.hpp"
#include "report/metrics.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

Json what_json(const MachineFault& fault) {
  if (const GpuFault* gpu = fault.gpu()) return {{"gpu", gpu->gpu}, {"compute", gpu->compute}};
  const LinkFault& link = *fault.link();
  Json out{{"link", link.link}, {"failed", link.failed}};
  if (link.failed) return out;
  out["bandwidth_share"] = link.bandwidth ? Json() : Json(link.share);
  out["bandwidth_bytes_per_s"] = link.bandwidth ? Json(link.bandwidth->value()) : Json();
  out["added_latency_s"] = link.added_latency.count();
  return out;
}

Json fault_json(const MachineFault& fault) {
  Json out = what_json(fault);
  if (fault.from > Seconds{}) out["from_s"] = fault.from.count();
  if (fault.until) out["until_s"] = fault.until->count();
  return out;
}

Json class_json(const RankClassTimes& one) {
  const RankWaits& w = one.waits;
  return {{"stage", one.stage},
          {"first_rank", one.first.value()},
          {"ranks", one.ranks},
          {"compute", one.compute},
          {"breakdown", breakdown_json(one.breakdown)},
          {"waits",
           {{"tp_s", w.tp.count()},
            {"cp_s", w.cp.count()},
            {"ep_s", w.ep.count()},
            {"pipeline_s", w.pipeline.count()},
            {"gradients_s", w.gradients.count()},
            {"norm_s", w.norm.count()},
            {"end_s", w.end.count()}}}};
}

/// "+1.2 s (+7.1%)".
std::string more_text(Seconds before, Seconds after) {
  const std::string share = relative_text(before.count(), after.count());
  return change_text((after - before).count(), Unit::seconds) + (share.empty() ? "" : fmt::format(" ({})", share));
}

bool counts(Seconds time, Seconds step) { return std::abs(time.count()) > 1e-9 * step.count(); }

Table cost_table(const FaultEffect& effect, const StepResult& r) {
  const std::string stages = effect.stage == r.stage.stage
                                 ? std::string()
                                 : fmt::format(", of the slowest stage without them (stage {}) and with (stage {})",
                                               effect.stage, r.stage.stage);
  Table out{
      "what the faults cost" + stages,
      {{"", "", Align::left}, {"without", "", Align::right}, {"with", "", Align::right}, {"more", "", Align::right}},
      {}};
  const auto row = [&](const char* name, Seconds before, Seconds after) {
    if (!counts(before, r.step) && !counts(after, r.step)) return;
    out.rows.push_back({name, format_seconds(before), format_seconds(after),
                        counts(after - before, r.step) ? more_text(before, after) : "-"});
  };
  row("step time", effect.step, r.step);
  if (r.simulate) row("closed form", effect.estimate, r.estimate);
  const Breakdown &before = effect.breakdown, &after = r.breakdown;
  row("compute", before.compute, after.compute);
  row("TP exposed", before.tp_exposed, after.tp_exposed);
  row("PP exposed", before.pp_exposed, after.pp_exposed);
  row("CP exposed", before.cp_exposed, after.cp_exposed);
  row("EP exposed", before.ep_exposed, after.ep_exposed);
  row("DP exposed", before.dp_exposed, after.dp_exposed);
  row("bubble", before.bubble, after.bubble);
  row("optimizer", before.optimizer, after.optimizer);
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

Table classes_table(const FaultEffect& effect, const StepResult& r) {
  const std::vector<const RankClassTimes*> shown = classes_beside(effect);
  constexpr std::array<std::pair<const char*, Seconds RankWaits::*>, 7> waits{
      {{"for TP", &RankWaits::tp},
       {"for CP", &RankWaits::cp},
       {"for EP", &RankWaits::ep},
       {"in the pipeline", &RankWaits::pipeline},
       {"for gradients", &RankWaits::gradients},
       {"for the norm", &RankWaits::norm},
       {"at the end", &RankWaits::end}}};
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
  for (const auto& [name, wait] : waits) {
    bool any = false;
    for (const RankClassTimes* one : shown) any = any || counts(one->waits.*wait, r.step);
    if (!any) continue;
    out.columns.push_back({name, "", Align::right});
    for (std::size_t i = 0; i < shown.size(); ++i) out.rows[i].push_back(format_seconds(shown[i]->waits.*wait));
  }
  return out;
}

}  // namespace

std::string faults_text(std::span<const MachineFault> faults) {
  std::string out;
  for (const MachineFault& fault : faults) out += (out.empty() ? "" : "; ") + to_text(fault);
  return out;
}

Json faults_json(std::span<const MachineFault> faults) {
  Json out = Json::array();
  for (const MachineFault& fault : faults) out.push_back(fault_json(fault));
  return out;
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
  out["classes"] = simulated ? Json(effect.classes.size()) : Json();
  out["slowest_class"] = simulated ? Json(effect.slowest) : Json();
  out["rank_classes"] = Json::array();
  for (const RankClassTimes& one : effect.classes) out["rank_classes"].push_back(class_json(one));
  return out;
}

void add_effect(Page& page, const FaultEffect& effect, const StepResult& r) {
  page.blocks.push_back(cost_table(effect, r));
  if (effect.classes.empty()) return;
  page.blocks.push_back(classes_table(effect, r));
  const std::size_t shown = classes_beside(effect).size();
  if (shown < effect.classes.size())
    page.blocks.push_back(Paragraph{
        fmt::format("{} more classes, of which --format json has all the times", effect.classes.size() - shown),
        Paragraph::Tone::note});
}

}  // namespace collcast
