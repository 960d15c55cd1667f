// Latent experts: parameters, kernels, messages and memory by hand, and laws.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "collcast/workload/serving_terms.hpp"
#include "inputs.hpp"
#include "support/dice.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/layer/kept.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/layer/segments.hpp"
#include "workload/serving/serving.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

TransformerConfig with_latent(TransformerConfig m, int latent = 256) {
  m.experts.latent = latent;
  return m;
}

/// 2 x 2048 tokens; 8 layers of 8 experts of 1024, 2 for each token, of rows of `latent` elements.
StepInputs latent_step(int latent, int ep = 1, int tp = 1, int dp = 4, int etp = 0) {
  return spread(with_latent(small_experts(), latent), ep, tp, dp, etp);
}

const std::vector<std::string> latent_matrices{"experts latent down", "experts latent up"};

bool is_of_latent(const Operation& op) { return op.name.starts_with("experts latent"); }

std::vector<Operation> all_but_latent(std::vector<Operation> ops) {
  std::erase_if(ops, is_of_latent);
  return ops;
}

}  // namespace

TEST_CASE("latent experts have rows of l elements, and 2 h l parameters on every TP rank besides") {
  const double h = 1024, l = 256, f = 1024, latent = 2 * h * l, shared = 3 * h * 512, router = 8 * h, norms = 2 * h;
  const double down = h * 384 + h * 160 + 384 + 128, heads = 384 * 16 * 96 + 128 * 16 * 128 + 16 * 64 * h;
  const TransformerConfig m = with_latent(small_deepseek());
  for (const int tp : {1, 2, 4})
    for (const int etp : {1, 2})
      for (const int ep : {1, 4}) {
        ParallelLayout split = layout(tp, 1, 8);
        split.ep = ep;
        split.etp = etp;
        const RankParameters p = layer_parameters(m, split, expert_layer);
        CHECK(p.experts == 8 * 3 * l * f / ep / etp);
        CHECK(p.sharded == (heads + shared) / tp);
        CHECK(p.replicated == norms + down + router + latent);
      }
  // 6 of 8 layers have experts, and a token goes to 2 of 8.
  const TransformerConfig whole = small_deepseek();
  CHECK(parameter_count(m) - parameter_count(whole) == 6 * (latent - 8 * 3 * (h - l) * f));
  CHECK(active_parameter_count(m) - active_parameter_count(whole) == 6 * (latent - 2 * 3 * (h - l) * f));
  const ParameterTerms terms = parameter_terms(spread(m, 4), 0);
  CHECK(terms.layer[expert_layer].expert_latent == latent);
  CHECK(terms.layer[mlp_layer].expert_latent == 0);
  CHECK(terms.layer[expert_layer].matrices() == heads + down + shared + 8 / 4 * 3 * l * f + latent);
  TransformerConfig plain = with_latent(small_experts());
  plain.gated_mlp = false;
  plain.biases = true;
  CHECK(layer_parameters(plain, {}, expert_layer).experts == 8 * (2 * l * f + f + l));
}

TEST_CASE("kernels of latent experts are the FLOPs that MFU counts, forward and once more") {
  StepInputs in = spread(with_latent(small_deepseek()), 4);
  in.options.attention = Attention::unfused;
  in.options.embedding_and_logits = false;
  double kernels = 0;
  for (const bool experts : {false, true})
    for (const Segment& s : layer_segments(in, {experts ? expert_layer : mlp_layer}).forward)
      kernels += (experts ? 6 : 2) * flops(s.operations);
  CHECK(kernels == Approx(2 * flop_terms(in).forward()).epsilon(1e-12));
  // 4 h l of a token for both matrices, and 2 of its experts of l x 1024 in the place of h x 1024.
  StepInputs whole = in;
  whole.model.experts.latent = 0;
  const double h = 1024, l = 256, s = 2048;
  CHECK(flop_terms(in).linear - flop_terms(whole).linear == 6 * s * (4 * h * l - 2 * 6 * (h - l) * 1024));
  in = latent_step(256, 4);
  in.options.recompute = Recompute::selective;
  in.options.recompute_modules = {RecomputeModule::moe};
  CHECK(8 * flops(layer_operations(in).recompute) == Approx(2 * flop_terms(in).recomputed).epsilon(1e-12));
}

