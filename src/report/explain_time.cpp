// The time of a step taken apart: its collectives, the stage with the most work, and the parts of the result. The
// closed form: explain_pipeline.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collcast/base/units.hpp"
#include "report/explain.hpp"
#include "report/faults.hpp"
#include "report/wording.hpp"

namespace collcast {

std::string exact(double count) { return fmt::format("{:.15g}", count); }
std::string precise(Seconds time) { return fmt::format("{:.9g} s", time.count()); }

std::string joined(const std::vector<std::string>& parts) { return fmt::format("{}", fmt::join(parts, " + ")); }

namespace {

Seconds in_total(const CollectiveCost& c) { return c.time * static_cast<double>(c.count); }

Table priced_collectives(const std::vector<CollectiveCost>& collectives, const std::string& when) {
  Table table{{},
              {{"collective", "", Align::left},
               {"group", "", Align::left},
               {"groups at once", "", Align::right},
               {"size", "", Align::right},
               {"algorithm", "", Align::left},
               {"time of one", "", Align::right},
               {fmt::format("per rank and {}", when), "", Align::right}},
              {}};
  for (const CollectiveCost& c : collectives) {
    table.rows.push_back({c.name, ranks_text(c.request.group) + (c.slowest_groups > 0 ? ", the slowest" : ""),
                          fmt::format("{}", c.request.alongside.size() + 1), size_text(c.request.size), c.algorithm,
                          format_seconds(c.time), fmt::format("{}", c.count)});
  }
  return table;
}

/// The faults of links that the collectives were priced with: those of the slowest period.
std::string fault_options(const StepReport& report) {
  std::string out;
  if (!report.faults || report.faults->periods.empty()) return out;
  for (const MachineFault& fault : report.faults->periods[report.faults->worst].faults)
    if (fault.link() != nullptr) out += fmt::format(" --fault '{}'", fault_argument(*fault.link()));
  return out;
}

/// The command that takes one collective apart, as it was priced: beside its sibling groups.
std::string explain_command(const StepReport& report, const CollectiveRequest& request) {
  // Only one algorithm does sendrecv: what the scenario says about the others does not concern it.
  const bool is_nccl = report.machine.library == "nccl";
  const std::string policy = request.kind == CollectiveKind::sendrecv && !is_nccl ? "" : report.policy_options;
  std::string out = fmt::format("collcast explain collective {} {}{} --size {} --group {}", to_string(request.kind),
                                report.machine_options + fault_options(report), policy, size_argument(request.size),
                                ranks_argument(request.group));
  // Library nccl has no groups at once: a group alone is explained.
  if (is_nccl) return out;
  for (const Group& group : request.alongside) out += " --group " + ranks_argument(group);
  return request.alongside.empty() ? out : out + " --concurrent";
}

}  // namespace

Section collectives_section(const StepReport& report, std::string title, const std::string& when,
                            const std::vector<CollectiveCost>& collectives) {
  Section out;
  out.title = std::move(title);
  const StepResult& r = report.result;
  out.text.push_back({fmt::format("of a rank in a {}; one is {} beside its sibling groups, which run at the same time",
                                  when, r.simulate && report.machine.library != "nccl" ? "simulated" : "estimated"),
                      Paragraph::Tone::plain});
  out.tables.push_back(priced_collectives(collectives, when));
  const bool beside = std::any_of(collectives.begin(), collectives.end(),
                                  [](const CollectiveCost& c) { return !c.request.alongside.empty(); });
  if (report.machine.library == "nccl" && beside && !report.machine_options.empty())
    out.text.push_back(
        {"the commands explain a group alone: beside others that cross nodes it has its share of a node's NICs, and "
         "takes longer where all together want more than there are",
         Paragraph::Tone::plain});
  // A collective by itself has the nodes in their order.
  const bool is_placed = report.faults && report.faults->machine.placement.any();
  if (is_placed)
    out.text.push_back({"between the nodes of the placement, which `collcast explain collective` does not know",
                        Paragraph::Tone::plain});
  for (const CollectiveCost& c : collectives) {
    out.terms.push_back({fmt::format("{} of {}", c.name, size_text(c.request.size)), "count x time of one",
                         fmt::format("{} x {}", c.count, format_seconds(c.time)), in_total(c).count(), "s",
                         c.algorithm});
    if (!report.machine_options.empty() && !is_placed) out.commands.push_back(explain_command(report, c.request));
  }
  return out;
}

const StageTerms& terms_of_stage(const StepReport& report) {
  return report.faults && !report.faults->classes.empty() ? report.faults->of_slowest : report.result.stage;
}

namespace {

/// Whose parts the step's are, where a stage's ranks differ.
std::string rank_text(const StepReport& report) {
  if (!report.faults || report.faults->classes.empty()) return "the slowest ranks of that stage";
  const RankClassTimes& one = report.faults->classes[report.faults->slowest];
  return fmt::format("rank {}", one.first.value()) +
         (one.ranks > 1 ? fmt::format(" and {} like it", one.ranks - 1) : "");
}

/// Whose parts the step's are, of which stage.
std::string stage_text(const StepReport& report) {
  const int stages = report.inputs->layout.pp;
  if (report.faults)
    return fmt::format("{}the step's parts are those of {}{}",
                       stages > 1 ? fmt::format("the stage with the most work of {}; ", stages) : "", rank_text(report),
                       is_steady(report) ? "" : ", which below are those of the slowest period, without jitter");
  if (stages == 1) return "all ranks do the same; the step's parts are those of the first";
  return fmt::format("the stage with the most work of {}; the step's parts are those of its first rank", stages);
}

/// One kind of time of a stage's units, as numbers and in total.
struct UnitTimes {
  std::vector<std::string> numbers;
  Seconds total{};
  void add(int count, Seconds each) {
    numbers.push_back((count > 1 ? fmt::format("{} x ", count) : "") + format_seconds(each));
    total += count * each;
  }
};

/// All that a micro-batch takes on a stage, over its units.
struct StageTimes {
  explicit StageTimes(const StageTerms& stage) {
    for (const StageTerms::Unit& unit : stage.units) {
      names.push_back(unit.count > 1 ? fmt::format("{} x {}", plural(unit.name), unit.name) : unit.name);
      compute.add(unit.count, unit.compute);
      tp.add(unit.count, unit.tp);
      cp.add(unit.count, unit.cp);
      ep.add(unit.count, unit.ep);
      waits += unit.count * unit.waits;
    }
  }
  Term term(const char* name, const UnitTimes& of, std::string source) const {
    return {name, joined(names), joined(of.numbers), of.total.count(), "s", std::move(source)};
  }
  std::vector<std::string> names;
  UnitTimes compute, tp, cp, ep;
  Seconds waits{};
};

Term layers_term(const StepInputs& in, int stage) {
  const double layers = parameter_terms(in, stage).all_layers();
  const StageLayersText counted = stage_layers_text(in, layers);
  return {"layers of a stage",
          counted.uneven ? "of this one of uneven stages" : counted.formula,
          counted.numbers,
          layers,
          "",
          ""};
}

Term stage_tp_term(const StepInputs& in, const StageTimes& times) {
  return times.term("TP of a micro-batch", times.tp,
                    in.options.overlap_tp == TpOverlap::none
                        ? "collectives forward and backward; none is hidden"
                        : "collectives forward and backward, less the products beside them, which count in compute and "
                          "go at the rate that a collective leaves them");
}

Term stage_cp_term(const StepInputs& in, const StageTimes& times) {
  return times.term("exposed CP of a micro-batch", times.cp,
                    in.layout.cp_exchange == ContextExchange::ring
                        ? "messages of keys, values and their gradients, less the block of attention beside each"
                        : "all-to-alls before and after attention; none is hidden");
}

Term stage_ep_term(const StepInputs& in, const StageTimes& times) {
  return times.term(
      "EP of a micro-batch", times.ep,
      in.options.overlap_ep
          ? "dispatch and combine, less the kernels of the pass, which are taken to be another micro-batch's"
          : "dispatch and combine, forward and backward, and the exchange of ranks that share an expert; none is "
            "hidden");
}

Term dispatched_term(double dispatched) {
  return {"dispatched of the experts' rows",
          "sum of P(other node) / (K (e - n) / e)",
          {},
          dispatched,
          "",
          "tokens go once to each node, and there to each rank, that has experts of theirs (moe_token_dispatcher: "
          "flex), n of e ranks on a node; inside one node: sum of P(rank) / K"};
}

}  // namespace

Section stage_section(const StepReport& report) {
  const StepInputs& in = *report.inputs;
  const StageTerms& stage = terms_of_stage(report);
  const StageTimes times(stage);
  Section out;
  out.title = fmt::format("stage {}, one micro-batch", stage.stage);
  out.text.push_back(remark(stage_text(report)));
  const bool copies = in.options.cpu_offloading_num_layers > 0;
  if (const auto text = copies ? copies_text(in) : std::nullopt) out.text.push_back(remark(*text));
  out.terms.push_back(layers_term(in, stage.stage));
  out.terms.push_back(
      times.term("compute of a micro-batch", times.compute,
                 fmt::format("kernels forward and backward, with recomputation{}", waits_for_host(in, times.waits))));
  if (copies) out.terms.push_back(copies_term(in));
  out.terms.push_back(stage_tp_term(in, times));
  if (in.layout.cp > 1) out.terms.push_back(stage_cp_term(in, times));
  if (in.layout.ep > 1 || times.ep.total > Seconds{}) out.terms.push_back(stage_ep_term(in, times));
  if (in.layout.ep > 1 && in.options.moe_token_dispatcher == TokenDispatcher::flex)
    out.terms.push_back(dispatched_term(stage.dispatched));
  return out;
}

namespace {

Term dp_term(const StepInputs& in, const StepResult& r) {
  const Breakdown& b = r.breakdown;
  if (!r.simulate && r.closed_form.sharding.by_turns)
    return {"DP exposed",
            {},
            {},
            b.dp_exposed.count(),
            "s",
            "of what gathers and reductions add to the pipeline, and the parameter gather, what is no computing"};
  if (!r.simulate && r.closed_form.sharding.exposed() > Seconds{})
    return {
        "DP exposed", "exposed sharding",      format_seconds(r.closed_form.sharding.exposed()), b.dp_exposed.count(),
        "s",          "computing waits for it"};
  if (!r.simulate)
    return {"DP exposed",
            "exposed gradients + parameter gather",
            fmt::format("{} + {}", format_seconds(r.closed_form.gradients.exposed()), format_seconds(r.stage.gather)),
            b.dp_exposed.count(),
            "s",
            "computing waits for them"};
  Seconds total{};
  for (const CollectiveCost& c : r.collectives)
    if (c.dimension == Dimension::dp) total += in_total(c);
  const Seconds hidden = total - b.dp_exposed;
  const char* source = in.layout.pp > 1
                           ? "what they add to the step; the rest lies under computing, or where the pipeline waits"
                           : "of the timeline: when only they run; the rest lies under computing";
  if (hidden < Seconds{}) return {"DP exposed", {}, {}, b.dp_exposed.count(), "s", source};
  return {"DP exposed",
          "all DP collectives - hidden",
          fmt::format("{} - {}", precise(total), precise(hidden)),
          b.dp_exposed.count(),
          "s",
          source};
}

Term optimizer_term(const StepResult& r, const StageTerms& stage) {
  std::vector<std::string> names, times;
  std::string source = "memory-bound kernels over the rank's share";
  for (const Operation& op : stage.optimizer) {
    names.push_back(op.name);
    times.push_back(format_seconds(op.time));
    if (op.is_wait()) source += ", and waits for copies";
  }
  return {"optimizer", joined(names), joined(times), r.breakdown.optimizer.count(), "s", source};
}

Term bubble_term(const StepResult& r) {
  const Breakdown& b = r.breakdown;
  std::string numbers = precise(r.step);
  for (const Seconds part :
       {b.compute, b.tp_exposed, b.cp_exposed, b.ep_exposed, b.pp_exposed, b.dp_exposed, b.optimizer})
    if (part > Seconds{}) numbers += " - " + precise(part);
  return {
      "bubble",
      "step - all other parts",
      numbers,
      b.bubble.count(),
      "s",
      r.simulate ? "of the timeline: the rank waits, and would without messages" : "filling and draining the pipeline"};
}

/// The parts of a modelled step, each with its formula.
void add_parts(Section& out, const StepReport& report) {
  const StepInputs& in = *report.inputs;
  const StepResult& r = report.result;
  const Breakdown& b = r.breakdown;
  const StageTerms& stage = terms_of_stage(report);
  Seconds compute{}, tp{}, cp{}, ep{};
  for (const StageTerms::Unit& unit : stage.units) {
    compute += unit.count * unit.compute;
    tp += unit.count * unit.tp;
    cp += unit.count * unit.cp;
    ep += unit.count * unit.ep;
  }
  const auto add = [&](Seconds part, Term term) {
    if (std::abs(part.count()) > 1e-9 * r.step.count()) out.terms.push_back(std::move(term));
  };
  // With DualPipe a stage has two slices, each of which half of the micro-batches pass.
  const int m = r.micro_batches / in.layout.twins();
  const std::string times = in.layout.twins() > 1 ? "m/2 x " : "m x ";
  const auto part = [&](const char* name, Seconds is, const char* of, Seconds each, const char* source) {
    const Seconds less = m * each - is;
    // What the kernels that DP slows hide besides.
    const bool hides = std::abs(less.count()) > 1e-9 * r.step.count() && r.slowdown.dp > Seconds{};
    add(is, {name, times + of + (hides ? " - hidden" : ""),
             fmt::format("{} x {}", m, hides ? precise(each) + " - " + precise(less) : format_seconds(each)),
             is.count(), "s", source});
  };
  const bool slowed = r.slowdown.dp > 1e-9 * r.step;
  add(b.compute, {"compute", times + "compute of a micro-batch" + (slowed ? " + slowed by DP" : ""),
                  fmt::format("{} x {}", m, format_seconds(compute)) + (slowed ? " + " + precise(r.slowdown.dp) : ""),
                  b.compute.count(), "s", ""});
  part("TP exposed", b.tp_exposed, "TP of a micro-batch", tp, "computing waits for every one");
  part("CP exposed", b.cp_exposed, "exposed CP of a micro-batch", cp, "what attention does not hide");
  part("EP exposed", b.ep_exposed, "EP of a micro-batch", ep, "computing waits for every one");
  const bool all_shows = b.pp_exposed >= r.closed_form.transfers;
  add(b.pp_exposed,
      r.simulate || !all_shows
          ? Term{"PP exposed", {}, {}, b.pp_exposed.count(), "s", "what messages add to the pipeline; the rank waits"}
          : Term{"PP exposed", "pipeline - pipeline without transfers",
                 fmt::format("{} - {}", precise(r.closed_form.pipeline.total()),
                             precise(r.closed_form.pipeline.total() - r.closed_form.transfers)),
                 b.pp_exposed.count(), "s", "what transfers add to the pipeline"});
  add(b.dp_exposed, dp_term(in, r));
  add(b.optimizer, optimizer_term(r, stage));
  add(b.bubble, bubble_term(r));
}

/// Those that are sums over a timeline, or over periods: of tasks with given times, and of machines that change.
void add_sums(Section& out, const StepReport& report) {
  const StepResult& r = report.result;
  const Breakdown& b = r.breakdown;
  const char* source = !report.inputs ? "tasks of the scenario, as far as nothing hides them"
                       : r.simulate   ? "of the timeline, as the machine was at each time"
                                      : "of each period's step, as much as is done in it";
  const auto add = [&](const char* name, Seconds time) {
    if (std::abs(time.count()) > 1e-9 * r.step.count()) out.terms.push_back({name, {}, {}, time.count(), "s", source});
  };
  add("compute", b.compute);
  add("TP exposed", b.tp_exposed);
  add("CP exposed", b.cp_exposed);
  add("EP exposed", b.ep_exposed);
  add("PP exposed", b.pp_exposed);
  add("DP exposed", b.dp_exposed);
  add("bubble", b.bubble);
  add("optimizer", b.optimizer);
}

void say_what_was_simulated(Section& out, const StepReport& report) {
  const StepResult& r = report.result;
  const std::string operations = counted(r.simulated_operations, "operation");
  if (!report.inputs) {
    out.text.push_back(
        {fmt::format("simulated: {} of given length on their streams", operations), Paragraph::Tone::plain});
    return;
  }
  const char* length = report.machine.library == "nccl" ? "the closed form of NCCL's run" : "its own simulation";
  const FaultEffect* effect = report.faults ? &*report.faults : nullptr;
  const std::string ranks =
      effect ? fmt::format("{} in {} classes, one rank each", counted(effect->ranks, "rank"), effect->classes.size())
             : fmt::format("{} of one rank each", counted(report.inputs->layout.pp, "stage"));
  out.text.push_back({fmt::format("simulated: a timeline of {} on {}, with streams for computing, TP, messages each "
                                  "way and DP; a collective is one operation as long as {} beside its sibling groups",
                                  operations, ranks, length),
                      Paragraph::Tone::plain});
  // How far kernels are slowed is known of some GPUs; then it is in the times of the kernels.
  const char* slowed = r.slowdown.rate < 1 ? "collectives slowed by kernels beside them"
                                           : "kernels and collectives that slow each other";
  out.text.push_back(
      {fmt::format("not simulated: other ranks of a {} (they do the same), collectives of different kinds that share "
                   "links, {}",
                   effect ? "class" : "stage", slowed),
       Paragraph::Tone::plain});
}

}  // namespace

Section step_section(const StepReport& report) {
  const StepResult& r = report.result;
  Section out;
  out.title = "step";
  if (r.simulate) say_what_was_simulated(out, report);
  if (report.inputs && is_steady(report))
    add_parts(out, report);
  else
    add_sums(out, report);
  std::vector<std::string> times;
  for (const Term& term : out.terms) times.push_back(format_seconds(Seconds(term.value)));
  out.terms.push_back({"step", "sum of the parts", times.size() > 1 ? joined(times) : "", r.breakdown.total().count(),
                       "s", r.simulate ? "from the simulated timeline" : "by closed form"});
  out.terms.push_back(
      {"closed form", {}, {}, r.estimate.count(), "s", report.inputs ? "as above" : "the longest path"});
  if (r.simulate) {
    const std::string difference = difference_text(*r.simulate, r.estimate);
    out.terms.push_back({"simulation",
                         {},
                         {},
                         r.simulate->count(),
                         "s",
                         difference.empty() ? "as the closed form" : difference + " against the closed form"});
  }
  return out;
}

}  // namespace collcast
