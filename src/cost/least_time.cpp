// Two bounds without a walk through shared links; estimate() never comes below either, whatever the chunks.
//
//   load     what has to cross the busiest link of a phase cannot do so faster than the link carries it (by_load is
//            this and more)
//   latency  a message that waits for another one comes at least its route's latency after it: the longest chain of
//            latencies through the dependencies of pattern.hpp, as if nothing had any bytes (by_rounds is no shorter)
#include <algorithm>
#include <limits>
#include <vector>

#include "collcast/cost/routed.hpp"
#include "cost/hops.hpp"

namespace collcast {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// The busiest link of a phase, of those that the first pattern uses.
class PhaseLoads {
 public:
  PhaseLoads(const Hops& hops, std::span<const Pattern> patterns)
      : hops_(hops), bytes_(hops.links().size()), own_(hops.links().size()) {
    for (const Pattern& pattern : patterns)
      for (const Lane& lane : pattern.lanes) blocks_.push_back(lane.block.value());
  }

  double longest(int phase) {
    std::fill(bytes_.begin(), bytes_.end(), 0.0);
    std::fill(own_.begin(), own_.end(), char{0});
    for (std::size_t lane = 0; lane < hops_.lanes().size(); ++lane)
      if (at(phase) < hops_.lanes()[lane].stages) add(static_cast<int>(lane), phase);
    double longest = 0;
    for (std::size_t link = 0; link < bytes_.size(); ++link)
      if (own_[link] != 0) longest = std::max(longest, bytes_[link] / hops_.links()[link].bandwidth);
    return longest;
  }

 private:
  void add(int number, int phase) {
    const Hops::Lane& lane = hops_.lanes()[at(number)];
    const Hops::Stage& stage = hops_.stage(number, phase);
    for (Position v = 0; v < lane.size; ++v) {
      const Hops::Cell& cell = hops_.cell(number, phase, v);
      const int hops = hops_.different(stage, cell);
      const int times = hops > 0 ? cell.sends / hops : 0;
      for (int j = 0; j < hops; ++j) {
        const Sent sent = hops_.sent(number, phase, v, j, scratch_);
        const double bytes = blocks_[at(number)] * sent.hop.blocks * times;
        for (const std::uint32_t link : sent.links) {
          bytes_[link] += bytes;
          if (lane.pattern == 0) own_[link] = 1;
        }
      }
    }
  }

  const Hops& hops_;
  Hops::Scratch scratch_;
  std::vector<double> blocks_;  // bytes, by lane
  std::vector<double> bytes_;
  std::vector<char> own_;
};

/// The longest chain of latencies through a lane.
class LatencyChain {
 public:
  /// `arrived`: by slot of all lanes, 0 for what has not come.
  LatencyChain(const Hops& hops, int lane, std::vector<double>& arrived)
      : hops_(hops), lane_(lane), size_(hops.lanes()[at(lane)].size), arrived_(arrived), ready_(at(size_)) {}

  double longest() {
    for (int phase = 0; at(phase) < hops_.lanes()[at(lane_)].stages; ++phase) {
      next_ = ready_;
      if (hops_.stage(lane_, phase).phase.flow == Flow::circulating)
        go_round(phase);
      else
        pass_on(phase);
      ready_.swap(next_);
    }
    return *std::max_element(ready_.begin(), ready_.end());
  }

 private:
  void arrive(Position v, double when) { next_[at(v)] = std::max(next_[at(v)], when); }

  /// A position hears of each of its rounds' sends; no hop is quicker than the quickest.
  void go_round(int phase) {
    double quickest = std::numeric_limits<double>::infinity();
    for (Position v = 0; v < size_; ++v)
      if (hops_.cell(lane_, phase, v).sends > 0)
        quickest = std::min(quickest, hops_.sent(lane_, phase, v, 0, scratch_).latency);
    for (Position v = 0; v < size_; ++v)
      if (const int receives = hops_.cell(lane_, phase, v).receives; receives > 0) arrive(v, receives * quickest);
  }

  /// Rounds in order; forwarding hops wait for what they pass on, others only for the phase.
  void pass_on(int phase) {
    const bool forwarding = hops_.stage(lane_, phase).phase.flow == Flow::forwarding;
    hops_by_round_.clear();
    for (Position v = 0; v < size_; ++v)
      for (int j = 0; j < hops_.cell(lane_, phase, v).sends; ++j) {
        const Sent sent = hops_.sent(lane_, phase, v, j, scratch_);
        hops_by_round_.push_back({v, sent.hop, sent.latency});
      }
    if (forwarding)
      std::stable_sort(hops_by_round_.begin(), hops_by_round_.end(),
                       [](const Passed& a, const Passed& b) { return a.hop.round < b.hop.round; });
    for (const Passed& sent : hops_by_round_) {
      double start = ready_[at(sent.from)];
      if (forwarding) {
        const std::size_t first = hops_.cell(lane_, phase, sent.from).first_slot;
        for (std::size_t i = 0; i < at(sent.hop.after); ++i) start = std::max(start, arrived_[first + i]);
      }
      const double there = start + sent.latency;
      if (forwarding) arrived_[hops_.cell(lane_, phase, sent.hop.peer).first_slot + at(sent.hop.slot)] = there;
      arrive(sent.hop.peer, there);
    }
  }

  struct Passed {
    Position from;
    Hop hop;
    double latency;
  };

  const Hops& hops_;
  Hops::Scratch scratch_;
  int lane_, size_;
  std::vector<double>& arrived_;
  std::vector<double> ready_, next_;  // when a position enters the phase, and the next one
  std::vector<Passed> hops_by_round_;
};

}  // namespace

Seconds LeastTime::at(double times_the_bytes) const {
  // Sums in another order than estimate()'s, and its moments are rounded to 2^-40.
  constexpr double rounding = 1 - 1e-9;
  return std::max(latency, load * times_the_bytes) * rounding;
}

LeastTime least_time(const RoutedPatterns& routed, std::span<const Pattern> patterns) {
  const Hops& hops = routed.hops();
  LeastTime out;
  std::size_t phases = 0;
  std::vector<double> arrived(hops.slots());
  for (std::size_t lane = 0; lane < hops.lanes().size() && hops.lanes()[lane].pattern == 0; ++lane) {
    phases = std::max(phases, hops.lanes()[lane].stages);
    if (hops.lanes()[lane].size > 0)
      out.latency = std::max(out.latency, Seconds(LatencyChain(hops, static_cast<int>(lane), arrived).longest()));
  }
  PhaseLoads loads(hops, patterns);
  for (std::size_t phase = 0; phase < phases; ++phase)
    out.load = std::max(out.load, Seconds(loads.longest(static_cast<int>(phase))));
  return out;
}

Seconds least_time(const Fabric& fabric, std::span<const Pattern> patterns) {
  return least_time(RoutedPatterns(fabric, patterns), patterns).at(1);
}

}  // namespace collcast
