#include "drawn_steps.hpp"

namespace collcast::test {

ParallelLayout drawn_layout(Dice& dice, std::initializer_list<int> replicas) {
  ParallelLayout l = layout(dice.pick({1, 2, 4}), dice.pick({1, 1, 2, 4}), dice.pick(replicas));
  l.order = dice.pick({RankOrder::tp_pp_dp, RankOrder::tp_cp_ep_dp_pp, RankOrder::dp_pp_tp});
  l.sequence_parallel = l.tp > 1 && dice.roll(2) == 0;
  if (l.pp > 1)
    l.schedule = dice.pick({PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::interleaved,
                            PipelineSchedule::zb_h1, PipelineSchedule::zb_2p, PipelineSchedule::zb_v,
                            PipelineSchedule::dualpipe, PipelineSchedule::dualpipe_v});
  if (l.schedule == PipelineSchedule::interleaved) l.vpp = 2;
  return l;
}

void draw_sharding(Dice& dice, TrainingOptions& o) {
  o.zero = dice.roll(4);
  o.reshard_after_forward = o.zero != 3 || dice.roll(2) == 0;
  o.no_sync = o.zero == 3 && dice.roll(2) == 0;
  o.overlap_dp = dice.roll(2) == 0;
  o.overlap_pp = dice.roll(2) == 0;
  o.bucket = Bytes(dice.pick({4'000'000, 40'000'000}));
}

StepInputs drawn_step(Dice& dice) {
  const ParallelLayout l = drawn_layout(dice, {1, 2, 3, 4});
  StepInputs in = inputs(small_model(), l, 256, 4 * dice.pick({1, 2}));
  draw_sharding(dice, in.options);
  in.options.launch = Seconds(dice.pick({0.0, 5e-6}));
  in.model.tied_embeddings = dice.roll(2) == 0;
  if (in.options.zero > 0 && l.dp == 4 && dice.roll(2) == 0) in.layout.dp_shard = 2;
  if (l.pp == 1 && l.dp % 2 == 0 && in.options.zero < 2 && dice.roll(2) == 0) {
    in.model.experts.count = 4;
    in.model.experts.top_k = 2;
    in.model.experts.ffn = 2048;
    in.layout.ep = 2;
  } else if (in.layout.dp_shard == 0 && l.world() <= 16 && dice.roll(3) == 0) {
    in.layout.cp = 2;
    in.layout.cp_exchange = dice.pick({ContextExchange::ring, ContextExchange::ulysses});
    in.options.overlap_cp = dice.roll(2) == 0;
  }
  if (dice.roll(3) == 0) {
    in.options.recompute = Recompute::selective;
    in.options.recompute_modules = {RecomputeModule::layernorm, RecomputeModule::core_attn};
    if (in.model.experts.count == 0) in.options.recompute_modules.push_back(RecomputeModule::mlp);
    in.options.recompute_layers = dice.pick({0.5, 1.0});
  }
  if (dice.roll(3) == 0) in.model.mtp_layers = 1 + dice.roll(2);
  return in;
}

CollectivePolicy in_step(const StepInputs& in) {
  CollectivePolicy policy = rings();
  if (in.layout.cp > 1 || in.layout.ep > 1) policy.algorithm = "direct";
  return policy;
}

}  // namespace collcast::test
