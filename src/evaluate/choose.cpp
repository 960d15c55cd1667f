// Algorithm, channels and chunks by closed form, for one request.
#include <algorithm>

#include "collcast/evaluate/prepared.hpp"
#include "evaluate/candidates.hpp"
#include "evaluate/group_patterns.hpp"

namespace collcast {

Result<std::vector<Choice>> choose(const Fabric& fabric, const CollectiveRequest& request,
                                   const CollectivePolicy& policy) {
  return choose(fabric, request, policy, {});
}

Result<std::vector<Choice>> choose(const Fabric& fabric, const CollectiveRequest& request,
                                   const CollectivePolicy& policy, const GoesOn& goes_on) {
  const Result<std::vector<Candidate>> all = candidates(fabric, request, policy, goes_on);
  if (!all) return all.errors();
  std::vector<Choice> choices;
  for (const Candidate& c : *all) {
    std::optional<Choice> choice = priced(c, request.size, goes_on);
    if (!choice) return ended(request);
    choices.push_back(std::move(*choice));
  }
  std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
    return rounded(a.estimate.total) < rounded(b.estimate.total);
  });
  return choices;
}

Result<Choice> fastest(const Fabric& fabric, const CollectiveRequest& request, const CollectivePolicy& policy) {
  return fastest(fabric, request, policy, {});
}

Result<Choice> fastest(const Fabric& fabric, const CollectiveRequest& request, const CollectivePolicy& policy,
                       const GoesOn& goes_on) {
  const Result<PreparedCollective> prepared = PreparedCollective::make(fabric, request, policy, goes_on);
  if (!prepared) return prepared.errors();
  return prepared->fastest(request.size, goes_on);
}

std::vector<ChunkPoint> chunk_curve(const Fabric& fabric, const CollectiveRequest& request, CollectiveOptions options) {
  if (!wrong_with_ranks(fabric, request).empty()) return {};
  options.chunks = 1;
  Result<std::vector<Pattern>> made = group_patterns(fabric, request, options);
  if (!made) return {};
  std::vector<Pattern> patterns = std::move(made).value();
  const RoutedPatterns routed(fabric, patterns);
  std::vector<ChunkPoint> curve;
  const int most = most_doublings(patterns);
  for (int d = 0; d <= most; ++d) {
    for (Pattern& pattern : patterns) pattern.chunks = 1 << d;
    curve.push_back({1 << d, estimate_first(routed, patterns).total});
  }
  return curve;
}

}  // namespace collcast
