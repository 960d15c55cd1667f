// Inference: memory and work by hand, laws that hold whatever the numbers, and both methods against each other.
#include "workload/serving/serving.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>

#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

StepInputs served(TransformerConfig model, ParallelLayout layout, Serving serving) {
  StepInputs in = inputs(std::move(model), layout, serving.prompt_tokens, 1);
  in.serving = serving;
  in.options.optimizer = false;
  return in;
}

std::string wrong(const StepInputs& in) { return to_text(check_step(in, 32, Origins())); }

}  // namespace

TEST_CASE("the cache of a rank is its keys and values of every token but the last") {
  // 4 of 8 layers, 8 KV heads / TP 2 of 64 elements, keys and values, 6 sequences, 100 + 20 - 1 tokens, 2 bytes.
  const StepInputs in = served(small_model(), layout(2, 2, 1), {6, 100, 20, 2, 2});
  const StepResult r = forecast(in, four_nodes(), Method::estimate);
  CHECK(r.memory.kv_cache == Bytes(4 * 2 * 4 * 64 * 6 * 119 * 2));
  // A layer: qkv 1024 x 32 x 64, projection 1024 x 1024, MLP 3 x 1024 x 4096, halved; two norms. The head's stage has
  // 32000 x 1024 / 2 and a norm besides.
  const std::int64_t layer = (1024 * 32 * 64 + 1024 * 1024 + 3 * 1024 * 4096) / 2 + 2 * 1024;
  CHECK(r.memory_by_stage[1].parameters == Bytes(2 * (4 * layer + 32000 * 1024 / 2 + 1024)));
  CHECK(r.memory.gradients == Bytes(0));
  CHECK(r.memory.optimizer == Bytes(0));
  CHECK(r.memory.allocated() == r.memory.parameters + r.memory.kv_cache + r.memory.activations + r.memory.buffers);
  // Fragments are of what passes make and free; weights and cache are taken once.
  const double passing = static_cast<double>((r.memory.activations + r.memory.buffers).value());
  CHECK(static_cast<double>(r.memory.fragments.value()) == Approx(passing / 0.94 - passing).margin(1));
}

TEST_CASE("a token reads every weight once, and the cache") {
  const StepInputs in = served(small_model(), layout(1, 1, 1), {3, 100, 2, 1, 2});
  const auto ops = forecast(in, four_nodes(), Method::estimate).inference->decode.operations;
  // 2 FLOPs for each of 3 rows and each weight.
  CHECK(named(ops, "qkv").flops.value() == 2.0 * 3 * 1024 * 32 * 64);
  CHECK(named(ops, "qkv").bytes.value() == 2.0 * (3 * 1024 + 1024 * 32 * 64 + 3 * 32 * 64));
  // Two products of 16 heads of 64 with 100 kept tokens and its own, for 3 sequences.
  const Operation& core = named(ops, "attention over the cache");
  CHECK(core.flops.value() == Approx(2.0 * 2 * 3 * 16 * 64 * 101));
  // Query and output, and the keys and values of 8 heads.
  CHECK(core.bytes.value() == 2.0 * 3 * 2 * 16 * 64 + 2.0 * 3 * 101 * 2 * 8 * 64);
}

TEST_CASE("kept keys and values of latent attention are one vector of the small rank for all heads") {
  TransformerConfig m = small_model();
  m.kv_heads = m.heads;
  m.latent = {0, 64, 48, 16, 64};
  m.head_dim = 64;
  const StepInputs in = served(m, layout(2, 1, 1), {3, 100, 11, 1, 2});
  const StepResult r = forecast(in, four_nodes(), Method::estimate);
  CHECK(r.memory.kv_cache == Bytes(8 * (64 + 16) * 3 * 110 * 2));
  // 8 heads of a rank: products with 80 elements of a key and 64 of a value, over 101 tokens.
  CHECK(named(r.inference->decode.operations, "attention over the cache").flops.value() ==
        2.0 * 3 * 8 * 101 * (80 + 64));
}

