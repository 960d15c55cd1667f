// A run of requests against a replica that batches continuously, pass by pass.
//
// Clients send their first requests at once, and each its next one when it has the last token of the one before. A
// request waits, first come first served, for one of `batch` places; then its prompt passes the model, whole or in
// parts, in passes of at most `max_batched_tokens` tokens, in which every request that has its first token gets another
// one, too (chunked prefill: Agrawal et al. 2024, Sarathi-Serve). Its first token comes with the last part of its
// prompt. Such a pass takes so long whatever prompts are in it, and besides what its prompt tokens take, and what a
// token of all takes: so which pass does what depends on no time, and a wait is counted in all three.
//
// Servers may look for new requests behind every `recv_interval`-th pass of tokens alone only, and behind every pass
// with prompts (SGLang's --scheduler-recv-interval; srt/managers/scheduler_recv_skipper.py): until then a request waits
// unseen. A server with nothing to do looks at once.
//
// With speculative decoding a pass has 1 + k tokens of each request in it and brings as many as on the mean, so that an
// answer of n tokens is over behind (n - 1)/E of them, rounded up.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "collcast/base/quantity.hpp"

namespace collcast {

struct Serving;

/// What passes take: one with prompts whatever is in it, besides each token of a prompt, and a token of all; and what
/// the host takes of each request's first token, beside all passes.
struct PassTimes {
  Seconds prompt_pass{}, prompt_token{}, token_pass{};
  Seconds first_token = {};
};

/// A stretch of a run: passes that had prompts in them, prompt tokens that passed, and passes that had a token of every
/// running request in them.
struct PassCount {
  std::int64_t prompt_passes = 0, prompt_tokens = 0, token_passes = 0;
  Seconds at(const PassTimes& t) const {
    return static_cast<double>(prompt_passes) * t.prompt_pass + static_cast<double>(prompt_tokens) * t.prompt_token +
           static_cast<double>(token_passes) * t.token_pass;
  }
};

/// Requests in the order in which they are sent.
struct LoadRun {
  struct Request {
    int prompt_tokens = 0, output_tokens = 0;  ///< as drawn
    PassCount first;                           ///< from when it is sent until its first token
    PassCount rest;                            ///< from then until its last one
  };
  std::vector<Request> requests;
  PassCount all;                   ///< from the first request's sending until the last token
  std::int64_t output_tokens = 0;  ///< of all requests
  double requests_of_client = 1;   ///< one after the other, mean
};
/// `serving` is continuous with a load and has passed check_step.
LoadRun run_load(const Serving& serving);

/// Of many times: the mean and percentiles, between neighbours in order on a straight line.
struct TimeSpread {
  Seconds mean{}, p50{}, p90{}, p99{}, longest{};
};
/// A figure of a spread; `name` is what files, options and documents call it.
struct TimeStatistic {
  std::string_view name;
  Seconds TimeSpread::*of;
};
inline constexpr std::array<TimeStatistic, 5> time_statistics{{{"mean", &TimeSpread::mean},
                                                               {"p50", &TimeSpread::p50},
                                                               {"p90", &TimeSpread::p90},
                                                               {"p99", &TimeSpread::p99},
                                                               {"longest", &TimeSpread::longest}}};
/// Those that have limits of their own; TTFT and TPOT of a run are the means.
inline constexpr std::span<const TimeStatistic> limited_statistics = std::span(time_statistics).subspan(1);
/// Of all requests of a run.
struct LoadTimes {
  TimeSpread ttft, tpot;
  Seconds duration{};
  double tokens_per_s = 0;  ///< output tokens over the duration
};
LoadTimes load_times(const LoadRun&, const PassTimes&);

}  // namespace collcast
