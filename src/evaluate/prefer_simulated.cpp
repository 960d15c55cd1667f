// Between candidates that the closed form cannot tell apart, the simulation decides.
#include <algorithm>

#include "collcast/evaluate/evaluate.hpp"

namespace collcast {
namespace {

/// Nine in ten estimates on shared links are nearer, all but those of naive exchanges (docs/models.md).
constexpr double band = 1.25;
/// A second or so of simulation each.
constexpr std::int64_t most_messages = 2'000'000;

double rounded(Seconds time) { return static_cast<double>(static_cast<float>(time.count())); }

}  // namespace

Diagnostics prefer_simulated(const Fabric& fabric, std::vector<Choice>& choices, const EngineOptions& engine) {
  if (choices.size() < 2) return {};
  const Seconds limit = choices.front().estimate.total * band;
  auto end = choices.begin();
  while (end != choices.end() && end->estimate.total <= limit) ++end;
  if (end - choices.begin() < 2) return {};
  for (auto choice = choices.begin(); choice != end; ++choice) {
    if (choice->estimate.exact() || traffic(choice->pattern).messages > most_messages) continue;
    const Result<Timeline> timeline = simulate(fabric, choice->pattern, engine);
    if (!timeline) return timeline.errors();
    choice->simulated = to_seconds(timeline->finish);
  }
  std::stable_sort(choices.begin(), end,
                   [](const Choice& a, const Choice& b) { return rounded(a.time()) < rounded(b.time()); });
  return {};
}

}  // namespace collcast
