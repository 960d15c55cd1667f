// A run of requests, pass by pass: against a server that is told token by token, and laws of queues.
#include "collcast/workload/request_load.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <random>

#include "collcast/workload/config.hpp"
#include "collcast/workload/serving_terms.hpp"
#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

Serving of_load(int batch, int prompt, int output, RequestLoad load) {
  Serving s{batch, prompt, output, 1, 2, true, Batching::continuous};
  s.load = load;
  return s;
}

/// The same server, one pass at a time and every request looked at in each, with the lengths of `run`.
struct Slow {
  struct One {
    int prompt = 0, output = 0, passed = 0, tokens = 0;
    PassCount sent, first, last;
    bool in_system = false, done = false;
    bool runs() const { return in_system && !done && tokens > 0; }
    bool waits() const { return in_system && tokens == 0; }
  };
  std::vector<One> all;
  PassCount now;

  Slow(const Serving& s, const LoadRun& run) {
    for (const LoadRun::Request& r : run.requests)
      all.push_back({r.prompt_tokens, r.output_tokens, 0, 0, {}, {}, {}, false, false});
    std::size_t next = 0;
    const auto send = [&] {
      if (next == all.size()) return;
      all[next++].sent = now;
    };
    const auto look = [&] {
      for (std::size_t i = 0; i < next; ++i) all[i].in_system = true;
    };
    int passes = 0;  // of tokens alone, since the last pass with prompts
    for (int i = 0; i < s.clients(); ++i) send();
    look();
    while (!std::all_of(all.begin(), all.end(), [](const One& r) { return r.done; })) {
      int running = 0;
      for (const One& r : all) running += r.runs();
      int room = s.load->max_batched_tokens - running, places = s.batch - running;
      std::vector<One*> decoding, prefilled;
      for (One& r : all)
        if (r.runs()) decoding.push_back(&r);
      for (One& r : all) {
        if (!r.waits() || room == 0 || places == 0) continue;
        const int part = std::min(room, r.prompt - r.passed);
        r.passed += part;
        room -= part;
        now.prompt_tokens += part;
        --places;
        if (r.passed == r.prompt) prefilled.push_back(&r);
      }
      const bool prompts = s.load->max_batched_tokens - running > room;
      if (prompts) ++now.prompt_passes;
      if (!decoding.empty()) ++now.token_passes;
      for (One* r : decoding) ++r->tokens;
      for (One* r : prefilled) {
        r->tokens = 1;
        r->first = now;
      }
      std::vector<One*> ended;
      for (One* r : decoding)
        if (r->tokens == r->output) ended.push_back(r);
      for (One* r : ended) {
        r->done = true;
        r->last = now;
        send();
      }
      passes = prompts ? 0 : passes + 1;
      const bool idle = std::none_of(all.begin(), all.end(), [](const One& r) { return r.runs(); });
      if (prompts || idle || passes % s.load->recv_interval == 0) look();
      if (idle) passes = 0;
    }
  }
};

bool same(const PassCount& a, const PassCount& from, const PassCount& to) {
  return a.prompt_tokens == to.prompt_tokens - from.prompt_tokens &&
         a.token_passes == to.token_passes - from.token_passes &&
         a.prompt_passes == to.prompt_passes - from.prompt_passes;
}

std::int64_t prompts_of(const LoadRun& run) {
  return std::accumulate(run.requests.begin(), run.requests.end(), std::int64_t{0},
                         [](std::int64_t sum, const LoadRun::Request& r) { return sum + r.prompt_tokens; });
}

std::vector<Serving> at_random(int count) {
  std::mt19937 random(20261127);
  const auto between = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  std::vector<Serving> out;
  for (int i = 0; i < count; ++i) {
    const int batch = between(1, 12), clients = batch + (between(0, 1) == 1 ? 0 : between(0, 9));
    out.push_back(of_load(batch, between(1, 60), between(2, 40),
                          {clients, clients + between(0, 60), 0.05 * between(1, 20), batch + between(1, 90),
                           between(0, 1) == 1 ? 1 : between(2, 30), i}));
  }
  return out;
}

}  // namespace

