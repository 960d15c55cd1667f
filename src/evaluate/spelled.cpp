#include "collcast/evaluate/spelled.hpp"

#include <algorithm>
#include <vector>

namespace collcast {

namespace {

Volume sent(const SpelledOut& spelled, const SpelledThread& thread) {
  double units = 0;
  for (std::uint32_t s = thread.first; s < thread.first + thread.count; ++s)
    if (spelled.steps[s].sends) units += spelled.steps[s].units;
  return spelled.unit * (units * spelled.loops);
}

}  // namespace

Result<Seconds> lower_bound(const Fabric& fabric, const SpelledOut& spelled, const EngineWatch& watch) {
  const Result<Timeline> alone = simulate(fabric, spelled, {.sharing = Sharing::none, .watch = watch});
  if (!alone) return alone.errors();
  std::vector<Volume> loads(fabric.links().size());
  std::vector<LinkId> route;
  for (const SpelledThread& thread : spelled.threads) {
    if (thread.to == SpelledStep::none) continue;
    route.clear();
    fabric.route(thread.rank, spelled.threads[thread.to].rank, thread.lane, route);
    const Volume bytes = sent(spelled, thread);
    for (const LinkId link : route) loads[link.value()] = loads[link.value()] + bytes;
  }
  Seconds out = to_seconds(alone->finish);
  for (std::size_t link = 0; link < loads.size(); ++link)
    out = std::max(out, loads[link] / fabric.links()[link].bandwidth);
  return out;
}

}  // namespace collcast
