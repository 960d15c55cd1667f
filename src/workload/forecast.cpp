// From inputs to a forecast: check, price, closed form, timeline, memory, rates.
#include "workload/forecast.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>

#include "collcast/base/units.hpp"
#include "collcast/engine/footprint.hpp"
#include "collcast/evaluate/symmetry.hpp"
#include "collcast/workload/search.hpp"
#include "collcast/workload/step.hpp"
#include "workload/activity.hpp"
#include "workload/estimate_step.hpp"
#include "workload/faults/period_run.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/memory/memory.hpp"
#include "workload/serving/serving.hpp"
#include "workload/timeline.hpp"
#include "workload/warnings.hpp"

namespace collcast {

namespace {

using namespace workload;

std::string name_of(const Unit& unit) {
  if (!is_layer(unit.kind)) return unit.label;
  const LayerKind kind = layer_of(unit.kind);
  const LayerShape shape = kind.shape;
  const char* mixer = shape.is_linear()                              ? "linear-attention "
                      : shape.attends() && !shape.has_feed_forward() ? "attention "
                      : !shape.has_mixer() && shape.has_mlp()        ? "MLP "
                                                                     : "";
  return std::string(kind.bf16 ? "bf16 " : "") + (kind.windowed ? "windowed " : "") + mixer +
         (shape.has_experts() ? "expert layer" : "layer") + (kind.whole ? " without recomputation" : "");
}

void add_memory(StepResult& result, const StepInputs& in, const Fabric& fabric) {
  for (int stage = 0; stage < in.layout.pp; ++stage)
    result.memory_by_stage.push_back(stage_memory(in, stage, fabric.ranks_per_node(), result.made));
  result.memory = *std::max_element(result.memory_by_stage.begin(), result.memory_by_stage.end(),
                                    [](const MemoryUse& a, const MemoryUse& b) { return a.peak() < b.peak(); });
}

}  // namespace

namespace workload {

CollectivePolicy of_messages(const CollectivePolicy& policy) {
  CollectivePolicy out;
  out.base_latency = policy.base_latency;
  out.library = policy.library;
  out.environment = policy.environment;
  return out;
}

}  // namespace workload

namespace workload {

Diagnostics name_algorithms(std::vector<CollectiveCost>& collectives, ForecastPrices& prices) {
  for (CollectiveCost& c : collectives) {
    Result<std::string> choice = prices.of(c.request).algorithm(c.request);
    if (!choice) return choice.errors();
    c.algorithm = std::move(choice).value();
  }
  return {};
}

}  // namespace workload

namespace {

/// The machine up to the last node that works: a step's collectives are times, and nothing of it crosses a link.
Fabric as_far_as_used(const Fabric& fabric, const Schedule& schedule) {
  std::uint32_t last = 0;
  for (std::uint32_t op = 0; op < schedule.size(); ++op) {
    if (std::holds_alternative<collcast::Transfer>(schedule.work(OpId(op)))) return fabric;
    if (const auto* compute = std::get_if<Compute>(&schedule.work(OpId(op))))
      last = std::max(last, compute->rank.value());
  }
  if (!schedule.exchanges().empty()) return fabric;
  std::vector<int> nodes(std::size_t{fabric.node_of(Rank(last)).value()} + 1);
  std::iota(nodes.begin(), nodes.end(), 0);
  return fabric.part(std::move(nodes)).value_or(fabric);
}

/// Runs the plan as a timeline; fills what the simulation says.
Diagnostics add_simulation(StepResult& result, const StepPlan& plan, const Fabric& fabric, const Origins& origins,
                           StepTimeline* timeline, const EngineOptions& engine, Bytes room) {
  if (Diagnostics wrong = check_operations(plan.operations(), origins.of("batch.global_batch"), room); !wrong.empty())
    return wrong;
  std::optional<StepSchedule> made = spell_out(as_classes(plan), engine.watch);
  if (!made) return {spelling_ended()};
  StepSchedule spelled = std::move(*made);
  std::vector<Picoseconds> slowed(spelled.of_class.size());
  Result<Timeline> run =
      spelled.slowings.empty()
          ? simulate(as_far_as_used(fabric, spelled.schedule), spelled.schedule, {Sharing::max_min, engine.watch})
          : run_periods(spelled, {{}, {times_of(spelled.schedule)}}, engine.watch, &slowed);
  if (!run) return run.errors();
  result.simulate = to_seconds(run->finish);
  result.simulated_operations = static_cast<std::int64_t>(run->ops.size());
  result.breakdown = break_down(spelled.schedule, *run, spelled.of_class[plan.slowest()]);
  result.slowdown.dp = to_seconds(slowed[plan.slowest()]);
  tell_waiting_apart(result.breakdown, plan, estimate_step(plan));
  result.critical_path = critical_path_of(spelled.schedule, *run, spelled.places);
  if (timeline) *timeline = {std::move(spelled.schedule), std::move(run).value()};
  return {};
}

}  // namespace

namespace workload {

StageTerms stage_terms(const StagePlan& stage, int number) {
  StageTerms terms{number, {}, stage.optimizer, stage.gather, stage.dispatched};
  std::vector<std::size_t> works;
  for (const Unit& unit : stage.units) {
    const auto same = std::find(works.begin(), works.end(), unit.work);
    if (same != works.end()) {
      ++terms.units[static_cast<std::size_t>(same - works.begin())].count;
      continue;
    }
    works.push_back(unit.work);
    const UnitWork& work = stage.work(unit);
    terms.units.push_back({name_of(unit), 1, {}, {}, {}, {}, {}});
    StageTerms::Unit& of = terms.units.back();
    of.compute = work.sum_of([](const Stretch& s) { return s.computes() ? s.time : Seconds{}; });
    of.tp = work.sum_of([](const Stretch& s) { return s.exposed(Category::tp); });
    of.cp = work.sum_of([](const Stretch& s) { return s.exposed_cp(); });
    of.ep = work.sum_of([](const Stretch& s) { return s.exposed_ep(); });
    of.waits = work.sum_of([](const Stretch& s) { return s.waits_for_host() ? s.time : Seconds{}; });
  }
  return terms;
}

LayerTimes layer_times(const StagePlan& stage) {
  const Unit* layer = shown_layer(stage);
  check(layer != nullptr, "a stage with a layer");
  const UnitWork& work = stage.work(*layer);
  LayerTimes t{work.forward_time(), work.backward_time() + work.weights_time(), {}, {}, {}, {}, {}, {}, {}, {}};
  t.tp_comm = work.sum_of([](const Stretch& s) { return s.spent(Category::tp); });
  t.tp_exposed = work.sum_of([](const Stretch& s) { return s.exposed(Category::tp); });
  t.cp_comm = work.sum_of([](const Stretch& s) { return s.spent(Category::cp); });
  t.cp_exposed = work.sum_of([](const Stretch& s) { return s.exposed_cp(); });
  t.ep_comm = work.sum_of([](const Stretch& s) { return s.spent(Category::ep); });
  t.ep_exposed = work.sum_of([](const Stretch& s) { return s.exposed_ep(); });
  for (const Stretch& s : work.in_detail().forward)
    if (s.waits_for_host()) t.forward_waits += s.time;
  t.backward_waits =
      work.sum_of([](const Stretch& s) { return s.waits_for_host() ? s.time : Seconds{}; }) - t.forward_waits;
  return t;
}

double compute_to_communication(const LayerTimes& layer) {
  const Seconds waits = layer.tp_comm + layer.cp_exposed + layer.ep_exposed;
  const Seconds kernels = layer.forward + layer.backward - layer.tp_exposed - layer.cp_exposed - layer.ep_exposed -
                          layer.forward_waits - layer.backward_waits;
  return waits > Seconds{} ? kernels / waits : 0;
}

double compute_to_communication(const Breakdown& parts) {
  const Seconds waits = parts.tp_exposed + parts.ep_exposed;
  return waits > Seconds{} ? parts.compute / waits : 0;
}

void add_stage(StepResult& result, const StepPlan& plan) {
  const std::size_t stage = plan.slowest();
  result.layer = layer_times(with_shown_layer(plan, stage));
  result.collectives = plan.stages[stage].collectives;
  result.uneven = uneven_collectives(plan, stage);
  result.stage = stage_terms(plan.stages[stage], static_cast<int>(stage));
  result.slowdown.tp = plan.micro_batches * plan.stages[stage].slowed_by(Category::tp);
  result.slowdown.cp = plan.micro_batches * plan.stages[stage].slowed_by(Category::cp);
  result.slowdown.ep = plan.micro_batches * plan.stages[stage].slowed_by(Category::ep);
  result.made = plan.made();
}

void tell_messages_from_bubble(Breakdown& parts, Seconds messages_add) {
  // As rests both may be below 0, by the rounding of sums.
  const Seconds idle = std::max(parts.pp_exposed + parts.bubble, Seconds{});
  parts.pp_exposed = std::clamp(messages_add, Seconds{}, idle);
  parts.bubble = idle - parts.pp_exposed;
}

void tell_waiting_apart(Breakdown& parts, const StepPlan& plan, const StepEstimate& of_plan) {
  if (plan.stages.size() > 1) {
    const Seconds idle = std::max(parts.dp_exposed + parts.pp_exposed + parts.bubble, Seconds{});
    parts.dp_exposed = std::min(idle, of_plan.breakdown.dp_exposed);
    parts.pp_exposed = {};
    parts.bubble = idle - parts.dp_exposed;
  }
  tell_messages_from_bubble(parts, of_plan.terms.transfers);
}

Diagnostics check_operations(double operations, const Location& where, Bytes memory) {
  constexpr double most_operations = 5e6;
  constexpr double bytes_of_a_named_one =
      400;  // gpt3-512gpu: 410,600 operations take 143 MB, and vectors may just grow
  if (operations <= most_operations) {
    const Bytes needed(static_cast<std::int64_t>(operations * bytes_of_a_named_one));
    if (needed <= memory) return {};
    return {lacks_memory("the timeline of " + format_count(operations) + " operations", needed, memory)};
  }
  return {{where,
           "the timeline would have " + format_count(operations) + " operations; at most " +
               format_count(most_operations) + " are simulated",
           "use --method estimate, or fewer micro-batches"}};
}

/// What is wrong with a link of the machine is wrong with its bandwidth, which may have been set elsewhere.
Location of_bandwidth(const Location& link, const Origins& origins) {
  for (int i = 0;; ++i) {
    const std::string path = "topology.node.links." + std::to_string(i);
    if (!origins.knows(path)) return link;
    if (to_text(origins.of(path)) == to_text(link)) return origins.of(path + ".bandwidth");
  }
}

Diagnostics placed(Diagnostics errors, const Origins& origins) {
  for (Diagnostic& error : errors)
    error.where = error.where.file.empty() ? origins.of("collectives.algorithm") : of_bandwidth(error.where, origins);
  return errors;
}

Diagnostics complete(StepResult& result, const StepInputs& in, const Fabric& fabric, ForecastPrices& prices,
                     const Origins& origins) {
  if (Diagnostics wrong = name_algorithms(result.collectives, prices); !wrong.empty()) return wrong;
  result.operations = layer_operations(in);
  result.linear_operations = linear_attention_operations(in);
  result.feed_forward_operations = feed_forward_operations(in);
  result.compute_to_communication = compute_to_communication(result.layer);
  const StepRates achieved = rates(in, result.step);
  result.tokens_per_s_per_gpu = achieved.tokens_per_s_per_gpu;
  result.model_flops_per_gpu = achieved.model_flops_per_gpu;
  result.mfu = achieved.mfu;
  result.hfu = achieved.hfu;
  result.memory_by_stage.clear();
  add_memory(result, in, fabric);
  result.warnings = warnings(in, fabric, result, prices.by_estimate(), origins);
  return {};
}

}  // namespace workload

TrafficClass StepInputs::traffic(Dimension dimension) const {
  const auto weight = weights.find(dimension);
  const auto place = std::find(priorities.begin(), priorities.end(), dimension) - priorities.begin();
  return {static_cast<int>(place), weight == weights.end() ? std::uint16_t{1} : weight->second};
}

CollectiveTime step_prices(const Fabric& fabric, const CollectivePolicy& policy, const GoesOn& goes_on) {
  return [collectives = by_estimate_at_front(fabric, policy, goes_on),
          messages = by_estimate_at_front(fabric, of_messages(policy), goes_on)](const CollectiveRequest& r) {
    return r.kind == CollectiveKind::sendrecv ? messages(r) : collectives(r);
  };
}

StepRates rates(const StepInputs& in, Seconds step) {
  const double gpu_seconds = step.count() * in.layout.world();
  const double peak = in.gpu.peak.at(in.options.precision).value();
  StepRates r;
  r.tokens_per_s_per_gpu = static_cast<double>(in.batch.global_batch) * in.batch.sequence / gpu_seconds;
  r.model_flops_per_gpu = FlopRate(model_flops(in).value() / gpu_seconds);
  r.mfu = r.model_flops_per_gpu.value() / peak;
  r.hfu = hardware_flops(in).value() / gpu_seconds / peak;
  return r;
}

namespace workload {

Result<StepResult> forecast_training(const StepInputs& in, const Fabric& fabric, ForecastPrices& prices, Method method,
                                     StepTimeline* timeline, const EngineOptions& engine, const Origins& origins,
                                     StepPlan* simulated) {
  if (Diagnostics wrong = check_step(in, fabric.rank_count(), origins); !wrong.empty()) return wrong;
  if (Diagnostics wrong = check_memory(in, origins); !wrong.empty()) return wrong;

  const Result<StepPlan> by_formula = make_plan(in, fabric, prices.by_estimate());
  if (!by_formula) return placed(by_formula.errors(), origins);
  const StepEstimate estimate = estimate_step(*by_formula);

  StepResult result;
  result.micro_batches = in.batch.micro_batches(in.layout);
  result.estimate = result.step = estimate.total;
  result.breakdown = estimate.breakdown;
  result.closed_form = estimate.terms;
  result.slowdown.rate = in.kernels.beside_collectives;
  result.slowdown.dp = estimate.slowed_by_dp;
  add_stage(result, *by_formula);
  std::vector<std::string> unlike;
  if (method == Method::estimate) unlike = unlike_stages(fabric, *by_formula);
  if (method != Method::estimate) {
    Result<StepPlan> by_engine = make_plan(in, fabric, prices.by_simulation());
    if (!by_engine) return placed(by_engine.errors(), origins);
    if (Diagnostics wrong = add_simulation(result, *by_engine, fabric, origins, timeline, engine, prices.room());
        !wrong.empty())
      return wrong;
    result.step = *result.simulate;
    result.ranks = in.layout.world();
    result.classes = static_cast<int>(by_engine->stages.size());
    add_stage(result, *by_engine);
    unlike = unlike_stages(fabric, *by_engine);
    if (simulated != nullptr) *simulated = std::move(by_engine).value();
  }
  if (Diagnostics wrong = complete(result, in, fabric, prices, origins); !wrong.empty()) return wrong;
  std::ranges::move(unlike, std::back_inserter(result.warnings));
  return result;
}

Result<StepResult> forecast_priced(const StepInputs& in, const Fabric& fabric, ForecastPrices& prices, Method method,
                                   StepTimeline* timeline, const EngineOptions& engine, const Origins& origins) {
  if (!in.serving) return forecast_training(in, fabric, prices, method, timeline, engine, origins);
  if (Diagnostics wrong = check_step(in, fabric.rank_count(), origins); !wrong.empty()) return wrong;
  return forecast_inference(in, fabric, prices, method, timeline, engine, origins);
}

}  // namespace workload

Result<OwnSchedule> order_of_work(const StepInputs& in, const Fabric& fabric, const CollectivePolicy& policy,
                                  Method method, const EngineOptions& engine) {
  const ParallelLayout& l = in.layout;
  if (is_own(l.schedule)) return *l.own;
  check(!from_both_ends(l.schedule), "micro-batches of a schedule of one's own come from one end");
  OwnSchedule out;
  out.micro_batches = in.batch.micro_batches(l);
  out.name = std::string(to_string(l.schedule)) + "-" + std::to_string(l.pp) + "x" + std::to_string(out.micro_batches);
  out.chunks = l.chunks();
  out.in_v = goes_in_v(l.schedule);
  if (!made_for_times(l.schedule)) {
    for (int i = 0; i < l.pp; ++i)
      out.orders.push_back(stage_order(l.schedule, l.pp, i, out.micro_batches, out.chunks));
    out.call_whole_plain();
    return out;
  }
  ForecastPrices prices(fabric, policy, engine);
  Result<StepPlan> plan =
      make_plan(in, fabric, method == Method::estimate ? prices.by_estimate() : prices.by_simulation());
  if (!plan) return plan.errors();
  out.orders = plan->orders();
  return out;
}

Result<StepResult> forecast_step(const StepInputs& in, const Fabric& fabric, const CollectivePolicy& policy,
                                 Method method, StepTimeline* timeline, const EngineOptions& engine,
                                 const Origins& origins, const GoesOn& goes_on) {
  ForecastPrices prices(fabric, policy, engine, goes_on);
  return forecast_priced(in, fabric, prices, method, timeline, engine, origins);
}

StepAsFar forecast_step_as_far(const StepInputs& in, const Fabric& fabric, const CollectivePolicy& policy,
                               StepTimeline* timeline, const EngineOptions& engine, const Origins& origins,
                               const GoesOn& goes_on) {
  ForecastPrices prices(fabric, policy, engine, goes_on);
  StepAsFar out{forecast_priced(in, fabric, prices, Method::both, timeline, engine, origins), {}};
  if (out.result) return out;
  // The prices are known by now, or this is ended as well.
  if (Result<StepResult> closed = forecast_priced(in, fabric, prices, Method::estimate, nullptr, engine, origins))
    out.by_formula = std::move(closed).value();
  return out;
}

}  // namespace collcast
