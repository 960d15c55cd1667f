// Two bounds without a walk through shared links; estimate() never comes below either, whatever the chunks.
//
//   load     what has to cross the busiest link of a phase cannot do so faster than the link carries it (by_load is
//            this and more)
//   chain    a message that waits for another one comes at least its route's latency after it, and after all of the
//            other's bytes where it passes nothing on by chunks: along the dependencies of pattern.hpp the chain with
//            the most latency and the one with the longest load (by_rounds is no shorter than either)
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

/// What a chain of hops takes at least.
struct Way {
  double load = 0, latency = 0;
  Way then(double more_load, double more_latency) const { return {load + more_load, latency + more_latency}; }
};
bool farther(const Way& a, const Way& b) { return a.latency != b.latency ? a.latency > b.latency : a.load > b.load; }
bool more_crowded(const Way& a, const Way& b) { return a.load != b.load ? a.load > b.load : a.latency > b.latency; }

/// The longest chain of hops through a lane.
class HopChain {
 public:
  using IsLonger = bool (*)(const Way&, const Way&);
  /// `block`: bytes of one of the lane's. `arrived`: by slot of all lanes, for first chunks that have come.
  HopChain(const Hops& hops, int lane, double block, std::vector<Way>& arrived, IsLonger is_longer)
      : hops_(hops),
        lane_(lane),
        size_(hops.lanes()[at(lane)].size),
        block_(block),
        is_longer_(is_longer),
        arrived_(arrived),
        ready_(at(size_)) {}

  Way longest() {
    for (int phase = 0; at(phase) < hops_.lanes()[at(lane_)].stages; ++phase) {
      next_ = ready_;
      if (hops_.stage(lane_, phase).phase.flow == Flow::circulating)
        go_round(phase);
      else
        pass_on(phase);
      ready_.swap(next_);
    }
    Way longest;
    for (const Way& way : ready_) join(longest, way);
    return longest;
  }

 private:
  void join(Way& way, const Way& other) const {
    if (is_longer_(other, way)) way = other;
  }
  /// All chunks of a hop, on links of its own.
  double load(const Sent& sent) const { return block_ * sent.hop.blocks / sent.bandwidth; }

  /// A position hears of each of its rounds' sends; no hop is quicker than the quickest. And it sends all of them.
  void go_round(int phase) {
    double quickest = std::numeric_limits<double>::infinity();
    for (Position v = 0; v < size_; ++v) {
      if (hops_.cell(lane_, phase, v).sends == 0) continue;
      const Sent sent = hops_.sent(lane_, phase, v, 0, scratch_);
      quickest = std::min(quickest, sent.latency);
      const int rounds = hops_.stage(lane_, phase).phase.rounds;
      join(next_[at(v)], ready_[at(v)].then(rounds * load(sent), sent.latency));
    }
    for (Position v = 0; v < size_; ++v)
      if (const int receives = hops_.cell(lane_, phase, v).receives; receives > 0)
        join(next_[at(v)], {0, receives * quickest});
  }

  /// Rounds in order; forwarding hops wait for the first chunk of what they pass on, others only for the phase, and
  /// sequential ones for each other.
  void pass_on(int phase) {
    const Flow flow = hops_.stage(lane_, phase).phase.flow;
    hops_by_round_.clear();
    for (Position v = 0; v < size_; ++v)
      for (int j = 0; j < hops_.cell(lane_, phase, v).sends; ++j) {
        const Sent sent = hops_.sent(lane_, phase, v, j, scratch_);
        hops_by_round_.push_back({v, j == 0, sent.hop, sent.latency, load(sent)});
      }
    if (flow == Flow::forwarding)
      std::stable_sort(hops_by_round_.begin(), hops_by_round_.end(),
                       [](const Passed& a, const Passed& b) { return a.hop.round < b.hop.round; });
    Way left;  // of the position's hops so far
    for (const Passed& sent : hops_by_round_) {
      Way start = ready_[at(sent.from)];
      if (flow == Flow::sequential && !sent.is_first) start = left;
      if (flow == Flow::forwarding) {
        const std::size_t first = hops_.cell(lane_, phase, sent.from).first_slot;
        for (std::size_t i = 0; i < at(sent.hop.after); ++i) join(start, arrived_[first + i]);
        arrived_[hops_.cell(lane_, phase, sent.hop.peer).first_slot + at(sent.hop.slot)] = start.then(0, sent.latency);
      }
      left = start.then(sent.load, 0);
      join(next_[at(sent.from)], left);
      join(next_[at(sent.hop.peer)], left.then(0, sent.latency));
    }
  }

  struct Passed {
    Position from;
    bool is_first;  ///< of its position
    Hop hop;
    double latency, load;
  };

  const Hops& hops_;
  Hops::Scratch scratch_;
  int lane_, size_;
  double block_;
  IsLonger is_longer_;
  std::vector<Way>& arrived_;
  std::vector<Way> ready_, next_;  // when a position enters the phase, and the next one
  std::vector<Passed> hops_by_round_;
};

}  // namespace

Seconds LeastTime::at(double times_the_bytes) const {
  // Sums in another order than estimate()'s, and its moments are rounded to 2^-40.
  constexpr double rounding = 1 - 1e-9;
  const auto of = [&](const Chain& chain) { return chain.latency + chain.load * times_the_bytes; };
  return std::max({load * times_the_bytes, of(far), of(crowded)}) * rounding;
}

LeastTime least_time(const RoutedPatterns& routed, std::span<const Pattern> patterns) {
  const Hops& hops = routed.hops();
  LeastTime out;
  std::size_t phases = 0;
  Way far, crowded;
  std::vector<Way> arrived(hops.slots());
  for (std::size_t lane = 0; lane < hops.lanes().size() && hops.lanes()[lane].pattern == 0; ++lane) {
    phases = std::max(phases, hops.lanes()[lane].stages);
    if (hops.lanes()[lane].size == 0) continue;
    const double block = patterns.front().lanes[lane].block.value();
    const auto longest = [&](HopChain::IsLonger is_longer) {
      return HopChain(hops, static_cast<int>(lane), block, arrived, is_longer).longest();
    };
    far = std::max(far, longest(farther), [](const Way& a, const Way& b) { return farther(b, a); });
    crowded = std::max(crowded, longest(more_crowded), [](const Way& a, const Way& b) { return more_crowded(b, a); });
  }
  out.far = {Seconds(far.latency), Seconds(far.load)};
  out.crowded = {Seconds(crowded.latency), Seconds(crowded.load)};
  PhaseLoads loads(hops, patterns);
  for (std::size_t phase = 0; phase < phases; ++phase)
    out.load = std::max(out.load, Seconds(loads.longest(static_cast<int>(phase))));
  return out;
}

Seconds least_time(const Fabric& fabric, std::span<const Pattern> patterns) {
  return least_time(RoutedPatterns(fabric, patterns), patterns).at(1);
}

}  // namespace collcast
