// Where the time of a timeline goes, as one rank sees it.
//
// At every instant the rank is charged to the first of these that is running: compute, optimizer, tp, cp, ep, pp,
// dp; and to the bubble if none is. Communication under computation is therefore hidden and costs nothing.
#pragma once

#include <span>

#include "collcast/engine/engine.hpp"
#include "collcast/workload/faulty_step.hpp"

namespace collcast::workload {

/// Charges [0, timeline.finish) to the operations `ops` by their category; the parts sum to the finish.
Breakdown break_down(const Schedule&, const Timeline&, std::span<const OpId> ops);

/// The time in which none of `ops` is running, by the category of the one that ends it.
RankWaits waits_of(const Schedule&, const Timeline&, std::span<const OpId> ops);

}  // namespace collcast::workload