TEST_CASE("a run counts what a server does that is told token by token") {
  for (const Serving& s : at_random(300)) {
    const LoadRun run = run_load(s);
    const Slow slow(s, run);
    INFO(s.batch << " places, " << s.clients() << " clients, " << s.run_requests() << " requests of " << s.prompt_tokens
                 << " and " << s.output_tokens << ", " << s.load->max_batched_tokens << " in a pass, seed "
                 << s.load->seed);
    REQUIRE(run.requests.size() == static_cast<std::size_t>(s.run_requests()));
    for (std::size_t i = 0; i < run.requests.size(); ++i) {
      const Slow::One& r = slow.all[i];
      INFO("request " << i);
      REQUIRE(same(run.requests[i].first, r.sent, r.first));
      REQUIRE(same(run.requests[i].rest, r.first, r.last));
    }
    REQUIRE(same(run.all, {}, slow.now));
  }
}

TEST_CASE("work is conserved, a running request has a token of every pass, and clients are never idle") {
  for (const Serving& s : at_random(200)) {
    const LoadRun run = run_load(s);
    CHECK(run.all.prompt_tokens == prompts_of(run));
    PassCount latencies, longest;
    for (const LoadRun::Request& r : run.requests) {
      CHECK(r.rest.token_passes == r.output_tokens - 1);
      CHECK(r.first.prompt_tokens >= r.prompt_tokens);
      const std::int64_t least = (r.prompt_tokens - 1) / s.load->max_batched_tokens + 1;
      CHECK(r.first.prompt_passes >= least);
      latencies.prompt_tokens += r.first.prompt_tokens + r.rest.prompt_tokens;
      latencies.token_passes += r.first.token_passes + r.rest.token_passes;
      latencies.prompt_passes += r.first.prompt_passes + r.rest.prompt_passes;
      longest.prompt_tokens = std::max(longest.prompt_tokens, r.first.prompt_tokens + r.rest.prompt_tokens);
      longest.token_passes = std::max(longest.token_passes, r.first.token_passes + r.rest.token_passes);
      longest.prompt_passes = std::max(longest.prompt_passes, r.first.prompt_passes + r.rest.prompt_passes);
    }
    // Little's law: as many in the system as clients, but behind the last request's sending.
    CHECK(latencies.prompt_tokens <= s.clients() * run.all.prompt_tokens);
    CHECK(latencies.prompt_tokens >= s.clients() * (run.all.prompt_tokens - longest.prompt_tokens));
    CHECK(latencies.token_passes <= s.clients() * run.all.token_passes);
    CHECK(latencies.token_passes >= s.clients() * (run.all.token_passes - longest.token_passes));
    CHECK(latencies.prompt_passes <= s.clients() * run.all.prompt_passes);
    CHECK(latencies.prompt_passes >= s.clients() * (run.all.prompt_passes - longest.prompt_passes));
    // A pass with prompts has a token of them at least, and no more than it has room for.
    CHECK(run.all.prompt_passes <= run.all.prompt_tokens);
    CHECK(run.all.prompt_passes * s.load->max_batched_tokens >= run.all.prompt_tokens);
  }
}

TEST_CASE("means are the shares that the forecast is made of, percentiles in order, and rates tokens over the run") {
  for (const Serving& s : at_random(100)) {
    const LoadRun run = run_load(s);
    const Seconds pass(0.011), prompt(0.03), token(0.007);
    const Seconds of_one = prompt / s.mean_prompt_tokens();
    const LoadTimes times = load_times(run, {pass, of_one, token});
    const PromptShares share = prompt_shares(s);
    CHECK(times.ttft.mean.count() ==
          Approx((share.in_ttft * prompt + share.prompt_passes_in_ttft * pass + share.tokens_in_ttft * token).count()));
    CHECK(times.tpot.mean.count() ==
          Approx((token + share.in_tpot * prompt + share.prompt_passes_in_tpot * pass).count()));
    for (const TimeSpread* t : {&times.ttft, &times.tpot}) {
      CHECK(t->p50 <= t->p90);
      CHECK(t->p90 <= t->p99);
      CHECK(t->p99 <= t->longest);
      CHECK(t->mean.count() <= t->longest.count() * (1 + 1e-12));
    }
    CHECK(times.tokens_per_s == Approx(static_cast<double>(run.output_tokens) / times.duration.count()));
    // Twice the time of all is twice every time.
    const LoadTimes twice = load_times(run, {2 * pass, 2 * of_one, 2 * token});
    CHECK(twice.ttft.p90.count() == Approx(2 * times.ttft.p90.count()));
    CHECK(twice.duration.count() == Approx(2 * times.duration.count()));
  }
}

