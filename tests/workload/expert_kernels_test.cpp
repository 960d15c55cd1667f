// Clamp and biases of experts: their kernels against a list of every read and write that Megatron-Core and PyTorch do
// for them, when they are there at all, what of them is kept, and formula against timeline.
#include "workload/layer/expert_kernels.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include "collcast/workload/search.hpp"
#include "inputs.hpp"
#include "support/dice.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/layer/kept.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/layer/segments.hpp"
#include "workload/memory/memory.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

constexpr double rows_of_rank = 4096;
/// Four experts on each of two ranks, rows of 1,024 elements with 512 between the products.
StepInputs with_experts() {
  StepInputs in = inputs(small_model(), layout(1, 1, 2), 1024, 1);
  in.model.experts.count = 8;
  in.model.experts.top_k = 2;
  in.model.experts.ffn = 512;
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.layout.ep = 2;
  in.options.gradient_bytes = 4;
  return in;
}
StepInputs as_gpt_oss() {
  StepInputs in = with_experts();
  in.model.experts.biases = in.model.experts.clamp = true;
  return in;
}

const Operation* find(const std::vector<Operation>& ops, const std::string& name) {
  const auto found = std::ranges::find(ops, name, &Operation::name);
  return found == ops.end() ? nullptr : &*found;
}

std::vector<Operation> kernels_of(const StepInputs& in) {
  const LayerOperations layer = layer_operations(in);
  std::vector<Operation> all = layer.forward;
  all.insert(all.end(), layer.backward.begin(), layer.backward.end());
  return all;
}

Seconds time_of(const StepInputs& in) {
  Seconds sum{};
  for (const Operation& op : kernels_of(in)) sum += op.time;
  return sum;
}

/// What PyTorch's kernels read and write, tensor by tensor.
class Tape {
 public:
  struct Tensor {
    double elements, bytes;
    double size() const { return elements * bytes; }
  };
  void kernel(const std::vector<Tensor>& all) {
    ++kernels;
    for (const Tensor& t : all) bytes += t.size();
  }
  double bytes = 0, kernels = 0;
};
using Tensor = Tape::Tensor;

/// Of `experts` with as many rows each, and elements of w and of q bytes.
struct Rows {
  double experts, rows, f, h, w, q;
  Tensor half() const { return {experts * rows * f, w}; }
  Tensor whole() const { return {2 * experts * rows * f, w}; }
  Tensor mask() const { return {experts * rows * f, 1}; }
  Tensor given() const { return {experts * rows * h, w}; }
  Tensor wide() const { return {experts * rows * h, q}; }
  Tensor one(double bytes) const { return {rows * h, bytes}; }
};

void clamp(Tape& tape, const Rows& r) {
  tape.kernel({r.half(), r.half()});    // gate.clamp(max)
  tape.kernel({r.half(), r.half()});    // rest.clamp(min, max)
  tape.kernel({r.whole(), r.whole()});  // cat
}
void clamp_gradient(Tape& tape, const Rows& r) {
  tape.kernel({r.half(), r.mask()});            // gate <= max
  tape.kernel({r.mask(), r.half(), r.half()});  // where
  tape.kernel({r.half(), r.mask()});            // rest >= min
  tape.kernel({r.half(), r.mask()});            // rest <= max
  tape.kernel({r.mask(), r.mask(), r.mask()});  // and
  tape.kernel({r.mask(), r.half(), r.half()});  // where
  tape.kernel({r.whole(), r.whole()});          // cat: what chunk undoes
}
void bias(Tape& tape, const Rows& r) {
  for (int e = 0; e < r.experts; ++e) {
    tape.kernel({r.one(r.q)});                          // b p
    tape.kernel({r.one(r.w), r.one(r.q), r.one(r.q)});  // t + b p
  }
  tape.kernel({r.wide(), r.wide()});                  // cat
  if (r.q > r.w) tape.kernel({r.wide(), r.given()});  // to 16 bit
}
void bias_gradient(Tape& tape, const Rows& r, bool frozen) {
  if (r.q > r.w) tape.kernel({r.given(), r.wide()});
  for (int e = 0; e < r.experts; ++e) {
    if (r.q > r.w) tape.kernel({r.one(r.q), r.one(r.w)});  // of t
    if (!frozen) {
      tape.kernel({r.one(r.q), r.one(r.q)});  // g p
      tape.kernel({r.one(r.q)});              // its sum over rows
    }
    // What the router gave has a gradient where its own matrix is frozen, too: hidden states have.
    tape.kernel({r.one(r.q), r.one(r.q)});  // g b
    tape.kernel({r.one(r.q)});              // its sum over a row
  }
  tape.kernel({r.given(), r.given()});  // cat: what split undoes
}

}  // namespace

