// Hop by hop in the order of the critical path, twice: first as if every hop had links of its own, which says who is
// under way beside whom; then with what they leave each other. Last, phase by phase, the busiest link.
//
// Sources: Hockney's alpha-beta model (1994), and Thakur, Rabenseifner, Gropp 2005 for its use on collectives; fair
// shares as in the engine.
#include "collcast/cost/estimate.hpp"

#include <algorithm>
#include <utility>

#include "cost/lane_walk.hpp"
#include "cost/loads.hpp"
#include "cost/round_trip.hpp"
#include "cost/walked.hpp"

namespace collcast {
namespace {

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
  Walk(const Fabric& fabric, std::span<const Pattern> patterns, Loads& loads, std::vector<Estimate>& estimates)
      : fabric_(fabric), loads_(loads), estimates_(estimates) {
    for (std::size_t i = 0; i < patterns.size(); ++i)
      for (const Lane& lane : patterns[i].lanes) {
        lanes_.emplace_back(patterns[i], lane, static_cast<int>(lanes_.size()));
        pattern_of_.push_back(i);
      }
  }

  /// On links of their own, to know which hops come up side by side.
  void announce() {
    run([](const Step&, double) {},
        [this](const Step& step, double) {
          const Served served = alone(step);
          announce(step);
          return served;
        },
        [this](const std::vector<Step>& ring, double) {
          // Who comes before the last is on its links from then on; all others meet in the ring's moment, where share()
          // counts them. Left out: that a ring's later rounds meet what begins after it.
          for (const Step& step : ring)
            if (step.start.alone.first < step.start.alone.last) announce(step);
          return round_trip_alone(ring);
        });
    loads_.close_announcements();
  }

  /// As they share links. phase_ends() are then those of the lanes.
  void share(std::vector<Walked>* walked = nullptr) {
    walked_ = walked;
    run([this](const Step& step, double) { count(step); },
        [this](const Step& step, double now) { return serve(step, now); },
        [this](const std::vector<Step>& ring, double now) { return round_trip(ring, now); });
  }

  double phase_end(std::size_t pattern, std::size_t phase) const {
    double end = 0;
    for (std::size_t i = 0; i < lanes_.size(); ++i)
      if (pattern_of_[i] == pattern && phase < lanes_[i].phase_ends().size())
        end = std::max(end, lanes_[i].phase_ends()[phase]);
    return end;
  }

 private:
  template <class Count, class Serve, class Ring>
  void run(Count count, Serve serve, Ring ring);

  const LaneWalk& lane(const Step& step) const { return lanes_[static_cast<std::size_t>(step.lane)]; }
  std::size_t pattern(const Step& step) const { return pattern_of_[static_cast<std::size_t>(step.lane)]; }

  std::span<const LinkId> route(const Step& step) {
    const LaneWalk& walk = lane(step);
    route_.clear();
    fabric_.route(walk.pattern().rank(walk.lane(), step.from), walk.pattern().rank(walk.lane(), step.hop.peer),
                  walk.lane().route_lane, route_);
    return route_;
  }

  Load load(const Step& step) const {
    const LaneWalk& walk = lane(step);
    const Phase& phase = walk.phase(step.phase);
    return {walk.pattern().message(walk.lane(), step.hop), walk.pattern().chunks,
            phase.flow == Flow::circulating ? static_cast<double>(phase.rounds) : 1.0,
            phase.flow == Flow::forwarding && walk.pattern().chunks == 1};
  }

  void announce(const Step& step) {
    const auto links = route(step);
    const Load l = load(step);
    const double tau = loads_.alone(links, l.chunk);
    const double gap = l.chunks > 1 && lane(step).phase(step.phase).flow == Flow::forwarding
                           ? (step.start.alone.last - step.start.alone.first) / (l.chunks - 1)
                           : 0;
    loads_.announce(links, moment(step.start.alone.first), l.chunk, gap > tau ? tau / gap : 1);
  }

