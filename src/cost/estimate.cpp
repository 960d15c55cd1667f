// Phase by phase: the hops of a round share links, dependencies give one time, the busiest link another.
//
// All patterns and lanes are taken to be in the phase of the same number and in the same round of it, which is
// where the closed form approximates: ranks run ahead of slow neighbours. Sources: Hockney's alpha-beta model
// (1994), and Thakur, Rabenseifner, Gropp 2005 for its use on collectives.
#include "collcast/cost/estimate.hpp"

#include <algorithm>
#include <utility>

#include "cost/flow_time.hpp"
#include "cost/loads.hpp"
#include "cost/rounds.hpp"

namespace collcast {
namespace {

/// One phase of one lane of one pattern, on its way to an estimate.
struct Track {
  const Pattern* pattern;
  const Lane* lane;
  const Phase* phase;
  int pattern_index;
  int lane_index;  // among all lanes of all patterns
  Rounds rounds;
  FlowTime time;
  PhaseEstimate estimate;
};

std::vector<Track> tracks_of_phase(std::span<const Pattern> patterns, std::size_t number) {
  std::vector<Track> tracks;
  int lane_index = 0;
  for (std::size_t i = 0; i < patterns.size(); ++i)
    for (const Lane& lane : patterns[i].lanes) {
      ++lane_index;
      if (number >= lane.phases.size()) continue;
      const Phase& phase = lane.phases[number];
      PhaseEstimate blank;
      blank.shape = phase.shape->name;
      blank.flow = phase.flow;
      blank.rounds = phase.rounds;
      tracks.push_back({&patterns[i], &lane, &phase, static_cast<int>(i), lane_index, Rounds(phase, patterns[i].size()),
                        flow_time(phase, patterns[i].size(), patterns[i].chunks), std::move(blank)});
    }
  return tracks;
}

void note(PhaseEstimate& e, Volume chunk, Seconds latency, Bandwidth rate) {
  e.rate = e.rate == Bandwidth{} ? rate : std::min(e.rate, rate);
  e.chunk = std::max(e.chunk, chunk);
  e.latency = std::max(e.latency, latency);
}

class Walk {
 public:
  Walk(const Fabric& fabric, Loads& loads, std::vector<Track>& tracks, int phase)
      : fabric_(fabric), loads_(loads), tracks_(tracks), phase_(phase) {}

  void run() {
    int rounds = 0;
    for (const Track& track : tracks_) rounds = std::max(rounds, track.rounds.count());
    for (int round = 0; round < rounds; ++round) {
      loads_.begin_round();
      for (const Track& track : tracks_)
        if (round < track.rounds.count()) count(track, round);
      for (Track& track : tracks_)
        if (round < track.rounds.count()) serve(track, round);
    }
    for (Track& track : tracks_)
      track.estimate.by_rounds = Seconds(std::visit([](const auto& t) { return t.time(); }, track.time));
  }

 private:
  std::span<const LinkId> route(const Track& track, Position from, Position to) {
    route_.clear();
    fabric_.route(track.pattern->rank(*track.lane, from), track.pattern->rank(*track.lane, to), track.lane->route_lane,
                  route_);
    return route_;
  }

  void count(const Track& track, int round) {
    track.rounds.each(round, [&](Position v, const Hop& hop) { loads_.add_flow(route(track, v, hop.peer)); });
  }

  void serve(Track& track, int round) {
    const int chunks = track.pattern->chunks;
    track.rounds.each(round, [&](Position v, const Hop& hop) {
      const auto links = route(track, v, hop.peer);
      const Volume chunk = track.pattern->message(*track.lane, hop);
      const Bandwidth rate = loads_.rate(links);
      const Seconds latency = loads_.latency(links);
      const ServedHop served{v, hop, (chunk / rate).count(), latency.count()};
      const Seconds start(std::visit([&](auto& t) { return t.add(served); }, track.time));
      note(track.estimate, chunk, latency, rate);
      const bool pipelined =
          track.phase->flow == Flow::concurrent || (track.phase->flow == Flow::forwarding && chunks > 1);
      loads_.carry({track.pattern_index, track.lane_index, phase_, v, hop.peer, pipelined}, links,
                   chunk * static_cast<double>(chunks) * static_cast<double>(track.rounds.repeats()), start, latency);
    });
    track.rounds.leave(round);
  }

  const Fabric& fabric_;
  Loads& loads_;
  std::vector<Track>& tracks_;
  int phase_;
  std::vector<LinkId> route_;
};

/// The lanes of a pattern run side by side: the longest counts.
void merge(PhaseEstimate& into, const PhaseEstimate& lane) {
  note(into, lane.chunk, lane.latency, lane.rate);
  into.rounds = std::max(into.rounds, lane.rounds);
  into.by_rounds = std::max(into.by_rounds, lane.by_rounds);
}

void settle(PhaseEstimate& e, const Loads::Busiest& busiest) {
  e.by_load = busiest.time;
  e.busiest = busiest.link;
  e.busiest_bytes = busiest.bytes;
  e.time = std::max(e.by_rounds, e.by_load);
}

}  // namespace

std::vector<Estimate> estimate(const Fabric& fabric, std::span<const Pattern> patterns) {
  std::size_t phases = 0;
  for (const Pattern& pattern : patterns)
    for (const Lane& lane : pattern.lanes) phases = std::max(phases, lane.phases.size());

  std::vector<Estimate> estimates(patterns.size());
  Loads loads(fabric, patterns.size());
  for (std::size_t number = 0; number < phases; ++number) {
    std::vector<Track> tracks = tracks_of_phase(patterns, number);
    Walk(fabric, loads, tracks, static_cast<int>(number)).run();
    for (const Track& track : tracks) {
      auto& of_pattern = estimates[static_cast<std::size_t>(track.pattern_index)].phases;
      if (of_pattern.size() <= number)
        of_pattern.push_back(track.estimate);
      else
        merge(of_pattern[number], track.estimate);
    }
    for (std::size_t i = 0; i < patterns.size(); ++i)
      if (estimates[i].phases.size() > number) settle(estimates[i].phases[number], loads.busiest(i));
    loads.end_phase();
  }
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    for (const PhaseEstimate& phase : estimates[i].phases) estimates[i].total += phase.time;
    estimates[i].shared = loads.shared(i);
  }
  return estimates;
}

Estimate estimate(const Fabric& fabric, const Pattern& pattern) {
  return estimate(fabric, std::span<const Pattern>(&pattern, 1)).front();
}

}  // namespace collcast