TEST_CASE("the matrices of latent experts work on a rank's own rows, twice as much backward") {
  for (const int tp : {1, 2, 4}) {
    const StepInputs in = latent_step(256, 2, tp, 8);
    const LayerOperations ops = layer_operations(in);
    const double rows = 2. * 2048 / tp, h = 1024, l = 256, w = 2;
    for (const std::string& name : latent_matrices) {
      CHECK(named(ops.forward, name).flops.value() == 2 * rows * h * l);
      CHECK(bytes(ops.forward, name) == w * (rows * (h + l) + h * l));
      CHECK(named(ops.backward, name + " input gradient").flops.value() == 2 * rows * h * l);
      CHECK(named(ops.backward, name + " weight gradient").flops.value() == 2 * rows * h * l);
    }
    // Down before the permutation, up behind it; the router reads the hidden state.
    const auto at = [](const std::vector<Operation>& list, const std::string& name) { return &named(list, name); };
    CHECK(at(ops.forward, "router") < at(ops.forward, "experts latent down"));
    CHECK(at(ops.forward, "experts latent down") < at(ops.forward, "permute"));
    CHECK(at(ops.forward, "unpermute") < at(ops.forward, "experts latent up"));
    CHECK(at(ops.backward, "experts latent up input gradient") < at(ops.backward, "unpermute gradient"));
    CHECK(at(ops.backward, "permute gradient") < at(ops.backward, "experts latent down input gradient"));
    CHECK(named(ops.forward, "router").flops.value() == 2 * rows * h * 8);
    CHECK(named(ops.forward, "experts up+gate").flops.value() == 2 * rows * 2 * tp * l * 2 * 1024 / tp);
    CHECK(named(ops.forward, "experts down").flops.value() == 2 * rows * 2 * tp * 1024 / tp * l);
  }
}

TEST_CASE("zero bubble leaves the gradients of both matrices to its weights' turns") {
  StepInputs in = latent_step(256, 4);
  in.layout.schedule = PipelineSchedule::zb_h1;
  const Segments all = layer_segments(in, {expert_layer});
  const auto count = [](const std::vector<Segment>& segments, const std::string& name) {
    int found = 0;
    for (const Segment& s : segments)
      for (const Operation& op : s.operations) found += op.name == name ? 1 : 0;
    return found;
  };
  for (const std::string& name : latent_matrices) {
    CHECK(count(all.backward, name + " input gradient") == 1);
    CHECK(count(all.backward, name + " weight gradient") == 0);
    CHECK(count(all.weights, name + " weight gradient") == 1);
  }
}

TEST_CASE("rows of l elements are sent, permuted and sorted") {
  const double w = 2, tokens = 2 * 2048, l = 256, k = 2;
  for (const int tp : {1, 2, 4})
    for (const int ep : {2, 4}) {
      const StepInputs in = latent_step(256, ep, tp, 8);
      CAPTURE(tp, ep);
      CHECK(dispatch_bytes(in) == w * tokens / tp * k * l);
      const StagePlan stage = planned(in, priced(0)).stages[0];
      CHECK(static_cast<double>(cost(stage, "ep alltoall").request.size.value()) == w * tokens / tp * k * l);
      if (tp > 1) {
        CHECK(static_cast<double>(cost(stage, "expert tp all_gather").request.size.value()) == w * tokens * k * l);
        CHECK(static_cast<double>(cost(stage, "expert tp reduce_scatter").request.size.value()) == w * tokens * k * l);
      }
      const LayerOperations ops = layer_operations(in);
      for (const char* name : {"permute", "unpermute"})
        CHECK(bytes(ops.forward, name) == w * tokens / tp * (1 + k) * l);
      for (const char* name : {"permute gradient", "unpermute gradient"})
        CHECK(bytes(ops.backward, name) == w * tokens / tp * (1 + k) * l);
      for (const char* name : {"sort by expert", "sort by rank"})
        CHECK(bytes(ops.forward, name) == 2 * w * tokens * k * l);
    }
  // Cast in the width that is sent, before and behind it.
  StepInputs in = latent_step(256, 4);
  in.options.communication.ep_dispatch = WireFormat::fp8;
  in.options.communication.scale_block = 0;
  const LayerOperations ops = layer_operations(in);
  CHECK(bytes(ops.forward, "dispatch cast to fp8") == 3 * tokens * l);
  CHECK(bytes(ops.forward, "dispatch cast from fp8") == 3 * tokens * k * l);
}