  void count(const Step& step) {
    const Flow flow = lane(step).phase(step.phase).flow;
    const Load l = load(step);
    const bool pipelined = flow == Flow::concurrent || (flow == Flow::forwarding && l.chunks > 1);
    loads_.add({static_cast<int>(pattern(step)), step.lane, step.phase, step.from, step.hop.peer, pipelined},
               route(step), l, step.start.shared.first);
  }

  Served alone(const Step& step) {
    const auto links = route(step);
    const Load l = load(step);
    const double tau = loads_.alone(links, l.chunk);
    const ChunkTimes& start = step.start.alone;
    const ChunkTimes left{start.first + tau, std::max(start.last + tau, start.first + l.chunks * tau)};
    return {{left, left}, loads_.latency(links).count()};
  }

  Loads::Spell spell(const Step& step, double now) {
    const auto links = route(step);
    const Load l = load(step);
    const Loads::Spell out = loads_.spell(links, now, l, step.start.shared.first);
    PhaseEstimate& e = estimates_[pattern(step)].phases[static_cast<std::size_t>(step.phase)];
    // Nothing to send shares nothing.
    const Bandwidth rate(out.last > 0 ? l.chunk.value() * l.chunks / out.last : 1 / loads_.alone(links, Volume(1)));
    e.rate = e.rate == Bandwidth{} ? rate : std::min(e.rate, rate);
    e.chunk = std::max(e.chunk, l.chunk);
    e.latency = std::max(e.latency, loads_.latency(links));
    return out;
  }

  Served serve(const Step& step, double now) {
    Served out = alone(step);
    const double tau = out.left.alone.first - step.start.alone.first;
    const Loads::Spell t = spell(step, now);
    const ChunkTimes& start = step.start.shared;
    out.left.shared = {start.first + t.first, std::max(start.last + tau, start.first + t.last)};
    if (walked_ != nullptr)
      walked_->push_back({step.lane, step.phase, step.from, step.hop.peer, start, out.left.shared, tau, out.latency});
    return out;
  }

  HopTimes round_trip_alone(const std::vector<Step>& ring) {
    RoundTrip trip;
    for (const Step& step : ring) {
      const auto links = route(step);
      const double tau = loads_.alone(links, load(step).chunk);
      trip.add({step.from, step.hop.peer, tau, tau, loads_.latency(links).count()});
    }
    const double end = ring.front().start.alone.last +
                       trip.time(lane(ring.front()).phase(ring.front().phase).rounds, load(ring.front()).chunks);
    return {{end, end}, {end, end}};
  }

  HopTimes round_trip(const std::vector<Step>& ring, double now) {
    HopTimes out = round_trip_alone(ring);
    RoundTrip trip;
    for (const Step& step : ring) {
      const Loads::Spell t = spell(step, now);
      const auto links = route(step);
      const Load l = load(step);
      trip.add(
          {step.from, step.hop.peer, t.last / l.chunks, loads_.alone(links, l.chunk), loads_.latency(links).count()});
    }
    const auto together = [&](const Step& step) {
      return step.start.shared.first == ring.front().start.shared.last &&
             step.start.shared.last == ring.front().start.shared.last;
    };
    if (!trip.alike() || !std::all_of(ring.begin(), ring.end(), together))
      estimates_[pattern(ring.front())].drifts = true;
    const double end = ring.front().start.shared.last +
                       trip.time(lane(ring.front()).phase(ring.front().phase).rounds, load(ring.front()).chunks);
    out.shared = {end, end};
    return out;
  }