TEST_CASE("prompts are a forward pass with logits of the last tokens alone") {
  StepInputs in = served(small_model(), layout(1, 1, 1), {2, 256, 2, 1, 2});
  const StepResult r = forecast(in, four_nodes(), Method::estimate);
  StepInputs trained = in;
  trained.serving.reset();
  trained.batch.global_batch = 2;
  const LayerOperations ops = layer_operations(trained);
  REQUIRE(r.inference->prefill.operations.size() == ops.forward.size());
  for (std::size_t i = 0; i < ops.forward.size(); ++i)
    CHECK(r.inference->prefill.operations[i].time == ops.forward[i].time);
  // 8 layers, and of the ends: embedding 2 x 2 bytes of 512 rows; norm, logits and sampling of 2 rows, at 1 TB/s.
  const double h = 1024, v = 32000;
  const double ends = (2 * 2 * 512 * h + 2 * 2 * 2 * h + 2 * (2 * h + h * v + 2 * v) + 2 * 2 * v) / 1e12;
  CHECK(r.inference->prefill.estimate.count() == Approx(8 * r.inference->prefill.layer.count() + ends));
}

TEST_CASE("parts of a simulated token sum to it where what it takes bends") {
  for (const int window : {100, 140, 200, 400})
    for (const int pp : {1, 2})
      for (const int outputs : {16, 300}) {
        TransformerConfig model = small_model();
        model.window.tokens = window;
        const StepResult r = forecast(served(model, layout(1, pp, 1), {8, 128, outputs, pp, 2}), four_nodes());
        for (const ServingPhase* phase : {&r.inference->prefill, &r.inference->decode})
          CHECK(phase->breakdown.total().count() == Approx(phase->time().count()).epsilon(1e-12));
      }
}

TEST_CASE("alone on a GPU nothing is communicated and nothing idle") {
  const StepResult r = forecast(served(small_model(), layout(1, 1, 1), {4, 64, 8, 1, 2}), four_nodes());
  for (const ServingPhase* phase : {&r.inference->prefill, &r.inference->decode}) {
    CHECK(phase->collectives.empty());
    CHECK(phase->breakdown.compute.count() == Approx(phase->time().count()));
    CHECK(phase->breakdown.bubble.count() == Approx(0).margin(1e-11));
  }
}

TEST_CASE("shares sum to TTFT, to TPOT and to the whole, and none is negative") {
  for (const Method method : {Method::estimate, Method::simulate, Method::both})
    for (const auto& [tp, pp, cut] : {std::tuple{8, 1, 1}, {2, 4, 1}, {2, 4, 4}, {1, 8, 8}, {4, 2, 8}}) {
      const StepResult r =
          forecast(served(small_model(), layout(tp, pp, 1), {8, 128, 16, cut, 2}), four_nodes(), method);
      for (const ServingPhase* phase : {&r.inference->prefill, &r.inference->decode}) {
        const Breakdown& b = phase->breakdown;
        CHECK(b.total().count() == Approx(phase->time().count()).epsilon(1e-9));
        for (const Seconds part : {b.compute, b.tp_exposed, b.pp_exposed, b.ep_exposed, b.bubble})
          CHECK(part.count() >= -1e-12);
        if (tp > 1) CHECK(b.tp_exposed > Seconds{});
        if (pp > cut) CHECK(b.bubble > Seconds{});
      }
      CHECK(r.breakdown.total().count() == Approx(r.step.count()).epsilon(1e-9));
      CHECK(r.step.count() ==
            Approx(r.inference->prefill.time().count() + 15 * r.inference->decode.time().count()).epsilon(1e-9));
    }
}

TEST_CASE("more sequences, longer prompts and longer answers never take less time for a token") {
  const auto tpot = [](Serving s) {
    return forecast(served(small_model(), layout(2, 2, 1), s), four_nodes(), Method::estimate)
        .inference->decode.estimate;
  };
  Seconds before{};
  for (const int batch : {2, 4, 16, 64, 256}) {
    const Seconds now = tpot({batch, 128, 8, 2, 2});
    CHECK(now >= before);
    before = now;
  }
  before = {};
  for (const int prompt : {1, 16, 1000, 30000}) {
    const Seconds now = tpot({4, prompt, 8, 2, 2});
    CHECK(now > before);
    before = now;
  }
  CHECK(tpot({4, 100, 2000, 2, 2}) > tpot({4, 100, 20, 2, 2}));
}

TEST_CASE("TPOT is the mean over tokens, each with a context of one more") {
  // Two tokens behind the first: with contexts of 64 and 65.
  const auto decode = [](int prompt, int output) {
    return forecast(served(small_model(), layout(2, 2, 1), {4, prompt, output, 2, 2}), four_nodes(), Method::estimate)
        .inference->decode.estimate.count();
  };
  CHECK(decode(64, 3) == Approx((decode(64, 2) + decode(65, 2)) / 2).epsilon(1e-12));
}

