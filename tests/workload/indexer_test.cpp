// Sparse attention whose keys an indexer chooses: work and memory by hand, and laws.
#include "workload/layer/indexer.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>

#include "collcast/workload/terms.hpp"
#include "inputs.hpp"
#include "timelines.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

/// 8 layers, 16 heads of 64 + 32 and 64 elements, ranks 384 and 128; an indexer of 8 heads of 64.
TransformerConfig sparse_model(int top_k) {
  TransformerConfig m = small_deepseek();
  if (top_k > 0) m.sparse = {8, 64, top_k};
  return m;
}

StepInputs sparsely_trained(int top_k, int sequence, ParallelLayout split = layout(1, 1, 1)) {
  StepInputs in = inputs(sparse_model(top_k), split, sequence, 4);
  in.layout.sequence_parallel = split.tp > 1;
  in.options.optimizer = false;
  return in;
}

StepInputs sparsely_served(int top_k, Serving serving, ParallelLayout split = layout(1, 1, 1)) {
  StepInputs in = inputs(sparse_model(top_k), split, serving.prompt_tokens, 1);
  in.serving = serving;
  in.options.optimizer = false;
  return in;
}

bool kernel_is_in(const std::vector<Operation>& ops, const std::string& name) {
  return std::any_of(ops.begin(), ops.end(), [&](const Operation& op) { return op.name == name; });
}

/// Of kernels that are the indexer's.
Seconds of_indexer(const std::vector<Operation>& ops) {
  Seconds sum{};
  for (const Operation& op : ops)
    if (op.name.starts_with("indexer") || op.name == "choice of keys") sum += op.time;
  return sum;
}

StepResult estimated(const StepInputs& in) { return forecast(in, four_nodes(), Method::estimate); }

std::string objections(const StepInputs& in) { return to_text(check_step(in, 32, Origins())); }

}  // namespace

TEST_CASE("an indexer has three matrices and a norm in each layer, whole on every TP rank") {
  // Queries 384 x 8 x 64, keys and weights 1024 x (64 + 8), and two vectors of 64.
  const double indexer = 384. * 8 * 64 + 1024. * (64 + 8) + 2 * 64;
  CHECK(parameter_count(sparse_model(128)) - parameter_count(sparse_model(0)) == 8 * indexer);
  CHECK(active_parameter_count(sparse_model(128)) - active_parameter_count(sparse_model(0)) == 8 * indexer);
  for (const int tp : {1, 2, 8}) {
    const ParameterTerms terms = parameter_terms(sparsely_trained(128, 1024, layout(tp, 1, 1)), 0);
    CHECK(terms.layer[mlp_layer].indexer == indexer);
    CHECK(terms.layer[expert_layer].indexer == indexer);
  }
}

TEST_CASE("the products of a layer have the indexer's matrices, each once") {
  const StepInputs in = sparsely_trained(128, 1024);
  const auto ops = layer_operations(in);
  const double tokens = 2 * 1024, matrices = indexer_parameters(in.model) - 2 * 64;
  CHECK(named(ops.forward, "indexer queries").flops.value() +
            named(ops.forward, "indexer keys and weights").flops.value() ==
        2 * tokens * matrices);
  CHECK(named(ops.backward, "indexer queries weight gradient").flops.value() +
            named(ops.backward, "indexer keys and weights weight gradient").flops.value() ==
        2 * tokens * matrices);
  // Its inputs have no gradients from it.
  CHECK_FALSE(kernel_is_in(ops.backward, "indexer queries input gradient"));
  CHECK_FALSE(kernel_is_in(ops.backward, "indexer keys and weights input gradient"));
}

TEST_CASE("scores are of all pairs, the core and its gradients of the chosen ones") {
  const auto ops = layer_operations(sparsely_trained(128, 1024));
  const double all = 2 * (1024. * 1025 / 2), chosen = 2 * (128. * 129 / 2 + 896. * 128);
  CHECK(named(ops.forward, "indexer scores").flops.value() == 2 * all * 8 * 64);
  // Queries and keys in bf16, a score of 4 bytes for each pair.
  CHECK(named(ops.forward, "indexer scores").bytes.value() == 2 * 2048. * (8 * 64 + 64) + 4 * all);
  CHECK(named(ops.forward, "choice of keys").bytes.value() == 4 * all + 4 * 2048. * 128);
  CHECK(named(ops.backward, "indexer score gradient").flops.value() == 2 * 2 * chosen * 8 * 64);
  // 16 heads are filled up to 64; a key has 128 + 32 elements, a value 128.
  CHECK(named(ops.forward, "flash attention").flops.value() == 2 * chosen * 64 * (160 + 128));
  CHECK(named(ops.backward, "flash attention gradient").flops.value() == 2 * chosen * 64 * (3 * 160 + 2 * 128));
}

