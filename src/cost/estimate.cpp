// Hop by hop in the order of the critical path, twice: first as if every hop had links of its own, which says who is
// under way beside whom; then with what they leave each other. Last, phase by phase, the busiest link.
//
// Sources: Hockney's alpha-beta model (1994), and Thakur, Rabenseifner, Gropp 2005 for its use on collectives; fair
// shares as in the engine.
#include "collcast/cost/estimate.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "collcast/cost/routed.hpp"
#include "cost/hops.hpp"
#include "cost/lane_walk.hpp"
#include "cost/loads.hpp"
#include "cost/round_trip.hpp"
#include "cost/rounding.hpp"
#include "cost/walked.hpp"

namespace collcast {
namespace {

const GoesOn nobody_asks;

/// Hops of different moments can meet where a sender goes on to the next peer before the last chunk for this one
/// has left, or where there are several phases. Else each moment is looked at by itself.
bool moments_meet(std::span<const Pattern> patterns) {
  for (const Pattern& pattern : patterns)
    for (const Lane& lane : pattern.lanes) {
      if (lane.phases.size() > 1) return true;
      for (const Phase& phase : lane.phases)
        if (phase.flow == Flow::forwarding) return true;
    }
  return false;
}

class Walk {
 public:
  Walk(const Hops& hops, std::span<const Pattern> patterns, Loads& loads, std::vector<Estimate>& estimates,
       const GoesOn& goes_on = nobody_asks)
      : hops_(hops), loads_(loads), estimates_(estimates), goes_on_(goes_on), walk_(hops) {
    for (const Pattern& pattern : patterns)
      for (const Lane& lane : pattern.lanes) lanes_.push_back({&pattern, &lane});
  }

  /// On links of their own, to know which hops come up side by side.
  void announce() {
    run([](const Walker&) {},
        [this](const Step& step, double) {
          const HopTimes left = alone(step);
          announce(step);
          look();
          return left;
        },
        [this](std::span<const Walker> ring, double) {
          // Who comes before the last is on its links from then on; all others meet in the ring's moment, where share()
          // counts them. Left out: that a ring's later rounds meet what begins after it.
          for (const Walker& member : ring)
            walk_.each(member, [this](const Step& step) {
              if (step.start.alone.first < step.start.alone.last) announce(step);
            });
          return round_trip_alone(ring);
        });
    loads_.close_announcements();
  }

  /// As they share links. phase_end() is then that of the lanes.
  void share(std::vector<Walked>* walked = nullptr) {
    walked_ = walked;
    run([this](const Walker& w) { walk_.each(w, [this](const Step& step) { count(step); }); },
        [this](const Step& step, double now) { return serve(step, now); },
        [this](std::span<const Walker> ring, double now) { return round_trip(ring, now); });
  }

  /// By whoever was asked; what has been worked out by then is of no use.
  bool is_ended() const { return ended_; }

  double phase_end(std::size_t pattern, std::size_t phase) const {
    double end = 0;
    for (std::size_t i = 0; i < hops_.lanes().size(); ++i)
      if (this->pattern(i) == pattern && phase < hops_.lanes()[i].stages)
        end = std::max(end, walk_.phase_end(i, phase));
    return end;
  }

 private:
  struct LaneOf {
    const Pattern* pattern;
    const Lane* lane;
  };
  struct Ring {
    int lane;
    Position first;
    std::size_t begin, end;  // of a moment's walkers
  };
  template <class Count, class Serve, class Turn>
  void run(Count count, Serve serve, Turn turn);

  /// A hop was looked at.
  void look() {
    constexpr std::int64_t ask_every = 1 << 15;
    if (++looked_at_ % ask_every == 0 && goes_on_ && !ended_) ended_ = !goes_on_();
  }

  std::size_t pattern(std::size_t lane) const { return static_cast<std::size_t>(hops_.lanes()[lane].pattern); }
  std::size_t pattern(const Step& step) const { return pattern(static_cast<std::size_t>(step.lane)); }
  const Phase& phase(const Step& step) const { return hops_.stage(step.lane, step.phase).phase; }