TEST_CASE("tokens per second are the sequences of all replicas over TPOT") {
  const StepResult one = forecast(served(small_model(), layout(2, 1, 1), {4, 64, 8, 1, 2}), four_nodes());
  const StepResult four = forecast(served(small_model(), layout(2, 1, 4), {4, 64, 8, 1, 2}), four_nodes());
  CHECK(one.inference->tokens_per_s == Approx(4 / one.inference->decode.time().count()));
  CHECK(four.inference->tokens_per_s == Approx(4 * one.inference->tokens_per_s).epsilon(1e-6));
  CHECK(four.tokens_per_s_per_gpu == Approx(one.tokens_per_s_per_gpu).epsilon(1e-6));
}

TEST_CASE("a pipeline's tokens take the longer of the way round and of the slowest stage's turns") {
  const ServingTimes t{{Seconds(2), Seconds(3)}, {Seconds(1)}, Seconds(0.5), 1};
  CHECK(workload::token_time(t).count() == 6.5);  // 2 + 3 + 1 + 0.5
  CHECK(workload::prompts_time(t).count() == 6);  // 2 + 1 + 3
  ServingTimes full = t;
  full.micro_batches = 4;
  CHECK(workload::token_time(full).count() == 12);    // 4 x 3
  CHECK(workload::prompts_time(full).count() == 15);  // 6 + 3 x 3
}

TEST_CASE("closed form and simulation agree whatever the layout, the batch and the lengths") {
  std::mt19937 random(20261123);
  const auto pick = [&](std::initializer_list<int> of) { return *(of.begin() + random() % of.size()); };
  for (int i = 0; i < 60; ++i) {
    TransformerConfig model = small_model();
    ParallelLayout l = layout(pick({1, 2, 4, 8}), pick({1, 2, 3, 4, 8}), 1);
    l.uneven_stages = true;
    if (l.tp * l.pp > 32) l.tp = 4;
    if (random() % 3 == 0) {
      model.experts.count = 8;
      model.experts.top_k = 2;
      model.experts.ffn = 1024;
      l.sequence_parallel = l.tp > 1;
      l.order = RankOrder::tp_cp_ep_dp_pp;
      if (l.tp * l.pp <= 16) l.dp = l.ep = 2;
    }
    const int cut = pick({1, 2, 4, 8, 16});
    // A sequence that is split among TP ranks has a multiple of them.
    const int prompt = l.sequence_parallel ? pick({8, 64, 776}) : pick({1, 64, 777});
    const StepInputs in = served(model, l, {cut * 8, prompt, pick({2, 3, 4, 17, 200}), cut, 2});
    INFO("case " << i << ": tp " << l.tp << " pp " << l.pp << " ep " << l.ep << " cut " << cut << " prompt "
                 << in.serving->prompt_tokens << " output " << in.serving->output_tokens);
    const Result<StepResult> run = forecast_step(in, four_nodes(), {}, Method::both);
    REQUIRE(to_text(run.errors()) == "");
    const InferenceResult& r = *run->inference;
    // Collectives: the closed form of those in each other's way is not exact (tests/agreement).
    CHECK(r.prefill.simulate->count() == Approx(r.prefill.estimate.count()).epsilon(1e-3));
    CHECK(r.decode.simulate->count() == Approx(r.decode.estimate.count()).epsilon(1e-3));
    if (l.tp == 1 && l.ep == 1) {
      CHECK(r.prefill.simulate->count() == Approx(r.prefill.estimate.count()).epsilon(1e-6));
      CHECK(r.decode.simulate->count() == Approx(r.decode.estimate.count()).epsilon(1e-6));
    }
  }
}

namespace {

/// A server that schedules by iteration, request by request: who is done at the end of one is followed by another,
/// whose prompt takes 1 before the next iteration, one after the other; an iteration takes `token`.
struct Server {
  double ttft = 0, tpot = 0;  ///< means over one request of each place

