// Two bounds without a walk through shared links; estimate() never comes below either, whatever the chunks.
//
//   load     what has to cross the busiest link of a phase cannot do so faster than the link carries it (by_load is
//            this and more)
//   latency  a message that waits for another one comes at least its route's latency after it: the longest chain of
//            latencies through the dependencies of pattern.hpp, as if nothing had any bytes (by_rounds is no shorter)
#include <algorithm>
#include <limits>
#include <vector>

#include "collcast/cost/estimate.hpp"

namespace collcast {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

class Routes {
 public:
  Routes(const Fabric& fabric) : fabric_(fabric) {}
  std::span<const LinkId> of(const Pattern& pattern, const Lane& lane, Position from, Position to) {
    route_.clear();
    fabric_.route(pattern.rank(lane, from), pattern.rank(lane, to), lane.route_lane, route_);
    return route_;
  }
  double latency(const Pattern& pattern, const Lane& lane, Position from, Position to) {
    double sum = 0;
    for (const LinkId link : of(pattern, lane, from, to)) sum += fabric_.links()[link.value()].latency.count();
    return sum;
  }

 private:
  const Fabric& fabric_;
  std::vector<LinkId> route_;
};

/// The busiest link of a phase, of those that the first pattern uses.
class PhaseLoads {
 public:
  PhaseLoads(const Fabric& fabric, std::span<const Pattern> patterns)
      : links_(fabric.links()), patterns_(patterns), routes_(fabric), bytes_(links_.size()), own_(links_.size()) {}

  double longest(std::size_t phase) {
    for (const Pattern& pattern : patterns_)
      for (const Lane& lane : pattern.lanes)
        if (phase < lane.phases.size()) add(pattern, lane, lane.phases[phase]);
    double longest = 0;
    for (const std::uint32_t link : used_) {
      if (own_[link]) longest = std::max(longest, bytes_[link] / links_[link].bandwidth.value());
      bytes_[link] = 0;
      own_[link] = false;
    }
    used_.clear();
    return longest;
  }

 private:
  void add(const Pattern& pattern, const Lane& lane, const Phase& phase) {
    const bool own = &pattern == &patterns_.front();
    for (Position v = 0; v < pattern.size(); ++v) {
      const int sends = phase.shape->sends(phase, v);
      // All sends of a ring are alike.
      const int hops = phase.flow == Flow::circulating ? std::min(sends, 1) : sends;
      for (int j = 0; j < hops; ++j) {
        const Hop hop = phase.shape->send(phase, v, j);
        const double bytes = lane.block.value() * hop.blocks * (sends / hops);
        for (const LinkId link : routes_.of(pattern, lane, v, hop.peer)) add(link.value(), bytes, own);
      }
    }
  }

  void add(std::uint32_t link, double bytes, bool own) {
    if (bytes_[link] == 0) used_.push_back(link);
    bytes_[link] += bytes;
    if (own) own_[link] = true;
  }

  std::span<const Link> links_;
  std::span<const Pattern> patterns_;
  Routes routes_;
  std::vector<double> bytes_;
  std::vector<bool> own_;
  std::vector<std::uint32_t> used_;
};

/// The longest chain of latencies through a lane.
class LatencyChain {
 public:
  LatencyChain(const Fabric& fabric, const Pattern& pattern, const Lane& lane)
      : pattern_(pattern), lane_(lane), routes_(fabric), ready_(at(pattern.size())) {}

  double longest() {
    for (const Phase& phase : lane_.phases) {
      next_ = ready_;
      if (phase.flow == Flow::circulating)
        go_round(phase);
      else
        pass_on(phase);
      ready_.swap(next_);
    }
    return *std::max_element(ready_.begin(), ready_.end());
  }

 private:
  double latency(Position v, Position peer) { return routes_.latency(pattern_, lane_, v, peer); }

  void arrive(Position v, double when) { next_[at(v)] = std::max(next_[at(v)], when); }

  /// A position hears of each of its rounds' sends; no hop is quicker than the quickest.
  void go_round(const Phase& phase) {
    double quickest = std::numeric_limits<double>::infinity();
    for (Position v = 0; v < pattern_.size(); ++v)
      if (phase.shape->sends(phase, v) > 0)
        quickest = std::min(quickest, latency(v, phase.shape->send(phase, v, 0).peer));
    for (Position v = 0; v < pattern_.size(); ++v)
      if (phase.shape->receives(phase, v) > 0) arrive(v, phase.shape->receives(phase, v) * quickest);
  }

  /// Rounds in order; forwarding hops wait for what they pass on, others only for the phase.
  void pass_on(const Phase& phase) {
    hops_.clear();
    for (Position v = 0; v < pattern_.size(); ++v)
      for (int j = 0; j < phase.shape->sends(phase, v); ++j) hops_.push_back({v, phase.shape->send(phase, v, j)});
    std::stable_sort(hops_.begin(), hops_.end(),
                     [](const Sent& a, const Sent& b) { return a.hop.round < b.hop.round; });
    arrived_.assign(at(pattern_.size()), {});
    for (const Sent& sent : hops_) {
      double start = ready_[at(sent.from)];
      std::vector<double>& here = arrived_[at(sent.from)];
      for (std::size_t i = 0; i < std::min(at(sent.hop.after), here.size()); ++i) start = std::max(start, here[i]);
      const double there = start + latency(sent.from, sent.hop.peer);
      std::vector<double>& slots = arrived_[at(sent.hop.peer)];
      if (phase.flow == Flow::forwarding) {
        if (slots.size() <= at(sent.hop.slot)) slots.resize(at(sent.hop.slot) + 1);
        slots[at(sent.hop.slot)] = there;
      }
      arrive(sent.hop.peer, there);
    }
  }

  struct Sent {
    Position from;
    Hop hop;
  };

  const Pattern& pattern_;
  const Lane& lane_;
  Routes routes_;
  std::vector<double> ready_, next_;  // when a position enters the phase, and the next one
  std::vector<Sent> hops_;
  std::vector<std::vector<double>> arrived_;  // by receiver and slot
};

}  // namespace

Seconds least_time(const Fabric& fabric, std::span<const Pattern> patterns) {
  const Pattern& own = patterns.front();
  std::size_t phases = 0;
  double longest = 0;
  for (const Lane& lane : own.lanes) {
    phases = std::max(phases, lane.phases.size());
    if (own.size() > 0) longest = std::max(longest, LatencyChain(fabric, own, lane).longest());
  }
  PhaseLoads loads(fabric, patterns);
  for (std::size_t phase = 0; phase < phases; ++phase) longest = std::max(longest, loads.longest(phase));
  // Sums in another order than estimate()'s, and its moments are rounded to 2^-40.
  constexpr double rounding = 1 - 1e-9;
  return Seconds(longest * rounding);
}

}  // namespace collcast