TEST_CASE("where every token may be chosen, training is that of latent attention to all of them") {
  for (const int tp : {1, 2}) {
    StepInputs all = sparsely_trained(0, 512, layout(tp, 2, 1));
    for (const int top_k : {512, 513, 100'000}) {
      StepInputs some = all;
      some.model = sparse_model(top_k);
      const StepResult a = forecast_on_two(all, Method::both), b = forecast_on_two(some, Method::both);
      CHECK(a.estimate == b.estimate);
      CHECK(*a.simulate == *b.simulate);
      CHECK(a.mfu == b.mfu);
      CHECK(a.memory.activations == b.memory.activations);
      CHECK(b.memory.parameters > a.memory.parameters);
    }
    StepInputs fewer = all;
    fewer.model = sparse_model(511);
    CHECK(forecast_on_two(fewer, Method::estimate).estimate > forecast_on_two(all, Method::estimate).estimate);
  }
}

TEST_CASE("a prompt of no more tokens than are chosen is that of latent attention, and the keys of the indexer") {
  for (const int top_k : {256, 4096}) {
    const auto ops = estimated(sparsely_served(top_k, {2, 256, 8, 1, 2})).inference->prefill.operations,
               dense = estimated(sparsely_served(0, {2, 256, 8, 1, 2})).inference->prefill.operations;
    CHECK(ops.size() == dense.size() + 2);
    CHECK(named(ops, "flash attention").time == named(dense, "flash attention").time);
    CHECK(named(ops, "indexer keys").flops.value() == 2. * 512 * 1024 * 64);
    CHECK(kernel_is_in(ops, "indexer norm and rotary"));
  }
  const auto longer = estimated(sparsely_served(255, {2, 256, 8, 1, 2})).inference->prefill.operations;
  for (const char* name : {"indexer queries", "indexer keys and weights", "indexer scores", "choice of keys"})
    CHECK(kernel_is_in(longer, name));
}

TEST_CASE("fewer keys never take longer, and of long contexts less than all") {
  const auto prefill = [](int top_k) {
    return estimated(sparsely_served(top_k, {1, 32768, 8, 1, 2})).inference->prefill.estimate;
  };
  const auto step = [](int top_k) { return estimated(sparsely_trained(top_k, 32768)).estimate; };
  for (const auto& time : {std::function<Seconds(int)>(prefill), std::function<Seconds(int)>(step)}) {
    Seconds before{};
    for (const int top_k : {1, 64, 512, 2048, 16384, 32767}) {
      CHECK(time(top_k) > before);
      before = time(top_k);
    }
    CHECK(time(512) < time(0));
  }
}

TEST_CASE("a token takes longer behind a longer context by the indexer alone, from top_k tokens on") {
  const auto token = [](int top_k, int context) {
    const StepInputs in = sparsely_served(top_k, {4, context, 2, 1, 2});
    return estimated(in).inference->decode.operations;
  };
  const auto core = [](const std::vector<Operation>& ops) { return named(ops, "attention over the cache"); };
  // Its own is one of them.
  CHECK(core(token(512, 510)).time < core(token(512, 511)).time);
  for (const int context : {511, 600, 8192, 100'000}) {
    CHECK(core(token(512, context)).time == core(token(512, 511)).time);
    CHECK(core(token(512, context)).flops == core(token(512, 511)).flops);
  }
  for (const int context : {1, 100, 511}) CHECK(core(token(512, context)).time == core(token(0, context)).time);
  const auto times = [&](int context) {
    return estimated(sparsely_served(512, {4, context, 2, 1, 2})).inference->decode.estimate;
  };
  const Seconds more = of_indexer(token(512, 100'000)) - of_indexer(token(512, 10'000));
  CHECK(more > Seconds{});
  CHECK((times(100'000) - times(10'000)).count() == Approx(8 * more.count()).epsilon(1e-9));
}

TEST_CASE("a token's scores read the kept keys of the indexer, and write one for each") {
  const auto ops = estimated(sparsely_served(512, {3, 1000, 2, 1, 2})).inference->decode.operations;
  // 3 sequences, 1001 keys of 64 bytes and a scale of 4; queries of 8 x 64 bytes.
  CHECK(named(ops, "indexer scores").bytes.value() == 3 * 1001. * (64 + 4) + 3 * 8 * 64 + 4 * 3 * 1001.);
  CHECK(named(ops, "indexer scores").flops.value() == 2 * 3 * 1001. * 8 * 64);
  // 512 vectors of 128 + 32 elements, read once for all 16 heads.
  CHECK(named(ops, "attention over the cache").flops.value() == 2. * 3 * 16 * 512 * (2 * 128 + 32));
  CHECK(named(ops, "attention over the cache").bytes.value() ==
        2. * 3 * 16 * (2 * 128 + 32) + 2. * 3 * 512 * (128 + 32));
}

TEST_CASE("TTFT and TPOT grow with the prompt") {
  Seconds ttft{}, tpot{};
  for (const int prompt : {1, 64, 511, 512, 513, 514, 1000, 4096, 65536}) {
    const StepResult r = estimated(sparsely_served(512, {2, prompt, 16, 1, 2}, layout(2, 1, 1)));
    CHECK(r.inference->prefill.estimate > ttft);
    CHECK(r.inference->decode.estimate >= tpot);
    ttft = r.inference->prefill.estimate;
    tpot = r.inference->decode.estimate;
  }
}

TEST_CASE("a server keeps the indexer's keys beside the small vectors, on every TP rank") {
  for (const int tp : {1, 2, 8}) {
    const StepInputs in = sparsely_served(512, {3, 100, 11, 1, 2}, layout(tp, 1, 1));
    // 8 layers, 3 sequences of 110 tokens: 128 + 32 elements of 2 bytes; 64 of one byte and a scale.
    CHECK(estimated(in).memory.kv_cache == Bytes(8 * 3 * 110 * (2 * (128 + 32) + 64 + 4)));
  }
  TransformerConfig m = sparse_model(512);
  m.sparse.dim = 128;
  CHECK(indexer_cache_bytes(m) == 132);  // vLLM and SGLang
  m.sparse.dim = 129;
  CHECK(indexer_cache_bytes(m) == 129 + 8);
  CHECK(indexer_cache_bytes(sparse_model(0)) == 0);
}

TEST_CASE("training keeps queries and outputs in the small rank for keys and values, and what the indexer needs") {
  const auto kept = [](int top_k) { return memory_terms(sparsely_trained(top_k, 1024), 0).layer[expert_layer]; };
  const double tokens = 2 * 1024;
  // Keys 96 and values 64 of 16 heads make place for 128 + 32 and 128.
  CHECK((kept(128).projections - kept(0).projections).value() == 2 * tokens * 16 * (160 + 128 - 96 - 64));
  CHECK(kept(128).indexer.value() == 2 * tokens * (8 * 64 + 2 * 64 + 8) + 4 * tokens * 128);
  CHECK(kept(1024).indexer.value() == 0);
  CHECK(kept(1024).total() == kept(0).total());
  StepInputs full = sparsely_trained(128, 1024);
  full.options.recompute = Recompute::full;
  CHECK(memory_terms(full, 0).layer[expert_layer].total().value() == 2 * tokens * 1024);
}

TEST_CASE("MFU counts the keys that are met, and the indexer's work") {
  const FlopTerms some = flop_terms(sparsely_trained(128, 1024)), all = flop_terms(sparsely_trained(0, 1024));
  const double seen = (128. * 129 / 2 + 896 * 128) / (1024. * 1025 / 2), products = 384. * 512 + 1024. * 72;
  CHECK(some.core == Approx(all.core * seen));
  CHECK(some.linear == all.linear);
  CHECK(some.indexer == 8 * (2 * 1024 * products + 2. * 512 * 1024 * 1024));
  CHECK(some.indexer_gradients == Approx(8 * (2 * 1024 * products + 2 * seen * 2. * 512 * 1024 * 1024)));
  CHECK(some.model().value() ==
        Approx(some.samples * (3 * (some.linear + some.core + some.logits) + some.indexer + some.indexer_gradients)));
  StepInputs full = sparsely_trained(128, 1024);
  full.options.recompute = Recompute::full;
  const FlopTerms again = flop_terms(full);
  CHECK(again.recomputed == Approx(again.linear + again.core + again.indexer));
  full.options.recompute_layers = 0.5;
  CHECK(flop_terms(full).recomputed < again.recomputed);
}

TEST_CASE("TP gathers the indexer's keys and weights beside the small ranks") {
  const auto gathered = [](int top_k) {
    StepInputs in = sparsely_trained(top_k, 1024, layout(4, 1, 1));
    return layer_segments(in).forward.front();
  };
  REQUIRE(gathered(128).then == CollectiveKind::all_gather);
  CHECK(gathered(128).then_bytes - gathered(0).then_bytes == 2 * 2048. * (64 + 8));
  CHECK(gathered(1024).then_bytes == gathered(0).then_bytes);
}

TEST_CASE("of frozen weights the indexer has no backward, and keeps places alone") {
  StepInputs in = sparsely_trained(128, 1024);
  in.options.lora.rank = 8;
  const auto ops = layer_operations(in);
  CHECK(kernel_is_in(ops.forward, "indexer scores"));
  CHECK_FALSE(kernel_is_in(ops.backward, "indexer score gradient"));
  CHECK_FALSE(kernel_is_in(ops.backward, "indexer queries weight gradient"));
  CHECK(kept_by_indexer(in) == 4 * 2048. * 128);
  CHECK(flop_terms(in).indexer_gradients == 0);
}

TEST_CASE("a zero-bubble backward leaves the gradients of the indexer's weights to their own turns") {
  StepInputs in = sparsely_trained(128, 1024, layout(1, 2, 1));
  in.layout.schedule = PipelineSchedule::zb_h1;
  const Segments s = layer_segments(in);
  const auto has = [](const std::vector<Segment>& segments, const std::string& name) {
    return std::any_of(segments.begin(), segments.end(),
                       [&](const Segment& one) { return kernel_is_in(one.operations, name); });
  };
  CHECK(has(s.backward, "indexer score gradient"));
  CHECK_FALSE(has(s.backward, "indexer queries weight gradient"));
  CHECK(has(s.weights, "indexer queries weight gradient"));
}

TEST_CASE("closed form and simulation agree with sparse attention, trained and served") {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::one_f_one_b, PipelineSchedule::zb_h1, PipelineSchedule::dualpipe_v})
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      StepInputs in = sparsely_trained(100, 512, layout(2, 2, 2));
      in.layout.schedule = schedule;
      in.options.recompute = recompute;
      const StepResult r = forecast_on_two(in, Method::both);
      CHECK(r.simulate->count() == Approx(r.estimate.count()).epsilon(2e-2));
    }
  // Behind 90 tokens of context 10 more may be chosen: time bends within the answer.
  for (const int pp : {1, 2})
    for (const int prompt : {20, 90, 100, 400}) {
      const StepResult r = forecast(sparsely_served(100, {4, prompt, 40, pp, 2}, layout(1, pp, 1)), four_nodes());
      CHECK(r.inference->prefill.simulate->count() == Approx(r.inference->prefill.estimate.count()).epsilon(1e-3));
      CHECK(r.inference->decode.simulate->count() == Approx(r.inference->decode.estimate.count()).epsilon(1e-3));
      if (pp == 1)
        CHECK(r.inference->decode.simulate->count() == Approx(r.inference->decode.estimate.count()).epsilon(1e-6));
    }
}

