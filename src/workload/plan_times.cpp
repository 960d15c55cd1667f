// What the parts of a plan are and take, and what its stages do turn by turn.
#include <algorithm>
#include <iterator>
#include <optional>
#include <type_traits>
#include <vector>

#include "collcast/base/check.hpp"
#include "workload/memory/memory.hpp"
#include "workload/plan.hpp"
#include "workload/schedules/automatic_order.hpp"
#include "workload/sharded_walk.hpp"

namespace collcast::workload {

namespace {

/// What is asked of each of a stage's works, worked out once: units share them.
template <class Of>
class OfWorks {
 public:
  OfWorks(const StagePlan& stage, Of of) : stage_(stage), of_(of), known_(stage.works.size()) {}
  const auto& operator()(const Unit& unit) {
    auto& known = known_[unit.work];
    if (!known) known = of_(stage_.work(unit));
    return *known;
  }

 private:
  const StagePlan& stage_;
  Of of_;
  std::vector<std::optional<std::invoke_result_t<Of, const UnitWork&>>> known_;
};

/// Over the stretches of one micro-batch, one after the other.
template <class Part>
Seconds sum_over(const StagePlan& stage, Part part) {
  OfWorks parts_of(stage, [part](const UnitWork& work) {
    std::vector<Seconds> parts;
    for (const std::vector<Stretch>* stretches : work.passes())
      for (const Stretch& s : *stretches)
        if (const Seconds one = part(s); one != Seconds{}) parts.push_back(one);
    return parts;
  });
  Seconds total{};
  for (const Unit& u : stage.units)
    for (const Seconds one : parts_of(u)) total += one;
  return total;
}

StageTime time_of(const UnitWork& work) {
  return {work.forward_time(), work.backward_time(), work.weights_time(), work.saved_time()};
}

template <class Takes>
StageTime sum_of(const StagePlan& stage, Takes takes) {
  OfWorks times(stage, time_of);
  StageTime sum;
  for (const Unit& u : stage.units) {
    if (!takes(u)) continue;
    const StageTime& one = times(u);
    sum.forward += one.forward;
    sum.backward += one.backward;
    sum.weights += one.weights;
    sum.saved += one.saved;
  }
  return sum;
}

}  // namespace

// Behind `layer` eight for each shape, of the three flags.
UnitKind unit_of(LayerKind kind) {
  const auto shape = std::ranges::find(layer_shapes, kind.shape) - layer_shapes.begin();
  const int flags = (kind.windowed ? 1 : 0) + (kind.whole ? 2 : 0) + (kind.bf16 ? 4 : 0);
  return static_cast<UnitKind>(static_cast<int>(UnitKind::layer) + 8 * static_cast<int>(shape) + flags);
}

LayerKind layer_of(UnitKind unit) {
  check(is_layer(unit), "a unit that is a layer");
  const auto behind = static_cast<std::size_t>(static_cast<int>(unit) - static_cast<int>(UnitKind::layer));
  return {layer_shapes[behind / 8], (behind & 1) != 0, (behind & 2) != 0, (behind & 4) != 0};
}

const StagePlan& with_shown_layer(const StepPlan& plan, std::size_t stage) {
  const auto has = [](const StagePlan& s, LayerKind kind) {
    return std::ranges::find(s.units, unit_of(kind), &Unit::kind) != s.units.end();
  };
  for (const LayerKind kind : layer_kinds()) {
    if (has(plan.stages[stage], kind)) return plan.stages[stage];
    for (const StagePlan& other : plan.stages)
      if (has(other, kind)) return other;
  }
  check(false, "some stage has a layer");
  return plan.stages[stage];
}

const Unit* shown_layer(const StagePlan& stage) {
  for (const LayerKind kind : layer_kinds())
    for (const Unit& u : stage.units)
      if (u.kind == unit_of(kind)) return &u;
  return nullptr;
}

Seconds length(const std::vector<Stretch>& pass) {
  Seconds total{};
  for (const Stretch& s : pass) total += s.length();
  return total;
}

Seconds UnitWork::forward_time() const { return length(forward); }
Seconds UnitWork::backward_time() const { return length(backward); }
Seconds UnitWork::weights_time() const { return length(weights); }
bool UnitWork::is_slowed() const {
  for (const std::vector<Stretch>* pass : {&forward, &backward, &weights})
    for (const Stretch& s : *pass)
      if (s.rate < 1) return true;
  return false;
}
Seconds UnitWork::saved_time() const {
  const Seconds of_backward = backward_time(), of_weights = weights_time();
  return of_backward + of_weights - (whole_backward.empty() ? of_backward : length(whole_backward)) -
         (whole_weights.empty() ? of_weights : length(whole_weights));
}

StageTime StagePlan::time() const {
  return sum_of(*this, [](const Unit&) { return true; });
}

StageTime StagePlan::time(int chunk) const {
  return sum_of(*this, [chunk](const Unit& u) { return u.chunk == chunk; });
}

Seconds StagePlan::compute_time() const {
  return sum_over(*this, [](const Stretch& s) { return s.computes() ? s.time : Seconds{}; });
}
Seconds StagePlan::tp_time() const {
  return sum_over(*this, [](const Stretch& s) { return s.exposed(Category::tp); });
}
Seconds StagePlan::cp_time() const {
  return sum_over(*this, [](const Stretch& s) { return s.exposed_cp(); });
}

Seconds StagePlan::ep_time() const {
  return sum_over(*this, [](const Stretch& s) { return s.exposed_ep(); });
}

Seconds StagePlan::slowed_by(Category of) const {
  return sum_over(*this, [of](const Stretch& s) { return s.beside_is == of ? s.slowed : Seconds{}; });
}

Seconds StagePlan::optimizer_time() const {
  Seconds total{};
  for (const Operation& op : optimizer) total += op.time;
  return total;
}

Orders StepPlan::orders() const {
  if (!own_orders.empty()) return own_orders;
  Orders all;
  const int count = static_cast<int>(stages.size());
  for (int i = 0; i < count; ++i) all.push_back(stage_order(schedule, count, i, micro_batches, chunks));
  return all;
}

ChunkedStages StepPlan::chunked() const {
  ChunkedStages all{static_cast<int>(stages.size()), chunks, {}, transfer, !overlap_pp};
  for (const StagePlan& stage : stages)
    for (int chunk = 0; chunk < chunks; ++chunk) all.times.push_back(stage.time(chunk));
  return all;
}

std::size_t StepPlan::slowest() const {
  std::size_t slowest = 0;
  Seconds most{};
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StageTime t = stages[i].time();
    if (t.whole() <= most) continue;
    most = t.whole();
    slowest = i;
  }
  return slowest;
}