  Server(int requests, int iterations, double token, std::mt19937& random) {
    const std::size_t places = static_cast<std::size_t>(requests);
    std::vector<int> left(places);
    std::vector<double> done(places), first(places);
    std::vector<bool> counts(places);
    // Anywhere in their answers.
    for (int& n : left) n = 1 + static_cast<int>(random() % static_cast<unsigned>(iterations));
    double clock = 0;
    for (int turn = 0; turn < 3 * iterations; ++turn) {
      std::vector<std::size_t> waiting;
      for (std::size_t i = 0; i < places; ++i)
        if (left[i] == 0) waiting.push_back(i);
      std::shuffle(waiting.begin(), waiting.end(), random);
      for (const std::size_t i : waiting) {
        clock += 1;
        first[i] = clock;
        left[i] = iterations;
        counts[i] = turn >= iterations && turn < 2 * iterations;
        if (counts[i]) ttft += (clock - done[i]) / requests;
      }
      clock += token;
      for (std::size_t i = 0; i < places; ++i) {
        if (--left[i] > 0) continue;
        if (counts[i]) tpot += (clock - first[i]) / iterations / requests;
        counts[i] = false;
        done[i] = clock;
      }
    }
  }
};

}  // namespace

TEST_CASE("requests in flight wait for prompts as a scheduler that is run request by request has them wait") {
  std::mt19937 random(20261124);
  for (const auto& [requests, output] :
       {std::pair{1, 2}, {1, 50}, {2, 2}, {2, 17}, {8, 33}, {64, 2}, {64, 129}, {128, 33}}) {
    const int iterations = output - 1;
    const PromptShares law = prompt_shares({requests, 100, output, 1, 2, true, Batching::continuous});
    constexpr double token = 0.25;
    double ttft = 0, tpot = 0;
    constexpr int runs = 2000;
    for (int i = 0; i < runs; ++i) {
      const Server server(requests, iterations, token, random);
      // Work is conserved, whatever the order: a cycle has every prompt and K iterations in it.
      REQUIRE(server.ttft + iterations * server.tpot == Approx(requests + iterations * token).epsilon(1e-9));
      ttft += server.ttft / runs;
      tpot += server.tpot / runs;
    }
    INFO(requests << " requests, " << output << " tokens");
    CHECK(ttft == Approx(law.in_ttft).epsilon(0.01));
    CHECK(tpot == Approx(token + law.in_tpot).epsilon(0.01));
    CHECK(law.in_ttft + iterations * law.in_tpot == Approx(requests).epsilon(1e-12));
  }
}

TEST_CASE("a server of requests in flight has a prompt's time alone and a token's of all of them in it") {
  const StepInputs fixed = served(small_model(), layout(2, 1, 2), {16, 512, 33, 1, 2});
  StepInputs flowing = fixed, alone = fixed;
  flowing.serving->batching = Batching::continuous;
  alone.serving->batch = 1;
  const StepResult together = forecast(fixed, four_nodes()), one = forecast(alone, four_nodes()),
                   r = forecast(flowing, four_nodes());
  const double prompt = one.inference->prefill.time().count(), token = together.inference->decode.time().count();
  // 15 others, 32 turns: 15/64 of a prompt before it; 15 - 15/64 of them over 32 tokens.
  CHECK(r.inference->prefill.time().count() == Approx((1 + 15.0 / 64) * prompt));
  CHECK(r.inference->decode.time().count() == Approx(token + (15 - 15.0 / 64) / 32 * prompt));
  CHECK(r.step.count() == Approx(16 * prompt + 32 * token));
  CHECK(r.inference->tokens_per_s == Approx(2 * 16 * 33 / r.step.count()));
  for (const ServingPhase* phase : {&r.inference->prefill, &r.inference->decode})
    CHECK(phase->breakdown.total().count() == Approx(phase->time().count()).epsilon(1e-9));
  // 8 layers, 4 KV heads of a rank; 512 + 33/2 tokens on the mean.
  CHECK(r.memory.kv_cache.value() == Approx(8 * 2 * 4 * 64 * 16 * 528.5 * 2));
  CHECK(r.memory.activations == one.memory.activations);
  // Of many with short prompts a turn of tokens needs more than a prompt: logits of all.
  const StepInputs at_once = served(small_model(), layout(2, 1, 1), {1024, 8, 33, 1, 2});
  StepInputs many = at_once;
  many.serving->batching = Batching::continuous;
  CHECK(forecast(many, four_nodes()).memory.buffers == forecast(at_once, four_nodes()).memory.buffers);
}

