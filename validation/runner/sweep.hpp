// The measurement itself: every kind, size and placement, on one process of the group.
//
// Per size: buffers are filled, a few calls warm up, then each repetition begins with a barrier and is timed on
// every process; the slowest counts. After that the buffers are filled again, the collective runs once more and
// every rank compares what it got. All processes go through the same steps, so they meet in every barrier.
#pragma once

#include "collcast/runner/runner.hpp"
#include "runner/communicator.hpp"

namespace collcast::runner {

/// Throws Broken where the library does.
MeasureOutcome sweep(const MeasurePlan&, const Backend&, Communicator&, int ranks, const MeasureSink&);

}  // namespace collcast::runner
