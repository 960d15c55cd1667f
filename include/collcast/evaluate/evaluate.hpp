// One question, two answers: how long does a collective take, by closed form or by simulation.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "collcast/collective/collective.hpp"
#include "collcast/cost/estimate.hpp"
#include "collcast/engine/engine.hpp"

namespace collcast {

/// How collectives are run when nobody names the algorithm each time.
struct CollectivePolicy {
  std::string algorithm = "auto";  ///< or a name of algorithms(); auto: the fastest closed form
  int chunks = 0;                  ///< 0: the smallest power of two within 1 % of 4096 chunks' closed form
  int channels = 0;                ///< 0: one per NIC of a node for groups across nodes, if that helps the algorithm
};

struct Choice {
  CollectiveOptions options;
  Pattern pattern;
  Estimate estimate;
};

/// Fills `node_of` and channels from the fabric, picks algorithm and chunks by closed form. Candidates are
/// ordered fastest first; the runner-up is [1]. `auto` passes over algorithms with more than four million
/// hops (every-to-every beyond 2048 ranks) where another can do it. Fails as make_pattern does.
Result<std::vector<Choice>> choose(const Fabric&, const CollectiveRequest&, const CollectivePolicy&);

/// The closed form over numbers of chunks, 1, 2, 4 ... 4096. The model has no cost per message, so more chunks
/// never hurt it; `chunks = 0` takes the fewest within 1 % of the last. Empty where make_pattern fails.
struct ChunkPoint {
  int chunks = 1;
  Seconds time{};
};
std::vector<ChunkPoint> chunk_curve(const Fabric&, const CollectiveRequest&, CollectiveOptions);

/// The simulated time of each pattern, all at once from time 0.
Result<std::vector<Seconds>> simulate_together(const Fabric&, std::span<const Pattern>, const EngineOptions& = {});

/// A request's time; the fabric must outlive it. A group of one or zero bytes takes no time.
using CollectiveTime = std::function<Result<Seconds>(const CollectiveRequest&)>;
CollectiveTime by_estimate(const Fabric&, CollectivePolicy);
CollectiveTime by_simulation(const Fabric&, CollectivePolicy, EngineOptions = {});
/// Remembers answers by (kind, group, size, root, groups alongside). Not for several threads at once.
CollectiveTime memoized(CollectiveTime);

}  // namespace collcast
