#include "cost/loads.hpp"

#include <algorithm>
#include <iterator>

#include "cost/lane_walk.hpp"

namespace collcast {
namespace {

bool may_meet(const Connection& a, const Connection& b) {
  if (a.lane != b.lane || a.from != b.from) return true;
  return a.phase == b.phase && a.to != b.to && (a.pipelined || b.pipelined);
}

}  // namespace

void Backlog::add(double key, double start, double bytes, double bandwidth) {
  largest_ = std::max(largest_, bytes);
  auto place = std::upper_bound(arrivals_.begin(), arrivals_.end(), key,
                                [](double time, const Arrival& a) { return time < a.key; });
  if (place != arrivals_.begin() && std::prev(place)->key == key)
    (--place)->bytes += bytes;
  else
    place = arrivals_.insert(place, {key, start, bytes, 0});
  for (; place != arrivals_.end(); ++place) {
    const double before = place == arrivals_.begin() ? 0 : std::prev(place)->done;
    place->done = std::max(before, place->start) + place->bytes / bandwidth;
  }
}

double Backlog::at(double key, double time, double bandwidth) const {
  const auto after =
      std::upper_bound(arrivals_.begin(), arrivals_.end(), key, [](double t, const Arrival& a) { return t < a.key; });
  return after == arrivals_.begin() ? 0 : std::max(0.0, std::prev(after)->done - time) * bandwidth;
}

Loads::Loads(const Hops& hops, std::size_t watched)
    : links_(hops.links()),
      phases_(hops.most_phases()),
      states_(links_.size()),
      tallies_(phases_ * links_.size()),
      used_(watched * phases_ * links_.size()) {
  if (hops.are_kept())
    histories_.emplace(links_.size());
  else
    crossings_.resize(links_.size());
}

void Loads::announce(const Sent& sent, double moment, Volume chunk, double duty) {
  announced_ = true;
  if (!histories_) {
    for (const std::uint32_t link : sent.links) crossings_[link].add(moment, chunk.value(), duty);
    return;
  }
  histories_->announce({moment, chunk.value(), duty});
  for (const std::uint32_t link : sent.links) histories_->add(link);
}

void Loads::close_announcements() {
  if (histories_) {
    crossings_ = histories_->close();
    return;
  }
  for (Crossings& crossings : crossings_) crossings.close();
}

void Loads::begin_moment() {
  for (const std::uint32_t link : of_moment_) {
    states_[link].bytes = 0;
    states_[link].hops = 0;
  }
  of_moment_.clear();
}

void Loads::add(const Connection& connection, const Sent& sent, const Load& load, double start) {
  const double bytes = load.chunk.value() * load.chunks * load.repeats;
  const double key = load.whole ? moment(start) : 0;
  if (load.whole && backlogs_.empty()) backlogs_.resize(links_.size());
  const auto pattern = static_cast<std::size_t>(connection.pattern), phase = static_cast<std::size_t>(connection.phase);
  Tally* tallies = tallies_.data() + phase * links_.size();
  char* used = place(pattern, phase) < used_.size() ? used_.data() + place(pattern, phase) : nullptr;
  for (const std::uint32_t id : sent.links) {
    Tally& tally = tallies[id];
    tally.first_start = std::min(tally.first_start, start);
    tally.least_latency = std::min(tally.least_latency, sent.latency);
    tally.bytes += bytes;
    if (used != nullptr) used[id] = 1;
    State& state = states_[id];
    if (++state.hops == 1) of_moment_.push_back(id);
    state.bytes += load.chunk.value();
    state.busy_until = std::max(state.busy_until, start) + bytes / links_[id].bandwidth;
    state.pieces = state.pieces || !load.whole;
    if (load.whole) backlogs_[id].add(key, start, bytes, links_[id].bandwidth);
    if (state.shared) continue;
    if (state.last.pattern >= 0 && may_meet(state.last, connection)) state.shared = true;
    state.last = connection;
  }
}

Loads::Spell Loads::spell(const Sent& sent, double moment, const Load& load, double start) {
  Spell out;
  const double key = load.whole ? collcast::moment(start) : 0;
  const double pace = alone(sent, load.chunk), own = load.chunk.value();
  double rest = 0, whole = 0;
  for (const std::uint32_t id : sent.links) {
    const double bandwidth = links_[id].bandwidth;
    const State& state = states_[id];
    Crossings::Others others;
    if (announced_) others = crossings(id).beside(moment, own, pace, load.chunks);
    const double same = std::min(state.bytes - own, (state.hops - 1) * own);
    const double backlog = std::max(0.0, (state.busy_until - start) * bandwidth - load.chunks * own);
    const double first = (own + std::min(same + others.begun, backlog)) / bandwidth;
    out.first = std::max(out.first, first);
    // By fair shares whoever is no larger and came before is through before this one, whatever had delayed it.
    if (load.whole && !state.pieces && backlogs_[id].largest() <= own)
      out.first = std::max(out.first, backlogs_[id].at(key, start, bandwidth) / bandwidth);
    const double more = ((load.chunks - 1) * (own + same) + others.earlier + others.later) / bandwidth;
    rest = std::max(rest, more);
    whole = std::max(whole, first + more);
  }
  // One piece is on all its links at once, beside each link's others on that link alone. Of many, the first may wait at
  // one link and the rest at another.
  out.last = load.at_once ? std::max(out.first, whole) : out.first + rest;
  return out;
}

Loads::Busiest Loads::busiest(std::size_t pattern, std::size_t phase) const {
  Busiest busiest;
  // Of equally busy links the first by number.
  for (std::size_t link = 0; link < links_.size(); ++link) {
    if (used_[place(pattern, phase) + link] == 0) continue;
    const Tally& tally = tallies_[phase * links_.size() + link];
    const Seconds time = Seconds(tally.first_start) + Volume(tally.bytes) / Bandwidth(links_[link].bandwidth) +
                         Seconds(tally.least_latency);
    if (!busiest.link || time > busiest.time) busiest = {links_[link].id, Volume(tally.bytes), time};
  }
  return busiest;
}

bool Loads::shared(std::size_t pattern) const {
  for (std::size_t phase = 0; phase < phases_; ++phase)
    for (std::size_t link = 0; link < links_.size(); ++link)
      if (used_[place(pattern, phase) + link] != 0 && states_[link].shared) return true;
  return false;
}

}  // namespace collcast