TEST_CASE("clamp and biases of experts move what PyTorch's kernels read and write, one by one") {
  Dice dice(20261128);
  int cases = 0, split = 0, latent = 0;
  while (cases < 60) {
    StepInputs in = as_gpt_oss();
    in.layout.dp = 1 << dice.roll(4);
    in.layout.tp = 1 << dice.roll(3);
    in.layout.sequence_parallel = in.layout.tp > 1;
    in.layout.ep = 1 << dice.roll(4);
    in.layout.etp = dice.pick({0, 1});
    in.batch.global_batch = 2 * in.layout.dp;
    in.options.moe_token_dispatcher = dice.pick({TokenDispatcher::alltoall, TokenDispatcher::flex});
    in.options.expert_imbalance = dice.pick({1.0, 1.25});
    in.model.experts.latent = dice.pick({0, 0, 256});
    const bool frozen = in.model.experts.latent == 0 && dice.roll(2) == 0;
    if (frozen) in.options.lora.rank = 8;
    in.kernels.memory_bound.overhead = Seconds(3e-6);
    if (!check_step(in, in.layout.world(), {}).empty()) continue;
    ++cases;
    split += in.layout.expert_tp() > 1 ? 1 : 0;
    latent += in.model.experts.latent > 0 ? 1 : 0;
    const Share share(in);
    const double experts = 8.0 / in.layout.ep, etp = in.layout.expert_tp();
    // Rows of the busiest rank: those of a rank's tokens, from all that split an expert, by the imbalance.
    const double rows = rows_of_rank / in.layout.tp * etp * expert_load(in.options, in.layout);
    const double width = in.model.experts.latent > 0 ? 256 : in.model.hidden;
    const double q = in.options.moe_token_dispatcher == TokenDispatcher::flex ? 4 : 2;
    const Rows r{experts, rows / experts, 512 / etp, width, 2, q};
    const std::vector<Operation> all = kernels_of(in);
    CAPTURE(in.layout.tp, in.layout.ep, in.layout.etp, in.layout.dp, frozen, q, width);
    const auto holds = [&](const char* name, const auto& what) {
      CAPTURE(name);
      Tape tape;
      what(tape);
      const Operation* op = find(all, name);
      REQUIRE(op != nullptr);
      CHECK(op->bytes.value() == Approx(tape.bytes).epsilon(1e-12));
      CHECK(op->kernels == tape.kernels);
      const KernelEfficiency& memory = in.kernels.memory_bound;
      const Seconds least =
          tape.kernels * memory.overhead + Volume(tape.bytes) / (in.gpu.memory_bandwidth * memory.memory);
      CHECK(op->time.count() == Approx(least.count()));
    };
    holds("experts clamp", [&](Tape& t) { clamp(t, r); });
    holds("experts clamp gradient", [&](Tape& t) { clamp_gradient(t, r); });
    holds("experts bias", [&](Tape& t) { bias(t, r); });
    holds("experts bias gradient", [&](Tape& t) { bias_gradient(t, r, frozen); });
  }
  CHECK((split > 5 && latent > 5));
}

TEST_CASE("the host launches every kernel of them") {
  const StepInputs in = as_gpt_oss(), bare = with_experts();
  const auto count = [](const StepInputs& of) { return launches(layer_segments(of, {.shape = expert_layer}).forward); };
  // Four experts of a rank: two kernels each and one for the biases, three for the clamp.
  CHECK(count(in).by_model - count(bare).by_model == 4 * 2 + 1 + 3);
}

