// Low-rank adapters beside experts and latent attention: counts and memory worked out by hand, what of a layer stays
// what it was, formula against timeline, the planner's quick answer against the forecast.
#include <catch2/catch.hpp>

#include "collcast/workload/search.hpp"
#include "collcast/workload/terms.hpp"
#include "inputs.hpp"
#include "support/dice.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/layer/adapters.hpp"
#include "workload/layer/kept.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/memory/memory.hpp"
#include "workload/sharded_walk.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

StepInputs adapted(StepInputs in, int rank = 16, std::optional<std::vector<AdapterModule>> modules = {}) {
  in.options.lora.rank = rank;
  in.options.lora.target_modules = std::move(modules);
  return in;
}

TransformerConfig plain_queries() {
  TransformerConfig m = small_deepseek();
  m.latent.q_rank = 0;
  return m;
}

bool of_adapter(const Operation& op) { return op.name.find("adapter") != std::string::npos; }
bool of_weights(const Operation& op) {
  return op.name.find("weight gradient") != std::string::npos || op.name.find("bias gradient") != std::string::npos;
}
bool of_norm(const Operation& op) { return op.name.find("norm") != std::string::npos; }

template <class Takes>
std::vector<std::pair<std::string, double>> times_of(const std::vector<Operation>& operations, Takes takes) {
  std::vector<std::pair<std::string, double>> out;
  for (const Operation& op : operations)
    if (takes(op)) out.emplace_back(op.name, op.time.count());
  return out;
}

double flops_of_adapters(const std::vector<Operation>& operations) {
  double sum = 0;
  for (const Operation& op : operations)
    if (of_adapter(op)) sum += op.flops.value();
  return sum;
}

}  // namespace

TEST_CASE("adapters beside experts and latent attention: r (n + m) of each matrix, on all ranks together") {
  const double r = 16, h = 1024;
  // q 384, kv 128 and 32 with positions; 16 heads of 96 and of 64 + 64; 16 x 64 back.
  const double latent = r * ((h + 384) + (384 + 16 * 96) + (h + 160) + (128 + 16 * 128) + (16 * 64 + h));
  const double shared = r * ((h + 2 * 512) + (512 + h)), expert = r * ((h + 2 * 1024) + (1024 + h));
  const double mlp = r * ((h + 2 * 4096) + (4096 + h));
  StepInputs in = adapted(spread(small_deepseek(), 1));
  CHECK(layer_adapters(in, expert_layer).total() == latent + shared + 8 * expert);
  CHECK(layer_adapters(in, mlp_layer).total() == latent + mlp);
  CHECK(adapter_parameter_count(in) == 2 * (latent + mlp) + 6 * (latent + shared + 8 * expert));
  CHECK(stage_parameters(in, 0).total() == parameter_count(in.model) + adapter_parameter_count(in));
  for (const int tp : {1, 2, 4})
    for (const int ep : {1, 2, 8}) {
      in.layout.tp = tp;
      in.layout.ep = ep;
      in.layout.etp = 1;
      const AdapterParameters part = layer_adapters(in, expert_layer);
      CHECK(ep * part.experts == 8 * expert);
      // Both sides of the matrices into the small ranks, and the h wide side of the others, are whole on every rank.
      CHECK(tp * part.sharded + part.replicated == latent + shared);
      CHECK(part.replicated == r * ((h + 384) + 384 + (h + 160) + 128 + h + h + h));
      CHECK(adapter_parameter_count(in) == 2 * (latent + mlp) + 6 * (latent + shared + 8 * expert));
    }
  // Split over two ranks as an MLP is: of up its outputs, of down its inputs.
  in.layout.tp = in.layout.etp = 2;
  in.layout.ep = 1;
  CHECK(layer_adapters(in, expert_layer).experts == 8 * r * ((h + 1024) + (512 + h)));
  // Queries that come from the hidden states have one matrix.
  CHECK(layer_adapters(adapted(spread(plain_queries(), 1)), mlp_layer).total() ==
        latent + mlp - r * ((h + 384) + (384 + 16 * 96)) + r * (h + 16 * 96));
}