TEST_CASE("a single request in flight is a batch of one") {
  StepInputs in = served(small_model(), layout(2, 1, 1), {1, 64, 9, 1, 2});
  const StepResult fixed = forecast(in, four_nodes());
  in.serving->batching = Batching::continuous;
  const StepResult flowing = forecast(in, four_nodes());
  CHECK(flowing.inference->prefill.time() == fixed.inference->prefill.time());
  CHECK(flowing.inference->decode.time() == fixed.inference->decode.time());
  in.layout.pp = 2;
  CHECK(wrong(in).find("pp 2 is not modelled with batching continuous") != std::string::npos);
  in.layout.pp = 1;
  in.serving = {4, 64, 9, 2, 2, true, Batching::continuous};
  CHECK(wrong(in).find("microbatches 2 cut a batch") != std::string::npos);
}

TEST_CASE("experts of ranks that have the same tokens exchange nothing but one sum") {
  TransformerConfig m = small_model();
  m.experts = {8, 2, 1024, 512};
  const auto layer = [&](int ep, int etp) {
    ParallelLayout l = layout(4, 1, 1);
    l.order = RankOrder::tp_cp_ep_dp_pp;
    l.ep = ep;
    l.etp = etp;
    return forecast(served(m, l, {16, 64, 4, 1, 2}), four_nodes());
  };
  for (const auto& [ep, etp] : {std::pair{1, 4}, {4, 1}, {2, 2}}) {
    const StepResult r = layer(ep, etp);
    const auto& ops = r.inference->prefill.operations;
    // 16 x 64 rows go to 2 experts each, a quarter of the work here: whole experts of a quarter of the rows, or a
    // quarter of every expert. Up and gate are 2 x 1024 wide.
    CHECK(named(ops, "experts up+gate").flops.value() == Approx(2.0 * 16 * 64 * 2 * 1024 * 2 * 1024 / 4));
    CHECK(named(ops, "shared up+gate").flops.value() == Approx(2.0 * 16 * 64 * 1024 * 2 * 512 / 4));
    for (const ServingPhase* phase : {&r.inference->prefill, &r.inference->decode})
      for (const CollectiveCost& c : phase->collectives) {
        CHECK(c.dimension == Dimension::tp);
        // Two sums in each of 8 layers and the embedding's.
        if (c.request.kind == CollectiveKind::all_reduce) CHECK(c.count == 17);
      }
    CHECK(r.inference->decode.simulate->count() == Approx(r.inference->decode.estimate.count()).epsilon(1e-3));
    CHECK(r.memory.parameters == layer(1, 4).memory.parameters);
  }
  ParallelLayout apart = layout(4, 1, 1);
  apart.order = RankOrder::tp_cp_ep_dp_pp;
  apart.ep = 2;
  apart.etp = 1;
  CHECK(wrong(served(m, apart, {16, 64, 4, 1, 2})).find("ep 2 x expert tp 1 is not tp 4") != std::string::npos);
}

TEST_CASE(
    "experts that ranks with the same tokens do not have between them: EP, expert TP or the sequence split with TP") {
  TransformerConfig m = small_model();
  m.experts = {8, 2, 1024, 512};
  const auto hint = [&](int tp, int ep, int etp) {
    ParallelLayout l = layout(tp, 1, 8 / tp);
    l.order = RankOrder::tp_cp_ep_dp_pp;
    l.ep = ep;
    l.etp = etp;
    const Diagnostics found = check_step(served(m, l, {16, 64, 4, 1, 2}), 32, Origins());
    REQUIRE(found.size() == 1);
    return found.front().hint;
  };
  // No expert TP makes EP 8 or 4 two ranks, and no EP expert TP 4.
  CHECK(hint(2, 8, 1) == "use ep 2, or sequence_parallel: true");
  CHECK(hint(2, 4, 2) == "use ep 1, or sequence_parallel: true");
  CHECK(hint(2, 2, 4) == "use etp 1, or sequence_parallel: true");
  CHECK(hint(4, 2, 1) == "use ep 4, or etp 2, or sequence_parallel: true");
}

