// Setting an exchange up when its first participant is ready, and giving all of it back after the last.
#include <string>

#include "collcast/base/check.hpp"
#include "engine/exchanges.hpp"

namespace collcast::engine {

std::uint32_t Exchanges::open(const Occasion& occasion) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(running_.size()));
    running_.emplace_back();
  }
  const std::uint32_t exchange = free_.back();
  free_.pop_back();
  const Pattern& pattern = *occasion.pattern;
  const auto size = static_cast<std::uint32_t>(pattern.size());
  const auto lanes = static_cast<std::uint32_t>(pattern.lanes.size());
  Running& running = running_[exchange];
  connections_.expect(std::size_t{size} * lanes);
  running.occasion = occasion;
  running.lanes = lanes_.allocate(lanes);
  running.participants = words_.allocate(size);
  running.unfinished = size;
  for (std::uint32_t i = 0; i < size; ++i) words_[running.participants + i] = lanes;

  for (std::uint32_t i = 0; i < lanes; ++i) {
    const Lane& lane = pattern.lanes[i];
    check(lane.phases.size() <= most_phases, "phases of a lane are counted in 24 bits");
    LaneState& state = lanes_[running.lanes + i];
    state = {&pattern, &lane, exchange, i, walkers_.allocate(size), none, 0};
    if (!lane.order.empty()) state.positions = words_.allocate(size);
    for (std::uint32_t v = 0; v < size; ++v) {
      Walker& walker = walkers_[state.walkers + v] = Walker{};
      walker.lane = running.lanes + i;
      walker.chunks = static_cast<std::uint32_t>(pattern.chunks);
      if (state.positions != none)
        words_[state.positions + static_cast<std::uint32_t>(lane.participant(static_cast<Position>(v)))] = v;
    }
    state.phases = phases_.allocate(lane.phases.size());
    for (std::uint32_t p = 0; p < lane.phases.size(); ++p) begin_phase(state, p);
  }
  if (occasion.stands_for != nullptr) leave_out_those_done_for(exchange);
  return exchange;
}

void Exchanges::leave_out_those_done_for(std::uint32_t exchange) {
  Running& running = running_[exchange];
  const Pattern& pattern = *running.occasion.pattern;
  for (const LaneState& state : lanes_.block(running.lanes, pattern.lanes.size()))
    for (Position v = 0; v < pattern.size(); ++v) {
      const auto participant = static_cast<std::uint32_t>(state.lane->participant(v));
      if (who_does(state, v) != v && --words_[running.participants + participant] == 0) --running.unfinished;
    }
}

void Exchanges::ready(std::uint32_t exchange, int participant) {
  const Running& running = running_[exchange];
  if (running.occasion.pattern->lanes.empty()) return finish_participant(exchange, participant);
  const std::uint32_t first = running.lanes;
  // Positions that it takes itself: with the last of them the exchange may be over.
  std::uint32_t own = words_[running.participants + static_cast<std::uint32_t>(participant)];
  for (std::uint32_t i = 0; own > 0; ++i) {
    const std::uint32_t walker = walker_of(lanes_[first + i], participant);
    if (const Position v = position(walker); who_does(lanes_[first + i], v) != v) continue;
    --own;
    enter(walker, 0);
  }
}

void Exchanges::begin_phase(const LaneState& lane, std::uint32_t index) {
  const Phase& phase = lane.lane->phases[index];
  const auto size = static_cast<std::uint32_t>(lane.pattern->size());
  PhaseState state;
  state.counter_count = size;
  if (phase.flow == Flow::forwarding) {
    state.offsets = words_.allocate(size);
    state.counter_count = 0;
    for (std::uint32_t v = 0; v < size; ++v) {
      words_[state.offsets + v] = state.counter_count;
      state.counter_count += static_cast<std::uint32_t>(phase.shape->receives(phase, static_cast<Position>(v)));
    }
  }
  state.counters = counters_.allocate(state.counter_count);
  std::uint32_t next = state.counters;
  for (std::uint32_t v = 0; v < size; ++v) {
    const std::uint32_t own =
        state.offsets == none ? 1U : static_cast<std::uint32_t>(phase.shape->receives(phase, static_cast<Position>(v)));
    for (const std::uint32_t end = next + own; next < end; ++next) counters_[next] = {0, lane.walkers + v};
  }
  phases_[lane.phases + index] = state;
}

void Exchanges::finish_participant(std::uint32_t exchange, int participant) {
  const Occasion& occasion = running_[exchange].occasion;
  agenda_.after(0, EventKind::finished, occasion.finished(participant));
  if (--running_[exchange].unfinished == 0) end(exchange);
}