TEST_CASE("a burst of equal requests waits for the prompts before it and the tokens between them") {
  // Room for one prompt of 1000 and 7 tokens more, of which every running request takes one: behind pass j of 8 there
  // are 1008 j - j (j + 1)/2 prompt tokens, j whole prompts among them, and in the end 8000; j - 1 passes had tokens.
  const int clients = 8, prompt = 1000;
  const PromptShares share = prompt_shares(of_load(clients, prompt, 500, {clients, clients, 1, prompt + 7}));
  CHECK(share.in_ttft == Approx((1008 * 28 - 84 + 8000) / 8000.0));
  CHECK(share.tokens_in_ttft == Approx((clients - 1) / 2.0));
  CHECK(share.prompt_passes_in_ttft == Approx((clients + 1) / 2.0));
  // Room for all: all have their first tokens behind all prompts, and nobody has a token before.
  const PromptShares at_once = prompt_shares(of_load(clients, prompt, 500, {clients, clients, 1, 10'000}));
  CHECK(at_once.in_ttft == Approx(clients));
  CHECK(at_once.tokens_in_ttft == 0);
  CHECK(at_once.prompt_passes_in_ttft == 1);
  CHECK(at_once.in_tpot == 0);
  CHECK(at_once.prompt_passes_in_tpot == 0);
  // Of equal lengths the next wave is as the first, and so is every one.
  const PromptShares waves = prompt_shares(of_load(clients, prompt, 500, {clients, 10 * clients, 1, 10'000}));
  CHECK(waves.in_ttft == Approx(clients));
  CHECK(waves.prompt_passes_in_ttft == Approx(1));
}

TEST_CASE("requests beyond the places wait for one, as long as all answers take") {
  const RequestLoad load{8, 80, 1, 10'000};
  const PromptShares places = prompt_shares(of_load(8, 10, 100, load)), half = prompt_shares(of_load(4, 10, 100, load));
  CHECK(places.tokens_in_ttft == 0);
  // Four of eight wait while the other four answer, then for ever.
  CHECK(half.tokens_in_ttft == Approx(99 * 76.0 / 80));
}

TEST_CASE("a server that looks for requests now and then keeps them waiting unseen for half as long on the mean") {
  // Prompts of one token, so that they take no time beside the tokens; lengths are drawn, so that looks fall anywhere.
  const auto waits = [](int interval) {
    return prompt_shares(of_load(4, 1, 1000, {4, 4000, 0.5, 100, interval, 1})).tokens_in_ttft;
  };
  // Every pass with a prompt is a look, too: one request's wait may end another's.
  const double at_once = waits(1), every_30th = waits(30);
  CHECK(at_once == Approx(1).margin(0.01));
  CHECK(every_30th - at_once == Approx(29 / 2.0).epsilon(0.05));
}

TEST_CASE("requests of many lengths come to the steady server's times, whatever they began with") {
  // One prompt in a pass at most, and a thousand requests of each client: the burst is forgotten.
  const int clients = 8;
  Serving s = of_load(clients, 64, 400, {clients, 1000 * clients, 0.1, 64 + clients, 1, 5});
  const PromptShares run = prompt_shares(s);
  s.load.reset();
  s.output_tokens = 220;  // the mean of 40 ... 400
  const PromptShares steady = prompt_shares(s);
  // Beside others' prompts a request waits for the tokens of the passes that its own and theirs are in.
  // Of those that enter at its own turn half come before it; parts of the others may share its last pass.
  CHECK(run.in_ttft > steady.in_ttft - 0.005);
  CHECK(run.in_ttft < 1 + 2 * (steady.in_ttft - 1) + 0.01);
  CHECK(run.tokens_in_ttft == Approx(steady.in_ttft).epsilon(0.05));
}

TEST_CASE("the same seed draws the same lengths, between the shortest and the longest") {
  const Serving s = of_load(16, 1000, 200, {16, 4000, 0.8, 8192, 1, 7});
  const LoadRun a = run_load(s), b = run_load(s);
  Serving other = s;
  other.load->seed = 8;
  const LoadRun c = run_load(other);
  double mean = 0;
  int least = 1000, most = 0, differ = 0;
  for (std::size_t i = 0; i < a.requests.size(); ++i) {
    REQUIRE(a.requests[i].prompt_tokens == b.requests[i].prompt_tokens);
    REQUIRE(a.requests[i].output_tokens == b.requests[i].output_tokens);
    differ += a.requests[i].prompt_tokens != c.requests[i].prompt_tokens;
    least = std::min(least, a.requests[i].prompt_tokens);
    most = std::max(most, a.requests[i].prompt_tokens);
    mean += a.requests[i].prompt_tokens / 4000.0;
  }
  CHECK(least == 800);
  CHECK(most == 1000);
  CHECK(mean == Approx(900).margin(4));
  CHECK(differ > 3900);
}

TEST_CASE("a server with a load has the times of its run, by both methods, and all of its places' cache") {
  StepInputs in = inputs(small_model(), layout(2, 1, 2), 512, 1);
  in.serving = of_load(16, 512, 33, {0, 0, 0.8, 2048});
  in.options.optimizer = false;
  const StepResult r = forecast(in, four_nodes());
  const InferenceResult& served = *r.inference;
  REQUIRE(served.load.has_value());
  // Prompts of 461 tokens on the mean, four of them in a pass; those together are a batch of four that comes at once.
  REQUIRE(served.full_pass.has_value());
  CHECK(served.full_pass->prompts == 4);
  StepInputs together = in;
  together.serving = Serving{4, 461, 33};
  const StepResult four = forecast(together, four_nodes());
  CHECK(served.full_pass->pass.estimate == four.inference->prefill.estimate);
  CHECK(served.full_pass->pass.simulate == four.inference->prefill.simulate);
  const Seconds prompt = served.prefill.pass.time(), further = (four.inference->prefill.time() - prompt) / 3;
  CHECK(served.further_prompt().count() == Approx(further.count()));
  CHECK(further < prompt);
  const LoadTimes times =
      load_times(run_load(*in.serving), {prompt - further, further / 461, served.decode.pass.time()});
  CHECK(served.load->ttft.p99.count() == Approx(times.ttft.p99.count()));
  CHECK(served.prefill.time().count() == Approx(times.ttft.mean.count()).epsilon(1e-9));
  CHECK(served.decode.time().count() == Approx(times.tpot.mean.count()).epsilon(1e-9));
  CHECK(served.tokens_per_s == Approx(2 * times.tokens_per_s));
  CHECK(r.tokens_per_s_per_gpu == Approx(served.tokens_per_s / 4));
  for (const ServingPhase* phase : {&served.prefill, &served.decode})
    CHECK(phase->breakdown.total().count() == Approx(phase->time().count()).epsilon(1e-9));
  // 8 layers, 4 KV heads of a rank; all begin at once, so that they are at their ends together.
  CHECK(r.memory.kv_cache.value() == Approx(8 * 2 * 4 * 64 * 16 * 544.0 * 2));
  // A pass has up to 2048 tokens of prompts: four prompts' activations.
  StepInputs one = in;
  one.serving->load->max_batched_tokens = 512;
  const auto bytes = [](Bytes b) { return static_cast<double>(b.value()); };
  CHECK(bytes(r.memory.activations) == Approx(4 * bytes(forecast(one, four_nodes()).memory.activations)));
}

TEST_CASE(
    "each request of a run has the host's part of its first token, and the run as many as a client has requests") {
  StepInputs in = inputs(small_model(), layout(2, 1, 2), 512, 1);
  in.serving = of_load(16, 512, 33, {20, 90, 0.8, 2048});
  in.options.optimizer = false;
  const StepResult without = forecast(in, four_nodes());
  in.serving->first_token_overhead = Seconds(0.03);
  const StepResult with = forecast(in, four_nodes());
  const LoadTimes &a = *without.inference->load, &b = *with.inference->load;
  for (const TimeStatistic& statistic : time_statistics) {
    CHECK((b.ttft.*statistic.of).count() == Approx((a.ttft.*statistic.of).count() + 0.03).epsilon(1e-9));
    CHECK(b.tpot.*statistic.of == a.tpot.*statistic.of);
  }
  CHECK(b.duration.count() == Approx(a.duration.count() + 90.0 / 20 * 0.03).epsilon(1e-9));
  CHECK(b.tokens_per_s * b.duration.count() == Approx(a.tokens_per_s * a.duration.count()).epsilon(1e-9));
  CHECK(with.inference->prefill.time().count() == Approx(b.ttft.mean.count()).epsilon(1e-9));
  CHECK(with.inference->prefill.breakdown.total().count() == Approx(b.ttft.mean.count()).epsilon(1e-9));
}

TEST_CASE("what a pass takes whatever is in it is counted once for all of its prompts") {
  StepInputs in = inputs(small_model(), layout(2, 1, 1), 64, 1);
  in.options.optimizer = false;
  in.serving = of_load(16, 64, 33, {0, 0, 1, 1024});
  const auto at = [&](Seconds overhead) {
    StepInputs more = in;
    for (auto& [precision, kernel] : more.kernels.gemm) kernel.overhead += overhead;
    return forecast(more, four_nodes());
  };
  const StepResult as_is = at({}), slower = at(Seconds(1e-4));
  const InferenceResult &a = *as_is.inference, &b = *slower.inference;
  // Six products of a layer (and the head's) start that much later, however many prompts pass.
  const Seconds added = b.prefill.pass.time() - a.prefill.pass.time();
  CHECK(added > Seconds(8 * 3 * 1e-4));
  CHECK(b.further_prompt().count() == Approx(a.further_prompt().count()));
  const PromptShares share = prompt_shares(*in.serving);
  const Seconds of_tokens = b.decode.pass.time() - a.decode.pass.time();
  CHECK((b.prefill.time() - a.prefill.time()).count() ==
        Approx((share.prompt_passes_in_ttft * added + share.tokens_in_ttft * of_tokens).count()));
  // Of equal prompts 15 pass beside one that runs; so a first token waits for fewer passes than prompts.
  CHECK(share.prompt_passes_in_ttft < 0.2 * share.in_ttft);
  for (const ServingPhase* phase : {&a.prefill, &a.decode, &b.prefill, &b.decode})
    CHECK(phase->breakdown.total().count() == Approx(phase->time().count()).epsilon(1e-9));
}

TEST_CASE("each part of a prompt takes what a pass does, and TTFT does not jump where a second prompt has room") {
  StepInputs in = inputs(small_model(), layout(2, 1, 1), 512, 1);
  in.options.optimizer = false;
  const auto at = [&](int batch, int tokens) {
    StepInputs changed = in;
    changed.serving = of_load(batch, 512, 33, {0, 0, 1, tokens});
    return forecast(changed, four_nodes());
  };
  // One place: a prompt of 512 tokens passes in four parts, alone.
  const StepResult parts = at(1, 128), whole = at(1, 512);
  const InferenceResult &p = *parts.inference, &w = *whole.inference;
  const Seconds prompt = w.prefill.pass.time(), of_pass = prompt - w.further_prompt();
  CHECK(of_pass > Seconds());
  CHECK(p.further_prompt() == w.further_prompt());
  CHECK(w.prefill.time().count() == Approx(prompt.count()));
  CHECK(p.prefill.time().count() == Approx((prompt + 3 * of_pass).count()));
  CHECK(w.prefill.breakdown.total().count() == Approx(prompt.count()).epsilon(1e-9));
  // Of several, more room never lengthens the run, and one token more than two prompts take changes little.
  Seconds last(1e9);
  for (const int tokens : {256, 512, 1023, 1024, 1025, 2048}) {
    const Seconds run = at(8, tokens).inference->load->duration;
    CHECK(run <= last * (1 + 1e-3));
    last = run;
  }
  CHECK(at(8, 1024).inference->further_prompt() == at(8, 1023).inference->further_prompt());
}

TEST_CASE(
    "of prompts in parts none takes less than nothing, whatever a run's rounding leaves, and they are the whole") {
  for (const int tp : {1, 2, 4, 8})
    for (const int prompt : {17, 100, 512, 1000})
      for (const int tokens : {2, 3, 16}) {
        StepInputs in = inputs(small_model(), layout(tp, 1, 1), prompt, 1);
        in.options.optimizer = false;
        in.serving = of_load(1, prompt, 33, {4, 16, 1, tokens});
        for (const Method method : {Method::estimate, Method::both}) {
          const StepResult r = forecast(in, four_nodes(), method);
          CAPTURE(tp, prompt, tokens, method == Method::both);
          for (const ServingPhase* phase : {&r.inference->prefill, &r.inference->decode}) {
            const Breakdown& b = phase->breakdown;
            CHECK(b.total().count() == Approx(phase->time().count()).epsilon(1e-9));
            for (const Seconds part : {b.compute, b.tp_exposed, b.pp_exposed, b.ep_exposed, b.bubble})
              CHECK(part >= Seconds{});
          }
        }
      }
}

TEST_CASE("a further prompt takes no less than nothing and no more than one alone") {
  CHECK(further_prompt(Seconds(2), Seconds(5), 4) == Seconds(1));
  CHECK(further_prompt(Seconds(2), Seconds(5), 2) == Seconds(2));
  CHECK(further_prompt(Seconds(2), Seconds(1.5), 3) == Seconds(0));
  CHECK(further_prompt(Seconds(2), Seconds(2), 1) == Seconds(2));
  const auto of = [](int batch, int prompt, int tokens) {
    return of_load(batch, prompt, 10, {0, 0, 1, tokens}).prompts_in_full_pass();
  };
  CHECK(of(8, 100, 1000) == 8);
  CHECK(of(16, 100, 1099) == 10);
  // What a further one adds is read off two, however few pass together.
  CHECK(of(16, 100, 199) == 2);
  CHECK(of(16, 100, 99) == 2);
  CHECK(of(1, 100, 1000) == 2);
  Serving steady = of_load(16, 100, 10, {});
  steady.load.reset();
  CHECK(steady.prompts_in_full_pass() == 1);
}

TEST_CASE("passes are priced with the mean of the lengths that are drawn") {
  StepInputs drawn = inputs(small_model(), layout(2, 1, 1), 512, 1), mean = drawn;
  drawn.options.optimizer = mean.options.optimizer = false;
  drawn.serving = of_load(16, 512, 33, {0, 0, 0.5});
  mean.serving = of_load(16, 384, 25, {});
  const StepResult a = forecast(drawn, four_nodes()), b = forecast(mean, four_nodes());
  CHECK(a.inference->prefill.pass.time() == b.inference->prefill.pass.time());
  CHECK(a.inference->decode.pass.time() == b.inference->decode.pass.time());
  // Memory is that of the longest.
  CHECK(a.memory.kv_cache > b.memory.kv_cache);
}

TEST_CASE("a load that cannot be is refused with what could") {
  StepInputs in = inputs(small_model(), layout(2, 1, 1), 512, 1);
  in.options.optimizer = false;
  const auto wrong = [&](Serving s) {
    in.serving = std::move(s);
    return to_text(check_step(in, 32, Origins()));
  };
  const auto has = [](const std::string& text, const char* words) { return text.find(words) != std::string::npos; };
  CHECK(wrong(of_load(8, 512, 33, {})) == "");
  Serving at_once = of_load(8, 512, 33, {});
  at_once.batching = Batching::at_once;
  CHECK(has(wrong(at_once), "use batching: continuous"));
  CHECK(has(wrong(of_load(8, 512, 33, {4})), "concurrency 4 never fills batch 8"));
  CHECK(has(wrong(of_load(8, 512, 33, {8, 7})), "requests 7 are fewer than the 8 that come at once"));
  CHECK(has(wrong(of_load(8, 512, 33, {8, 80, 1, 8})), "leaves no room for prompts"));
  CHECK(has(wrong(of_load(8, 512, 33, {200'000})), "2000000 requests, ten of each client, are more than 1000000"));
  CHECK(has(wrong(of_load(8, 1'000'000, 33, {8, 1000, 1, 9})), "more than 10000000 passes"));
}
