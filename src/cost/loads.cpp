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

Loads::Loads(const Fabric& fabric, std::size_t watched, std::size_t phases)
    : links_(fabric.links()),
      states_(links_.size()),
      tallies_(phases, std::vector<Tally>(links_.size())),
      phases_(phases),
      used_(watched * phases, Used{std::vector<bool>(links_.size()), {}}) {}

void Loads::announce(std::span<const LinkId> route, double moment, Volume chunk, double duty) {
  if (crossings_.empty()) crossings_.resize(links_.size());
  for (const LinkId link : route) crossings_[link.value()].add(moment, chunk.value(), duty);
}

void Loads::close_announcements() {
  for (Crossings& crossings : crossings_) crossings.close();
}

void Loads::begin_moment() {
  for (const std::uint32_t link : of_moment_) {
    states_[link].bytes = 0;
    states_[link].hops = 0;
  }
  of_moment_.clear();
}

void Loads::add(const Connection& connection, std::span<const LinkId> route, const Load& load, double start) {
  const double way = latency(route).count();
  const double bytes = load.chunk.value() * load.chunks * load.repeats;
  const double key = load.whole ? moment(start) : 0;
  if (load.whole && backlogs_.empty()) backlogs_.resize(links_.size());
  std::vector<Tally>& tallies = tallies_[static_cast<std::size_t>(connection.phase)];
  const std::size_t of =
      static_cast<std::size_t>(connection.pattern) * phases_ + static_cast<std::size_t>(connection.phase);
  Used* used = of < used_.size() ? &used_[of] : nullptr;
  for (const LinkId id : route) {
    Tally& tally = tallies[id.value()];
    tally.first_start = std::min(tally.first_start, start);
    tally.least_latency = std::min(tally.least_latency, way);
    tally.bytes += bytes;
    if (used != nullptr && !used->is[id.value()]) {
      used->is[id.value()] = true;
      used->list.push_back(id.value());
    }
    State& state = states_[id.value()];
    if (++state.hops == 1) of_moment_.push_back(id.value());
    state.bytes += load.chunk.value();
    state.busy_until = std::max(state.busy_until, start) + bytes / links_[id.value()].bandwidth.value();
    state.pieces = state.pieces || !load.whole;
    if (load.whole) backlogs_[id.value()].add(key, start, bytes, links_[id.value()].bandwidth.value());
    if (state.last.pattern >= 0 && may_meet(state.last, connection)) state.shared = true;
    state.last = connection;
  }
}

Loads::Spell Loads::spell(std::span<const LinkId> route, double moment, const Load& load, double start) {
  Spell out;
  const double key = load.whole ? collcast::moment(start) : 0;
  const double pace = alone(route, load.chunk), own = load.chunk.value();
  double rest = 0;
  for (const LinkId id : route) {
    const double bandwidth = links_[id.value()].bandwidth.value();
    const State& state = states_[id.value()];
    Crossings::Others others;
    if (!crossings_.empty()) others = crossings_[id.value()].beside(moment, own, pace, load.chunks);
    const double same = std::min(state.bytes - own, (state.hops - 1) * own);
    const double backlog = std::max(0.0, (state.busy_until - start) * bandwidth - load.chunks * own);
    out.first = std::max(out.first, (own + std::min(same + others.begun, backlog)) / bandwidth);
    // By fair shares whoever is no larger and came before is through before this one, whatever had delayed it.
    if (load.whole && !state.pieces && backlogs_[id.value()].largest() <= own)
      out.first = std::max(out.first, backlogs_[id.value()].at(key, start, bandwidth) / bandwidth);
    rest = std::max(rest, ((load.chunks - 1) * (own + same) + others.earlier + others.later) / bandwidth);
  }
  out.last = out.first + rest;
  return out;
}

Seconds Loads::latency(std::span<const LinkId> route) const {
  Seconds sum{};
  for (const LinkId link : route) sum += links_[link.value()].latency;
  return sum;
}

double Loads::alone(std::span<const LinkId> route, Volume chunk) const {
  double longest = 0;
  for (const LinkId link : route) longest = std::max(longest, (chunk / links_[link.value()].bandwidth).count());
  return longest;
}

Loads::Busiest Loads::busiest(std::size_t pattern, std::size_t phase) const {
  Busiest busiest;
  // Of equally busy links the first by number.
  std::vector<std::uint32_t> list = used(pattern, phase).list;
  std::sort(list.begin(), list.end());
  for (const std::uint32_t link : list) {
    const Tally& tally = tallies_[phase][link];
    const Seconds time =
        Seconds(tally.first_start) + Volume(tally.bytes) / links_[link].bandwidth + Seconds(tally.least_latency);
    if (!busiest.link || time > busiest.time) busiest = {LinkId(link), Volume(tally.bytes), time};
  }
  return busiest;
}

bool Loads::shared(std::size_t pattern) const {
  for (std::size_t phase = 0; phase < phases_; ++phase)
    for (const std::uint32_t link : used(pattern, phase).list)
      if (states_[link].shared) return true;
  return false;
}

}  // namespace collcast