TEST_CASE("experts have none of these kernels without biases and clamp, fused, or on a server") {
  const auto has_none = [](const StepInputs& in) {
    for (const Operation& op : kernels_of(in)) CHECK(op.name.find("experts clamp") == std::string::npos);
    for (const Operation& op : kernels_of(in)) CHECK(op.name.find("experts bias") == std::string::npos);
  };
  has_none(with_experts());
  StepInputs fused = as_gpt_oss();
  fused.options.moe_grouped_mlp_fusion = true;
  has_none(fused);
  CHECK(find(kernels_of(fused), "experts activation") == nullptr);
  CHECK(find(kernels_of(fused), "experts activation gradient") == nullptr);
  // With nothing else to fuse it is the activation alone.
  StepInputs bare = with_experts(), fused_bare = with_experts();
  fused_bare.options.moe_grouped_mlp_fusion = true;
  const Seconds activation =
      find(kernels_of(bare), "experts activation")->time + find(kernels_of(bare), "experts activation gradient")->time;
  CHECK(time_of(fused_bare).count() == Approx((time_of(bare) - activation).count()));
  CHECK(time_of(fused) == time_of(fused_bare));
  StepInputs server = as_gpt_oss(), plain = with_experts();
  server.serving.emplace(), plain.serving.emplace();
  has_none(server);
  CHECK(time_of(server) == time_of(plain));
}

TEST_CASE("biases everywhere are biases of the experts, and count as such once") {
  StepInputs everywhere = with_experts(), both = as_gpt_oss();
  everywhere.model.biases = both.model.biases = true;
  both.model.experts.clamp = false;
  CHECK(find(kernels_of(everywhere), "experts bias") != nullptr);
  CHECK(time_of(everywhere) == time_of(both));
  CHECK(parameter_count(everywhere.model) == parameter_count(both.model));
  StepInputs own = with_experts();
  const double before = parameter_count(own.model);
  own.model.experts.biases = true;
  CHECK(parameter_count(own.model) - before == own.model.layers * 8.0 * (2 * 512 + own.model.hidden));
}

TEST_CASE("what the clamp gives is kept, unless the activation is computed once more or fused") {
  const LayerShape shape = expert_layer;
  const auto kept = [&](const StepInputs& in) { return kept_activations(in, shape).total().value(); };
  StepInputs bare = with_experts(), clamped = as_gpt_oss();
  CHECK(kept(clamped) - kept(bare) == 2 * rows_of_rank * 2 * 512);
  StepInputs fused = clamped;
  fused.options.moe_grouped_mlp_fusion = true;
  CHECK(kept(fused) == kept(bare));
  for (StepInputs* in : {&bare, &clamped, &fused}) {
    in->options.recompute = Recompute::selective;
    in->options.recompute_modules = {RecomputeModule::moe_act};
  }
  CHECK(kept(clamped) == kept(bare));
  CHECK(kept(fused) == kept(bare));
  const auto again = [](const StepInputs& in) {
    int count = 0;
    for (const Segment& s : layer_segments(in, {.shape = expert_layer}).backward)
      if (s.category == Category::recompute) count += static_cast<int>(s.operations.size());
    return count;
  };
  CHECK((again(bare) == 1 && again(clamped) == 2 && again(fused) == 0));
}

