// Between candidates that the closed form cannot tell apart, the simulation decides.
#include <algorithm>
#include <optional>

#include "collcast/engine/footprint.hpp"
#include "evaluate/group_patterns.hpp"

namespace collcast {
namespace {

/// Nine in ten estimates on shared links are nearer (docs/models.md).
constexpr double band = 1.25;
/// A second or so of simulation each.
constexpr std::int64_t most_messages = 2'000'000;

}  // namespace

Diagnostics prefer_simulated(const Fabric& fabric, std::vector<Choice>& choices, const EngineOptions& engine) {
  if (choices.size() < 2) return {};
  const Seconds near = choices.front().estimate.total * band;
  std::optional<Seconds> best;  // of those that were looked at
  auto end = choices.begin();
  for (; end != choices.end() && end->estimate.total <= std::max(near, best.value_or(near)); ++end) {
    const auto fits = [&] { return !lacks_memory(fabric, {&end->pattern, 1}, engine.memory); };
    if (!end->estimate.exact() && traffic(end->pattern).messages <= most_messages && fits()) {
      const Result<SimulatedTime> run = simulated_time(fabric, end->pattern, engine);
      if (!run) return run.errors();
      end->simulated = run->time;
    }
    best = std::min(best.value_or(end->time()), end->time());
  }
  std::stable_sort(choices.begin(), end,
                   [](const Choice& a, const Choice& b) { return rounded(a.time()) < rounded(b.time()); });
  return {};
}

}  // namespace collcast