TEST_CASE("a layer with experts or latent attention and adapters is the layer without, less gradients of weights") {
  for (const TransformerConfig& model : {small_experts(), small_deepseek(), plain_queries()})
    for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::zb_h1})
      for (const int tp : {1, 2}) {
        StepInputs in = spread(model, 2, tp, 4, 1);
        in.layout.schedule = schedule;
        const StepInputs trained = adapted(in);
        const LayerOperations whole = layer_operations(in), frozen = layer_operations(trained);
        const auto base = [](const Operation& op) { return !of_adapter(op); };
        const auto kept = [](const Operation& op) { return !of_weights(op) && !of_norm(op); };
        CHECK(times_of(frozen.forward, base) == times_of(whole.forward, [](const Operation&) { return true; }));
        CHECK(times_of(frozen.backward, [&](const Operation& op) { return base(op) && kept(op); }) ==
              times_of(whole.backward, kept));
        CHECK(times_of(frozen.backward, [&](const Operation& op) { return base(op) && of_weights(op); }).empty());
        for (const Operation& op : whole.backward)
          if (of_norm(op)) CHECK(named(frozen.backward, op.name).bytes.value() == Approx(0.6 * op.bytes.value()));
      }
}

TEST_CASE("adapters' FLOPs are those of the rows that pass each, forward and twice that backward") {
  for (const TransformerConfig& model : {small_experts(), small_deepseek(), plain_queries()}) {
    const StepInputs all = spread(model, 1, 1, 1);
    const double tokens = 2. * 2048;
    for (const AdapterModule module : adapter_modules(model)) {
      const StepInputs one = adapted(all, 8, {{module}});
      CAPTURE(to_string(module));
      double counted = 0;
      for (const Adapted& m : adapted_matrices(one, expert_layer))
        counted += 2 * 8 * (m.in + m.out) * tokens * (m.of == Adapted::Of::experts ? 2 : 1);
      CHECK(counted > 0);
      const LayerOperations ops = layer_operations(one);
      CHECK(flops_of_adapters(ops.forward) == Approx(counted));
      CHECK(flops_of_adapters(ops.backward) == Approx(2 * counted));
      CHECK(adapter_flops(one, expert_layer) == Approx(counted / tokens));
    }
    // Spread and split, the ranks do together what one would.
    for (const int tp : {1, 2})
      for (const int ep : {1, 2, 4})
        for (const int etp : {1, 2}) {
          const StepInputs part = adapted(spread(model, ep, tp, 4, etp));
          if (!check_step(part, 8, {}).empty()) continue;
          double experts = 0, once = 0;
          for (const Adapted& m : adapted_matrices(part, expert_layer))
            if (m.of == Adapted::Of::experts) experts += m.rows * (m.split == Adapted::Split::out ? m.out : m.in);
          for (const Adapted& m : adapted_matrices(adapted(all), expert_layer))
            if (m.of == Adapted::Of::experts) once += m.rows * (m.split == Adapted::Split::out ? m.out : m.in);
          // 4 replicas of what one has; without sequence parallelism TP ranks have the same rows.
          CHECK(experts * tp == Approx(once));
        }
  }
}

TEST_CASE(
    "of experts that go their own way adapters alone have gradients and an optimizer, split as their weights are") {
  for (const int zero : {0, 1, 2, 3})
    for (const int ep : {1, 2, 4}) {
      StepInputs in = adapted(spread(small_deepseek(), ep, 2, 4, 1));
      in.options.zero = zero;
      const MemoryTerms terms = memory_terms(in, 0);
      const RankParameters all = stage_parameters(in, 0), trained = trained_parameters(in, 0);
      CHECK(trained.total() ==
            Approx(2 * layer_adapters(in, mlp_layer).total() + 6 * layer_adapters(in, expert_layer).total()));
      // TP 2 x DP 4 over expert TP 1: 8 / EP ranks have the same experts, 4 the same of the rest.
      const double own = all.total() - all.experts, of_own = trained.total() - trained.experts, apart = 8. / ep;
      const auto part = [&](int from, double a, double b) { return zero >= from ? a / 4 + b / apart : a + b; };
      CHECK(terms.weights().value() == Approx(2 * part(3, own, all.experts)));
      CHECK(terms.gradients().value() == Approx(4 * part(2, of_own, trained.experts)));
      CHECK(terms.optimizer().value() == Approx(12 * part(1, of_own, trained.experts)));
      double of_units = 0, read = 0;
      for (const UnitParameters& unit : unit_parameters(in, 0)) {
        of_units += unit.all();
        read += unit.read();
      }
      CHECK(of_units == Approx(trained.total()));
      CHECK(read == Approx(all.total()));
      const MemoryUse use = stage_memory(in, 0, 8);
      Bytes sum{};
      for (const MemoryPart& each : memory_parts) sum += use.*each.size;
      CHECK(sum == use.peak());
    }
}