void Exchanges::end(std::uint32_t exchange) {
  Running& running = running_[exchange];
  const Pattern& pattern = *running.occasion.pattern;
  const auto size = static_cast<std::size_t>(pattern.size());
  for (const LaneState& lane : lanes_.block(running.lanes, pattern.lanes.size())) {
    for (const PhaseState& phase : phases_.block(lane.phases, lane.lane->phases.size())) {
      counters_.release(phase.counters, phase.counter_count);
      if (phase.offsets != none) words_.release(phase.offsets, size);
    }
    phases_.release(lane.phases, lane.lane->phases.size());
    if (lane.positions != none) words_.release(lane.positions, size);
    walkers_.release(lane.walkers, size);
  }
  words_.release(running.participants, size);
  lanes_.release(running.lanes, pattern.lanes.size());
  running = {};
  free_.push_back(exchange);
}

std::uint32_t Exchanges::part_of(std::uint32_t counter) const { return part(counters_[counter].walker); }

std::uint32_t Exchanges::part(std::uint32_t walker) const {
  const LaneState& lane = lanes_[walkers_[walker].lane];
  const Occasion& occasion = running_[lane.exchange].occasion;
  return occasion.finished(lane.lane->participant(position(walker)));
}

std::uint32_t Exchanges::walker_of(const LaneState& lane, int participant) const {
  const auto p = static_cast<std::uint32_t>(participant);
  return lane.walkers + (lane.positions == none ? p : words_[lane.positions + p]);
}

void Exchanges::clear() {
  running_ = {};
  free_ = {};
  lanes_ = {};
  phases_ = {};
  counters_ = {};
  walkers_ = {};
  words_ = {};
  sends_ = {};
}

std::string Exchanges::waits_for(std::uint32_t exchange, int participant) const {
  const Running& running = running_[exchange];
  const Pattern& pattern = *running.occasion.pattern;
  std::string text;
  for (std::uint32_t i = 0; i < pattern.lanes.size(); ++i) {
    const LaneState& lane = lanes_[running.lanes + i];
    const Walker& walker = walkers_[walker_of(lane, participant)];
    if (walker.slots == 0 && walker.first_hop == none) continue;
    text += "; " + pattern.algorithm + " lane " + std::to_string(i) + " phase " + std::to_string(walker.phase) + ": " +
            std::to_string(walker.left) + " of " + std::to_string(walker.to_send) + " messages sent, " +
            std::to_string(walker.received) + " of " + std::to_string(walker.to_receive) + " received";
  }
  return text;
}

/// Whether the sender has a message to send in the receiver's phase that the receiver has not got. Where messages of a
/// phase are not told apart it is the sender's having any left that counts.
bool Exchanges::lacks(const LaneState& lane, std::uint32_t sender, std::uint32_t receiver) const {
  const Walker &to = walkers_[receiver], &from = walkers_[sender];
  const Phase& phase = phase_of(to);
  const auto participant = static_cast<std::uint32_t>(lane.lane->participant(position(sender)));
  const bool inside = from.slots > 0 || from.first_hop != none;
  const bool is_through = !inside && words_[running_[lane.exchange].participants + participant] == 0;
  if (is_through || from.phase > to.phase) return false;
  for (int j = 0; j < phase.shape->sends(phase, position(sender)); ++j) {
    const Hop hop = phase.shape->send(phase, position(sender), j);
    if (hop.peer != position(receiver)) continue;
    const bool told_apart = phase.flow == Flow::forwarding;
    if (!told_apart && (!inside || from.phase < to.phase || from.left < from.to_send)) return true;
    if (told_apart && counters_[counter(lane, to.phase, hop.peer, hop.slot)].count < to.chunks) return true;
  }
  return false;
}

std::uint32_t Exchanges::awaits(std::uint32_t exchange, int participant) const {
  const Running& running = running_[exchange];
  const Pattern& pattern = *running.occasion.pattern;
  for (std::uint32_t i = 0; i < pattern.lanes.size(); ++i) {
    const LaneState& lane = lanes_[running.lanes + i];
    const std::uint32_t own = walker_of(lane, participant);
    const Walker& walker = walkers_[own];
    if (walker.received >= walker.to_receive) continue;
    for (std::uint32_t v = 0; v < static_cast<std::uint32_t>(pattern.size()); ++v)
      if (lacks(lane, lane.walkers + v, own))
        return static_cast<std::uint32_t>(lane.lane->participant(static_cast<Position>(v)));
  }
  return none;
}

}  // namespace collcast::engine