TEST_CASE("what sparse attention does not go with is said, each once") {
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(objections(sparsely_trained(128, 1024)).empty());
  StepInputs in = sparsely_trained(128, 1024);
  in.model.latent = {};
  in.model.kv_heads = in.model.heads;
  CHECK(has(objections(in),
            "sparse attention chooses among the vectors that latent attention keeps, and the model has none"));
  in = sparsely_trained(128, 1024);
  in.model.latent.q_rank = 0;
  CHECK(has(objections(in), "has its queries out of the compressed ones, and the model's are not compressed"));
  in = sparsely_trained(128, 1024);
  in.model.sparse.dim = 16;
  CHECK(has(objections(in), "dim 16 is less than the 32 elements that turn with the position"));
  for (int SparseAttention::*part : {&SparseAttention::heads, &SparseAttention::dim, &SparseAttention::top_k}) {
    in = sparsely_trained(128, 1024);
    in.model.sparse.*part = 0;
    CHECK(has(objections(in), " is 0\n    hint: expected at least 1"));
  }
  in = sparsely_trained(128, 1024);
  in.model.window.tokens = 64;
  CHECK(has(objections(in), "a sliding window does not go with sparse attention, which chooses among all tokens"));
  in = sparsely_trained(128, 1024);
  in.model.causal = false;
  CHECK(has(objections(in), "sparse attention is modelled of causal attention"));
  in = sparsely_trained(128, 1024);
  in.options.attention = Attention::unfused;
  CHECK(has(objections(in), "sparse attention is modelled with fused kernels"));
  for (const ContextExchange exchange : {ContextExchange::ring, ContextExchange::ulysses}) {
    in = sparsely_trained(128, 1024);
    in.layout.cp = 2;
    in.layout.cp_exchange = exchange;
    in.layout.order = RankOrder::tp_cp_ep_dp_pp;
    CHECK(has(objections(in),
              "cp 2 is not modelled with sparse attention, whose queries choose among the tokens of all ranks"));
  }
}
