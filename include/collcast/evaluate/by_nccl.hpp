// NCCL as another library behind the same question: how long does a collective take.
#pragma once

#include <optional>
#include <string>

#include "collcast/evaluate/evaluate.hpp"
#include "collcast/nccl/program.hpp"
#include "collcast/nccl/run.hpp"

namespace collcast {

/// A request's time as NCCL runs it, by closed form; the fabric must outlive it. A run has the links inside a node to
/// itself; of groups alongside that cross nodes each has its share of a node's NICs, where all together want more than
/// there are. May be asked by several threads at once.
CollectiveTime by_nccl(const Fabric&, nccl::Environment = {});

/// The same with the policy's environment, stretched as it says.
CollectiveTime by_nccl(const Fabric&, const CollectivePolicy&);

/// The simulated time of a program, and the link of its machine that has most to carry.
struct NcclSimulation {
  Seconds time{};
  std::optional<LinkId> busiest;  ///< of one as busy, to a hundredth, the machine's own and not a GPU's port or drive
  Seconds load{};                 ///< its bytes by its rate, of one call
};
Result<NcclSimulation> simulate_with_links(const nccl::Program&, const EngineOptions& = {});
/// The time alone.
Result<Seconds> simulate(const nccl::Program&, const EngineOptions& = {});

/// What NCCL takes for the request: "ring LL128", or "p2p Simple".
Result<std::string> nccl_choice(const Fabric&, const CollectiveRequest&, const nccl::Environment&);

}  // namespace collcast