TEST_CASE("a token's experts are different ones: a batch reads as many as it hits") {
  TransformerConfig m = small_model();
  m.experts = {8, 2, 1024, 0};
  const auto read = [&](int batch, int top_k, int ep) {
    m.experts.top_k = top_k;
    ParallelLayout l = layout(ep, 1, 1);
    l.order = RankOrder::tp_cp_ep_dp_pp;
    l.ep = ep;
    l.etp = 1;
    const auto ops =
        forecast(served(m, l, {batch, 64, 2, 1, 2}), four_nodes(), Method::estimate).inference->decode.operations;
    const Operation& up = named(ops, "experts up+gate");
    // Of a row 1024 in and 2 x 1024 out, of a matrix 1024 x 2 x 1024; 2 bytes each.
    const double rows = static_cast<double>(batch) * top_k / ep;
    return (up.bytes.value() / 2 - rows * 3 * 1024) / (2 * 1024 * 1024);
  };
  for (const int top_k : {1, 2, 5, 8}) CHECK(read(1, top_k, 1) == Approx(top_k));
  for (const int batch : {1, 3, 64}) {
    CHECK(read(batch, 8, 1) == Approx(8));
    for (const int top_k : {1, 2, 5})
      for (const int ep : {1, 2, 4}) {
        // Every token leaves an expert alone with 1 - K/E, whatever rank has it.
        CHECK(read(batch, top_k, ep) == Approx(8.0 / ep * (1 - std::pow(1 - top_k / 8.0, batch))));
        CHECK(read(batch, top_k, ep) <= 8.0 / ep);
      }
  }
}

TEST_CASE("weights of four bits are read so, and int4's are computed in bf16") {
  const auto token = [](const char* precision) {
    StepInputs in = served(small_model(), layout(1, 1, 1), {3, 100, 2, 1, 2});
    in.options.precision = precision;
    in.gpu.peak["fp4"] = FlopRate(4 * in.gpu.peak.at("bf16").value());
    in.kernels.gemm["fp4"] = in.kernels.gemm.at("bf16");
    return forecast(in, four_nodes(), Method::estimate);
  };
  const StepResult two = token("bf16"), half = token("fp4"), weights = token("int4");
  const auto qkv = [](const StepResult& r) { return named(r.inference->decode.operations, "qkv"); };
  const double weight = 1024.0 * 32 * 64, rows = 3 * 1024, out = 3 * 32 * 64;
  CHECK(qkv(two).bytes.value() == 2 * (weight + rows + out));
  CHECK(qkv(half).bytes.value() == 0.5625 * (weight + rows) + 2 * out);
  CHECK(qkv(weights).bytes.value() == 0.5625 * weight + 2 * (rows + out));
  CHECK(qkv(half).precision == "fp4");
  CHECK(qkv(weights).precision == "bf16");
  CHECK(weights.memory.parameters == half.memory.parameters);
  CHECK(weights.inference->decode.estimate < two.inference->decode.estimate);
  StepInputs trained = inputs(small_model(), layout(1, 1, 1), 128, 1);
  trained.options.precision = "int4";
  CHECK(wrong(trained).find("unknown precision 'int4'") != std::string::npos);
  // This GPU has no rate of it.
  trained.options.precision = "fp4";
  CHECK(wrong(trained).find("has no figure for fp4") != std::string::npos);
}

TEST_CASE("what launching a product by itself takes is no part of a token's, and a part of a prompt's") {
  const auto qkv = [](double overhead) {
    StepInputs in = served(small_model(), layout(1, 1, 1), {3, 100, 2, 1, 2});
    in.options.precision = "fp8";
    in.gpu.peak["fp8"] = in.gpu.peak.at("bf16");
    in.kernels.gemm["fp8"] = in.kernels.gemm.at("bf16");
    in.kernels.gemm["fp8"].overhead += Seconds(overhead);
    const StepResult r = forecast(in, four_nodes(), Method::estimate);
    return std::pair(named(r.inference->prefill.operations, "qkv").time,
                     named(r.inference->decode.operations, "qkv").time);
  };
  const auto alone = qkv(13e-6), same = qkv(0);
  CHECK(alone.second.count() == Approx(same.second.count()));
  CHECK(alone.first.count() == Approx(same.first.count() + 13e-6));
}

TEST_CASE("all experts of a server's rank have one overhead") {
  TransformerConfig m = small_model();
  m.experts = {64, 2, 1024, 0};
  const auto experts = [&](Seconds overhead) {
    StepInputs in = served(m, layout(1, 1, 1), {16, 64, 4, 1, 2});
    in.kernels.gemm["bf16"].overhead = overhead;
    return named(forecast(in, four_nodes(), Method::estimate).inference->decode.operations, "experts down").time;
  };
  CHECK((experts(Seconds(5e-6)) - experts(Seconds(1e-6))).count() == Approx(4e-6));
}