TEST_CASE("fusing takes no longer and no more memory, and formula is timeline with and without") {
  Dice dice(20261128);
  int cases = 0;
  while (cases < 150) {
    StepInputs in = as_gpt_oss();
    in.model.gated_mlp = dice.roll(3) != 0;
    in.model.experts.biases = dice.roll(3) != 0;
    in.model.experts.clamp = in.model.gated_mlp && dice.roll(3) != 0;
    in.layout.ep = 1 << dice.roll(4);
    in.layout.dp = 1 << dice.roll(4);
    in.layout.pp = 1 << dice.roll(3);
    in.layout.tp = 1 << dice.roll(2);
    in.layout.sequence_parallel = in.layout.tp > 1;
    in.layout.etp = 1;
    in.layout.schedule = dice.pick({PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::zb_h1});
    in.options.recompute = static_cast<Recompute>(dice.roll(3));
    in.options.recompute_modules =
        dice.pick({RecomputeModules{RecomputeModule::moe_act}, RecomputeModules{RecomputeModule::moe}});
    in.options.moe_token_dispatcher = dice.pick({TokenDispatcher::alltoall, TokenDispatcher::flex});
    in.options.overlap_ep = dice.roll(2) == 0;
    in.options.launch = dice.roll(3) == 0 ? Seconds(20e-6) : Seconds{};
    in.batch.global_batch = 2 * in.layout.dp * in.layout.pp;
    const Fabric fabric = cluster(8 * in.layout.pp);
    if (!check_step(in, fabric.rank_count(), {}).empty()) continue;
    ++cases;
    CAPTURE(cases, in.layout.tp, in.layout.pp, in.layout.dp, in.layout.ep, to_string(in.layout.schedule));
    const auto step = [&](bool fused) {
      in.options.moe_grouped_mlp_fusion = fused;
      const StepPlan plan = planned(in, priced(2e-6, 30e9));
      const Seconds total = estimate_step(plan).total;
      CHECK(total.count() == Approx(simulated(plan, fabric).count()).epsilon(1e-8));
      return total;
    };
    const Seconds apart = step(false);
    const double kept = kept_activations(in, expert_layer).total().value();
    CHECK(step(true) <= apart * (1 + 1e-12));
    in.options.moe_grouped_mlp_fusion = true;
    CHECK(kept_activations(in, expert_layer).total().value() <= kept);
  }
}

TEST_CASE("what is fused with the products of experts needs them in one kernel and nothing between") {
  StepInputs in = as_gpt_oss();
  in.options.moe_grouped_mlp_fusion = true;
  CHECK(check_step(in, 2, {}).empty());
  in.options.moe_grouped_gemm = false;
  REQUIRE(check_step(in, 2, {}).size() == 1);
  CHECK(check_step(in, 2, {}).front().message ==
        "what is fused is one kernel for all experts of a rank, and moe_grouped_gemm is false");
  in.options.moe_grouped_gemm = true;
  in.options.lora.rank = 8;
  REQUIRE(check_step(in, 2, {}).size() == 1);
  CHECK(check_step(in, 2, {}).front().message ==
        "adapters beside the products of experts come between these and what is fused with them");
  in.options.lora.target_modules = {AdapterModule::linear_qkv};
  CHECK(check_step(in, 2, {}).empty());
  StepInputs split = as_gpt_oss();
  split.options.moe_grouped_mlp_fusion = true;
  split.layout.tp = split.layout.etp = 2;
  split.layout.sequence_parallel = true;
  REQUIRE(check_step(split, 4, {}).size() == 1);
  CHECK(check_step(split, 4, {}).front().message ==
        "fused kernels are of whole experts, and these are split over 2 ranks");
  split.layout.etp = 1;
  CHECK(check_step(split, 4, {}).empty());
}

TEST_CASE("a clamp is of a gated activation") {
  StepInputs in = as_gpt_oss();
  in.model.gated_mlp = false;
  REQUIRE(check_step(in, 2, {}).size() == 1);
  CHECK(check_step(in, 2, {}).front().message == "a clamp is of what a gated activation reads, and gated_mlp is false");
}

TEST_CASE("fused in another precision than fp8 is said to be a supposition") {
  const auto said = [](const char* precision) {
    StepInputs in = as_gpt_oss();
    in.options.moe_grouped_mlp_fusion = true;
    in.options.precision = precision;
    const StepResult r = forecast(in, cluster(1), Method::estimate);
    return std::ranges::any_of(r.warnings,
                               [](const std::string& w) { return w.find("it is a supposition") != std::string::npos; });
  };
  CHECK(said("bf16"));
  CHECK_FALSE(said("fp8"));
}
