#include "sidecar.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collcast/base/units.hpp"
#include "lines.hpp"

namespace collcast {

namespace {

/// Of the rank counts that a bus bandwidth can be of.
std::string range_text(const RankRange& range) {
  return range.least == range.most ? fmt::format("{}", range.least) : fmt::format("{} to {}", range.least, range.most);
}

/// Times are rounded as they are printed; a mean of repetitions lies between the least and the most of them.
const MeasuredPoint* outside_its_spread(const MeasuredTable& table) {
  constexpr double rounding = 0.01;
  const auto outside = [&](const MeasuredPoint& p) {
    const MeasuredFacts::Spread* of = table.spread_of(p);
    return of != nullptr && of->most > Seconds(0) &&
           (p.time < of->least * (1 - rounding) || p.time > of->most * (1 + rounding));
  };
  const auto found = std::find_if(table.points.begin(), table.points.end(), outside);
  return found == table.points.end() ? nullptr : &*found;
}

}  // namespace

std::optional<Diagnostic> sidecar_contradiction(const MeasuredFacts& sidecar, const MeasuredTable& table,
                                                const std::vector<std::string>& kinds, const RankEvidence& evidence) {
  const auto contradicts = [&](const char* key, std::string why) {
    return Diagnostic{sidecar.place_of(key), std::move(why), {}};
  };
  if (std::find(kinds.begin(), kinds.end(), sidecar.collective) == kinds.end())
    return contradicts("collective", fmt::format("its sidecar is of {}, its rows are of {}",
                                                 printable(sidecar.collective), printable(table.facts.collective)));
  const auto range = evidence.rates ? ranks_of_rates(table.facts.collective, *evidence.rates) : std::nullopt;
  if (range && (sidecar.ranks < range->least || sidecar.ranks > range->most))
    return contradicts("nranks", fmt::format("its sidecar says {} ranks, but its bus bandwidths are those of {}",
                                             sidecar.ranks, range_text(*range)));
  const bool any = std::any_of(table.points.begin(), table.points.end(),
                               [](const MeasuredPoint& point) { return point.spread.has_value(); });
  if (!sidecar.spread.empty() && !any && table.facts.collective == sidecar.collective)
    return contradicts("spread", "its sidecar has repetitions of none of its sizes");
  if (const MeasuredPoint* point = outside_its_spread(table))
    return contradicts("spread", fmt::format("its sidecar has repetitions of {} to {} at {}, its row says {}",
                                             format_seconds(table.spread_of(*point)->least),
                                             format_seconds(table.spread_of(*point)->most), format_bytes(point->size),
                                             format_seconds(point->time)));
  return std::nullopt;
}

}  // namespace collcast
