// Speculative decoding: how many tokens a pass brings, what it computes and keeps by hand, laws between TTFT, TPOT and
// work, and both methods against each other.
#include "collcast/workload/speculation.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>

#include "inputs.hpp"
#include "workload/serving/drafts.hpp"
#include "workload/serving/serving.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

Speculation drafts(DraftMethod method, int tokens, double rate) { return {method, tokens, rate, {}}; }

StepInputs served(TransformerConfig model, ParallelLayout layout, Serving serving, std::optional<Speculation> of = {}) {
  serving.speculation = of;
  if (of && of->method == DraftMethod::mtp && model.mtp_layers == 0) model.mtp_layers = 1;
  StepInputs in = inputs(std::move(model), layout, serving.prompt_tokens, 1);
  in.serving = serving;
  in.options.optimizer = false;
  return in;
}

Serving in_flight(int requests, int prompt, int output) {
  Serving s{requests, prompt, output, 1, 2};
  s.batching = Batching::continuous;
  return s;
}

ServingPass pass_of(const StepInputs& in, Method method = Method::estimate) {
  return forecast(in, four_nodes(), method).inference->decode.pass;
}

std::string wrong(const StepInputs& in) { return to_text(check_step(in, 32, Origins())); }

}  // namespace

TEST_CASE("a pass brings its own token and those accepted before the first that is not") {
  CHECK(drafts(DraftMethod::mtp, 3, 0).tokens_per_pass() == 1);
  CHECK(drafts(DraftMethod::mtp, 3, 1).tokens_per_pass() == 4);
  CHECK(drafts(DraftMethod::ngram, 1, 0.85).tokens_per_pass() == Approx(1.85));
  CHECK(drafts(DraftMethod::mtp, 2, 0.5).tokens_per_pass() == Approx(1.75));
  CHECK(Speculation{DraftMethod::mtp, 3, {}, 2.25}.tokens_per_pass() == 2.25);
  // The same by drawing: each drafted token is accepted or ends the pass.
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> share(0, 1);
  for (const double rate : {0.3, 0.6, 0.9})
    for (const int tokens : {1, 3, 7}) {
      double brought = 0;
      constexpr int passes = 200'000;
      for (int pass = 0; pass < passes; ++pass) {
        int accepted = 0;
        while (accepted < tokens && share(random) < rate) ++accepted;
        brought += 1 + accepted;
      }
      CHECK(drafts(DraftMethod::mtp, tokens, rate).tokens_per_pass() == Approx(brought / passes).epsilon(0.01));
    }
}

TEST_CASE("a pass of tokens has rows of all that are verified, and reads keys and values once") {
  const StepInputs in = served(small_model(), layout(1, 1, 1), {3, 100, 9, 1, 2}, drafts(DraftMethod::ngram, 3, 0.5));
  const auto ops = forecast(in, four_nodes(), Method::estimate).inference->decode.operations;
  CHECK(named(ops, "qkv").flops.value() == 2.0 * 3 * 4 * 1024 * 32 * 64);
  CHECK(named(ops, "qkv").bytes.value() == 2.0 * (3 * 4 * 1024 + 1024 * 32 * 64 + 3 * 4 * 32 * 64));
  const Operation& core = named(ops, "attention over the cache");
  // Queries of 4 tokens meet 101, 102, 103 and 104 keys; their keys and values come with those kept.
  CHECK(core.flops.value() == Approx(2.0 * 2 * 3 * 16 * 64 * (101 + 102 + 103 + 104)));
  CHECK(core.bytes.value() == 2.0 * 3 * 4 * 2 * 16 * 64 + 2.0 * 3 * 104 * 2 * 8 * 64);
}

TEST_CASE("tokens that are looked up cost what their verification does") {
  const Serving s{4, 64, 9, 1, 2};
  const StepInputs plain = served(small_model(), layout(2, 1, 1), s);
  const StepInputs looked_up = served(small_model(), layout(2, 1, 1), s, drafts(DraftMethod::ngram, 3, 0.5));
  const StepResult a = forecast(plain, four_nodes()), b = forecast(looked_up, four_nodes());
  CHECK(b.inference->prefill.time() == a.inference->prefill.time());
  CHECK(b.memory.parameters == a.memory.parameters);
  // 3 tokens more of each of 4 sequences, in 8 layers: 4 of the 8 KV heads, keys and values of 64, 2 bytes.
  CHECK(b.memory.kv_cache - a.memory.kv_cache == Bytes(8 * 4 * 3 * 2 * 4 * 64 * 2));
  CHECK(b.inference->decode.pass.time() > a.inference->decode.pass.time());
  CHECK(b.inference->decode.time().count() == Approx(b.inference->decode.pass.time().count() / 1.875).epsilon(1e-12));
}

