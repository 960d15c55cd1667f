#include "collcast/evaluate/prepared.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "evaluate/candidates.hpp"
#include "evaluate/group_patterns.hpp"

namespace collcast {

PreparedCollective::PreparedCollective(std::vector<Candidate> candidates)
    : candidates_(std::make_shared<const std::vector<Candidate>>(std::move(candidates))) {}

Result<PreparedCollective> PreparedCollective::make(const Fabric& fabric, const CollectiveRequest& request,
                                                    const CollectivePolicy& policy) {
  return make(fabric, request, policy, {});
}

Result<PreparedCollective> PreparedCollective::make(const Fabric& fabric, const CollectiveRequest& request,
                                                    const CollectivePolicy& policy, const GoesOn& goes_on) {
  Result<std::vector<Candidate>> found = candidates(fabric, request, policy, goes_on);
  if (!found) return found.errors();
  std::vector<Candidate> all = std::move(found).value();
  for (Candidate& c : all) {
    if (all.size() == 1 && !c.choose_chunks) break;
    if (goes_on && !goes_on()) return ended(request);
    c.least = least_time(*c.routed, c.patterns);
  }
  return PreparedCollective(std::move(all));
}

Choice PreparedCollective::fastest(Bytes size) const { return fastest(size, {}).value(); }

Result<Choice> PreparedCollective::fastest(Bytes size, const GoesOn& goes_on) const {
  const std::vector<Candidate>& all = *candidates_;
  std::vector<Seconds> floors;
  for (const Candidate& c : all) floors.push_back(c.at_least(size));
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return floors[a] < floors[b]; });
  std::optional<Choice> best;
  std::size_t best_place = 0;
  for (const std::size_t i : order) {
    const double floor = rounded(floors[i]), beaten = best ? rounded(best->estimate.total) : 0;
    if (best && floor > beaten) break;
    if (best && floor == beaten && i > best_place) continue;  // no quicker, and named later
    std::optional<Choice> looked_at = priced(all[i], size, goes_on);
    if (!looked_at) return ended({all[i].kind, all[i].patterns.front().group, size, 0, {}});
    Choice choice = std::move(*looked_at);
    // Of equal times the one that the catalogue names first, as choose() has it.
    const double time = rounded(choice.estimate.total), least = best ? rounded(best->estimate.total) : 0;
    if (best && (time > least || (time == least && i > best_place))) continue;
    best = std::move(choice);
    best_place = i;
  }
  return std::move(*best);
}

std::vector<std::string> PreparedCollective::algorithms() const {
  std::vector<std::string> names;
  for (const Candidate& c : *candidates_) names.push_back(c.options.algorithm);
  return names;
}

Choice PreparedCollective::price(std::size_t algorithm, Bytes size) const { return price(algorithm, size, {}).value(); }

Result<Choice> PreparedCollective::price(std::size_t algorithm, Bytes size, const GoesOn& goes_on) const {
  const Candidate& c = (*candidates_)[algorithm];
  std::optional<Choice> out = priced(c, size, goes_on);
  if (!out) return ended({c.kind, c.patterns.front().group, size, 0, {}});
  return std::move(*out);
}

Seconds PreparedCollective::at_least(std::size_t algorithm, Bytes size) const {
  return (*candidates_)[algorithm].at_least(size);
}

int PreparedCollective::lanes() const {
  int lanes = 1;
  for (const Candidate& c : *candidates_)
    for (const Pattern& pattern : c.patterns)
      for (const Lane& lane : pattern.lanes) lanes = std::max(lanes, lane.route_lane + 1);
  return lanes;
}

std::size_t PreparedCollective::crossings() const {
  std::size_t sum = 0;
  for (const Candidate& c : *candidates_) sum += c.routed->crossings();
  return sum;
}

}  // namespace collcast
