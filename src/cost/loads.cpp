#include "cost/loads.hpp"

#include <algorithm>

namespace collcast {
namespace {

bool may_meet(const Connection& a, const Connection& b) {
  if (a.lane != b.lane || a.from != b.from) return true;
  return a.phase == b.phase && a.to != b.to && (a.pipelined || b.pipelined);
}

}  // namespace

Loads::Loads(const Fabric& fabric, std::size_t patterns)
    : links_(fabric.links()), tallies_(links_.size()), used_(patterns) {
  for (Used& used : used_) {
    used.in_phase.resize(links_.size());
    used.ever.resize(links_.size());
  }
}

void Loads::begin_round() {
  for (const std::uint32_t link : round_list_) tallies_[link].flows = 0;
  round_list_.clear();
}

void Loads::add_flow(std::span<const LinkId> route) {
  for (const LinkId link : route)
    if (++tallies_[link.value()].flows == 1) round_list_.push_back(link.value());
}

Bandwidth Loads::rate(std::span<const LinkId> route) const {
  double least = std::numeric_limits<double>::infinity();
  for (const LinkId link : route)
    least = std::min(least, links_[link.value()].bandwidth.value() / tallies_[link.value()].flows);
  return Bandwidth(least);
}

Seconds Loads::latency(std::span<const LinkId> route) const {
  Seconds sum{};
  for (const LinkId link : route) sum += links_[link.value()].latency;
  return sum;
}

void Loads::use(std::uint32_t link, std::vector<bool>& seen, std::vector<std::uint32_t>& list) {
  if (seen[link]) return;
  seen[link] = true;
  list.push_back(link);
}

void Loads::carry(const Connection& connection, std::span<const LinkId> route, Volume bytes, Seconds start,
                  Seconds latency) {
  Used& used = used_[static_cast<std::size_t>(connection.pattern)];
  for (const LinkId id : route) {
    Tally& tally = tallies_[id.value()];
    tally.first_start = std::min(tally.first_start, start.count());
    tally.least_latency = std::min(tally.least_latency, latency.count());
    tally.bytes += bytes.value();
    if (tally.flows > 1 || (tally.last.pattern >= 0 && may_meet(tally.last, connection))) tally.shared = true;
    tally.last = connection;
    use(id.value(), used.in_phase, used.phase_list);
    use(id.value(), used.ever, used.ever_list);
  }
}

Loads::Busiest Loads::busiest(std::size_t pattern) const {
  Busiest busiest;
  for (const std::uint32_t link : used_[pattern].phase_list) {
    const Tally& tally = tallies_[link];
    const Seconds time =
        Seconds(tally.first_start) + Volume(tally.bytes) / links_[link].bandwidth + Seconds(tally.least_latency);
    if (!busiest.link || time > busiest.time) busiest = {LinkId(link), Volume(tally.bytes), time};
  }
  return busiest;
}

void Loads::end_phase() {
  for (Used& used : used_) {
    for (const std::uint32_t link : used.phase_list) {
      used.in_phase[link] = false;
      tallies_[link].bytes = 0;
      tallies_[link].first_start = std::numeric_limits<double>::infinity();
      tallies_[link].least_latency = std::numeric_limits<double>::infinity();
    }
    used.phase_list.clear();
  }
}

bool Loads::shared(std::size_t pattern) const {
  return std::any_of(used_[pattern].ever_list.begin(), used_[pattern].ever_list.end(),
                     [this](std::uint32_t link) { return tallies_[link].shared; });
}

}  // namespace collcast