TEST_CASE("a module that drafts is on the last stage, with weights and keys and values of its own") {
  const Serving s{4, 64, 9, 2, 2};
  const StepInputs plain = served(small_model(), layout(2, 2, 1), s);
  const StepInputs drafted = served(small_model(), layout(2, 2, 1), s, drafts(DraftMethod::mtp, 2, 0.5));
  const StepResult a = forecast(plain, four_nodes()), b = forecast(drafted, four_nodes());
  CHECK(b.memory_by_stage[0].parameters == a.memory_by_stage[0].parameters);
  // A layer and the projection, halved; three norms of the module; a copy of the embedding, as the last stage has none.
  const std::int64_t layer = (1024 * 32 * 64 + 1024 * 1024 + 3 * 1024 * 4096) / 2 + 2 * 1024;
  const std::int64_t module = layer + 2 * 1024 * 1024 / 2 + 3 * 1024 + 32000 * 1024 / 2;
  CHECK(b.memory_by_stage[1].parameters - a.memory_by_stage[1].parameters == Bytes(2 * module));
  // 5 layers of 74 tokens in the place of 4 of 72.
  CHECK(b.memory_by_stage[1].kv_cache == Bytes(5 * 4 * 74 * 2 * 4 * 64 * 2));
  CHECK(a.memory_by_stage[1].kv_cache == Bytes(4 * 4 * 72 * 2 * 4 * 64 * 2));
  CHECK(b.inference->prefill.time() > a.inference->prefill.time());
}

TEST_CASE("further drafts are passes of the last module with a token of each sequence") {
  const auto at = [](int tokens, int modules) {
    TransformerConfig m = small_model();
    m.mtp_layers = modules;
    return served(m, layout(1, 1, 1), {4, 64, 9, 1, 2}, drafts(DraftMethod::mtp, tokens, 0.5));
  };
  CHECK(workload::further_drafts(workload::token_pass(at(1, 1), 64)) == 0);
  CHECK(workload::further_drafts(workload::token_pass(at(4, 1), 64)) == 3);
  CHECK(workload::further_drafts(workload::token_pass(at(4, 3), 64)) == 1);
  CHECK(workload::further_drafts(workload::prompt_pass(at(4, 1))) == 0);
  // By hand of the pass with the first context: 8 layers and the module's of 4 x 3 rows, ends, and a draft of 4 rows.
  const StepInputs in = at(2, 1);
  const StepResult r = forecast(in, four_nodes(), Method::estimate);
  const auto layer_of = [&](int tokens) {
    StepInputs one = at(tokens, 1);
    one.serving->speculation->method = DraftMethod::ngram;
    one.model.mtp_layers = 0;
    return forecast(one, four_nodes(), Method::estimate).inference->decode.layer.count();
  };
  StepInputs single = served(small_model(), layout(1, 1, 1), {4, 64, 9, 1, 2});
  const double draft_layer = forecast(single, four_nodes(), Method::estimate).inference->decode.layer.count();
  const double h = 1024, v = 32000, w = 2, rate = 1e12;
  const auto memory = [&](double bytes) { return bytes / rate; };
  const auto head = [&](double rows) {
    return memory(2 * w * rows * h) + std::max(w * (rows * h + h * v + rows * v), 2 * rows * h * v / 1e3) / rate +
           memory(w * rows * v);
  };
  const auto module = [&](double rows) {
    return memory(2 * w * rows * h) + memory((2 + 2 + 4) * w * rows * h) +
           std::max(w * (rows * 2 * h + 2 * h * h + rows * h), 2 * rows * 2 * h * h / 1e3) / rate + head(4);
  };
  const double ends = memory(2 * w * 12 * h) + head(12) + module(12);
  const double expected = 9 * layer_of(2) + ends + module(4) + draft_layer;
  CHECK(r.inference->tokens.shortest.stage.front().count() == Approx(expected).epsilon(1e-9));
}

TEST_CASE("the last stage of a pipeline drafts, and what it takes is in every round") {
  const Serving s{4, 64, 9, 1, 2};
  const ServingPass plain = pass_of(served(small_model(), layout(1, 4, 1), s, drafts(DraftMethod::ngram, 4, 0.5)));
  const StepInputs in = served(small_model(), layout(1, 4, 1), s, drafts(DraftMethod::mtp, 4, 0.5));
  const StepResult r = forecast(in, four_nodes(), Method::estimate);
  const std::vector<Seconds>& stages = r.inference->tokens.shortest.stage;
  CHECK(stages[3] > 2 * stages[2]);
  CHECK(stages[1] == stages[2]);
  CHECK(r.inference->decode.pass.estimate > plain.estimate);
  CHECK(r.inference->tokens.layers[3].drafts == 3);
  CHECK(r.inference->tokens.layers[3].full == 3);
}