TEST_CASE("half the bytes of keys and values are half of the cache, and no slower") {
  Serving s{8, 2000, 16, 1, 2};
  const StepResult two = forecast(served(small_model(), layout(2, 1, 1), s), four_nodes(), Method::estimate);
  s.kv_bytes = 1;
  const StepResult one = forecast(served(small_model(), layout(2, 1, 1), s), four_nodes(), Method::estimate);
  CHECK(2 * one.memory.kv_cache.value() == two.memory.kv_cache.value());
  CHECK(one.inference->decode.estimate < two.inference->decode.estimate);
}

TEST_CASE("what does not fit is warned about, with a batch that would") {
  const StepResult r =
      forecast(served(llama_70b(80), layout(8, 1, 1), {1024, 8000, 192, 1, 2}), four_nodes(), Method::estimate);
  REQUIRE(r.memory.peak() > r.memory.capacity);
  REQUIRE(r.warnings.size() == 1);
  CHECK_THAT(r.warnings[0],
             Catch::Contains("for keys and values; what breaks the limit: KV cache; it fits with inference.batch: "));
}

TEST_CASE("a server that does not fit is offered shorter passes, narrower keys and experts of fewer replicas") {
  const auto warned = [](const StepInputs& in) {
    const StepResult r = forecast(in, four_nodes(), Method::estimate);
    INFO(r.memory.peak().value());
    REQUIRE_FALSE(r.memory.fits());
    return r.warnings.at(0);
  };
  // Passes of two million tokens: activations are more than the cache.
  Serving load{128, 16000, 192, 1, 1, true, Batching::continuous};
  load.load = RequestLoad{0, 0, 1, 2'000'000};
  const std::string passes = warned(served(llama_70b(80), layout(8, 1, 1), load));
  CHECK_THAT(passes, Catch::Contains("what breaks the limit: activations; ") &&
                         Catch::Contains("inference.load.max_batched_tokens: "));
  // What is offered fits, by the name that it is offered with.
  StepInputs shorter = served(llama_70b(80), layout(8, 1, 1), load);
  const std::string key = "inference.load.max_batched_tokens: ";
  shorter.serving->load->max_batched_tokens = std::stoi(passes.substr(passes.find(key) + key.size()));
  CHECK(shorter.serving->load->max_batched_tokens < 2'000'000);
  CHECK(forecast(shorter, four_nodes(), Method::estimate).memory.fits());
  // A micro-batch for each sequence, so that no batch is smaller: the cache alone is too large.
  const std::string keys = warned(served(llama_70b(80), layout(8, 1, 1), {300, 8000, 192, 300, 2}));
  CHECK_THAT(keys, Catch::Contains("inference.kv_precision: fp8"));
  // Eight replicas, whose experts are spread over them: half as many split a sequence's keys, and every expert.
  StepInputs spread = served(small_experts(), layout(1, 1, 8), {1, 2'400'000, 16, 1, 1});
  spread.layout.ep = 8;
  spread.model.kv_heads = spread.model.heads;
  CHECK_THAT(warned(spread), Catch::Contains("layout.tp: 2, layout.dp: 4, layout.ep: 1 ("));
}

TEST_CASE("what the host takes of a first token is in TTFT and in no pass, of batches and of requests in flight") {
  for (const Batching batching : {Batching::at_once, Batching::continuous})
    for (const int pp : {1, 2}) {
      if (batching == Batching::continuous && pp > 1) continue;
      StepInputs in = served(small_model(), layout(2, pp, 1), {8, 256, 17, 1, 2});
      in.serving->batching = batching;
      const StepResult without = forecast(in, four_nodes());
      CHECK(without.inference->prefill.breakdown.other == Seconds{});
      double last = without.step.count();
      for (const double overhead : {1e-3, 30e-3}) {
        in.serving->first_token_overhead = Seconds(overhead);
        const StepResult with = forecast(in, four_nodes());
        const ServingPhase &a = without.inference->prefill, &b = with.inference->prefill;
        CHECK(b.estimate.count() == Approx(a.estimate.count() + overhead).epsilon(1e-12));
        CHECK(b.simulate->count() == Approx(a.simulate->count() + overhead).epsilon(1e-12));
        CHECK(b.pass.time() == a.pass.time());
        CHECK(b.breakdown.other == Seconds(overhead));
        CHECK(b.breakdown.total().count() == Approx(b.time().count()).epsilon(1e-9));
        CHECK(with.inference->decode.time() == without.inference->decode.time());
        CHECK(with.step.count() == Approx(without.step.count() + overhead).epsilon(1e-12));
        CHECK(with.estimate.count() == Approx(without.estimate.count() + overhead).epsilon(1e-12));
        CHECK(with.breakdown.total().count() == Approx(with.step.count()).epsilon(1e-9));
        CHECK(with.step.count() > last);
        CHECK(with.tokens_per_s_per_gpu < without.tokens_per_s_per_gpu);
        last = with.step.count();
      }
    }
}