TEST_CASE("what frozen experts and small ranks read is kept for their adapters alone") {
  const StepInputs in = spread(small_deepseek(), 1, 1, 1);
  const double T = 2. * 2048, R = 2 * T, h = 1024, w = 2, r = 16;
  const auto kept = [&](std::vector<AdapterModule> modules) {
    return layer_activations(adapted(in, 16, std::move(modules)), expert_layer).value();
  };
  const double whole = layer_activations(in, expert_layer).value(), proj = kept({AdapterModule::linear_proj});
  // Neither norm's output, nor the small ranks behind their norms, nor the experts' rows, nor what the activation
  // functions of experts and shared ones give.
  CHECK(whole - proj == w * (2 * T * h + T * (384 + 128) + R * h + R * 1024 + T * 512 - T * r));
  CHECK(kept({AdapterModule::linear_q_down_proj}) - proj == w * T * h);
  CHECK(kept({AdapterModule::linear_kv_down_proj}) - proj == w * T * h);
  CHECK(kept({AdapterModule::linear_q_up_proj}) - proj == w * T * 384);
  CHECK(kept({AdapterModule::linear_kv_up_proj}) - proj == w * T * 128);
  CHECK(kept({AdapterModule::linear_fc1}) - proj == w * (T * h + R * h + R * r));
  CHECK(kept({AdapterModule::linear_fc2}) - proj == w * (T * 512 + R * 1024 + R * r));
  // All of them: 5 of attention, 2 of the shared experts, 2 of the experts.
  CHECK(kept(adapter_modules(in.model)) - whole == w * r * (7 * T + 2 * R));
}

TEST_CASE("computed once more, experts and small ranks have their adapters, in kernels and in FLOPs") {
  using enum RecomputeModule;
  const StepInputs in = spread(small_deepseek(), 1, 1, 1);
  for (const RecomputeModules& modules : {RecomputeModules{moe}, RecomputeModules{shared_experts},
                                          RecomputeModules{mla_up_proj}, RecomputeModules{mla_up_proj, moe}}) {
    StepInputs base = in;
    base.options.recompute = Recompute::selective;
    base.options.recompute_modules = modules;
    base.model.experts.dense_layers = 0;
    const StepInputs frozen = adapted(base);
    REQUIRE(to_text(check_step(frozen, 1, {})) == "");
    const double again = flops_of_adapters(layer_operations(frozen).recompute);
    CHECK(again > 0);
    CHECK(flop_terms(frozen).recomputed - flop_terms(base).recomputed == Approx(8 * again / 2));
  }
}

TEST_CASE("steps with experts and adapters: the closed form is the timeline, frozen ones take no more time or memory") {
  const Fabric fabric = cluster(8);
  Dice dice(20'261'127);
  int cases = 0, with_ep = 0;
  while (cases < 150) {
    StepInputs in = spread(dice.pick({small_experts(), small_deepseek(), plain_queries()}), 1 << dice.roll(4),
                           1 << dice.roll(2), 1 << dice.roll(4), dice.pick({0, 0, 1, 2}));
    // Wide enough for a pair of rank 1 to be of fewer bytes than the matrix has FLOPs.
    in.model.hidden *= 4;
    in.model.experts.ffn *= 4;
    in.layout.pp = 1 << dice.roll(3);
    in.model.tied_embeddings = dice.roll(3) == 0;
    in.layout.schedule = dice.pick({PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe,
                                    PipelineSchedule::interleaved, PipelineSchedule::zb_h1, PipelineSchedule::zb_h2});
    if (in.layout.schedule == PipelineSchedule::interleaved) in.layout.vpp = 2;
    in.layout.uneven_stages = dice.roll(2) == 0;
    in.options.zero = dice.roll(4);
    in.options.recompute = static_cast<Recompute>(dice.roll(3));
    in.options.overlap_dp = dice.roll(2) == 0;
    in.options.overlap_ep = dice.roll(2) == 0;
    in.options.overlap_tp = dice.pick({TpOverlap::none, TpOverlap::backward});
    in.options.expert_imbalance = 1 + 0.5 * dice.roll(3);
    in.batch.global_batch = 2 * in.layout.dp * in.layout.pp * (1 + dice.roll(3));
    std::vector<AdapterModule> modules;
    for (const AdapterModule module : adapter_modules(in.model))
      if (dice.roll(2) == 0) modules.push_back(module);
    if (modules.empty()) modules.push_back(AdapterModule::linear_fc1);
    const StepInputs frozen = adapted(in, 1, modules);
    if (!check_step(frozen, fabric.rank_count(), {}).empty()) continue;
    const bool replicas = in.layout.replicas() > 1 || in.layout.expert_replicas() > 1;
    // Split gradients in a pipeline: sharded_walk_test.cpp.
    if (in.options.zero >= 2 && replicas && stays_whole(in)) continue;
    ++cases;
    with_ep += in.layout.ep > 1 ? 1 : 0;
    CAPTURE(cases, in.layout.tp, in.layout.pp, in.layout.dp, in.layout.ep, in.layout.etp, in.options.zero,
            to_string(in.layout.schedule), to_string(in.options.recompute), modules.size());
    const CollectiveTime prices = priced(2e-6, dice.pick({3e9, 30e9, 1e12}));
    const StepPlan plan = planned(frozen, prices);
    const StepEstimate estimate = estimate_step(plan);
    CHECK(estimate.total.count() == Approx(simulated(plan, fabric).count()).epsilon(1e-8));
    // Zero bubble's weight gradients fill a pipeline of few micro-batches for nothing, and adapters' passes do not.
    if (!splits_backward(in.layout.schedule))
      CHECK(estimate.total <= estimate_step(planned(in, prices)).total * (1 + 1e-9));
    CHECK(peak_memory(frozen, 8).peak() <= peak_memory(in, 8).peak());
  }
  CHECK(with_ep > 75);
}

