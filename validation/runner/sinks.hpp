// Where a rank's rows go when it is not the one that shows them.
#pragma once

#include <functional>

#include "runner/messages.hpp"

namespace collcast::runner {

/// Writes a frame to the process that started this rank. One that is gone takes its ranks with it, so failure needs no
/// answer.
void tell(int pipe, const Message&);
MeasureSink sink_into(int pipe);
MeasureSink silent_sink();

}  // namespace collcast::runner
