// Plans of drawn scenarios: none fails, each layout fits, lacks memory or does not go together as it does by itself,
// and what is said against it is what a step of that layout is told.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>
#include <string>

#include "planner/families.hpp"
#include "small_plans.hpp"
#include "support/dice.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

TransformerConfig drawn_model(Dice& dice) {
  TransformerConfig m = dice.pick({small_model(), small_model(), small_experts(), small_deepseek()});
  m.layers = dice.pick({4, 6, 8});
  m.ffn = dice.pick({3000, 4096});
  if (m.experts.count > 0) m.experts.count = dice.pick({6, 8});
  if (m.experts.dense_layers > 0 && dice.roll(2) == 0) m.latent.q_rank = 0;
  if (m.latent.kv_rank == 0) {
    m.heads = dice.pick({12, 16});
    m.kv_heads = dice.pick({m.heads, m.heads / 4});
  }
  m.tied_embeddings = dice.roll(3) == 0;
  m.mtp_layers = dice.roll(5) == 0 ? 1 : 0;
  return m;
}

/// What a search varies only where it is asked for, as a scenario has it.
void draw_layout(Dice& dice, ParallelLayout& l, bool experts) {
  using enum PipelineSchedule;
  l.order = dice.pick({RankOrder::tp_pp_dp, RankOrder::tp_cp_ep_dp_pp, RankOrder::tp_cp_ep_dp_pp, RankOrder::dp_pp_tp});
  l.schedule = dice.pick({one_f_one_b, one_f_one_b, gpipe, interleaved, zb_h1, zb_h2, zb_v, dualpipe, dualpipe_v});
  l.uneven_stages = dice.roll(4) == 0;
  l.dp_shard = dice.pick({0, 0, 1, 2, 3, 4});
  l.cp_exchange = dice.pick({ContextExchange::ring, ContextExchange::ulysses});
  if (experts) l.etp = dice.pick({0, 1, 2});
}

void draw_training(Dice& dice, TrainingOptions& o) {
  o.zero = dice.roll(4);
  o.precision = dice.pick({"bf16", "bf16", "fp16"});
  o.attention = dice.pick({Attention::flash, Attention::flash, Attention::unfused});
  o.gradient_bytes = dice.pick({2, 4});
  o.no_sync = dice.roll(3) == 0;
  o.overlap_dp = dice.roll(4) != 0;
  o.overlap_tp = dice.pick({TpOverlap::none, TpOverlap::backward, TpOverlap::ring});
  o.delayed_all_reduce = dice.roll(6) == 0;
  if (dice.roll(6) == 0) o.communication.parameters = WireFormat::fp8;
  if (dice.roll(6) == 0) o.compression.method = CompressionMethod::powersgd;
  if (dice.roll(5) == 0) o.lora.rank = 8;
}