  Load load(const Step& step) const {
    const auto& [pattern, lane] = lanes_[static_cast<std::size_t>(step.lane)];
    const Phase& phase = this->phase(step);
    return {pattern->message(*lane, step.sent.hop), pattern->chunks,
            phase.flow == Flow::circulating ? static_cast<double>(phase.rounds) : 1.0,
            phase.flow == Flow::forwarding && pattern->chunks == 1,
            phase.flow == Flow::concurrent && pattern->chunks == 1};
  }

  void announce(const Step& step) {
    const Load l = load(step);
    const double tau = Loads::alone(step.sent, l.chunk);
    const double gap = l.chunks > 1 && phase(step).flow == Flow::forwarding
                           ? (step.start.alone.last - step.start.alone.first) / (l.chunks - 1)
                           : 0;
    loads_.announce(step.sent, moment(step.start.alone.first), l.chunk, gap > tau ? tau / gap : 1);
  }

  void count(const Step& step) {
    const Flow flow = phase(step).flow;
    const Load l = load(step);
    const bool pipelined = flow == Flow::concurrent || (flow == Flow::forwarding && l.chunks > 1);
    loads_.add({static_cast<int>(pattern(step)), step.lane, step.phase, step.from, step.sent.hop.peer, pipelined},
               step.sent, l, step.start.shared.first);
    look();
  }

  HopTimes alone(const Step& step) {
    const Load l = load(step);
    const double tau = Loads::alone(step.sent, l.chunk);
    const ChunkTimes& start = step.start.alone;
    const ChunkTimes left{start.first + tau, std::max(start.last + tau, start.first + l.chunks * tau)};
    return {left, left};
  }

  /// Rates that differ by the rounding of shares are one: which of them is least would be chance.
  void note_rate(PhaseEstimate& e, const Step& step, Bandwidth rate) const {
    const Seconds latency(step.sent.latency);
    const bool alike = same_but_rounding(rate.value(), e.rate.value());
    if (!e.slowest || (alike ? latency > e.slowest->latency : rate < e.rate)) {
      const auto& [pattern, lane] = lanes_[static_cast<std::size_t>(step.lane)];
      e.slowest = {pattern->rank(*lane, step.from), pattern->rank(*lane, step.sent.hop.peer), lane->route_lane,
                   latency};
    }
    e.rate = e.rate == Bandwidth{} ? rate : std::min(e.rate, rate);
  }

  Loads::Spell spell(const Step& step, double now) {
    const Load l = load(step);
    const Loads::Spell out = loads_.spell(step.sent, now, l, step.start.shared.first);
    look();
    PhaseEstimate& e = estimates_[pattern(step)].phases[static_cast<std::size_t>(step.phase)];
    // Nothing to send shares nothing.
    const Bandwidth rate(out.last > 0 ? l.chunk.value() * l.chunks / out.last : 1 / Loads::alone(step.sent, Volume(1)));
    note_rate(e, step, rate);
    e.chunk = std::max(e.chunk, l.chunk);
    e.latency = std::max(e.latency, Seconds(step.sent.latency));
    return out;
  }

  HopTimes serve(const Step& step, double now) {
    HopTimes left = alone(step);
    const double tau = left.alone.first - step.start.alone.first;
    const Loads::Spell t = spell(step, now);
    const ChunkTimes& start = step.start.shared;
    left.shared = {start.first + t.first, std::max(start.last + tau, start.first + t.last)};
    if (walked_ != nullptr)
      walked_->push_back(
          {step.lane, step.phase, step.from, step.sent.hop.peer, start, left.shared, tau, step.sent.latency});
    return left;
  }

  /// When a ring has come round whose members' legs are as leg(step, load) has them: then trip_.
  template <class Leg>
  double come_round(std::span<const Walker> ring, double from, Leg leg) {
    trip_.clear();
    int chunks = 1;
    for (const Walker& member : ring)
      walk_.each(member, [&](const Step& step) {
        const Load l = load(step);
        chunks = l.chunks;
        trip_.add(leg(step, l));
      });
    return from + trip_.time(walk_.phase(ring.front()).rounds, chunks);
  }

