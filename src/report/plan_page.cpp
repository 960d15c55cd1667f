// A plan for people: the ranking, the Pareto set, what was rejected, and a layout beside the best.
#include "report/plan_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "collcast/base/units.hpp"
#include "collcast/report/plan_document.hpp"
#include "report/breakdown.hpp"
#include "report/faults.hpp"
#include "report/metrics.hpp"
#include "report/step_tables.hpp"
#include "report/wording.hpp"

namespace collcast {

std::string gibibytes(Bytes b) { return fmt::format("{:.1f}", static_cast<double>(b.value()) / 0x1p30); }

std::string where_it_goes(const Breakdown& breakdown) {
  std::array sorted = breakdown_parts;
  std::ranges::stable_sort(
      sorted, [&](const BreakdownPart& a, const BreakdownPart& b) { return breakdown.*a.time > breakdown.*b.time; });
  std::string out;
  for (const BreakdownPart& part : sorted) {
    const double share = breakdown.*part.time / breakdown.total();
    if (share < 0.01) continue;
    std::string name = part.name;
    if (const std::size_t end = name.find(" exposed"); end != std::string::npos) name.resize(end);
    out += fmt::format("{}{} {:.0f}%", out.empty() ? "" : ", ", name, 100 * share);
  }
  return out;
}

int expert_tp_of(const LayoutChoice& c, const StepInputs& base) {
  const int etp = etp_of(c, base);
  return etp > 0 ? etp : c.tp;
}

std::string layout_text(const LayoutChoice& c, const StepInputs& base) {
  if (c.batch > 0) return server_text(c);
  std::string out = fmt::format("TP {} x PP {}", c.tp, c.pp);
  if (c.cp > 1) out += fmt::format(" x CP {}", c.cp);
  if (c.dp > 0) out += fmt::format(" x DP {}", c.dp);  // none where tp x pp does not divide the GPUs
  if (c.ep > 1) out += fmt::format(", EP {}", c.ep);
  if (const int etp = expert_tp_of(c, base); etp != c.tp) out += fmt::format(", expert TP {}", etp);
  out += fmt::format(", micro-batch {}", c.micro_batch);
  if (c.vpp > 1) out += fmt::format(", VPP {}", c.vpp);
  if (c.sequence_parallel) out += ", sequence parallel";
  if (c.recompute != Recompute::none) out += fmt::format(", recompute {}", to_string(c.recompute));
  if (c.zero > 0) out += fmt::format(", ZeRO-{}", c.zero);
  if (const int shard = dp_shard_of(c, base.layout); c.zero > 0 && shard > 0 && shard < c.dp)
    out += fmt::format(" in shards of {} replicas", shard);
  return out;
}

std::string time_difference(Seconds own, Seconds best) {
  const double by = (own - best).count();
  const bool same = std::abs(by) <= 1e-9 * std::max(own.count(), best.count());
  return (same || by > 0 ? "+" : "-") + format_seconds(Seconds(same ? 0 : std::abs(by)));
}

std::string difference(double own, double best) {
  if (own == best || !(best > 0)) return "";
  const double percent = 100 * (own / best - 1);
  return std::abs(percent) < 0.05 ? "<0.1%" : fmt::format("{:+.1f}%", percent);
}

namespace {

constexpr std::size_t rows_for_people = 10;

const std::vector<Column> layout_columns{{"#", "", Align::right},        {"TP", "", Align::right},
                                         {"PP", "", Align::right},       {"DP", "", Align::right},
                                         {"mb", "", Align::right},       {"SP", "", Align::left},
                                         {"recompute", "", Align::left}, {"ZeRO", "", Align::right},
                                         {"step", "", Align::right},     {"tokens/s/GPU", "", Align::right},
                                         {"MFU", "", Align::right},      {"peak", "GiB", Align::right},
                                         {"free", "GiB", Align::right},  {"where the time goes", "", Align::left}};

/// Chunks and context parallelism are told where any layout has them, after the stages; expert parallelism after DP.
constexpr std::ptrdiff_t chunks_column = 3;
constexpr std::ptrdiff_t experts_column = 4;
constexpr std::ptrdiff_t sharding_column = 7;
/// What a layout takes on the machine as described, after what it takes.
constexpr std::ptrdiff_t described_column = 9;
bool has_described_ranks(const PlanReport& report) { return !report.inputs.machine.as_described(); }
/// Of how many layouts the forecast itself is outside; empty: of none.
std::string outside(const PlanResult& r) {
  const auto count = std::ranges::count_if(
      r.ranked, [](const PlannedLayout& p) { return p.interval && is_outside(p.step(), p.interval); });
  return count == 0 ? std::string()
                    : fmt::format(" In {} of {} {}", count, counted(std::ssize(r.ranked), "layout"), outside_text);
}

bool has_ranked_intervals(const PlanReport& report) {
  return std::ranges::any_of(report.result.ranked, [](const PlannedLayout& p) { return p.interval.has_value(); });
}
bool has_ep(const PlanReport& report) {
  return std::ranges::any_of(report.result.ranked, [](const PlannedLayout& p) { return p.choice.ep > 1; });
}
bool has_cp(const PlanReport& report) {
  return std::ranges::any_of(report.result.ranked, [](const PlannedLayout& p) { return p.choice.cp > 1; });
}
/// What was asked for of expert TP and of the sharding group is told where it was.
bool has_expert_tp(const PlanReport& report) { return report.inputs.base.layout.etp > 0; }
bool has_shards(const PlanReport& report) { return report.inputs.base.layout.dp_shard > 0; }
bool has_chunks(const PlanReport& report) {
  return std::ranges::any_of(report.result.ranked, [](const PlannedLayout& p) { return p.choice.vpp > 1; });
}

std::vector<Column> columns(const PlanReport& report) {
  if (report.inputs.base.serving) return server_columns(report);
  std::vector<Column> out = layout_columns;
  if (has_ranked_intervals(report)) out.insert(out.begin() + described_column, {"8 of 10", "", Align::left});
  if (has_described_ranks(report))
    out.insert(out.begin() + described_column, {{"without", "", Align::right}, {"more", "", Align::right}});
  if (has_shards(report)) out.insert(out.begin() + sharding_column + 1, {"shard", "", Align::right});
  if (has_expert_tp(report)) out.insert(out.begin() + experts_column, {"expert TP", "", Align::right});
  if (has_ep(report)) out.insert(out.begin() + experts_column, {"EP", "", Align::right});
  if (has_cp(report)) out.insert(out.begin() + chunks_column, {"CP", "", Align::right});
  if (has_chunks(report)) out.insert(out.begin() + chunks_column, {"VPP", "", Align::right});
  return out;
}

std::vector<std::string> layout_row(const PlanReport& report, std::string number, const PlannedLayout& p) {
  if (p.server) return server_row(report, std::move(number), p);
  const LayoutChoice& c = p.choice;
  std::vector<std::string> out{std::move(number),
                               fmt::format("{}", c.tp),
                               fmt::format("{}", c.pp),
                               fmt::format("{}", c.dp),
                               fmt::format("{}", c.micro_batch),
                               c.sequence_parallel ? "yes" : "no",
                               std::string(to_string(c.recompute)),
                               fmt::format("{}", c.zero),
                               format_seconds(p.step()) + (p.simulate ? "" : " *"),
                               figure_text(p.rates.tokens_per_s_per_gpu),
                               fmt::format("{:.1f}%", 100 * p.rates.mfu),
                               gibibytes(p.memory.peak()),
                               gibibytes(p.headroom()),
                               where_it_goes(p.breakdown)};
  if (has_ranked_intervals(report))
    out.insert(out.begin() + described_column, p.interval ? format_range(*p.interval) : std::string());
  if (p.described)
    out.insert(out.begin() + described_column,
               {format_seconds(p.described->step()), difference(p.step().count(), p.described->step().count())});
  if (has_shards(report))
    out.insert(out.begin() + sharding_column + 1,
               c.zero > 0 ? fmt::format("{}", dp_shard_of(c, report.inputs.base.layout)) : std::string());
  if (has_expert_tp(report))
    out.insert(out.begin() + experts_column, fmt::format("{}", expert_tp_of(c, report.inputs.base)));
  if (has_ep(report)) out.insert(out.begin() + experts_column, fmt::format("{}", c.ep));
  if (has_cp(report)) out.insert(out.begin() + chunks_column, fmt::format("{}", c.cp));
  if (has_chunks(report)) out.insert(out.begin() + chunks_column, fmt::format("{}", c.vpp));
  return out;
}

std::string rank_of(const PlanResult& r, const PlannedLayout& p) {
  const auto place = std::ranges::find(r.ranked, p.choice, &PlannedLayout::choice);
  return fmt::format("{}", place - r.ranked.begin() + 1);
}

/// Which layout would be the best without the faults, of the simulated if there are any.
std::string best_as_described(const PlanReport& report) {
  const PlanResult& r = report.result;
  const bool simulated = r.ranked.front().simulate.has_value();
  std::size_t best = 0;
  for (std::size_t i = 1; i < r.ranked.size(); ++i)
    if (r.ranked[i].simulate.has_value() == simulated &&
        r.ranked[i].described->step() < r.ranked[best].described->step())
      best = i;
  const char* of = simulated ? " of those simulated" : "";
  const std::string cause = cause_text(report.inputs.machine);
  if (best == 0) return fmt::format("The best{} is the best without {}, too.", of, cause);
  return fmt::format("Without {} the best{} would be number {}, {}.", cause, of, best + 1,
                     layout_text(r.ranked[best].choice, report.inputs.base));
}

/// What the ranking is by, where the machine is not as described.
std::string ranked_by(const MachineState& machine) {
  std::string out = fmt::format(
      "ranked by the step with {}; 'without' is the same layout on the machine as described. The closed form has each "
      "stage as slow as its slowest ranks",
      cause_text(machine));
  if (first_with_jitter(machine.faults) != nullptr) out += " and knows jitter by its means, a simulation by one draw";
  return out + " (docs/planning.md).";
}

/// Which layout is the best with collectives as short, and as long, as they may be, of the simulated if there are any.
std::string best_at_the_ends(const PlanResult& r) {
  const bool simulated = r.ranked.front().simulate.has_value();
  const auto best = [&](Seconds TimeRange::*end) {
    std::size_t least = 0;
    for (std::size_t i = 1; i < r.ranked.size(); ++i)
      if (r.ranked[i].simulate.has_value() == simulated && r.ranked[i].interval &&
          (*r.ranked[i].interval).*end < (*r.ranked[least].interval).*end)
        least = i;
    return least + 1;
  };
  const std::size_t low = best(&TimeRange::low), high = best(&TimeRange::high);
  if (low == 1 && high == 1) return "The best is the best at either end, too.";
  return fmt::format("With all as short number {} would be the best, with all as long number {}.", low, high);
}

void add_ranking(Page& out, const PlanReport& report) {
  const PlanResult& r = report.result;
  const bool serves = report.inputs.base.serving.has_value();
  const std::size_t count = std::min(report.rows.value_or(rows_for_people), r.ranked.size());
  Table ranked{count < r.ranked.size() ? fmt::format("the best {} of {} layouts that fit", count, r.ranked.size())
                                       : "layouts that fit",
               columns(report),
               {}};
  bool closed_form = false;
  for (std::size_t i = 0; i < count; ++i) {
    ranked.rows.push_back(layout_row(report, fmt::format("{}", i + 1), r.ranked[i]));
    closed_form = closed_form || !r.ranked[i].simulate;
  }
  out.blocks.push_back(std::move(ranked));
  if (has_described_ranks(report)) {
    out.blocks.push_back(Paragraph{best_as_described(report), Paragraph::Tone::plain});
    out.blocks.push_back(Paragraph{ranked_by(report.inputs.machine), Paragraph::Tone::note});
  }
  if (has_ranked_intervals(report))
    out.blocks.push_back(Paragraph{
        fmt::format(
            "8 of 10: {} with all collectives as far from the forecast as 8 of 10 measurements were at most, by "
            "the calibration.{}{}",
            serves ? "TPOT" : "the step", serves ? std::string() : " " + best_at_the_ends(r), outside(r)),
        Paragraph::Tone::note});
  for (const PlannedLayout& p : r.pareto) closed_form = closed_form || !p.simulate;
  if (closed_form) out.blocks.push_back(Paragraph{"* by closed form, not simulated", Paragraph::Tone::plain});
  Table pareto{serves ? "Pareto set: no other layout has both a shorter TPOT and more tokens/s per GPU"
                      : "Pareto set: no other layout is both faster and smaller",
               columns(report),
               {}};
  for (const PlannedLayout& p : r.pareto) pareto.rows.push_back(layout_row(report, rank_of(r, p), p));
  out.blocks.push_back(std::move(pareto));
}

/// "on 32 GPUs (TP 8 x PP 4 x DP 1, 61.2 GiB)"; of more nodes than there are how to ask for them.
std::string near_miss_text(const NearMiss& miss, const StepInputs& base) {
  std::string change;
  switch (miss.kind) {
    case NearMissKind::all_values:
      change = "without what the search is kept to";
      break;
    case NearMissKind::zero:
      change = fmt::format("with --zero {}", miss.choice.zero);
      break;
    case NearMissKind::host_states:
      change = fmt::format(
          "with optimizer states in the host's memory (--set training.optimizer_state_offload.fraction={} --set "
          "training.optimizer_state_offload.chunk_size_mb={})",
          states_on_host.fraction, states_on_host.chunk_size_mb);
      break;
    case NearMissKind::smaller_batch:
      change = fmt::format("with --batch {}", miss.choice.batch);
      break;
    case NearMissKind::fewer_gpus:
    case NearMissKind::more_gpus:
      change = "on " + counted(miss.gpus, "GPU");
      if (miss.more_nodes) change += fmt::format(" with --gpus {} --nodes {}", miss.gpus, miss.nodes);
      break;
  }
  return fmt::format("{} ({}, {}{} GiB)", change, layout_text(miss.choice, base), miss.at_most ? "at most " : "",
                     gibibytes(miss.memory.peak()));
}

void add_rejected(Page& out, const PlanResult& r) {
  Table rejected{"rejected", {{"layouts", "", Align::right}, {"reason", "", Align::left}}, {}};
  for (const Rejection& rejection : r.rejected) {
    std::string reason = rejection.reason;
    if (const auto& by = rejection.nearest) {
      const Unit unit = unit_of(by->gate.figure);
      const std::string value = value_text(by->value, unit);
      const double beyond = std::abs(by->value / by->gate.limit - 1);
      reason += value == value_text(by->gate.limit, unit)
                    ? fmt::format("; the nearest is {:.1g}% beyond it", 100 * beyond)
                    : "; the nearest is at " + value;
    }
    rejected.rows.push_back({fmt::format("{}", rejection.count), std::move(reason)});
  }
  if (!rejected.rows.empty()) out.blocks.push_back(std::move(rejected));
}

/// Of a layout that is not the best.
std::string place_of(const WhyLayout& asked, const WhyLayout& best, const ServingObjective& objective) {
  if (asked.rank > 0) return fmt::format("number {}", asked.rank);
  if (!asked.objections.empty()) return "not among the ranked";
  std::string out = "not among the layouts searched";
  if (asked.server && best.server) {
    const double own = value_of(objective, asked.tokens_per_s_per_gpu, *asked.server);
    const double theirs = value_of(objective, best.tokens_per_s_per_gpu, *best.server);
    const bool more = objective.figure == ServingObjective::Figure::tokens_per_s_per_gpu;
    return out + ((more ? own > theirs : own < theirs) ? ", and would be ranked before them" : "");
  }
  return out + (asked.step && best.step && *asked.step < *best.step ? ", and would be faster than they are" : "");
}

/// Which place the layout has, and which one it stands beside.
std::string standing(const Why& why, const PlanInputs& in) {
  if (!why.best)
    return why.asked.objections.empty() ? "It is not among the layouts searched, and nothing was found against it."
                                        : "It is not among the ranked, as none is: there is no best one beside it.";
  if (!why.of_best())
    return fmt::format("It is {}; the best {}is {}.", place_of(why.asked, *why.best, in.objective),
                       why.asked.rank > 0 || !why.asked.objections.empty() ? "" : "of those ",
                       layout_text(why.best->choice, in.base));
  if (!why.runner_up) return "It is the best: no other layout fits.";
  return fmt::format("It is the best; the runner-up, number {}, is {}.", why.runner_up->rank,
                     layout_text(why.runner_up->choice, in.base));
}

/// Whether a part of memory is of such layouts, which serve or train.
bool is_shown(const MemoryPart& part, const MemoryUse& own, const MemoryUse& best) {
  const bool serves = best.kv_cache > Bytes(0);
  for (const auto of_training : {&MemoryUse::gradients, &MemoryUse::optimizer})
    if (part.size == of_training) return !serves;
  for (const auto of_some : {&MemoryUse::kv_cache, &MemoryUse::framework, &MemoryUse::gradient_copies})
    if (part.size == of_some) return own.*part.size + best.*part.size > Bytes(0);
  return true;
}

void keep_columns(Table& table, std::size_t count) {
  table.columns.resize(count);
  for (auto& row : table.rows) row.resize(count);
}

void add_why(Page& out, const Why& why, const PlanInputs& in) {
  out.blocks.push_back(Heading{(why.of_best() ? "why " : "why not ") + layout_text(why.asked.choice, in.base)});
  out.blocks.push_back(Paragraph{standing(why, in), Paragraph::Tone::plain});
  if (why.beside_best() == nullptr) return;
  const WhyLayout& beside = *why.beside_best();
  // Alone it is beside itself, in tables of which that is left out.
  const WhyLayout& best = why.best ? *why.best : beside;
  const auto add = [&](Table table) {
    if (!why.best) keep_columns(table, 2);
    out.blocks.push_back(std::move(table));
  };
  const char* name = why.of_best() ? "runner-up" : "this layout";
  for (const std::string& objection : why.asked.objections)
    out.blocks.push_back(Paragraph{"rejected: " + objection, Paragraph::Tone::warning});
  if (beside.server) {
    for (Table& table : server_times(name, beside, best)) add(std::move(table));
  } else if (beside.step) {
    Table time{"step by closed form",
               {{"part", "", Align::left},
                {name, "", Align::right},
                {"best", "", Align::right},
                {"difference", "", Align::right}},
               {}};
    const auto row = [&](const char* part, Seconds own, Seconds theirs) {
      const double step = best.step->count();
      // What is left of sums is no time.
      for (Seconds* time_of : {&own, &theirs})
        if (time_of->count() <= 1e-9 * step) *time_of = Seconds{};
      if (own == theirs && own == Seconds{}) return;
      time.rows.push_back({part, format_seconds(own), format_seconds(theirs), time_difference(own, theirs)});
    };
    for (const BreakdownPart& p : breakdown_parts) row(p.name, beside.breakdown.*p.time, best.breakdown.*p.time);
    row("step", *beside.step, *best.step);
    add(std::move(time));
  }
  if (beside.memory) {
    const MemoryUse &own = *beside.memory, &theirs = *best.memory;
    Table memory{"memory of the fullest rank",
                 {{"item", "", Align::left},
                  {name, "GiB", Align::right},
                  {"best", "GiB", Align::right},
                  {"difference", "", Align::right}},
                 {}};
    const auto row = [&](const char* item, Bytes own_size, Bytes best_size) {
      memory.rows.push_back(
          {item, gibibytes(own_size), gibibytes(best_size),
           difference(static_cast<double>(own_size.value()), static_cast<double>(best_size.value()))});
    };
    for (const MemoryPart& part : memory_parts)
      if (is_shown(part, own, theirs)) row(part.name, own.*part.size, theirs.*part.size);
    row("peak", own.peak(), theirs.peak());
    memory.rows.push_back({"capacity", gibibytes(own.capacity), gibibytes(theirs.capacity), ""});
    add(std::move(memory));
  }
  for (const std::string& sentence : why.sentences) out.blocks.push_back(Paragraph{sentence, Paragraph::Tone::plain});
}

void add_variants(Page& out, const PlanReport& report) {
  if (report.inputs.base.serving) {
    out.blocks.push_back(server_variants(report));
    return;
  }
  Table table{"what if: the best layout of each variant",
              {{"variant", "", Align::left},
               {"on", "", Align::left},
               {"fit", "", Align::right},
               {"best layout", "", Align::left},
               {"step", "", Align::right},
               {"tokens/s/GPU", "", Align::right},
               {"MFU", "", Align::right},
               {"step against the base", "", Align::right}},
              {}};
  const std::optional<PlannedLayout>& base = report.variants.front().best;
  for (const PlanVariant& v : report.variants) {
    std::vector<std::string> row{v.name.empty() ? "(as it is)" : v.name, gpus_text(v.gpus, v.machine),
                                 fmt::format("{}{}", v.feasible, v.partial ? " (partial)" : "")};
    if (v.best) {
      const bool compared = base && !v.name.empty();
      row.insert(row.end(),
                 {layout_text(v.best->choice, v.base), format_seconds(v.best->step()),
                  figure_text(v.best->rates.tokens_per_s_per_gpu), fmt::format("{:.1f}%", 100 * v.best->rates.mfu),
                  compared ? difference(v.best->step().count(), base->step().count()) : ""});
    } else {
      row.insert(row.end(), {"none fits", "", "", "", ""});
    }
    table.rows.push_back(std::move(row));
  }
  out.blocks.push_back(std::move(table));
}

}  // namespace

std::string partial_text(const PlanReport& report) {
  const auto cut = [&](bool all_seen) {
    if (all_seen && report.result.feasible == 0)
      return "partial: every layout was seen, none fits; stopped before all was tried that would make one fit";
    return all_seen ? "partial: every layout was seen; stopped before the best were simulated"
                    : "partial: stopped before every layout was seen";
  };
  if (!report.result.all_seen || report.variants.empty()) return cut(report.result.all_seen);
  return "partial: stopped before every variant was planned and its best layouts simulated";
}

std::string none_fits_text(bool all_seen, std::int64_t evaluated, const std::string& stopped_by) {
  if (all_seen) return "no layout fits";
  if (evaluated > 0) return "none of the layouts that were looked at fits";
  return "no layout was looked at before the search was stopped" + (stopped_by.empty() ? "" : ": " + stopped_by);
}

std::string nothing_fits_text(const PlanReport& report) {
  const PlanResult& r = report.result;
  if (r.nearest) return none_keeps_limits(report, *r.nearest);
  std::string out = none_fits_text(r.all_seen, r.evaluated, report.stopped_by);
  if (r.smallest) {
    const MemoryUse& m = r.smallest->memory;
    const MemoryPart& breaks = breaking_part(m);
    out += fmt::format("; the smallest, {}, needs {}{} GiB of {}; what breaks the limit: {} ({} GiB)",
                       layout_text(r.smallest->choice, report.inputs.base), r.smallest->at_most ? "at most " : "",
                       gibibytes(m.peak()), gibibytes(m.capacity), breaks.name, gibibytes(m.*breaks.size));
  }
  std::vector<std::string> changes;
  for (const NearMiss& miss : r.near_misses) changes.push_back(near_miss_text(miss, report.inputs.base));
  if (!changes.empty()) out += fmt::format("; one would fit {}", fmt::join(changes, ", or "));
  return out;
}

Page page(const PlanReport& report) {
  const PlanResult& r = report.result;
  const StepInputs& in = report.inputs.base;
  Page out;
  out.title = report.title.empty() ? report.scenario : fmt::format("{}: {}", report.scenario, report.title);
  if (!report.what_if.empty()) out.title += fmt::format(", what if {}", report.what_if);
  const auto plain = [&](std::string text) {
    out.blocks.push_back(Paragraph{std::move(text), Paragraph::Tone::plain});
  };
  if (in.serving) {
    plain(server_title(report));
    if (in.serving->load) plain(server_load_text(*in.serving));
    if (in.serving->speculation) plain(speculation_text(*in.serving));
  } else {
    plain(fmt::format("{} ({} parameters{}), {} x {} tokens per step, on {}, library {}", in.model.name,
                      format_count(parameter_count(in.model)), further_tokens_text(in.model), in.batch.global_batch,
                      in.batch.sequence, gpus_text(report.inputs.gpus, report.machine), report.machine.library));
  }
  const MachineState& machine = report.inputs.machine;
  if (!machine.faults.empty()) plain("faults: " + faults_text(machine.faults));
  if (machine.placement.any()) plain("placement: " + to_text(machine.placement));
  for (const std::string& note : report.notes) out.blocks.push_back(Paragraph{note, Paragraph::Tone::note});
  const std::int64_t rejected = r.evaluated - r.feasible;
  plain(fmt::format("{} evaluated: {} {}, {} {} rejected", counted(r.evaluated, "layout"), r.feasible,
                    r.feasible == 1 ? "fits" : "fit", rejected, rejected == 1 ? "was" : "were"));
  if (r.partial) out.blocks.push_back(Paragraph{partial_text(report), Paragraph::Tone::warning});
  if (r.ranked.empty())
    out.blocks.push_back(Paragraph{nothing_fits_text(report), Paragraph::Tone::warning});
  else
    add_ranking(out, report);
  if (report.machine.calibrated)
    out.blocks.push_back(
        Paragraph{calibrated_text(report.machine, report.inputs.collectives.base_latency), Paragraph::Tone::note});
  for (std::string& text : machine_warnings(report.machine))
    out.blocks.push_back(Paragraph{std::move(text), Paragraph::Tone::warning});
  add_rejected(out, r);
  if (!report.variants.empty()) add_variants(out, report);
  if (report.why) add_why(out, *report.why, report.inputs);
  return out;
}

}  // namespace collcast
