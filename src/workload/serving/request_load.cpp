#include "collcast/workload/request_load.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <functional>
#include <queue>
#include <random>
#include <utility>

#include "collcast/workload/config.hpp"
#include "collcast/workload/serving_terms.hpp"

namespace collcast {

namespace {

/// Lengths between the shortest and all of them, each as likely.
class Lengths {
 public:
  explicit Lengths(const RequestLoad& load)
      : shortest_(load.range_ratio), random_(static_cast<std::mt19937_64::result_type>(load.seed)) {}

  int of(int all, int least) {
    const int from = std::max(least, static_cast<int>(shortest_ * all));
    const auto span = static_cast<double>(all - from + 1);
    // 53 bits: std::uniform_int_distribution is another one in every standard library.
    const double share = static_cast<double>(random_() >> 11) * 0x1p-53;
    return from + static_cast<int>(share * span);
  }

 private:
  double shortest_;
  std::mt19937_64 random_;
};

class Run {
 public:
  explicit Run(const Serving& serving)
      : serving_(serving),
        batch_(static_cast<std::size_t>(serving.batch)),
        clients_(serving.clients()),
        most_tokens_(serving.load->max_batched_tokens),
        recv_interval_(serving.load->recv_interval) {
    Lengths lengths(*serving.load);
    out_.requests.resize(static_cast<std::size_t>(serving.run_requests()));
    for (LoadRun::Request& request : out_.requests) {
      request.prompt_tokens = lengths.of(serving.prompt_tokens, 1);
      request.output_tokens = lengths.of(serving.output_tokens, 2);
      out_.output_tokens += request.output_tokens;
    }
  }

  LoadRun run() {
    for (int client = 0; client < clients_; ++client) send();
    look();
    while (!queue_.empty() || !running_.empty()) {
      const PassCount before = now_;
      const std::vector<std::size_t> first = pass();
      for (const std::size_t i : first) has_first(i);
      leave();
      unlooked_ += since(before).token_passes;
      if (since(before).prompt_tokens > 0 || running_.empty()) {
        look();
      } else if (unlooked_ >= recv_interval_) {
        const std::int64_t behind = unlooked_ % recv_interval_;
        // A stretch of passes with nobody unseen had its looks; the requests that it ended with are seen by the next.
        if (behind == 0) look();
        unlooked_ = behind;
      }
    }
    out_.all = now_;
    out_.requests_of_client = static_cast<double>(out_.requests.size()) / clients_;
    return std::move(out_);
  }

 private:
  struct Queued {
    std::size_t request;
    std::int64_t left;  ///< of its prompt
  };

  void send() {
    if (sent_ == out_.requests.size()) return;
    out_.requests[sent_].first = now_;  // until it has its first token: when it was sent
    ++sent_;
  }

  /// The requests that have been sent are in the queue.
  void look() {
    for (; seen_ < sent_; ++seen_) queue_.push_back({seen_, out_.requests[seen_].prompt_tokens});
    unlooked_ = 0;
  }

  /// As much of the prompts as goes into one pass, or passes of tokens alone until one of the running has its last, or
  /// the server looks for requests that wait unseen; the requests that have their first token behind it.
  std::vector<std::size_t> pass() {
    std::vector<std::size_t> first;
    const auto running = static_cast<std::int64_t>(running_.size());
    std::int64_t room = most_tokens_ - serving_.verified_tokens() * running, prompts = 0;
    while (!queue_.empty() && room > 0 && running_.size() + first.size() < batch_) {
      Queued& next = queue_.front();
      const std::int64_t part = std::min(room, next.left);
      next.left -= part;
      room -= part;
      prompts += part;
      if (next.left > 0) break;
      first.push_back(next.request);
      queue_.pop_front();
    }
    now_.prompt_tokens += prompts;
    if (prompts > 0) ++now_.prompt_passes;
    if (!running_.empty()) now_.token_passes += prompts > 0 ? 1 : passes_of_tokens();
    return first;
  }

  std::int64_t passes_of_tokens() const {
    const std::int64_t until_leaving = running_.top().first - now_.token_passes;
    const bool unseen = seen_ < sent_;
    // A look at nobody changes nothing but when the next one is.
    return unseen ? std::min(until_leaving, recv_interval_ - unlooked_) : until_leaving;
  }

