// What is spelled out, loop by loop and message by message as a Schedule: slow and plain, for comparison.
#pragma once

#include "collcast/schedule/schedule.hpp"
#include "collcast/schedule/spelled_out.hpp"

namespace collcast::test {

/// All that can run: less than all of it where threads wait for each other.
Schedule as_schedule(const SpelledOut&);

}  // namespace collcast::test
