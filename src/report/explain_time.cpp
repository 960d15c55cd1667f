// The time of a step taken apart: its collectives, the stage with the most work, the closed form, and the parts of the
// result. Equations: src/workload/pipeline.hpp and estimate_step.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collcast/base/units.hpp"
#include "collcast/workload/own_schedule.hpp"
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
               {"first group", "", Align::left},
               {"groups at once", "", Align::right},
               {"size", "", Align::right},
               {"algorithm", "", Align::left},
               {"time of one", "", Align::right},
               {fmt::format("per rank and {}", when), "", Align::right}},
              {}};
  for (const CollectiveCost& c : collectives) {
    table.rows.push_back({c.name, ranks_text(c.request.group), fmt::format("{}", c.request.alongside.size() + 1),
                          size_text(c.request.size), c.algorithm, format_seconds(c.time), fmt::format("{}", c.count)});
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

namespace {

/// Of the rank that the parts are of: with faults not all ranks of the stage take the same.
const StageTerms& terms_of_stage(const StepReport& report) {
  return report.faults && !report.faults->classes.empty() ? report.faults->of_slowest : report.result.stage;
}

/// Whose parts the step's are, where a stage's ranks differ.
std::string rank_text(const StepReport& report) {
  if (!report.faults || report.faults->classes.empty()) return "the slowest ranks of that stage";
  const RankClassTimes& one = report.faults->classes[report.faults->slowest];
  return fmt::format("rank {}", one.first.value()) +
         (one.ranks > 1 ? fmt::format(" and {} like it", one.ranks - 1) : "");
}

}  // namespace

Section stage_section(const StepReport& report) {
  const StepInputs& in = *report.inputs;
  const StageTerms& stage = terms_of_stage(report);
  Section out;
  out.title = fmt::format("stage {}, one micro-batch", stage.stage);
  if (report.faults)
    out.text.push_back(
        {fmt::format("{}the step's parts are those of {}{}",
                     in.layout.pp > 1 ? fmt::format("the stage with the most work of {}; ", in.layout.pp) : "",
                     rank_text(report),
                     is_steady(report) ? "" : ", which below are those of the slowest period, without jitter"),
         Paragraph::Tone::plain});
  else
    out.text.push_back({in.layout.pp > 1
                            ? fmt::format("the stage with the most work of {}; the step's parts are those of "
                                          "its first rank",
                                          in.layout.pp)
                            : "all ranks do the same; the step's parts are those of the first",
                        Paragraph::Tone::plain});
  std::vector<std::string> names, compute, tp, cp, ep;
  Seconds compute_sum{}, tp_sum{}, cp_sum{}, ep_sum{}, waits{};
  for (const StageTerms::Unit& unit : stage.units) {
    names.push_back(unit.count > 1 ? fmt::format("{} x {}", plural(unit.name), unit.name) : unit.name);
    const std::string count = unit.count > 1 ? fmt::format("{} x ", unit.count) : "";
    compute.push_back(count + format_seconds(unit.compute));
    tp.push_back(count + format_seconds(unit.tp));
    cp.push_back(count + format_seconds(unit.cp));
    ep.push_back(count + format_seconds(unit.ep));
    cp_sum += unit.count * unit.cp;
    ep_sum += unit.count * unit.ep;
    compute_sum += unit.count * unit.compute;
    waits += unit.count * unit.waits;
    tp_sum += unit.count * unit.tp;
  }
  const double layers = parameter_terms(in, stage.stage).all_layers();
  const StageLayersText counted = stage_layers_text(in, layers);
  out.terms.push_back({"layers of a stage", counted.uneven ? "of this one of uneven stages" : counted.formula,
                       counted.numbers, layers, "", ""});
  out.terms.push_back({"compute of a micro-batch", joined(names), joined(compute), compute_sum.count(), "s",
                       fmt::format("kernels forward and backward, with recomputation{}", waits_for_host(in, waits))});
  if (in.options.cpu_offloading_num_layers > 0) out.terms.push_back(copies_term(in));
  out.terms.push_back({"TP of a micro-batch", joined(names), joined(tp), tp_sum.count(), "s",
                       in.options.overlap_tp == TpOverlap::none
                           ? "collectives forward and backward; none is hidden"
                           : "collectives forward and backward, less the products beside them, which count in compute "
                             "and go at the rate that a collective leaves them"});
  if (in.layout.cp > 1)
    out.terms.push_back({"exposed CP of a micro-batch", joined(names), joined(cp), cp_sum.count(), "s",
                         in.layout.cp_exchange == ContextExchange::ring
                             ? "messages of keys, values and their gradients, less the block of attention beside each"
                             : "all-to-alls before and after attention; none is hidden"});
  if (in.layout.ep > 1 || ep_sum > Seconds{})
    out.terms.push_back({"EP of a micro-batch", joined(names), joined(ep), ep_sum.count(), "s",
                         in.options.overlap_ep
                             ? "dispatch and combine, less the kernels of the pass, which are taken to be another "
                               "micro-batch's"
                             : "dispatch and combine, forward and backward, and the exchange of ranks that share an "
                               "expert; none is hidden"});
  if (in.layout.ep > 1 && in.options.moe_token_dispatcher == TokenDispatcher::flex)
    out.terms.push_back({"dispatched of the experts' rows",
                         "sum of P(other node) / (K (e - n) / e)",
                         {},
                         stage.dispatched,
                         "",
                         "tokens go once to each node, and there to each rank, that has experts of theirs "
                         "(moe_token_dispatcher: flex), n of e ranks on a node; inside one node: sum of P(rank) / K"});
  return out;
}

namespace {

const char* name_of(PipelineSchedule);

/// One's own has a name of its own.
std::string name_of(const ParallelLayout& l) {
  return is_own(l.schedule) ? fmt::format("{} (a schedule of your own)", l.own->name) : name_of(l.schedule);
}

const char* name_of(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::gpipe:
      return "GPipe";
    case PipelineSchedule::one_f_one_b:
      return "1F1B";
    case PipelineSchedule::interleaved:
      return "interleaved 1F1B";
    case PipelineSchedule::zb_h1:
      return "zero bubble H1";
    case PipelineSchedule::zb_h2:
      return "zero bubble H2";
    case PipelineSchedule::zb_1p:
      return "zero bubble 1p";
    case PipelineSchedule::zb_2p:
      return "zero bubble 2p";
    case PipelineSchedule::zb_v:
      return "zero bubble V";
    case PipelineSchedule::dualpipe:
      return "DualPipe";
    case PipelineSchedule::dualpipe_v:
      return "DualPipeV";
    case PipelineSchedule::own:
    case PipelineSchedule::own_split:
    case PipelineSchedule::own_v:
    case PipelineSchedule::own_v_split:
      return "the order of work that is given";
  }
  check(false, "a known pipeline schedule");
  return {};
}

/// What F, B, W and C of the first micro-batch are.
std::string terms_of_first(const ParallelLayout& l) {
  const bool splits = splits_backward(l.schedule);
  if (l.schedule == PipelineSchedule::interleaved || (is_own(l.schedule) && l.vpp > 1))
    return fmt::format("{}, all its chunks; C: each of {} transfers between two of the {} chunks",
                       splits ? "F, B, W: forward, backward and weight gradients of each stage"
                              : "F, B: forward and backward of each stage",
                       l.pp * l.vpp - 1, l.pp * l.vpp);
  if (from_both_ends(l.schedule))
    return fmt::format(
        "F, B, W: forward, backward and weight gradients of one stage of each pair, both its chunks, a micro-batch of "
        "either way; C: each of {} transfers between two stages",
        l.pp - 1);
  if (goes_in_v(l.schedule))
    return fmt::format("{}, both its chunks; C: each of the {} transfers on the way down the stages and up",
                       splits ? "F, B, W: forward, backward and weight gradients of each stage"
                              : "F, B: forward and backward of each stage",
                       2 * (l.pp - 1));
  return splits ? "F, B, W: forward, backward and weight gradients of each stage; C: a transfer between two"
                : "F, B: forward and backward of each stage; C: a transfer between two";
}

Term first_term(const StepInputs& in, const PipelineTerms& p) {
  const bool splits = splits_backward(in.layout.schedule);
  return {"first micro-batch",
          splits ? "sum(F + B + W) + 2 sum(C)" : "sum(F + B) + 2 sum(C)",
          fmt::format("{} + 2 x {}", format_seconds(p.work), format_seconds(p.transfers)),
          (p.work + 2 * p.transfers).count(),
          "s",
          terms_of_first(in.layout)};
}

/// What begin and end of an order add to the work of the slowest stage.
const char* meaning_of_ends(PipelineSchedule schedule) {
  if (schedule == PipelineSchedule::zb_v)
    return "with sums over the others and c = sum(C)/2 the most of sum(F)/2 + 5c, sum(B)/2 + 5c, sum(W)/2 + 3c, "
           "sum(F - B/2) + 3c, sum(F - W) + 4c, sum((F + B)/2 - W) + 6c, sum(B - W) + 6c";
  if (from_both_ends(schedule))
    return "with sums over the other pairs the most of sum(F + 2B - W)/2, sum(2F + B - W)/2 and sum(F), and C between "
           "stages";
  if (schedule == PipelineSchedule::dualpipe_v)
    return "with sums over the others the most of sum(F + 2B - W)/2, sum(2F + B - W)/2 and sum(F), and C of the way "
           "down the stages and up";
  return "until the last stage begins, sum(F + C) over the others";
}

/// The m - 1 micro-batches after the first.
Term rest_term(const StepInputs& in, const PipelineTerms& p) {
  const int m = in.batch.passes(in.layout), n = p.last - p.first + 1;
  if (is_own(in.layout.schedule))
    return {"further micro-batches",
            "m X - first",
            fmt::format("{} x {} - {} - 2 x {}", m, precise(p.window_work), precise(p.work), precise(p.transfers)),
            p.rest.count(),
            "s",
            fmt::format("stage {} sets the pace, X is all that it does for a micro-batch", p.first)};
  if (m == 1 && !splits_backward(in.layout.schedule))
    return {"further micro-batches", {}, {}, 0, "s", "there is one micro-batch"};
  if (goes_in_v(in.layout.schedule) || made_for_times(in.layout.schedule))
    return {"further micro-batches",
            from_both_ends(in.layout.schedule) ? "m/2 X + ends - first" : "m X + ends - first",
            fmt::format("{} x {} + {} - {} - 2 x {}", m, precise(p.window_work), precise(p.ends), precise(p.work),
                        precise(p.transfers)),
            p.rest.count(),
            "s",
            fmt::format("{}: stage {} sets the pace, X is its F + B + W; ends: {}", name_of(in.layout.schedule),
                        p.first, meaning_of_ends(in.layout.schedule))};
  if (splits_backward(in.layout.schedule)) {
    const bool h1 = in.layout.schedule == PipelineSchedule::zb_h1;
    return {"further micro-batches",
            fmt::format("m X + max(sum(F + B + W) - X - filled + {} sum(C), 0) - first", h1 ? 4 : 2),
            fmt::format("{} x {} + max({} - {} - {} + {} x {}, 0) - {} - 2 x {}", m, precise(p.window_work),
                        precise(p.work), precise(p.window_work), precise(p.filled), h1 ? 4 : 2, precise(p.transfers),
                        precise(p.work), precise(p.transfers)),
            p.rest.count(),
            "s",
            fmt::format("zero bubble: stage {} sets the pace, X is its F + B + W; filled: {} W of each other stage",
                        p.first, h1 ? 2 : 3)};
  }
  if (in.layout.schedule == PipelineSchedule::interleaved)
    return {"further micro-batches",
            "m W + (sum(F + B) - W)/VPP - sum(F + B)",
            fmt::format("{} x {} + ({} - {}) / {} - {}", m, precise(p.window_work), precise(p.work),
                        precise(p.window_work), in.layout.vpp, precise(p.work)),
            p.rest.count(),
            "s",
            fmt::format("interleaved 1F1B: stage {} sets the pace, its F + B is W; the others fill and drain by a "
                        "chunk each",
                        p.first)};
  if (in.layout.schedule == PipelineSchedule::gpipe)
    return {"further micro-batches",
            "(m-1) (max(F, C) + max(B, C))",
            fmt::format("({} - 1) ({} + {})", m, format_seconds(p.slowest_forward), format_seconds(p.slowest_backward)),
            p.rest.count(),
            "s",
            "GPipe: the slowest stage or transfer forward, and the slowest backward"};
  if (n == 1)
    return {"further micro-batches",
            "(m-1) (F + B)",
            fmt::format("({} - 1) {}", m, format_seconds(p.window_work)),
            p.rest.count(),
            "s",
            fmt::format("1F1B: stage {} sets the pace", p.first)};
  return {"further micro-batches",
          "(m-1) mean(F + B) + 2 mean(C) ((m-1) - ceil((m-1)/n))",
          fmt::format("({} - 1) {} / {} + 2 x {} / {} (({} - 1) - ceil(({} - 1) / {}))", m,
                      format_seconds(p.window_work), n, format_seconds(p.window_transfers), n - 1, m, m, n),
          p.rest.count(),
          "s",
          fmt::format("1F1B: the {} stages {} to {} set the pace", n, p.first, p.last)};
}

std::string gather_source(const StepInputs& in, int stage) {
  if (in.options.zero == 3) return "weights are gathered in the passes";
  return fmt::format("stage {} is last; the gather belongs to ZeRO-{}", stage, std::max(in.options.zero, 1));
}

}  // namespace