TEST_CASE("the planner's quick answer is the forecast's with adapters beside experts") {
  const CollectiveTime time = memoized(step_prices(four_nodes(), {}));
  for (const int zero : {0, 1, 2, 3})
    for (const int ep : {1, 2, 4}) {
      StepInputs in = adapted(spread(small_deepseek(), ep, 2, 4));
      in.options.zero = zero;
      LayoutFamily family(in, four_nodes(), time);
      const auto quick = family.estimate({2, 1, 4, in.batch.micro_batch, true, in.options.recompute, zero, 1, 1, ep});
      const auto slow = forecast_step(in, four_nodes(), {}, Method::estimate);
      REQUIRE(quick.ok());
      CHECK(quick->step.count() == Approx(slow->step.count()).epsilon(1e-12));
    }
}

namespace {

StepInputs in_4_bit(StepInputs in, int rank = 16, std::optional<std::vector<AdapterModule>> modules = {}) {
  in = adapted(std::move(in), rank, std::move(modules));
  in.options.lora.base_weights = BaseWeights::nf4;
  return in;
}

/// Bits of a parameter by the paper: 4, and 0.127 of the scales.
constexpr double of_paper = 4.127 / 8;

}  // namespace

TEST_CASE("QLoRA: a parameter in NF4 is 4.127 bits, and all but the layers' matrices stays as it is") {
  CHECK(nf4_bytes == Approx(of_paper).epsilon(1e-4));
  for (const TransformerConfig& model : {small_model(), small_experts(), small_deepseek(), plain_queries()}) {
    const StepInputs in = spread(model, 1, 1, 1);
    const MemoryTerms bare = memory_terms(adapted(in), 0), kept = memory_terms(in_4_bit(in), 0);
    // By what passes them: 2 FLOPs a token and element, of experts those that are chosen, without router and core.
    double matrices = 0, most = 0;
    for (int layer = 0; layer < model.layers; ++layer)
      for (const Adapted& m : adapted_matrices(adapted(in), layer_shape(model, layer))) {
        matrices += m.count * m.in * m.out;
        most = std::max(most, m.in * m.out);
      }
    const double norms = model.latent.kv_rank > 0 ? model.layers * (model.latent.q_rank + model.latent.kv_rank) : 0;
    CHECK(kept.parameters.base_matrices() == matrices + norms);
    CHECK((bare.weights() - kept.weights()).value() == Approx((2 - of_paper) * matrices).epsilon(1e-4));
    // No table of grouped products here: experts one by one.
    CHECK(kept.dequantised.value() == 2 * most);
    CHECK(bare.gradients() == kept.gradients());
    CHECK(bare.optimizer() == kept.optimizer());
    CHECK(bare.activations() == kept.activations());
  }
}

