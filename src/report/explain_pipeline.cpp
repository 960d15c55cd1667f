// The closed form of a step taken apart: the pipeline by its schedule, what replicas exchange, and the update.
// Equations: src/workload/schedules/pipeline.hpp and estimate_step.hpp.
#include <fmt/format.h>

#include <algorithm>

#include "collcast/base/units.hpp"
#include "collcast/workload/gradient_alignment.hpp"
#include "collcast/workload/own_schedule.hpp"
#include "report/explain.hpp"
#include "report/faults.hpp"

namespace collcast {

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

Term further_term(const PipelineTerms& p, std::string formula, std::string numbers, std::string source) {
  return {"further micro-batches", std::move(formula), std::move(numbers), p.rest.count(), "s", std::move(source)};
}

Term rest_of_own(int m, const PipelineTerms& p) {
  return further_term(
      p, "m X - first",
      fmt::format("{} x {} - {} - 2 x {}", m, precise(p.window_work), precise(p.work), precise(p.transfers)),
      fmt::format("stage {} sets the pace, X is all that it does for a micro-batch", p.first));
}

/// Of an order whose ends are given: in a V, or made for the stages' times.
Term rest_with_ends(int m, const PipelineTerms& p, PipelineSchedule schedule) {
  return further_term(p, from_both_ends(schedule) ? "m/2 X + ends - first" : "m X + ends - first",
                      fmt::format("{} x {} + {} - {} - 2 x {}", m, precise(p.window_work), precise(p.ends),
                                  precise(p.work), precise(p.transfers)),
                      fmt::format("{}: stage {} sets the pace, X is its F + B + W; ends: {}", name_of(schedule),
                                  p.first, meaning_of_ends(schedule)));
}

Term rest_of_zero_bubble(int m, const PipelineTerms& p, bool h1) {
  return further_term(
      p, fmt::format("m X + max(sum(F + B + W) - X - filled + {} sum(C), 0) - first", h1 ? 4 : 2),
      fmt::format("{} x {} + max({} - {} - {} + {} x {}, 0) - {} - 2 x {}", m, precise(p.window_work), precise(p.work),
                  precise(p.window_work), precise(p.filled), h1 ? 4 : 2, precise(p.transfers), precise(p.work),
                  precise(p.transfers)),
      fmt::format("zero bubble: stage {} sets the pace, X is its F + B + W; filled: {} W of each other stage", p.first,
                  h1 ? 2 : 3));
}

Term rest_of_interleaved(int m, const PipelineTerms& p, int vpp) {
  return further_term(p, "m W + (sum(F + B) - W)/VPP - sum(F + B)",
                      fmt::format("{} x {} + ({} - {}) / {} - {}", m, precise(p.window_work), precise(p.work),
                                  precise(p.window_work), vpp, precise(p.work)),
                      fmt::format("interleaved 1F1B: stage {} sets the pace, its F + B is W; the others fill and "
                                  "drain by a chunk each",
                                  p.first));
}

Term rest_of_gpipe(int m, const PipelineTerms& p) {
  return further_term(
      p, "(m-1) (max(F, C) + max(B, C))",
      fmt::format("({} - 1) ({} + {})", m, format_seconds(p.slowest_forward), format_seconds(p.slowest_backward)),
      "GPipe: the slowest stage or transfer forward, and the slowest backward");
}

Term rest_of_1f1b(int m, const PipelineTerms& p) {
  const int n = p.last - p.first + 1;
  if (n == 1)
    return further_term(p, "(m-1) (F + B)", fmt::format("({} - 1) {}", m, format_seconds(p.window_work)),
                        fmt::format("1F1B: stage {} sets the pace", p.first));
  return further_term(p, "(m-1) mean(F + B) + 2 mean(C) ((m-1) - ceil((m-1)/n))",
                      fmt::format("({} - 1) {} / {} + 2 x {} / {} (({} - 1) - ceil(({} - 1) / {}))", m,
                                  format_seconds(p.window_work), n, format_seconds(p.window_transfers), n - 1, m, m, n),
                      fmt::format("1F1B: the {} stages {} to {} set the pace", n, p.first, p.last));
}

/// The m - 1 micro-batches after the first.
Term rest_term(const StepInputs& in, const PipelineTerms& p) {
  const int m = in.batch.passes(in.layout);
  const PipelineSchedule schedule = in.layout.schedule;
  if (is_own(schedule)) return rest_of_own(m, p);
  if (m == 1 && !splits_backward(schedule))
    return {"further micro-batches", {}, {}, 0, "s", "there is one micro-batch"};
  if (goes_in_v(schedule) || made_for_times(schedule)) return rest_with_ends(m, p, schedule);
  if (splits_backward(schedule)) return rest_of_zero_bubble(m, p, schedule == PipelineSchedule::zb_h1);
  if (schedule == PipelineSchedule::interleaved) return rest_of_interleaved(m, p, in.layout.vpp);
  if (schedule == PipelineSchedule::gpipe) return rest_of_gpipe(m, p);
  return rest_of_1f1b(m, p);
}

std::string gather_source(const StepInputs& in, int stage) {
  if (in.options.zero == 3) return "weights are gathered in the passes";
  return fmt::format("stage {} is last; the gather belongs to ZeRO-{}", stage, std::max(in.options.zero, 1));
}

/// Of which machine and schedule the closed form is.
void add_setting(Section& out, const StepReport& report, bool one_period) {
  const StepInputs& in = *report.inputs;
  if (!one_period) {
    const FaultPeriod& worst = report.faults->periods[report.faults->worst];
    out.text.push_back(remark(fmt::format("as if the step went on as from {} on ({})", format_seconds(worst.begin),
                                          worst.faults.empty() ? "no faults" : faults_text(worst.faults))));
  }
  if (report.faults) out.text.push_back(remark("each stage as its slowest ranks: an upper bound where several differ"));
  if (in.layout.pp == 1) return;
  if (!in.options.overlap_pp)
    out.text.push_back(
        remark(goes_in_v(in.layout.schedule)
                   ? "transfers block: C is in F and B of both stages, each of which sends activations and gradients"
                   : "transfers block: C is in F of the sender and B of the receiver of an activation"));
  out.text.push_back(remark(
      fmt::format("schedule: {}{}", name_of(in.layout),
                  in.layout.chunks() > 1 ? fmt::format(", {} chunks a stage", in.layout.chunks()) : std::string())));
  if (!aligns_gradients(in)) return;
  out.text.push_back(remark(
      in.layout.schedule == PipelineSchedule::interleaved
          ? "gradients: stage i reduces a chunk behind the i-th backward after the chunk's last (align_grad_reduce)"
          : "gradients: stage 0 reduces them in its last backward, the others behind theirs (align_grad_reduce)"));
}

/// What the order of work leaves of the two lines above, where stages or transfers are not alike.
Term order_term(PipelineSchedule schedule, Seconds order) {
  return {"order of work",
          {},
          {},
          order.count(),
          "s",
          fmt::format("{} gone through stage by stage{}: less the two lines above", name_of(schedule),
                      made_for_times(schedule) || is_own(schedule) ? "" : ", where stages or transfers differ")};
}

Term slowed_term(Seconds slowed, double rate) {
  return {"slowed",
          {},
          {},
          slowed.count(),
          "s",
          fmt::format("gone through again with products and attention at {:.2f} of their rate while DP's collectives "
                      "run",
                      rate)};
}

void add_pipeline(Section& out, const StepInputs& in, const StepResult& r) {
  const ClosedForm& form = r.closed_form;
  out.terms.push_back({"m", "global batch / (micro-batch x DP)",
                       fmt::format("{} / ({} x {})", in.batch.global_batch, in.batch.micro_batch, in.layout.dp),
                       static_cast<double>(r.micro_batches), "", "micro-batches of a replica"});
  out.terms.push_back(first_term(in, form.pipeline));
  out.terms.push_back(rest_term(in, form.pipeline));
  if (form.pipeline.order != Seconds{}) out.terms.push_back(order_term(in.layout.schedule, form.pipeline.order));
  if (form.slowed != Seconds{}) out.terms.push_back(slowed_term(form.slowed, r.slowdown.rate));
}

/// What replicas exchange, and the update behind it.
void add_exchange_and_update(Section& out, const StepInputs& in, const ClosedForm& form) {
  const bool exchanges = in.layout.replicas() > 1 || (in.layout.experts_apart() && in.layout.expert_replicas() > 1);
  if (exchanges && (in.options.zero == 3 || form.sharding.by_turns))
    out.terms.push_back(sharding_term(form.sharding, in.options.overlap_dp));
  else if (exchanges || form.gradients.tied > Seconds{})
    out.terms.push_back(gradients_term(form.gradients));
  if (in.options.optimizer || form.optimizer > Seconds{})
    out.terms.push_back({"optimizer and gather", "optimizer + parameter gather",
                         fmt::format("{} + {}", format_seconds(form.optimizer), format_seconds(form.gather)),
                         (form.optimizer + form.gather).count(), "s", gather_source(in, form.update_stage)});
}

/// The sum of all terms that are times.
void add_closed_form(Section& out, const char* name, Seconds total) {
  std::vector<std::string> names, times;
  for (const Term& term : out.terms) {
    if (term.unit != "s") continue;
    names.push_back(term.name);
    times.push_back(format_seconds(Seconds(term.value)));
  }
  out.terms.push_back({name, joined(names), joined(times), total.count(), "s", "collectives priced by closed form"});
}

}  // namespace

Section closed_form_section(const StepReport& report) {
  const StepInputs& in = *report.inputs;
  const ClosedForm& form = report.result.closed_form;
  const bool one_period = !report.faults || report.faults->periods.size() <= 1;
  Section out;
  out.title = one_period ? "closed form of the step" : "closed form of a step of the slowest period";
  add_setting(out, report, one_period);
  add_pipeline(out, in, report.result);
  add_exchange_and_update(out, in, form);
  add_closed_form(out, one_period ? "closed form" : "step if it stayed so", form.total());
  return out;
}

}  // namespace collcast
