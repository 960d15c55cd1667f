// A simulated schedule as a Chrome trace (Trace Event format), for Perfetto and chrome://tracing.
#pragma once

#include <iosfwd>

#include "collcast/engine/engine.hpp"

namespace collcast {

/// Process = rank of a stream (one per pipeline stage), thread = stream; one complete event per operation that
/// takes time. Times are microseconds to the nanosecond, rounded so that events which touch do not overlap.
/// Operations without a stream are on threads of their own, as many as they need.
void write_chrome_trace(std::ostream&, const Schedule&, const Timeline&);

}  // namespace collcast