  void has_first(std::size_t i) {
    LoadRun::Request& request = out_.requests[i];
    request.first = since(request.first);
    request.rest = now_;  // until it has its last token: when it had its first
    running_.emplace(now_.token_passes + serving_.whole_passes(request.output_tokens), i);
  }

  /// Those that have their last token; each is followed by the next.
  void leave() {
    while (!running_.empty() && running_.top().first <= now_.token_passes) {
      LoadRun::Request& request = out_.requests[running_.top().second];
      request.rest = since(request.rest);
      running_.pop();
      send();
    }
  }

  PassCount since(const PassCount& then) const {
    return {now_.prompt_passes - then.prompt_passes, now_.prompt_tokens - then.prompt_tokens,
            now_.token_passes - then.token_passes};
  }

  using Leaving = std::pair<std::int64_t, std::size_t>;  ///< behind which pass of tokens, and which request
  const Serving& serving_;
  std::size_t batch_;
  int clients_;
  std::int64_t most_tokens_, recv_interval_;
  LoadRun out_;
  PassCount now_;
  std::size_t sent_ = 0, seen_ = 0;  ///< of all requests, in order
  std::int64_t unlooked_ = 0;        ///< passes of tokens since the server looked
  std::deque<Queued> queue_;
  std::priority_queue<Leaving, std::vector<Leaving>, std::greater<>> running_;
};

TimeSpread spread(std::vector<Seconds> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(times.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, times.size() - 1);
    // lerp: rounding must not put a percentile beyond the longer neighbour.
    return Seconds(std::lerp(times[below].count(), times[above].count(), place - static_cast<double>(below)));
  };
  TimeSpread out{{}, at(0.5), at(0.9), at(0.99), times.back()};
  for (const Seconds time : times) out.mean += time / static_cast<double>(times.size());
  return out;
}

double tokens_behind_first(const LoadRun::Request& request) { return request.output_tokens - 1.0; }

PromptShares shares_of(const LoadRun& run, const Serving& s) {
  PromptShares out{0, 0, 0, 0, 0, 0};
  const auto requests = static_cast<double>(run.requests.size());
  for (const LoadRun::Request& request : run.requests) {
    out.in_ttft += static_cast<double>(request.first.prompt_tokens) / s.mean_prompt_tokens() / requests;
    out.tokens_in_ttft += static_cast<double>(request.first.token_passes) / requests;
    out.prompt_passes_in_ttft += static_cast<double>(request.first.prompt_passes) / requests;
    out.prompt_passes_in_tpot +=
        static_cast<double>(request.rest.prompt_passes) / tokens_behind_first(request) / requests;
    out.in_tpot += static_cast<double>(request.rest.prompt_tokens) / s.mean_prompt_tokens() /
                   tokens_behind_first(request) / requests;
    out.passes_in_tpot += static_cast<double>(request.rest.token_passes) / tokens_behind_first(request) / requests;
  }
  if (!s.speculation) out.passes_in_tpot = 1;
  return out;
}

}  // namespace

LoadRun run_load(const Serving& serving) { return Run(serving).run(); }

LoadTimes load_times(const LoadRun& run, const PassTimes& times) {
  std::vector<Seconds> ttft, tpot;
  for (const LoadRun::Request& request : run.requests) {
    ttft.push_back(request.first.at(times) + times.first_token);
    tpot.push_back(request.rest.at(times) / tokens_behind_first(request));
  }
  const Seconds duration = run.all.at(times) + run.requests_of_client * times.first_token;
  LoadTimes out{spread(std::move(ttft)), spread(std::move(tpot)), duration, 0};
  out.tokens_per_s = static_cast<double>(run.output_tokens) / out.duration.count();
  return out;
}

PromptShares prompt_shares(const Serving& s) {
  const double passes = 1 / s.tokens_per_pass();
  if (s.batching == Batching::at_once) return {1, 0, 0, passes};
  if (s.load) return shares_of(run_load(s), s);
  const double others = s.batch - 1, before = others / (2 * s.passes(s.output_tokens));
  const double in_ttft = 1 + before, in_tpot = (others - before) / (s.output_tokens - 1);
  return {in_ttft, in_tpot, 0, passes, in_ttft, in_tpot};  // each prompt passes alone
}

}  // namespace collcast