  const Fabric& fabric_;
  Loads& loads_;
  std::vector<Estimate>& estimates_;
  std::vector<LaneWalk> lanes_;
  std::vector<std::size_t> pattern_of_;
  std::vector<LinkId> route_;
  std::vector<Walked>* walked_ = nullptr;
};

template <class Count, class Serve, class Ring>
void Walk::run(Count count, Serve serve, Ring ring) {
  LaneWalk::Queue queue;
  for (LaneWalk& walk : lanes_) walk.begin(queue);
  std::vector<std::pair<int, Position>> leaving, awaiting;
  while (!queue.empty()) {
    const double now = queue.begin()->first;
    const auto entries = std::move(queue.begin()->second);
    queue.erase(queue.begin());
    loads_.begin_moment();
    for (const auto& [index, v] : entries)
      lanes_[static_cast<std::size_t>(index)].each(v, [&](const Step& step) { count(step, now); });

    std::map<std::pair<int, Position>, std::vector<Step>> rings;
    leaving.clear();
    awaiting.clear();
    for (const auto& [index, v] : entries) {
      LaneWalk& walk = lanes_[static_cast<std::size_t>(index)];
      Flow flow = Flow::forwarding;
      walk.each(v, [&](const Step& step) {
        const Phase& phase = walk.phase(step.phase);
        flow = phase.flow;
        if (flow == Flow::circulating) {
          rings[{step.lane, phase.at(step.from, 0)}].push_back(step);
          return;
        }
        walk.serve(step, serve(step, now));
        if (flow != Flow::concurrent) awaiting.push_back({step.lane, step.hop.peer});
      });
      if (flow != Flow::circulating) leaving.push_back({index, v});
      for (Position u = 0; flow == Flow::concurrent && u < walk.pattern().size(); ++u) awaiting.push_back({index, u});
    }
    for (const auto& [key, steps] : rings)
      lanes_[static_cast<std::size_t>(key.first)].come_round(steps.front().phase, key.second, ring(steps, now), queue);
    for (const auto& [index, v] : leaving) lanes_[static_cast<std::size_t>(index)].leave(v, queue);
    for (const auto& [index, v] : awaiting) lanes_[static_cast<std::size_t>(index)].go_on(v, queue);
  }
}

std::vector<Estimate> blank(std::span<const Pattern> patterns, std::size_t& most_phases) {
  std::vector<Estimate> out(patterns.size());
  for (std::size_t i = 0; i < patterns.size(); ++i)
    for (const Lane& lane : patterns[i].lanes) {
      most_phases = std::max(most_phases, lane.phases.size());
      for (std::size_t p = 0; p < lane.phases.size(); ++p) {
        if (p == out[i].phases.size()) out[i].phases.emplace_back();
        PhaseEstimate& e = out[i].phases[p];
        e.shape = lane.phases[p].shape->name;
        e.flow = lane.phases[p].flow;
        e.rounds = std::max(e.rounds, lane.phases[p].rounds);
      }
    }
  return out;
}

/// Of the first `watched` patterns.
std::vector<Estimate> watch(const Fabric& fabric, std::span<const Pattern> patterns, std::size_t watched) {
  std::size_t phases = 0;
  std::vector<Estimate> estimates = blank(patterns, phases);
  Loads loads(fabric, watched, phases);
  if (moments_meet(patterns)) Walk(fabric, patterns, loads, estimates).announce();
  Walk walk(fabric, patterns, loads, estimates);
  walk.share();
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
  std::size_t phases = 0;
  std::vector<Estimate> estimates = blank(patterns, phases);
  Loads loads(fabric, 1, phases);
  if (moments_meet(patterns)) Walk(fabric, patterns, loads, estimates).announce();
  std::vector<Walked> walked;
  Walk(fabric, patterns, loads, estimates).share(&walked);
  return walked;
}

std::vector<Estimate> estimate(const Fabric& fabric, std::span<const Pattern> patterns) {
  return watch(fabric, patterns, patterns.size());
}

Estimate estimate_first(const Fabric& fabric, std::span<const Pattern> patterns) {
  return std::move(watch(fabric, patterns, 1).front());
}

Estimate estimate(const Fabric& fabric, const Pattern& pattern) {
  return estimate_first(fabric, std::span<const Pattern>(&pattern, 1));
}

}  // namespace collcast