PlanInputs drawn(Dice& dice) {
  PlanInputs in;
  in.base = inputs(drawn_model(dice), layout(1, 1, 1), dice.pick({500, 512}), 1);
  const bool experts = in.base.model.experts.count > 0;
  draw_layout(dice, in.base.layout, experts);
  draw_training(dice, in.base.options);
  in.base.batch.global_batch = dice.pick({8, 12, 24});
  in.base.gpu.memory = Bytes(dice.pick({3, 5, 40}) * std::int64_t{1'000'000'000});
  in.gpus = dice.pick({4, 8, 8, 12, 16});
  in.space.micro_batch = {1, 2};
  in.space.recompute = {Recompute::none, dice.pick({Recompute::selective, Recompute::full})};
  in.space.zero = dice.pick({std::vector<int>{}, std::vector<int>{0, 1, 2, 3}});
  if (dice.roll(3) == 0) in.space.vpp = {1, 2};
  if (dice.roll(3) == 0) in.space.cp = {1, 2, 4};
  if (experts && dice.roll(3) != 0) in.space.ep = {1, 2, 3, 8};
  return in;
}

enum class Fate { fits, lacks_memory, does_not_go };

/// Of a layout by itself, and all that is said against it where it does not go together.
struct Alone {
  Fate fate = Fate::fits;
  std::set<std::string> said;
};
Alone alone(const PlanInputs& in, const LayoutChoice& choice) {
  Alone out;
  StepInputs step = in.base;
  put(choice, step);
  for (const Diagnostic& d : check_step(step, in.gpus, {})) out.said.insert(planner::reason_of(d));
  if (!out.said.empty())
    out.fate = Fate::does_not_go;
  else if (const auto memory = countable_peak_memory(step, 8); !memory || !memory->fits())
    out.fate = Fate::lacks_memory;
  // What a layout lacks with sequence parallelism and without it is told as of one without.
  if (!choice.sequence_parallel || out.said.empty()) return out;
  step.layout.sequence_parallel = false;
  for (const Diagnostic& d : check_step(step, in.gpus, {})) out.said.insert(planner::reason_of(d));
  return out;
}

bool is_of_memory(ObjectionKind kind) {
  using enum ObjectionKind;
  return kind == state_does_not_fit || kind == activations_do_not_fit || kind == update_does_not_fit ||
         kind == runtime_does_not_fit || kind == memory_beyond_count;
}

std::vector<LayoutChoice> choices_of(const PlanInputs& in) {
  std::vector<LayoutChoice> all;
  for (const planner::Family& f : planner::families(in)) {
    if (f.objection) continue;
    for (const int micro_batch : f.micro_batch)
      for (const bool sp : f.sequence_parallel)
        for (const Recompute recompute : f.recompute)
          for (const int zero : f.zero)
            for (const int vpp : f.vpp)
              all.push_back({f.tp, f.pp, f.dp, micro_batch, sp, recompute, zero, vpp, f.cp, f.ep});
  }
  return all;
}

/// The search of this layout and no other.
PlanInputs only_one(PlanInputs in, const LayoutChoice& c) {
  in.space = {};
  in.space.tp = {c.tp};
  in.space.pp = {c.pp};
  in.space.micro_batch = {c.micro_batch};
  in.space.sequence_parallel = {c.sequence_parallel};
  in.space.recompute = {c.recompute};
  in.space.zero = {c.zero};
  in.space.vpp = {c.vpp};
  in.space.cp = {c.cp};
  in.space.ep = {c.ep};
  return in;
}

}  // namespace

TEST_CASE("plans of drawn scenarios find of each layout what it is by itself, and say of it what a step is told") {
  Dice dice(20'261'128);
  int plans = 0, fit = 0, lack = 0, misfits = 0, named = 0;
  for (int i = 0; plans < 60; ++i) {
    REQUIRE(i < 300);
    const PlanInputs in = drawn(dice);
    const Fabric fabric = cluster(in.gpus > 8 ? 2 : 1);
    const Result<PlanResult> p = plan(in, fabric, {1, 0}, here);
    if (!p) continue;  // what no layout would mend
    ++plans;
    INFO("scenario " << i << ", " << in.gpus << " GPUs, " << to_string(in.base.layout.schedule) << ", dp_shard "
                     << in.base.layout.dp_shard);
    std::set<LayoutChoice> ranked;
    for (const PlannedLayout& l : p->ranked) ranked.insert(l.choice);
    std::int64_t lacking = 0, rejected_for_memory = 0;
    std::set<std::string> said;
    const std::vector<LayoutChoice> all = choices_of(in);
    for (const LayoutChoice& c : all) {
      const Alone one = alone(in, c);
      CAPTURE(c.tp, c.pp, c.dp, c.cp, c.ep, c.micro_batch, c.sequence_parallel, to_string(c.recompute), c.zero, c.vpp);
      CHECK(ranked.contains(c) == (one.fate == Fate::fits));
      lacking += one.fate == Fate::lacks_memory ? 1 : 0;
      misfits += one.fate == Fate::does_not_go ? 1 : 0;
      said.insert(one.said.begin(), one.said.end());
    }
    fit += static_cast<int>(ranked.size());
    lack += static_cast<int>(lacking);
    for (const Rejection& r : p->rejected) {
      if (is_of_memory(r.kind)) rejected_for_memory += r.count;
      if (r.kind == ObjectionKind::misfit) CHECK((said.contains(r.reason) ? "" : r.reason) == "");
    }
    CHECK(rejected_for_memory == lacking);
    // Of a few the very reason.
    for (int k = 0; k < 4 && !all.empty(); ++k) {
      const LayoutChoice& c = all[static_cast<std::size_t>(dice.roll(static_cast<int>(all.size())))];
      const Result<PlanResult> of_one = plan(only_one(in, c), fabric, {1, 0}, here);
      REQUIRE(of_one.ok());
      for (const Rejection& r : of_one->rejected) {
        if (r.kind != ObjectionKind::misfit) continue;
        CAPTURE(c.tp, c.pp, c.dp, c.cp, c.ep, c.micro_batch, c.sequence_parallel, to_string(c.recompute), c.zero,
                c.vpp);
        CHECK((alone(in, c).said.contains(r.reason) ? "" : r.reason) == "");
        ++named;
      }
    }
  }
  CAPTURE(fit, lack, misfits, named);
  CHECK(fit > 500);
  CHECK(lack > 500);
  CHECK(misfits > 500);
  CHECK(named > 100);
}