  HopTimes round_trip_alone(std::span<const Walker> ring) {
    const double end = come_round(ring, walk_.start(ring.front()).alone.last, [](const Step& step, const Load& l) {
      const double tau = Loads::alone(step.sent, l.chunk);
      return RoundTrip::Leg{step.from, step.sent.hop.peer, tau, tau, step.sent.latency};
    });
    return {{end, end}, {end, end}};
  }

  HopTimes round_trip(std::span<const Walker> ring, double now) {
    HopTimes out = round_trip_alone(ring);
    const double last = walk_.start(ring.front()).shared.last;
    const double end = come_round(ring, last, [&](const Step& step, const Load& l) {
      const Loads::Spell t = spell(step, now);
      return RoundTrip::Leg{step.from, step.sent.hop.peer, t.last / l.chunks, Loads::alone(step.sent, l.chunk),
                            step.sent.latency};
    });
    const auto together = [&](const Walker& member) {
      const ChunkTimes& start = walk_.start(member).shared;
      return start.first == last && start.last == last;
    };
    if (!trip_.alike() || !std::all_of(ring.begin(), ring.end(), together))
      estimates_[pattern(static_cast<std::size_t>(ring.front().lane))].drifts = true;
    out.shared = {end, end};
    return out;
  }

  const Hops& hops_;
  Loads& loads_;
  std::vector<Estimate>& estimates_;
  const GoesOn& goes_on_;
  std::int64_t looked_at_ = 0;
  bool ended_ = false;
  LaneWalk walk_;
  RoundTrip trip_;  // of the ring that is being looked at
  std::vector<LaneOf> lanes_;
  std::vector<Walked>* walked_ = nullptr;
};

template <class Count, class Serve, class Turn>
void Walk::run(Count count, Serve serve, Turn turn) {
  Agenda agenda;
  walk_.begin(agenda);
  std::vector<Walker> now_on, leaving, awaiting;
  std::vector<Ring> rings;
  while (!agenda.empty()) {
    const double now = agenda.pop(now_on);
    loads_.begin_moment();
    for (const Walker& w : now_on) {
      count(w);
      if (ended_) return;
    }
    rings.clear();
    leaving.clear();
    awaiting.clear();
    int reached = -1;  // the last lane all of whose positions are awaiting
    for (std::size_t i = 0; i < now_on.size(); ++i) {
      if (ended_) return;
      const Walker& w = now_on[i];
      const Phase& phase = walk_.phase(w);
      if (phase.flow == Flow::circulating) {
        // Members come one after the other, the first of them first.
        const auto members = static_cast<std::size_t>(phase.members);
        rings.push_back({w.lane, w.position, i, i + members});
        i += members - 1;
        continue;
      }
      walk_.each(w, [&](const Step& step) {
        walk_.serve(step, serve(step, now));
        if (phase.flow != Flow::concurrent) awaiting.push_back({step.lane, step.sent.hop.peer});
      });
      leaving.push_back(w);
      if (phase.flow != Flow::concurrent || reached == w.lane) continue;
      reached = w.lane;
      const int size = hops_.lanes()[static_cast<std::size_t>(w.lane)].size;
      for (Position u = 0; u < size; ++u) awaiting.push_back({w.lane, u});
    }
    std::sort(rings.begin(), rings.end(),
              [](const Ring& a, const Ring& b) { return a.lane != b.lane ? a.lane < b.lane : a.first < b.first; });
    for (const Ring& ring : rings)
      walk_.come_round(now_on[ring.begin],
                       turn(std::span<const Walker>(now_on).subspan(ring.begin, ring.end - ring.begin), now), agenda);
    for (const Walker& w : leaving) walk_.leave(w, agenda);
    for (const Walker& w : awaiting) walk_.go_on(w, agenda);
  }
}

std::vector<Estimate> blank(std::span<const Pattern> patterns) {
  std::vector<Estimate> out(patterns.size());
  for (std::size_t i = 0; i < patterns.size(); ++i)
    for (const Lane& lane : patterns[i].lanes)
      for (std::size_t p = 0; p < lane.phases.size(); ++p) {
        if (p == out[i].phases.size()) out[i].phases.emplace_back();
        PhaseEstimate& e = out[i].phases[p];
        e.shape = lane.phases[p].shape->name;
        e.flow = lane.phases[p].flow;
        e.rounds = std::max(e.rounds, lane.phases[p].rounds);
      }
  return out;
}

/// The links before anything crosses them, told who will cross them when where hops of different moments can meet.
std::optional<Loads> announced(const Hops& hops, std::span<const Pattern> patterns, std::size_t watched,
                               std::vector<Estimate>& estimates, const GoesOn& goes_on = nobody_asks) {
  Loads loads(hops, watched);
  if (!moments_meet(patterns)) return loads;
  Walk walk(hops, patterns, loads, estimates, goes_on);
  walk.announce();
  if (walk.is_ended()) return std::nullopt;
  return loads;
}

/// Of the first `watched` patterns; none if it was ended.
std::vector<Estimate> watch(const Hops& hops, std::span<const Pattern> patterns, std::size_t watched,
                            const GoesOn& goes_on = nobody_asks) {
  std::vector<Estimate> estimates = blank(patterns);
  std::optional<Loads> told = announced(hops, patterns, watched, estimates, goes_on);
  if (!told) return {};
  Loads& loads = *told;
  Walk walk(hops, patterns, loads, estimates, goes_on);
  walk.share();
  if (walk.is_ended()) return {};
  estimates.resize(watched);
  for (std::size_t i = 0; i < watched; ++i) {
    double before = 0;
    for (std::size_t p = 0; p < estimates[i].phases.size(); ++p) {
      PhaseEstimate& e = estimates[i].phases[p];
      const Loads::Busiest busiest = loads.busiest(i, p);
      const double end = std::max(before, walk.phase_end(i, p));
      e.by_rounds = Seconds(end - before);
      if (busiest.link) e.by_load = std::max(Seconds(0), busiest.time - Seconds(before));
      e.busiest = busiest.link;
      e.busiest_bytes = busiest.bytes;
      e.time = std::max(e.by_rounds, e.by_load);
      estimates[i].total += e.time;
      before = end;
    }
    estimates[i].shared = loads.shared(i);
  }
  return estimates;
}

}  // namespace

std::vector<Walked> walk_hops(const Fabric& fabric, const Pattern& pattern) {
  const std::span<const Pattern> patterns(&pattern, 1);
  const Hops hops(fabric, patterns);
  std::vector<Estimate> estimates = blank(patterns);
  Loads loads = *announced(hops, patterns, 1, estimates);
  std::vector<Walked> walked;
  Walk(hops, patterns, loads, estimates).share(&walked);
  return walked;
}

RoutedPatterns::RoutedPatterns(const Fabric& fabric, std::span<const Pattern> patterns, std::size_t most)
    : hops_(std::make_shared<const Hops>(fabric, patterns, most)) {}

std::size_t RoutedPatterns::crossings() const { return hops_->kept(); }

std::vector<Estimate> estimate(const Fabric& fabric, std::span<const Pattern> patterns) {
  return watch(Hops(fabric, patterns), patterns, patterns.size());
}

Estimate estimate_first(const RoutedPatterns& routed, std::span<const Pattern> patterns) {
  return std::move(watch(routed.hops(), patterns, 1).front());
}

std::optional<Estimate> estimate_first(const RoutedPatterns& routed, std::span<const Pattern> patterns,
                                       const GoesOn& goes_on) {
  std::vector<Estimate> first = watch(routed.hops(), patterns, 1, goes_on);
  if (first.empty()) return std::nullopt;
  return std::move(first.front());
}

Estimate estimate_first(const Fabric& fabric, std::span<const Pattern> patterns) {
  return estimate_first(RoutedPatterns(fabric, patterns), patterns);
}

Estimate estimate(const Fabric& fabric, const Pattern& pattern) {
  return estimate_first(fabric, std::span<const Pattern>(&pattern, 1));
}

}  // namespace collcast
