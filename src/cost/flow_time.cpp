#include "cost/flow_time.hpp"

#include <algorithm>

namespace collcast {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace

CirculatingTime::CirculatingTime(const Phase& phase, int positions, int chunks)
    : rounds_(phase.rounds), chunks_(chunks), hops_(at(positions)), sends_(at(positions)) {}

double CirculatingTime::add(const ServedHop& hop) {
  hops_[at(hop.from)] = hop;
  sends_[at(hop.from)] = true;
  return 0;
}

double CirculatingTime::time() const {
  double longest = 0;
  for (std::size_t v = 0; v < hops_.size(); ++v)
    if (sends_[v]) longest = std::max(longest, rounds_ * (chunks_ * hops_[v].tau) + hops_[v].alpha);

  std::vector<bool> visited(hops_.size());
  for (Position start = 0; start < static_cast<Position>(hops_.size()); ++start) {
    std::vector<Position> path;
    Position v = start;
    for (; sends_[at(v)] && !visited[at(v)]; v = hops_[at(v)].hop.peer) {
      visited[at(v)] = true;
      path.push_back(v);
    }
    if (!path.empty()) longest = std::max(longest, walk(path, v == start));
  }
  return longest;
}

// The best R consecutive hops: whole turns, and the best window of what is left over.
double CirculatingTime::walk(const std::vector<Position>& path, bool closed) const {
  const std::size_t length = path.size();
  const auto hop_time = [&](std::size_t i) {
    return hops_[at(path[i % length])].tau + hops_[at(path[i % length])].alpha;
  };
  double slowest = 0;
  double whole = 0;
  bool equal = true;
  for (std::size_t i = 0; i < length; ++i) {
    slowest = std::max(slowest, hops_[at(path[i])].tau);
    whole += hop_time(i);
    equal = equal && hop_time(i) == hop_time(0);
  }
  const std::size_t hops = closed ? at(rounds_) : std::min(at(rounds_), length);
  if (equal) return static_cast<double>(hops) * hop_time(0) + (chunks_ - 1) * slowest;

  const std::size_t rest = hops % length;
  double window = 0;
  for (std::size_t i = 0; i < rest; ++i) window += hop_time(i);
  double best = window;
  for (std::size_t i = 0; i + 1 < length && (closed || i + rest < length); ++i) {
    window += hop_time(i + rest) - hop_time(i);
    best = std::max(best, window);
  }
  return static_cast<double>(hops / length) * whole + best + (chunks_ - 1) * slowest;
}

ForwardingTime::ForwardingTime(const Phase& phase, int positions, int chunks) : chunks_(chunks), left_(at(positions)) {
  std::size_t receives = 0;
  for (Position v = 0; v < positions; ++v) {
    receive_.push_back(receives);
    receives += at(phase.shape->receives(phase, v));
  }
  arrived_.resize(receives);
}

void ForwardingTime::Path::join(const Path& other) {
  one = std::max(one, other.one);
  all = std::max(all, other.all);
}

double ForwardingTime::add(const ServedHop& hop) {
  Path path = left_[at(hop.from)];
  for (int slot = 0; slot < hop.hop.after; ++slot) path.join(arrived_[receive_[at(hop.from)] + at(slot)]);
  const double start = path.one;
  path.one += hop.tau;
  path.all = std::max(path.all + hop.tau, path.one + (chunks_ - 1) * hop.tau);
  left_[at(hop.from)] = path;
  const Path there{path.one + hop.alpha, path.all + hop.alpha};
  arrived_[receive_[at(hop.hop.peer)] + at(hop.hop.slot)] = there;
  latest_ = std::max(latest_, there.all);
  return start;
}

SequentialTime::SequentialTime(int positions, int chunks) : chunks_(chunks), busy_(at(positions)) {}

double SequentialTime::add(const ServedHop& hop) {
  Sum& sum = busy_[at(hop.from)];
  const double start = sum.total();
  const double term = chunks_ * hop.tau;
  if (term != sum.term) sum = {start, term, 0};
  ++sum.times;
  latest_ = std::max(latest_, sum.total() + hop.alpha);
  return start;
}

double ConcurrentTime::add(const ServedHop& hop) {
  latest_ = std::max(latest_, chunks_ * hop.tau + hop.alpha);
  return 0;
}

FlowTime flow_time(const Phase& phase, int positions, int chunks) {
  switch (phase.flow) {
    case Flow::circulating:
      return CirculatingTime(phase, positions, chunks);
    case Flow::forwarding:
      return ForwardingTime(phase, positions, chunks);
    case Flow::sequential:
      return SequentialTime(positions, chunks);
    case Flow::concurrent:
      break;
  }
  return ConcurrentTime(chunks);
}

}  // namespace collcast