TEST_CASE("QLoRA: before each product with a frozen matrix its weights are brought back, and nothing else changes") {
  for (const TransformerConfig& model : {small_model(), small_experts(), small_deepseek(), plain_queries()})
    for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::zb_h1}) {
      StepInputs in = spread(model, 1, 1, 1);
      in.layout.schedule = schedule;
      in.options.recompute = Recompute::full;
      const LayerOperations bare = layer_operations(adapted(in)), kept = layer_operations(in_4_bit(in));
      const auto brings_back = [](const Operation& op) { return op.name.find("dequantisation") != std::string::npos; };
      for (const auto pass : {&LayerOperations::forward, &LayerOperations::recompute, &LayerOperations::backward}) {
        CHECK(times_of(kept.*pass, [&](const Operation& op) { return !brings_back(op); }) ==
              times_of(bare.*pass, [](const Operation&) { return true; }));
        double read = 0, matrices = 0;
        for (const Operation& op : kept.*pass)
          if (brings_back(op)) read += op.bytes.value();
        for (const Adapted& m : adapted_matrices(adapted(in), model.experts.count > 0 ? expert_layer : mlp_layer))
          matrices += m.count * m.in * m.out;
        CHECK(read == Approx((2 + of_paper) * matrices).epsilon(1e-4));
      }
    }
}

TEST_CASE("QLoRA: steps take no less time and hold less than LoRA's; closed form, timeline and planner are one") {
  Dice dice(20'261'128);
  const CollectiveTime time = memoized(step_prices(four_nodes(), {}));
  int cases = 0;
  while (cases < 60) {
    StepInputs in = spread(dice.pick({small_model(), small_experts(), small_deepseek()}), 1 << dice.roll(3),
                           1 << dice.roll(2), 1 << dice.roll(3));
    in.layout.pp = 1 << dice.roll(2);
    in.layout.schedule = dice.pick({PipelineSchedule::one_f_one_b, PipelineSchedule::zb_h1});
    in.options.zero = dice.roll(3);
    in.options.recompute = static_cast<Recompute>(dice.roll(3));
    in.batch.global_batch = 2 * in.layout.dp * in.layout.pp * (1 + dice.roll(3));
    const StepInputs bare = adapted(in), kept = in_4_bit(in);
    if (!check_step(kept, 32, {}).empty()) continue;
    ++cases;
    CAPTURE(cases, in.layout.tp, in.layout.pp, in.layout.dp, in.layout.ep, in.options.zero);
    const StepResult both = forecast(kept, four_nodes()), than = forecast(bare, four_nodes(), Method::estimate);
    REQUIRE(both.simulate);
    CHECK(both.estimate.count() == Approx(both.simulate->count()).epsilon(0.02));
    CHECK(both.estimate > than.estimate);
    CHECK(both.memory.peak() < than.memory.peak());
    LayoutFamily family(kept, four_nodes(), time);
    const auto quick = family.estimate({in.layout.tp, in.layout.pp, in.layout.dp, 2, in.layout.sequence_parallel,
                                        in.options.recompute, in.options.zero, 1, 1, in.layout.ep});
    REQUIRE(quick.ok());
    CHECK(quick->step.count() == Approx(both.estimate.count()).epsilon(1e-12));
  }
}

TEST_CASE("QLoRA: what weights in 4 bit do not go with is refused, each with its reason") {
  const auto refused = [](const StepInputs& in) { return to_text(check_step(in, 16, Location{"s.yaml", 3, 1})); };
  StepInputs in = in_4_bit(small_step(1, 1, 4));
  CHECK(refused(in) == "");
  in.options.precision = "fp8";
  CHECK_THAT(refused(in), Catch::Contains("s.yaml:3:1") && Catch::Contains("this step computes in fp8") &&
                              Catch::Contains("use precision bf16 or fp16"));
  in = in_4_bit(small_step(1, 1, 4));
  in.options.zero = 3;
  CHECK_THAT(refused(in), Catch::Contains("ZeRO-3 splits weights") && Catch::Contains("use zero 0 to 2"));
  in = in_4_bit(small_step(2, 1, 4));
  in.layout.sequence_parallel = true;
  in.options.overlap_tp = TpOverlap::ring;
  CHECK_THAT(refused(in), Catch::Contains("rings cut it into pieces"));
  in = in_4_bit(small_step(1, 1, 4), 16, {{AdapterModule::linear_proj}});
  in.options.recompute = Recompute::selective;
  in.options.recompute_modules = {RecomputeModule::up_proj};
  CHECK_THAT(refused(in), Catch::Contains("a part of a matrix with an adapter or in 4 bit"));
}