TEST_CASE("what a layer with latent experts keeps, by hand") {
  const double T = 2 * 2048, l = 256, h = 1024, w = 2, k = 2, f = 1024;
  for (const int tp : {1, 2}) {
    const StepInputs in = latent_step(256, 4, tp, 4);
    const MemoryTerms terms = memory_terms(in, 0);
    // Rows of all TP ranks, each with 1/TP of an expert's width; and what is brought up again.
    CHECK(terms.layer[expert_layer].experts.value() == w * (T * k * (l + 3 * f / tp) + T / tp * l) + 8 * T / tp * 8);
  }
  // Products read the experts' rows and what is brought up in one byte; the down matrix reads what the router does.
  StepInputs in = latent_step(256, 4);
  in.options.precision = "fp8";
  const ProductInputs of = product_inputs(in, kept_tensors(in, expert_layer), expert_layer);
  CHECK(of.rows == T * k * l);
  CHECK(of.expert_latent == T * l);
  CHECK(memory_terms(in, 0).layer[expert_layer].cast.value() == of.total());
  in = latent_step(256, 4);
  in.options.recompute = Recompute::selective;
  in.options.recompute_modules = {RecomputeModule::moe};
  CHECK(memory_terms(in, 0).layer[expert_layer].experts == Volume{});
  // To the weights' gradients wait both sides of each matrix that are not there already.
  const auto waiting = [](int latent) {
    StepInputs split = latent_step(latent, 4);
    split.layout.schedule = PipelineSchedule::zb_h1;
    const Share share(split);
    return std::pair{kept_for_weights(split, share, expert_layer).value(),
                     inputs_of_weights(split, share, expert_layer).value()};
  };
  const auto [kept, inputs] = waiting(256);
  const auto [kept_before, inputs_before] = waiting(0);
  CHECK(kept - kept_before == w * (2 * T * k * (l - h) + 2 * T * l));
  CHECK(inputs - inputs_before == w * (T * k * (l - h) + T * l));
}

TEST_CASE("a latent as wide as the hidden state adds its two matrices and nothing else") {
  for (const int tp : {1, 2})
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      StepInputs with = latent_step(1024, 4, tp), without = latent_step(0, 4, tp);
      with.options.recompute = without.options.recompute = recompute;
      const LayerOperations a = layer_operations(with), b = layer_operations(without);
      for (const auto list : {&LayerOperations::forward, &LayerOperations::recompute, &LayerOperations::backward}) {
        const std::vector<Operation> left = all_but_latent(a.*list), all = b.*list;
        REQUIRE(left.size() == all.size());
        for (std::size_t i = 0; i < all.size(); ++i) {
          CHECK(left[i].name == all[i].name);
          CHECK(left[i].flops == all[i].flops);
          // Gradients that are summed up are of more parameters.
          if (all[i].name != "gradient accumulation") CHECK(left[i].bytes == all[i].bytes);
        }
      }
      CHECK(dispatch_bytes(with) == dispatch_bytes(without));
      const double h = 1024, rows = 2. * 2048 / tp;
      CHECK(parameter_count(with.model) - parameter_count(without.model) == 8 * 2 * h * h);
      const ActivationTerms kept = activations_with(with, all_tensors(with, expert_layer), expert_layer),
                            before = activations_with(without, all_tensors(without, expert_layer), expert_layer);
      CHECK((kept.total() - before.total()).value() == 2 * rows * h);
    }
}

TEST_CASE("a narrower latent sends less and computes no longer, but for its two matrices") {
  double sent = 0, computed = 0, exchanged = 0;
  for (const int latent : {64, 128, 256, 512, 1024}) {
    const StepInputs in = latent_step(latent, 8, 1, 8);
    const LayerOperations ops = layer_operations(in);
    double time = 0;
    for (const auto list : {&LayerOperations::forward, &LayerOperations::backward})
      for (const Operation& op : all_but_latent(ops.*list)) time += op.time.count();
    const StepResult r = forecast_on_two(in);
    CHECK(dispatch_bytes(in) > sent);
    CHECK(time > computed);
    CHECK(r.breakdown.ep_exposed.count() > exchanged);
    sent = dispatch_bytes(in), computed = time, exchanged = r.breakdown.ep_exposed.count();
  }
}