double StepPlan::operations() const {
  double total = 0;
  for (const StagePlan& stage : stages) {
    for (const Unit& u : stage.units)
      total += static_cast<double>(stage.work(u).forward.size() + stage.work(u).backward.size() +
                                   stage.work(u).weights.size()) *
               micro_batches;
    total += static_cast<double>(stage.buckets.size()) * (zero == 2 ? micro_batches : 1);
    if (zero == 3) total += 3.0 * static_cast<double>(stage.units.size()) * micro_batches;
  }
  return total;
}

std::vector<CollectiveCost> uneven_collectives(const StepPlan& plan, std::size_t first) {
  std::vector<CollectiveCost> uneven;
  const auto add = [&](const StagePlan& stage) {
    std::ranges::copy_if(stage.collectives, std::back_inserter(uneven),
                         [](const CollectiveCost& c) { return c.slowest_groups > 0; });
  };
  add(plan.stages[first]);
  for (std::size_t i = 0; i < plan.stages.size(); ++i)
    if (i != first) add(plan.stages[i]);
  return uneven;
}

void add_orders(StepPlan& plan, const StepInputs& in) {
  plan.own_orders.clear();
  if (is_own(plan.schedule)) {
    plan.own_orders = in.layout.own->orders;
    return;
  }
  if (!made_for_times(plan.schedule)) return;
  std::vector<double> kept;
  for (int stage = 0; stage < in.layout.pp; ++stage) kept.push_back(share_for_weights(memory_terms(in, stage)));
  const ChunkedStages computing = plan.chunked();
  if (!exchanges_by_turns(plan)) {
    plan.own_orders = automatic_orders(plan.schedule, computing, kept, plan.micro_batches);
    return;
  }
  const bool slows = slows_beside_turns(plan);
  const ExchangingTurns exchanging{exchanging_times(plan),
                                   [&](const Orders& orders) { return walk_sharded(plan, orders, slows).end; }};
  plan.own_orders = automatic_orders(plan.schedule, computing, exchanging, kept, plan.micro_batches);
}

}  // namespace collcast::workload
