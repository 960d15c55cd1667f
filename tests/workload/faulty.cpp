#include "faulty.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <utility>

#include "drawn_steps.hpp"
#include "inputs.hpp"
#include "timelines.hpp"

using namespace collcast::workload;

namespace collcast::test {

MachineFault slow_gpu(int gpu, double compute) { return {GpuFault{gpu, compute}, {"f", 1, 1}}; }

MachineFault slow_link(const std::string& link, double share) {
  LinkFault fault;
  fault.link = link;
  fault.share = share;
  return {fault, {"f", 1, 1}};
}

FaultyStep forecast_faulty(const StepInputs& in, const Fabric& fabric, const std::vector<MachineFault>& faults,
                           Method method) {
  Result<FaultyStep> step = forecast_faulty_step(in, fabric, faults, {}, method);
  INFO(to_text(step.errors()));
  REQUIRE(step.ok());
  return std::move(step).value();
}

std::vector<ClassedPlan> classed(const StepInputs& in, const std::vector<FaultyMachine>& periods,
                                 const CollectiveTime& time, Fold fold_by) {
  Result<std::vector<ClassedPlan>> plans = make_classed_plans(in, periods, time, fold_by);
  INFO(to_text(plans.errors()));
  REQUIRE(plans.ok());
  return std::move(plans).value();
}

ClassedPlan classed(const StepInputs& in, const FaultyMachine& machine, const CollectiveTime& time, Fold fold_by) {
  return classed(in, std::vector<FaultyMachine>{machine}, time, fold_by).front();
}

Ran run(const ClassedPlan& plan, const Fabric& fabric) {
  const StepSchedule spelled = spell_out(plan);
  Ran out{run(spelled, fabric), {}};
  for (std::size_t c = 0; c < plan.classes.size(); ++c)
    for (const OpId op : spelled.of_class[c])
      out.last[plan.classes[c].first] = std::max(out.last[plan.classes[c].first], out.timeline.ops[op.value()].finish);
  return out;
}

/// The machine of a random case: some slow GPUs, and perhaps slow links near some nodes.
FaultyMachine sick(Dice& dice, const Fabric& fabric, int world, const CollectiveTime* time) {
  FaultyMachine machine{&fabric, std::vector<double>(static_cast<std::size_t>(world), 1), {}, time};
  for (int i = dice.roll(4); i > 0; --i)
    machine.speed[static_cast<std::size_t>(dice.roll(world))] = dice.pick({0.5, 0.8, 0.97});
  if (dice.roll(2) == 0) return machine;
  machine.touched.resize(static_cast<std::size_t>(fabric.nodes()));
  machine.touched[static_cast<std::size_t>(dice.roll(fabric.nodes()))] = true;
  return machine;
}

/// 1e-5 s and so on, in another order than groups are numbered: groups near a slow link are not alike.
CollectiveTime unlike() {
  return [](const CollectiveRequest& request) -> Result<Seconds> {
    const double by_group = 1 + request.group[0].value() % 3;
    return Seconds(2e-5 * by_group + static_cast<double>(request.size.value()) / 30e9);
  };
}

StepInputs random_inputs(Dice& dice) {
  const ParallelLayout l = drawn_layout(dice, {1, 2, 4});
  StepInputs in = inputs(small_model(), l, 512, 4 * dice.pick({1, 2}));
  draw_sharding(dice, in.options);
  in.kernels.beside_collectives = in.options.bucket == Bytes(4'000'000) ? 0.6 : 1;
  in.options.launch = Seconds(dice.pick({0.0, 5e-6, 40e-6}));
  in.model.tied_embeddings = dice.roll(2) == 0;
  if (in.options.zero > 0 && l.dp == 4 && dice.roll(2) == 0) in.layout.dp_shard = 2;
  if (l.pp == 1 && l.dp > 1 && in.options.zero < 2 && dice.roll(3) == 0) {
    in.model.experts.count = 4;
    in.model.experts.top_k = 2;
    in.model.experts.ffn = 2048;
    in.layout.ep = 2;
    in.options.overlap_ep = dice.roll(2) == 0;
  } else if (in.layout.dp_shard == 0 && l.world() <= 16 && dice.roll(3) == 0) {
    in.layout.cp = 2;
    in.layout.cp_exchange = dice.pick({ContextExchange::ring, ContextExchange::ulysses});
    in.options.overlap_cp = dice.roll(2) == 0;
  }
  return in;
}

}  // namespace collcast::test
