// Both layouts are forecast anew by closed form, with their collectives, and compared.
#include "collcast/planner/why.hpp"

#include <algorithm>
#include <utility>

#include "collcast/base/product.hpp"
#include "planner/families.hpp"
#include "planner/sentences.hpp"
#include "planner/servers.hpp"

namespace collcast {

namespace {

template <class T>
bool agrees(const std::optional<T>& asked, const T& value) {
  return !asked || *asked == value;
}

bool agrees(const LayoutQuestion& q, const LayoutChoice& c) {
  return agrees(q.tp, c.tp) && agrees(q.pp, c.pp) && agrees(q.dp, c.dp) && agrees(q.micro_batch, c.micro_batch) &&
         agrees(q.sequence_parallel, c.sequence_parallel) && agrees(q.recompute, c.recompute) &&
         agrees(q.zero, c.zero) && agrees(q.vpp, c.vpp) && agrees(q.cp, c.cp) && agrees(q.ep, c.ep) &&
         agrees(q.batch, c.batch);
}

/// A layout with its forecast, as far as it goes.
struct Forecast {
  WhyLayout layout;
  std::optional<StepResult> result;
  StepInputs inputs;
};

/// On the machine as it is; of jitter a closed form knows the means.
Result<StepResult> by_formula(const PlanInputs& in, const Fabric& fabric, const StepInputs& step) {
  const MachineState machine(without_jitter(in.machine.faults), in.machine.placement);
  if (machine.as_described()) return forecast_step(step, fabric, in.collectives, Method::estimate);
  Result<FaultyStep> both = forecast_faulty_step(step, fabric, machine, in.collectives, Method::estimate);
  if (!both) return both.errors();
  return std::move(both).value().result;
}

/// What is asked of a server, and whether it keeps the limits.
void add_server(const PlanInputs& in, const StepResult& result, WhyLayout& layout) {
  PlannedLayout planned;
  planner::take_server(result, planned);
  layout.server = planned.server;
  layout.tokens_per_s_per_gpu = result.tokens_per_s_per_gpu;
  for (std::string& broken : planner::broken_limits(in, result)) layout.objections.push_back(std::move(broken));
}

Result<Forecast> forecast(const PlanInputs& in, const Fabric& fabric, const LayoutChoice& choice) {
  Forecast f;
  f.layout.choice = choice;
  const bool serves = in.base.serving.has_value();
  f.layout.objections = serves ? planner::server_objections(in, choice, fabric.ranks_per_node())
                               : planner::objections(in, choice, fabric.ranks_per_node());
  // Of more ranks than there are GPUs nothing is to be said but that.
  if (choice.dp < 1 || !product_within({choice.tp, choice.pp, choice.cp, choice.dp}, in.gpus)) return f;
  if (serves && choice.batch % choice.micro_batch != 0) return f;
  f.inputs = in.base;
  put(choice, f.inputs);
  if (!planner::misfits_before_memory(f.inputs, in.gpus).empty() || !check_memory(f.inputs, {}).empty()) return f;
  f.layout.memory = peak_memory(f.inputs, fabric.ranks_per_node());
  if (!check_step(f.inputs, in.gpus, {}).empty()) return f;
  Result<StepResult> result = by_formula(in, fabric, f.inputs);
  if (!result) return result.errors();
  f.layout.memory = result->memory;
  f.layout.step = result->step;
  f.layout.breakdown = result->breakdown;
  if (serves) {
    add_server(in, *result, f.layout);
    f.result = std::move(result).value();
    return f;
  }
  // The objections are those before its times were known.
  const auto objection = planner::memory_objection(result->memory);
  if (objection && f.layout.objections.empty()) f.layout.objections.push_back(to_string(*objection));
  f.result = std::move(result).value();
  return f;
}

/// Whose values are taken for what a question leaves open.
LayoutChoice nearest_to_best(const PlanResult& result, const PlanInputs& in) {
  if (!result.ranked.empty()) return result.ranked.front().choice;
  if (result.nearest) return result.nearest->layout.choice;
  if (result.smallest) return result.smallest->choice;
  LayoutChoice plain;
  if (in.base.serving) plain.batch = in.base.serving->batch;
  return plain;
}

}  // namespace

LayoutChoice complete(const LayoutQuestion& q, const PlanResult& result, const PlanInputs& in) {
  for (const PlannedLayout& layout : result.ranked)
    if (agrees(q, layout.choice)) return layout.choice;
  LayoutChoice c = nearest_to_best(result, in);
  if (in.base.serving) return planner::complete_server(q, c, in);
  if (q.sequence_parallel) c.sequence_parallel = *q.sequence_parallel;
  if (q.recompute) c.recompute = *q.recompute;
  if (q.zero) c.zero = *q.zero;
  if (q.vpp) c.vpp = *q.vpp;
  if (q.cp) c.cp = *q.cp;
  if (q.ep) c.ep = *q.ep;
  if (q.micro_batch) c.micro_batch = *q.micro_batch;
  // Of the three degrees those that are asked for stand; dp is what is left, if anything, else pp, else tp.
  const auto left = [&](int a, int b) { return planner::left_beside(in.gpus, {a, b, c.cp}); };
  if (q.tp) c.tp = *q.tp;
  if (q.pp) c.pp = *q.pp;
  if (q.dp) c.dp = *q.dp;
  if (!q.dp)
    c.dp = planner::replicas_of(in.gpus, {c.tp, c.pp, c.cp});
  else if (!q.pp)
    c.pp = left(c.tp, c.dp);
  else if (!q.tp)
    c.tp = left(c.pp, c.dp);
  const int sequences = c.dp > 0 && in.base.batch.global_batch % c.dp == 0 ? in.base.batch.global_batch / c.dp : 0;
  if (!q.micro_batch && sequences > 0)
    while (sequences % c.micro_batch != 0) --c.micro_batch;
  return c;
}

Result<Why> why(const PlanInputs& in, const Fabric& fabric, const LayoutChoice& asked,
                const std::vector<PlannedLayout>& ranked) {
  if (ranked.empty()) {
    Result<Forecast> alone = forecast(in, fabric, asked);
    if (!alone) return alone.errors();
    return Why{std::move(alone->layout), {}, {}, {}};
  }
  const Result<Forecast> best = forecast(in, fabric, ranked.front().choice);
  if (!best) return best.errors();
  Why why{best->layout, best->layout, {}, {}};
  why.asked.rank = why.best->rank = 1;
  // The best beside itself would say nothing: its runner-up says by how much it is the best.
  const bool of_best = asked == ranked.front().choice;
  if (of_best && ranked.size() == 1) return why;
  const Result<Forecast> other = forecast(in, fabric, of_best ? ranked[1].choice : asked);
  if (!other) return other.errors();
  WhyLayout& beside = of_best ? why.runner_up.emplace() : why.asked;
  beside = other->layout;
  const auto place = std::ranges::find(ranked, beside.choice, &PlannedLayout::choice);
  if (place != ranked.end()) beside.rank = static_cast<int>(place - ranked.begin()) + 1;
  if (other->result)
    why.sentences = planner::sentences(fabric, {other->inputs, *other->result}, {best->inputs, *best->result});
  return why;
}

}  // namespace collcast