TEST_CASE("closed form and simulation of passes with drafts agree") {
  std::mt19937 random(20261128);
  const auto one_of = [&](auto... values) {
    const std::array all{values...};
    return all[std::uniform_int_distribution<std::size_t>(0, all.size() - 1)(random)];
  };
  for (int run = 0; run < 60; ++run) {
    TransformerConfig m = small_model();
    if (one_of(0, 1) == 1) m.window = {one_of(32, 100), one_of(0, 2), 0};
    const int pp = one_of(1, 2, 4), tp = one_of(1, 2, 4), cut = one_of(1, 2, 4);
    const int modules = one_of(1, 2), tokens = modules + one_of(0, 1, 3);
    const auto method = one_of(DraftMethod::mtp, DraftMethod::ngram);
    if (method == DraftMethod::mtp) m.mtp_layers = modules;
    ParallelLayout l = layout(tp, pp, 1);
    l.uneven_stages = one_of(0, 1) == 1;
    const StepInputs in =
        served(m, l, {8, one_of(16, 90, 200), one_of(2, 9, 40), cut, 2}, drafts(method, tokens, one_of(0.0, 0.4, 0.9)));
    CAPTURE(run, pp, tp, cut, modules, tokens, m.window.tokens);
    REQUIRE(wrong(in).empty());
    const StepResult r = forecast(in, four_nodes(), Method::both);
    const ServingPhase& decode = r.inference->decode;
    // A bend between the three contexts that are simulated is where windows fill: else straight lines. Simulated
    // collectives round to picoseconds.
    const double rounding = tp > 1 || pp > 1 ? 1e-5 : 1e-9;
    CHECK(decode.simulate->count() == Approx(decode.estimate.count()).epsilon(m.window.tokens > 0 ? 2e-3 : rounding));
    CHECK(r.inference->prefill.simulate->count() == Approx(r.inference->prefill.estimate.count()).epsilon(rounding));
    CHECK(decode.breakdown.total().count() == Approx(decode.time().count()).epsilon(1e-9));
  }
}

TEST_CASE("requests in flight with drafts: work is conserved") {
  for (const int requests : {1, 5, 32})
    for (const double rate : {0.0, 0.5, 0.9}) {
      const StepInputs in =
          served(small_model(), layout(2, 1, 1), in_flight(requests, 64, 41), drafts(DraftMethod::mtp, 3, rate));
      const InferenceResult r = *forecast(in, four_nodes()).inference;
      const double tokens = in.serving->tokens_per_pass(), passes = 40 / tokens;
      const double prompt = r.prefill.pass.time().count(), pass = r.decode.pass.time().count();
      CHECK(r.prefill.time().count() + 40 * r.decode.time().count() ==
            Approx(requests * prompt + passes * pass).epsilon(1e-9));
      CHECK(r.prefill.time().count() == Approx((1 + (requests - 1) / (2 * passes)) * prompt).epsilon(1e-9));
      CHECK(r.tokens_per_s == Approx(requests * 41 / (requests * prompt + passes * pass)).epsilon(1e-9));
    }
}

TEST_CASE("no answer takes less than a pass behind its first token") {
  for (const int output : {2, 3, 4})
    for (const int tokens : {1, 3, 32}) {
      const Speculation all = drafts(DraftMethod::ngram, tokens, 1);
      const double behind = output - 1, passes = std::max(1.0, behind / (1 + tokens));
      const InferenceResult at_once =
          *forecast(served(small_model(), layout(2, 1, 1), {4, 64, output, 1, 2}, all), four_nodes()).inference;
      CHECK(behind * at_once.decode.time().count() == Approx(passes * at_once.decode.pass.time().count()));
      const InferenceResult r =
          *forecast(served(small_model(), layout(2, 1, 1), in_flight(16, 64, output), all), four_nodes()).inference;
      const double prompt = r.prefill.pass.time().count(), pass = r.decode.pass.time().count();
      CHECK(r.decode.time() > Seconds{});
      CHECK(r.prefill.time().count() <= (1 + 15 / 2.0) * prompt * (1 + 1e-12));
      CHECK(r.prefill.time().count() + behind * r.decode.time().count() ==
            Approx(16 * prompt + passes * pass).epsilon(1e-9));
    }
}