Section closed_form_section(const StepReport& report) {
  const StepInputs& in = *report.inputs;
  const StepResult& r = report.result;
  const ClosedForm& form = r.closed_form;
  const bool one_period = !report.faults || report.faults->periods.size() <= 1;
  Section out;
  out.title = one_period ? "closed form of the step" : "closed form of a step of the slowest period";
  if (!one_period) {
    const FaultPeriod& worst = report.faults->periods[report.faults->worst];
    out.text.push_back({fmt::format("as if the step went on as from {} on ({})", format_seconds(worst.begin),
                                    worst.faults.empty() ? "no faults" : faults_text(worst.faults)),
                        Paragraph::Tone::plain});
  }
  if (report.faults)
    out.text.push_back(
        {"each stage as its slowest ranks: an upper bound where several differ", Paragraph::Tone::plain});
  if (!in.options.overlap_pp && in.layout.pp > 1)
    out.text.push_back(
        {goes_in_v(in.layout.schedule)
             ? "transfers block: C is in F and B of both stages, each of which sends activations and gradients"
             : "transfers block: C is in F of the sender and B of the receiver of an activation",
         Paragraph::Tone::plain});
  if (in.layout.pp > 1)
    out.text.push_back(
        {fmt::format("schedule: {}{}", name_of(in.layout),
                     in.layout.chunks() > 1 ? fmt::format(", {} chunks a stage", in.layout.chunks()) : std::string()),
         Paragraph::Tone::plain});
  out.terms.push_back({"m", "global batch / (micro-batch x DP)",
                       fmt::format("{} / ({} x {})", in.batch.global_batch, in.batch.micro_batch, in.layout.dp),
                       static_cast<double>(r.micro_batches), "", "micro-batches of a replica"});
  out.terms.push_back(first_term(in, form.pipeline));
  out.terms.push_back(rest_term(in, form.pipeline));
  if (form.pipeline.order != Seconds{})
    out.terms.push_back(
        {"order of work",
         {},
         {},
         form.pipeline.order.count(),
         "s",
         fmt::format("{} gone through stage by stage{}: less the two lines above", name_of(in.layout.schedule),
                     made_for_times(in.layout.schedule) || is_own(in.layout.schedule)
                         ? ""
                         : ", where stages or transfers differ")});
  if (form.slowed != Seconds{})
    out.terms.push_back({"slowed",
                         {},
                         {},
                         form.slowed.count(),
                         "s",
                         fmt::format("gone through again with products and attention at {:.2f} of their rate while "
                                     "DP's collectives run",
                                     r.slowdown.rate)});
  const bool exchanges = in.layout.replicas() > 1 || (in.layout.experts_apart() && in.layout.expert_replicas() > 1);
  if (exchanges && (in.options.zero == 3 || form.sharding.by_turns))
    out.terms.push_back(sharding_term(form.sharding, in.options.overlap_dp));
  else if (exchanges || form.gradients.tied > Seconds{})
    out.terms.push_back(gradients_term(form.gradients));
  if (in.options.optimizer || form.optimizer > Seconds{})
    out.terms.push_back({"optimizer and gather", "optimizer + parameter gather",
                         fmt::format("{} + {}", format_seconds(form.optimizer), format_seconds(form.gather)),
                         (form.optimizer + form.gather).count(), "s", gather_source(in, form.update_stage)});
  std::vector<std::string> names, times;
  for (const Term& term : out.terms) {
    if (term.unit != "s") continue;
    names.push_back(term.name);
    times.push_back(format_seconds(Seconds(term.value)));
  }
  out.terms.push_back({one_period ? "closed form" : "step if it stayed so", joined(names), joined(times),
                       form.total().count(), "s", "collectives priced by closed form"});
  return out;
}

namespace {

Term dp_term(const StepResult& r) {
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
  const char* source = r.closed_form.transfers > Seconds{}
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
  add(b.dp_exposed, dp_term(r));
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
  out.text.push_back(
      {fmt::format("not simulated: other ranks of a {} (they do the same), collectives of different kinds that share "
                   "links, kernels slowed by communication",
                   effect ? "class" : "stage"),
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