TEST_CASE("settings of a server that are nothing are warned of by their paths, and not where they are something") {
  const auto said = [](const StepInputs& in, const std::string& path) {
    REQUIRE(wrong(in) == "");
    const StepResult r = forecast(in, four_nodes(), Method::estimate);
    return std::ranges::any_of(r.warnings,
                               [&](const std::string& w) { return w.starts_with(path + " has no effect: "); });
  };
  StepInputs plain = served(small_model(), layout(1, 1, 1), {4, 128, 9, 1, 2});
  CHECK(forecast(plain, four_nodes(), Method::estimate).warnings.empty());

  StepInputs in = plain;
  in.layout.sequence_parallel = true;
  CHECK(said(in, "layout.sequence_parallel"));
  in.layout.tp = 2;
  CHECK_FALSE(said(in, "layout.sequence_parallel"));

  in = served(small_experts(), layout(1, 1, 4), {4, 128, 9, 1, 2});
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.options.expert_imbalance = 1.5;
  CHECK(said(in, "inference.expert_imbalance"));
  in.layout.ep = 4;
  CHECK_FALSE(said(in, "inference.expert_imbalance"));

  in = plain;
  in.serving->batching = Batching::continuous;
  in.serving->load.emplace();
  in.serving->load->seed = 7;
  CHECK(said(in, "inference.load.seed"));
  in.serving->load->range_ratio = 0.5;
  CHECK_FALSE(said(in, "inference.load.seed"));
}

TEST_CASE("sequence parallelism splits a micro-batch's prompts together, and one that passes alone by itself") {
  StepInputs in = served(small_model(), layout(4, 1, 1), {8, 1001, 9, 1, 2});
  in.layout.sequence_parallel = true;
  CHECK(wrong(in) == "");
  CHECK(forecast(in, four_nodes(), Method::estimate).step > Seconds{});
  in.serving->batching = Batching::continuous;
  CHECK(wrong(in).find("tp 4 does not divide prompt_tokens (sequence_parallel) 1001") != std::string::npos);
  in.serving->prompt_tokens = 1004;
  in.batch.sequence = 1004;
  CHECK(wrong(in) == "");
}

TEST_CASE("what makes no sense is refused with what would") {
  CHECK(wrong(served(small_model(), layout(1, 2, 1), {6, 8, 8, 4, 2})).find("use microbatches 3 or 6") !=
        std::string::npos);
  StepInputs longer = served(gpt_22b(), layout(1, 1, 1), {1, 2000, 49, 1, 2});
  CHECK(wrong(longer).find("2048 learned positions") != std::string::npos);
  longer.serving->output_tokens = 48;
  CHECK(wrong(longer) == "");
  StepInputs split = served(small_model(), layout(4, 1, 1), {6, 8, 8, 1, 2});
  split.layout.sequence_parallel = true;
  CHECK(wrong(split).find("use a batch of 4 or a multiple") != std::string::npos);
  CHECK(wrong(served(small_model(), layout(1, 1, 1), {1, 8, 1, 1, 2})).find("output_tokens is 1") != std::string::npos);
  StepInputs context = served(small_model(), layout(1, 1, 1), {1, 8, 8, 1, 2});
  context.layout.cp = 2;
  CHECK(wrong(context).find("cp 2 is not modelled for inference") != std::string::npos);
  CHECK(wrong(served(small_model(), layout(1, 16, 1), {1, 8, 8, 1, 2})) != "");
}
