#include "cost/lane_walk.hpp"

#include <algorithm>
#include <cmath>

namespace collcast {

double moment(double time) {
  constexpr double steps = 1099511627776.0;  // 2^40: sums are rounded by 2^-53 per term
  int exponent = 0;
  const double mantissa = std::frexp(time, &exponent);
  return std::ldexp(std::round(mantissa * steps) / steps, exponent);
}

void ChunkTimes::join(const ChunkTimes& other) {
  first = std::max(first, other.first);
  last = std::max(last, other.last);
}

void HopTimes::join(const HopTimes& other) {
  shared.join(other.shared);
  alone.join(other.alone);
}

LaneWalk::LaneWalk(const Pattern& pattern, const Lane& lane, int lane_index)
    : pattern_(&pattern),
      lane_(&lane),
      index_(lane_index),
      states_(at(pattern.size())),
      phase_ends_(lane.phases.size()) {
  for (const Phase& phase : lane.phases) {
    Stage stage;
    stage.receives.resize(states_.size());
    std::size_t slots = 0;
    for (Position v = 0; v < pattern.size(); ++v) {
      stage.receives[at(v)].expected = phase.shape->receives(phase, v);
      stage.receives[at(v)].begin = slots;
      slots += at(stage.receives[at(v)].expected);
    }
    if (phase.flow == Flow::forwarding) stage.slots.resize(slots);
    if (phase.flow == Flow::circulating) stage.gathered.resize(states_.size());
    stages_.push_back(std::move(stage));
  }
}

void LaneWalk::begin(Queue& queue) {
  for (Position v = 0; v < pattern_->size(); ++v) go_on(v, queue);
}

// Through as many phases as the position has nothing left to do in, up to its next hop.
void LaneWalk::go_on(Position v, Queue& queue) {
  State& state = states_[at(v)];
  while (!state.queued && at(state.phase) < lane_->phases.size()) {
    const Phase& phase = lane_->phases[at(state.phase)];
    if (state.next_hop < phase.shape->sends(phase, v)) {
      if (phase.flow == Flow::circulating)
        gather(v, queue);
      else if (!queue_next(v, queue))
        return;
      continue;
    }
    const Receives& receives = stages_[at(state.phase)].receives[at(v)];
    if (receives.arrived < receives.expected) return;
    state.left.join(receives.last);
    state.left.shared.first = state.left.shared.last;
    state.left.alone.first = state.left.alone.last;
    double& end = phase_ends_[at(state.phase)];
    end = std::max(end, state.left.shared.last);
    state.next_hop = 0;
    ++state.phase;
  }
}

bool LaneWalk::queue_next(Position v, Queue& queue) {
  State& state = states_[at(v)];
  const Phase& phase = lane_->phases[at(state.phase)];
  state.start = state.left;
  if (phase.flow == Flow::forwarding) {
    const Stage& stage = stages_[at(state.phase)];
    const Receives& receives = stage.receives[at(v)];
    const int after = phase.shape->send(phase, v, state.next_hop).after;
    if (receives.arrived < after) return false;
    for (int i = 0; i < after; ++i) {
      const Slot& slot = stage.slots[receives.begin + at(i)];
      if (!slot.arrived) return false;
      state.start.join(slot.time);
    }
  } else {
    state.start.shared.first = state.start.shared.last;
    state.start.alone.first = state.start.alone.last;
  }
  state.queued = true;
  queue[moment(state.start.alone.first)].push_back({index_, v});
  return true;
}

// A ring turns when its last member has come.
void LaneWalk::gather(Position v, Queue& queue) {
  const Phase& phase = lane_->phases[at(states_[at(v)].phase)];
  states_[at(v)].queued = true;
  int& gathered = stages_[at(states_[at(v)].phase)].gathered[at(phase.at(v, 0))];
  if (++gathered < phase.members) return;
  HopTimes all;
  for (int i = 0; i < phase.members; ++i) all.join(states_[at(phase.at(v, i))].left);
  for (int i = 0; i < phase.members; ++i) {
    State& member = states_[at(phase.at(v, i))];
    member.start = member.left;
    member.start.shared.last = all.shared.last;
    member.start.alone.last = all.alone.last;
    queue[moment(all.alone.last)].push_back({index_, phase.at(v, i)});
  }
}

void LaneWalk::serve(const Step& step, const Served& served) {
  const Phase& phase = lane_->phases[at(step.phase)];
  State& state = states_[at(step.from)];
  if (phase.flow == Flow::concurrent)
    state.left.join(served.left);
  else
    state.left = served.left;
  Stage& stage = stages_[at(step.phase)];
  Receives& receives = stage.receives[at(step.hop.peer)];
  const HopTimes there = served.left.later(served.latency);
  ++receives.arrived;
  receives.last.join(there);
  if (phase.flow == Flow::forwarding) stage.slots[receives.begin + at(step.hop.slot)] = {true, there};
}

void LaneWalk::leave(Position v, Queue& queue) {
  State& state = states_[at(v)];
  const Phase& phase = lane_->phases[at(state.phase)];
  state.queued = false;
  state.next_hop = phase.flow == Flow::concurrent ? phase.shape->sends(phase, v) : state.next_hop + 1;
  go_on(v, queue);
}

void LaneWalk::come_round(int number, Position member, const HopTimes& end, Queue& queue) {
  const Phase& phase = lane_->phases[at(number)];
  for (int i = 0; i < phase.members; ++i) {
    const Position v = phase.at(member, i);
    State& state = states_[at(v)];
    state.queued = false;
    state.next_hop = phase.shape->sends(phase, v);
    state.left = end;
    Receives& receives = stages_[at(number)].receives[at(v)];
    receives.arrived = receives.expected;
  }
  for (int i = 0; i < phase.members; ++i) go_on(phase.at(member, i), queue);
}

}  // namespace collcast
