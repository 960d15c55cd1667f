#include "cost/lane_walk.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace collcast {

// The nearest of 40 significant bits; halves away from zero. Sums are rounded by 2^-53 per term.
double moment(double time) {
  constexpr std::uint64_t dropped = std::uint64_t{1} << (std::numeric_limits<double>::digits - 40);
  const auto bits = std::bit_cast<std::uint64_t>(time);
  return std::bit_cast<double>((bits + dropped / 2) & ~(dropped - 1));
}

void Agenda::push(double moment, Walker walker) {
  if (!open_ || runs_.back().moment != moment) {
    order_last();
    runs_.push_back({moment, walkers_.size(), walkers_.size()});
    open_ = true;
  }
  walkers_.push_back(walker);
  ++runs_.back().end;
  ++waiting_;
}

void Agenda::order_last() {
  if (open_) std::push_heap(runs_.begin(), runs_.end(), after);
  open_ = false;
}

double Agenda::pop(std::vector<Walker>& out) {
  order_last();
  const double moment = runs_.front().moment;
  out.clear();
  while (!runs_.empty() && runs_.front().moment == moment) {
    const Run& run = runs_.front();
    out.insert(out.end(), walkers_.begin() + static_cast<std::ptrdiff_t>(run.begin),
               walkers_.begin() + static_cast<std::ptrdiff_t>(run.end));
    std::pop_heap(runs_.begin(), runs_.end(), after);
    runs_.pop_back();
  }
  waiting_ -= out.size();
  if (walkers_.size() > 1024 && walkers_.size() > 4 * waiting_) close_up();
  return moment;
}

void Agenda::close_up() {
  std::sort(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) { return a.begin < b.begin; });
  std::size_t end = 0;
  for (Run& run : runs_) {
    const std::size_t begin = end;
    for (std::size_t i = run.begin; i < run.end; ++i) walkers_[end++] = walkers_[i];
    run = {run.moment, begin, end};
  }
  walkers_.resize(end);
  std::make_heap(runs_.begin(), runs_.end(), after);
}

LaneWalk::LaneWalk(const Hops& hops)
    : hops_(hops),
      states_(hops.positions()),
      receives_(hops.cells()),
      slots_(hops.slots()),
      phase_ends_(hops.stages()) {}

void LaneWalk::begin(Agenda& agenda) {
  for (int lane = 0; at(lane) < hops_.lanes().size(); ++lane)
    for (Position v = 0; v < hops_.lanes()[at(lane)].size; ++v) go_on({lane, v}, agenda);
}

// Through as many phases as the position has nothing left to do in, up to its next hop.
void LaneWalk::go_on(const Walker& w, Agenda& agenda) {
  State& state = this->state(w);
  const Hops::Lane& lane = hops_.lanes()[at(w.lane)];
  while (!state.queued && at(state.phase) < lane.stages) {
    const Hops::Cell& cell = hops_.cell(w.lane, state.phase, w.position);
    if (state.next < cell.sends) {
      if (phase(w).flow == Flow::circulating)
        gather(w, agenda);
      else if (!queue_next(w, agenda))
        return;
      continue;
    }
    const Receives& receives = receives_[hops_.cell_index(w.lane, state.phase, w.position)];
    if (receives.arrived < cell.receives) return;
    state.left.join(receives.last);
    state.left.shared.first = state.left.shared.last;
    state.left.alone.first = state.left.alone.last;
    double& end = phase_ends_[lane.first_stage + at(state.phase)];
    end = std::max(end, state.left.shared.last);
    state.next = 0;
    ++state.phase;
  }
}

bool LaneWalk::queue_next(const Walker& w, Agenda& agenda) {
  State& state = this->state(w);
  if (phase(w).flow == Flow::forwarding) {
    const int after = hops_.sent(w.lane, state.phase, w.position, state.next, scratch_).hop.after;
    const std::size_t cell = hops_.cell_index(w.lane, state.phase, w.position);
    if (receives_[cell].arrived < after) return false;
    const std::span<const Slot> slots =
        std::span(slots_).subspan(hops_.cell(w.lane, state.phase, w.position).first_slot, at(after));
    HopTimes start = state.left;
    for (const Slot& slot : slots) {
      if (!slot.arrived) return false;
      start.join(slot.time);
    }
    state.start = start;
  } else {
    state.start = state.left;
    state.start.shared.first = state.start.shared.last;
    state.start.alone.first = state.start.alone.last;
  }
  state.queued = true;
  agenda.push(moment(state.start.alone.first), w);
  return true;
}

// A ring turns when its last member has come.
void LaneWalk::gather(const Walker& w, Agenda& agenda) {
  const int number = state(w).phase;
  const Phase& phase = this->phase(w);
  const auto member = [&](int i) { return Walker{w.lane, phase.at(w.position, i)}; };
  state(w).queued = true;
  int& gathered = receives_[hops_.cell_index(w.lane, number, member(0).position)].gathered;
  if (++gathered < phase.members) return;
  HopTimes all;
  for (int i = 0; i < phase.members; ++i) all.join(state(member(i)).left);
  const double turn = moment(all.alone.last);
  for (int i = 0; i < phase.members; ++i) {
    State& one = state(member(i));
    one.start = one.left;
    one.start.shared.last = all.shared.last;
    one.start.alone.last = all.alone.last;
    agenda.push(turn, member(i));
  }
}

void LaneWalk::serve(const Step& step, const HopTimes& left) {
  State& state = this->state({step.lane, step.from});
  const Flow flow = hops_.stage(step.lane, step.phase).phase.flow;
  if (flow == Flow::concurrent)
    state.left.join(left);
  else
    state.left = left;
  const std::size_t cell = hops_.cell_index(step.lane, step.phase, step.sent.hop.peer);
  const HopTimes there = left.later(step.sent.latency);
  ++receives_[cell].arrived;
  receives_[cell].last.join(there);
  if (flow == Flow::forwarding)
    slots_[hops_.cell(step.lane, step.phase, step.sent.hop.peer).first_slot + at(step.sent.hop.slot)] = {true, there};
}

void LaneWalk::leave(const Walker& w, Agenda& agenda) {
  State& state = this->state(w);
  state.queued = false;
  state.next = phase(w).flow == Flow::concurrent ? hops_.cell(w.lane, state.phase, w.position).sends : state.next + 1;
  go_on(w, agenda);
}

void LaneWalk::come_round(const Walker& member, const HopTimes& end, Agenda& agenda) {
  const int number = state(member).phase;
  const Phase& phase = this->phase(member);
  for (int i = 0; i < phase.members; ++i) {
    const Position v = phase.at(member.position, i);
    State& state = this->state({member.lane, v});
    const std::size_t cell = hops_.cell_index(member.lane, number, v);
    state.queued = false;
    state.next = hops_.cell(member.lane, number, v).sends;
    state.left = end;
    receives_[cell].arrived = hops_.cell(member.lane, number, v).receives;
  }
  for (int i = 0; i < phase.members; ++i) go_on({member.lane, phase.at(member.position, i)}, agenda);
}

}  // namespace collcast
