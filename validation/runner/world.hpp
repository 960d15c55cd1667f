// One rank of a world that the library itself brings together, such as MPI's.
//
// The library's calls know no deadline and cannot be stopped. So the sweep runs in a thread of its own, which alone
// calls the library, and this one sees that it does not answer within the plan's timeout, that a signal came, or that
// the program that started the rank is gone. Then the thread is left where it is, and the process must end.
#pragma once

#include "runner/communicator.hpp"

namespace collcast::runner {

/// `parent` is a socket to the program that started this rank, or -1.
MeasureOutcome be_joined(const MeasurePlan&, const Backend&, const Membership&, const MeasureSink&, int parent);

}  // namespace collcast::runner
