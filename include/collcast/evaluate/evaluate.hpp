// One question, three answers: how long does a collective take, by closed form, by simulation, or by NCCL's own model
// (by_nccl.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "collcast/collective/collective.hpp"
#include "collcast/cost/estimate.hpp"
#include "collcast/engine/engine.hpp"
#include "collcast/evaluate/library.hpp"
#include "collcast/nccl/environment.hpp"

namespace collcast {

/// The sizes that errors are told apart by: 0 below 64 KiB, 1 to 4 MiB, 2 above.
constexpr std::size_t size_band(Bytes size) {
  if (size < Bytes(64 << 10)) return 0;
  return size <= Bytes(4 << 20) ? 1 : 2;
}

/// How collectives are run when nobody names the algorithm each time.
struct CollectivePolicy {
  std::string algorithm = "auto";    ///< or a name of algorithms(); auto: the fastest closed form
  int chunks = 0;                    ///< 0: the smallest power of two within 1 % of the most (4096, or one per byte)
  int channels = 0;                  ///< 0: one per NIC of a node for groups across nodes, if that helps the algorithm
  Seconds base_latency{};            ///< of a calibration: in front of every collective that by_... prices
  Library library = Library::ideal;  ///< nccl: the above does not count, by_... answer as by_nccl does
  nccl::Environment environment{};   ///< of library nccl
  /// What becomes of a price of either library, by size_band(). Not 1 where it is asked what a step takes if all
  /// collectives are as far from their forecasts as a calibration has seen some.
  std::array<double, 3> stretch{1, 1, 1};

  /// Whether anything is fixed that only library ideal leaves to its user.
  bool names_algorithm() const { return algorithm != "auto" || chunks > 0 || channels > 0; }
  Seconds stretched(Bytes size, Seconds price) const { return price * stretch[size_band(size)]; }
};

struct Choice {
  CollectiveOptions options;
  Pattern pattern;
  Estimate estimate;
  std::optional<Seconds> simulated;  ///< by prefer_simulated

  Seconds time() const { return simulated.value_or(estimate.total); }
};

/// Fills `node_of` and channels from the fabric, picks algorithm and chunks by closed form. Candidates are ordered
/// fastest first; the runner-up is [1]. `auto` passes over algorithms whose hops cross more than eight million links
/// (every-to-every beyond 2048 ranks on a star) where another can do it. Fails as make_pattern does, and for the work
/// of more than 268 million links (every-to-every beyond 11585 ranks on a star; hops that wait and chunks tried add to
/// it).
Result<std::vector<Choice>> choose(const Fabric&, const CollectiveRequest&, const CollectivePolicy&);

/// The same; fails, too, when it is ended.
Result<std::vector<Choice>> choose(const Fabric&, const CollectiveRequest&, const CollectivePolicy&, const GoesOn&);

/// choose()'s first alone, at a fraction of the work: what cannot come below the best so far, because of the bytes over
/// its busiest link, is not looked at.
Result<Choice> fastest(const Fabric&, const CollectiveRequest&, const CollectivePolicy&);
/// The same; fails, too, when it is ended.
Result<Choice> fastest(const Fabric&, const CollectiveRequest&, const CollectivePolicy&, const GoesOn&);

/// Where the closed form is approximate it cannot tell near candidates apart: simulates those of `choices` (as of
/// choose) that are approximate, of at most two million messages and within the engine's memory, from the first to the
/// last whose estimate is within 25 % of the best or below the best simulated time so far, and orders these by the
/// simulated time, else by the estimate. A lone candidate, or one that is exact and far ahead, is not simulated.
Diagnostics prefer_simulated(const Fabric&, std::vector<Choice>& choices, const EngineOptions& = {});

/// The closed form over numbers of chunks, 1, 2, 4 ... 4096 or one per byte. The model has no cost per message, so more
/// chunks never hurt it; `chunks = 0` takes the fewest within 1 % of the last. Empty where make_pattern fails.
struct ChunkPoint {
  int chunks = 1;
  Seconds time{};
};
std::vector<ChunkPoint> chunk_curve(const Fabric&, const CollectiveRequest&, CollectiveOptions);

struct SimulatedTime {
  Seconds time{};
  std::int64_t messages = 0;
  std::int64_t stepped = 0;  ///< of these, worked out one by one; the rest follow from a steady state, or do the same
  /// Where ranks are folded: positions of all lanes, and classes of them that do the same. 0: each is for itself.
  std::int64_t positions = 0, classes = 0;
};
/// The simulated time of one pattern alone from time 0. Where no link is ever used by two messages at once it is worked
/// out by recurrence, to the picosecond the same and without events; else by the engine, of ranks that do the same one.
/// Fails as `simulate` does.
Result<SimulatedTime> simulated_time(const Fabric&, const Pattern&, const EngineOptions& = {});

/// Several patterns at once from time 0: the simulated time of each, and what they did to the links.
struct Together {
  std::vector<Seconds> times;
  Timeline timeline;
};
Result<Together> simulate_together(const Fabric&, std::span<const Pattern>, const EngineOptions& = {});

/// A request's time; the fabric must outlive it. A group of one or zero bytes takes no time.
using CollectiveTime = std::function<Result<Seconds>(const CollectiveRequest&)>;
CollectiveTime by_estimate(const Fabric&, CollectivePolicy);
CollectiveTime by_simulation(const Fabric&, CollectivePolicy, EngineOptions = {});
/// Remembers answers by (kind, group, size, root, groups alongside), for several threads at once where what is
/// remembered is; they may ask the same before it is answered.
CollectiveTime memoized(CollectiveTime);

}  // namespace collcast