TEST_CASE("a run of requests takes whole passes for each answer") {
  Serving s = in_flight(4, 64, 41);
  s.load = RequestLoad{};
  s.load->requests = 12;
  s.load->max_batched_tokens = 100;
  s.speculation = Speculation{DraftMethod::ngram, 3, {}, 2.5};
  const LoadRun run = run_load(s);
  for (const LoadRun::Request& request : run.requests) CHECK(request.rest.token_passes == 16);
  // A prompt of 64 goes beside 4 tokens of each running request: the second one's last 28 beside the first's 4.
  CHECK(run.requests[0].first.prompt_tokens == 100);
  CHECK(run.requests[1].first.prompt_tokens == 128 + 68);
  const PromptShares share = prompt_shares(s);
  CHECK(share.passes_in_tpot == Approx(16.0 / 40));
  s.speculation->acceptance_length = 2.4;
  CHECK(run_load(s).requests[0].rest.token_passes == 17);
  // One token a pass is no other run than without drafts, but for the room that they take.
  s.speculation = Speculation{DraftMethod::ngram, 1, 0.0, {}};
  s.load->max_batched_tokens = 100'000;
  Serving plain = s;
  plain.speculation.reset();
  const LoadRun same = run_load(plain);
  const LoadRun with = run_load(s);
  for (std::size_t i = 0; i < same.requests.size(); ++i) {
    CHECK(with.requests[i].rest.token_passes == same.requests[i].rest.token_passes);
    CHECK(with.requests[i].first.prompt_tokens == same.requests[i].first.prompt_tokens);
  }
}

TEST_CASE("more that is accepted never makes a token slower, and more that is drafted never a pass shorter") {
  Seconds before{};
  for (const double rate : {1.0, 0.9, 0.5, 0.1, 0.0}) {
    const Seconds now =
        forecast(served(small_model(), layout(2, 2, 1), {4, 64, 9, 2, 2}, drafts(DraftMethod::mtp, 3, rate)),
                 four_nodes(), Method::estimate)
            .inference->decode.time();
    CHECK(now > before);
    before = now;
  }
  before = {};
  for (const int tokens : {1, 2, 3, 5, 8}) {
    const Seconds now =
        pass_of(served(small_model(), layout(2, 2, 1), {4, 64, 9, 2, 2}, drafts(DraftMethod::mtp, tokens, 0.5))).time();
    CHECK(now > before);
    before = now;
  }
}

TEST_CASE("what speculative decoding does not go with is said") {
  const Serving s{4, 64, 9, 1, 2};
  CHECK(wrong(served(small_model(), layout(1, 1, 1), s, drafts(DraftMethod::mtp, 2, 0.5))).empty());
  CHECK_THAT(wrong(served(small_model(), layout(1, 1, 1), s, drafts(DraftMethod::mtp, 0, 0.5))),
             Catch::Contains("num_speculative_tokens is 0"));
  CHECK_THAT(wrong(served(small_model(), layout(1, 1, 1), s, Speculation{DraftMethod::mtp, 2, {}, 3.5})),
             Catch::Contains("a pass over 3 tokens does not bring 3.5"));
  TransformerConfig m = small_model();
  m.mtp_layers = 3;
  CHECK_THAT(wrong(served(m, layout(1, 1, 1), s, drafts(DraftMethod::mtp, 2, 0.5))),
             Catch::Contains("3 layers that predict further tokens draft more than 2"));
  CHECK_THAT(wrong(served(m, layout(1, 1, 1), s, drafts(DraftMethod::ngram, 3, 0.5))),
             Catch::Contains("a server has no use of layers that predict further tokens"));
  TransformerConfig learned = small_model();
  learned.learned_positions = 4096;
  CHECK_THAT(wrong(served(learned, layout(1, 1, 1), s, drafts(DraftMethod::mtp, 3, 0.5))),
             Catch::Contains("method mtp drafts by layers that go with rotary positions or none"));
  StepInputs none = served(small_model(), layout(1, 1, 1), s, drafts(DraftMethod::mtp, 3, 0.5));
  none.model.mtp_layers = 0;
  CHECK_THAT(wrong(none), Catch::Contains("method mtp drafts by layers that predict further tokens"));
  StepInputs full = served(small_model(), layout(1, 1, 1), in_flight(4, 64, 9), drafts(DraftMethod::ngram, 3, 0.5));
  full.serving->load = RequestLoad{};
  full.serving->load->max_batched_tokens = 16;
  CHECK_THAT(wrong(full), Catch::Contains("leaves no room for prompts beside 4 tokens of each of 4 requests"));
}
