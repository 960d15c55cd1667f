// Jitter of links: what it costs a step, and that it costs nothing where it should not.
#include "workload/faults/link_jitter.hpp"

#include <catch2/catch.hpp>

#include <string>

#include "collcast/workload/faulty_step.hpp"
#include "faulty.hpp"
#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

MachineFault link_jitter(const std::string& link, double spread, int seed = 1,
                         JitterShape shape = JitterShape::lognormal) {
  LinkFault fault;
  fault.link = link;
  fault.jitter = Jitter{spread, shape, seed};
  return {fault, {"f", 1, 1}};
}

/// TP 8 in a node, two replicas: gradients cross the NICs.
StepInputs two_replicas() {
  StepInputs in = inputs(small_model(), layout(8, 1, 2), 1024, 4);
  in.options.overlap_dp = false;
  return in;
}

FaultyStep drawn(const StepInputs& in, const std::vector<MachineFault>& faults, int draws = 1) {
  CollectivePolicy policy;
  policy.library = Library::ideal;
  Result<FaultyStep> step =
      forecast_faulty_step(in, cluster(2), MachineState{faults}, policy, Method::both, nullptr, {}, {}, draws);
  if (!step) FAIL(to_text(step.errors()));
  return std::move(step).value();
}

double mean(const std::vector<Seconds>& draws) {
  Seconds sum{};
  for (const Seconds one : draws) sum += one;
  return sum.count() / static_cast<double>(draws.size());
}

}  // namespace

TEST_CASE("jitter of a link that is nobody's bottleneck, or of 0 %, leaves the step as it is to the picosecond") {
  const StepInputs in = two_replicas();
  const FaultyStep still = drawn(in, {link_jitter("node0.nic3", 0)});
  CHECK(still.result.simulate == still.effect.simulate);
  CHECK_FALSE(still.effect.jitter.has_value());
  // One replica: nothing leaves the node.
  StepInputs alone = in;
  alone.layout.dp = 1;
  alone.batch.global_batch /= 2;
  const FaultyStep inside = drawn(alone, {link_jitter("node0.nic3", 0.3)}, 3);
  for (const Seconds draw : inside.effect.jitter->draws) CHECK(draw == *inside.effect.simulate);
}

TEST_CASE("one seed of a link's jitter is one step, another is another, and the name of the link counts") {
  const StepInputs in = two_replicas();
  const auto step = [&](const char* link, int seed) {
    return *drawn(in, {link_jitter(link, 0.2, seed)}).result.simulate;
  };
  CHECK(step("node0.nic3", 7) == step("node0.nic3", 7));
  CHECK(step("node0.nic3", 7) != step("node0.nic3", 8));
  CHECK(step("node0.nic3", 7) != step("node0.nic4", 7));
  // The second draw is that of the next seed.
  CHECK(drawn(in, {link_jitter("node0.nic3", 0.2, 7)}, 2).effect.jitter->draws[1] == step("node0.nic3", 8));
}

TEST_CASE("a link's jitter costs a step on average, the more the wider it is, and never makes more than it is worth") {
  // All eight NICs of a node carry gradients at once and all wait for the slowest, so that the mean of the step is
  // above the step of the means; with the links' time at most a factor of 2 (normal, cut off there) gradients take at
  // most twice as long.
  const StepInputs in = two_replicas();
  double before = 0;
  for (const double spread : {0.05, 0.2, 0.4}) {
    const FaultyStep step = drawn(in, {link_jitter("node0.nic3", spread, 1, JitterShape::normal)}, 20);
    const double cost = mean(step.effect.jitter->draws) - step.effect.jitter->without.count();
    CHECK(step.effect.jitter->without == *step.effect.simulate);
    CHECK(cost > before);
    before = cost;
    const double gradients = step.effect.breakdown.dp_exposed.count();
    for (const Seconds draw : step.effect.jitter->draws)
      CHECK(draw.count() <= step.effect.simulate->count() + gradients * 1.001);
  }
}

TEST_CASE("a link's draws are the same beside another fault, and hold only while it does") {
  const StepInputs in = two_replicas();
  MachineFault late = link_jitter("node0.nic3", 0.3, 7);
  late.from = Seconds(1000);
  const FaultyStep over = drawn(in, {late});
  CHECK(over.result.simulate == over.effect.simulate);
  // A slow GPU of the other replica does not change what the NIC draws: the step with both is no shorter than with
  // each.
  const Seconds jitter = *drawn(in, {link_jitter("node0.nic3", 0.3, 7)}).result.simulate;
  const Seconds both = *drawn(in, {link_jitter("node0.nic3", 0.3, 7), slow_gpu(12, 0.8)}).result.simulate;
  CHECK(both >= jitter);
}

TEST_CASE("a watch that ends the first draw leaves the step without the jitter, and says so") {
  const StepInputs in = two_replicas();
  CollectivePolicy policy;
  policy.library = Library::ideal;
  const MachineState machine{{link_jitter("node0.nic3", 0.3)}};
  bool has_partial = false;
  const Seconds without = *drawn(in, machine.faults).effect.simulate;
  for (int after = 0; after < 4000 && !has_partial; ++after) {
    int asked = 0;
    EngineOptions engine;
    engine.watch = [&](const EngineProgress&) { return asked++ < after; };
    const Result<FaultyStep> step =
        forecast_faulty_step(in, cluster(2), machine, policy, Method::both, nullptr, engine);
    if (!step || !step->effect.is_undrawn) continue;
    has_partial = true;
    CHECK(step->result.simulate == without);
    CHECK_FALSE(step->effect.jitter.has_value());
    CHECK(step->effect.classes.size() > 0);
  }
  CHECK(has_partial);
}