TEST_CASE("closed form and timeline agree of one stage with latent experts") {
  const Fabric fabric = cluster(8);
  Dice dice(20'261'127);
  int cases = 0;
  while (cases < 60) {
    const int tp = 1 << dice.roll(3), ep = 1 << dice.roll(4), etp = dice.pick({0, 1, 2});
    StepInputs in = latent_step(64 << dice.roll(5), ep, tp, 16 / tp, etp);
    in.options.recompute = static_cast<Recompute>(dice.roll(3));
    in.options.zero = dice.roll(4);
    in.options.overlap_ep = dice.roll(2) == 0;
    in.options.expert_imbalance = 1 + 0.5 * dice.roll(3);
    in.model.experts.shared_ffn = 512 * dice.roll(2);
    in.options.bucket = Bytes(1'000'000 << dice.roll(6));
    if (!check_step(in, fabric.rank_count(), {}).empty()) continue;
    ++cases;
    CAPTURE(cases, tp, ep, etp, in.options.zero, in.model.experts.latent);
    const StepPlan plan = planned(in, priced(2e-6, dice.pick({3e9, 30e9, 1e12})));
    const StepEstimate estimate = estimate_step(plan);
    CHECK(estimate.total.count() == Approx(simulated(plan, fabric).count()).epsilon(1e-8));
    CHECK(estimate.breakdown.total().count() == Approx(estimate.total.count()).epsilon(1e-9));
  }
}

TEST_CASE("a server whose ranks have the same tokens brings all of them down and up again") {
  StepInputs in = inputs(with_latent(small_experts()), layout(2, 1, 1), 512, 1);
  in.serving = Serving{};
  in.serving->batch = 4;
  in.serving->prompt_tokens = 512;
  in.serving->output_tokens = 16;
  in.options.optimizer = false;
  REQUIRE(to_text(check_step(in, 16, Origins())) == "");
  const double h = 1024, l = 256, w = 2;
  const StepInputs pass = prompt_pass(in);
  const double T = static_cast<double>(pass.batch.micro_batch) * pass.batch.sequence;
  const LayerOperations ops = layer_operations(pass);
  for (const std::string& name : latent_matrices) CHECK(named(ops.forward, name).flops.value() == 2 * T * h * l);
  for (const char* name : {"permute", "unpermute"}) CHECK(bytes(ops.forward, name) == w * 3 * T * l);
  CHECK(serving_memory_terms(in, 0).prompts.expert_width == l + 2 * 1024. / 2);
  const StepResult r = forecast_on_two(in, Method::both);
  CHECK(r.inference->prefill.simulate->count() == Approx(r.inference->prefill.estimate.count()).epsilon(1e-6));
  CHECK(r.inference->decode.simulate->count() == Approx(r.inference->decode.estimate.count()).epsilon(1e-6));
}

TEST_CASE("PowerSGD sends the two matrices by two of a low rank each") {
  const auto low_rank = [](int latent) {
    StepInputs in = latent_step(latent);
    in.options.compression.method = CompressionMethod::powersgd;
    in.options.compression.rank = 4;
    return memory_terms(in, 0).low_rank.value() / in.options.gradient_bytes;
  };
  // A matrix n x m sends 4 (n + m) elements; of 8 layers with 8 experts of l x 2 f and f x l.
  const double h = 1024, l = 256;
  CHECK(low_rank(256) - low_rank(0) == Approx(8 * 4 * (2 * (h + l) - 8 * 2 * (h - l))));
}

TEST_CASE("what latent experts do not go with is refused where it stands") {
  Origins origins(Location{"s.yaml", 1, 1});
  origins.set("model.experts", {"s.yaml", 3, 5});
  origins.set("model.experts.latent", {"s.yaml", 4, 7});
  origins.set("training.lora.rank", {"s.yaml", 9, 7});
  const auto only = [&](const StepInputs& in) {
    const Diagnostics found = check_step(in, 64, origins);
    INFO(to_text(found));
    REQUIRE(found.size() == 1);
    return found[0];
  };
  StepInputs in = latent_step(256, 4);
  CHECK(check_step(in, 64, origins).empty());
  in.model.experts.latent = -1;
  CHECK(only(in).message == "latent is -1");
  CHECK(only(in).hint == "expected at least 1, or 0 for rows of hidden states");
  CHECK(only(in).where.line == 4);
  in.model.experts.latent = 256;
  in.options.lora.rank = 8;
  CHECK_THAT(only(in).message, Catch::StartsWith("low-rank adapters beside latent experts are not modelled"));
  CHECK(only(in).hint == "leave lora out");
  CHECK(only(in).where.line == 9);
  in = spread(small_model(), 1);
  in.model.experts.latent = 256;
  CHECK(only(in).message == "a model with experts says how many there are");
  CHECK(only(in).hint == "give model.experts.count");
  CHECK(only(in).where.line == 3);
}
