#include "cost/round_trip.hpp"

#include <algorithm>
#include <map>

#include "cost/rounding.hpp"

namespace collcast {

bool RoundTrip::alike() const {
  return std::all_of(legs_.begin(), legs_.end(), [&](const Leg& leg) {
    return same_but_rounding(leg.walk, legs_.front().walk) && same_but_rounding(leg.alpha, legs_.front().alpha);
  });
}

/// Whether each leg begins where the one before it ends, and the first where the last does.
bool RoundTrip::in_order() const {
  for (std::size_t i = 0; i < legs_.size(); ++i)
    if (legs_[i].to != legs_[i + 1 < legs_.size() ? i + 1 : 0].from) return false;
  return true;
}

double RoundTrip::time(int rounds, int chunks) const {
  double longest = 0;
  for (const Leg& leg : legs_) longest = std::max(longest, rounds * (chunks * leg.tau) + leg.alpha);
  if (in_order()) return std::max(longest, walk(legs_, true, rounds, chunks));

  std::map<Position, std::size_t> leg_of;
  for (std::size_t i = 0; i < legs_.size(); ++i) leg_of[legs_[i].from] = i;
  std::vector<bool> visited(legs_.size());
  for (std::size_t start = 0; start < legs_.size(); ++start) {
    std::vector<Leg> path;
    std::size_t leg = start;
    while (leg < legs_.size() && !visited[leg]) {
      visited[leg] = true;
      path.push_back(legs_[leg]);
      const auto next = leg_of.find(legs_[leg].to);
      leg = next == leg_of.end() ? legs_.size() : next->second;
    }
    if (!path.empty()) longest = std::max(longest, walk(path, leg == start, rounds, chunks));
  }
  return longest;
}

// The best R consecutive hops: whole turns, and the best window of what is left over.
double RoundTrip::walk(std::span<const Leg> path, bool closed, int rounds, int chunks) {
  const std::size_t length = path.size();
  if (length == 0) return 0;
  // Equal legs stay in step: who shares a link now does so in every round. Others drift apart, and find links free.
  const bool equal = std::all_of(path.begin(), path.end(), [&](const Leg& leg) {
    return same_but_rounding(leg.walk + leg.alpha, path.front().walk + path.front().alpha);
  });
  const auto hop_time = [&](std::size_t i) {
    const Leg& at = path[i % length];
    return (equal ? at.tau : at.walk) + at.alpha;
  };
  double slowest = 0, whole = 0, longest = 0;
  for (std::size_t i = 0; i < length; ++i) {
    slowest = std::max(slowest, path[i].tau);
    whole += hop_time(i);
    longest = std::max(longest, hop_time(i));
  }
  const auto wanted = static_cast<std::size_t>(rounds);
  const std::size_t hops = closed ? wanted : std::min(wanted, length);
  if (equal) return static_cast<double>(hops) * longest + (chunks - 1) * slowest;

  const std::size_t rest = hops % length;
  double window = 0;
  for (std::size_t i = 0; i < rest; ++i) window += hop_time(i);
  double best = window;
  for (std::size_t i = 0; i + 1 < length && (closed || i + rest < length); ++i) {
    window += hop_time(i + rest) - hop_time(i);
    best = std::max(best, window);
  }
  const auto turns = hops / length;
  // No quicker than with all legs like the quickest one, which stay in step.
  const Leg& quickest = *std::min_element(path.begin(), path.end(),
                                          [](const Leg& a, const Leg& b) { return a.tau + a.alpha < b.tau + b.alpha; });
  const double in_step = static_cast<double>(hops) * (quickest.tau + quickest.alpha);
  return std::max(static_cast<double>(turns) * whole + best, in_step) + (chunks - 1) * slowest;
}

}  // namespace collcast
