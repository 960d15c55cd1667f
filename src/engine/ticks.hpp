// The engine's time inside its loop: whole picoseconds in 64 bits, 106 days.
#pragma once

#include <cstdint>
#include <limits>

#include "collcast/base/quantity.hpp"

namespace collcast::engine {

using Ticks = std::int64_t;

/// Past the end of the clock. An event that falls here is never reached; the run says so instead.
inline constexpr Ticks never = std::numeric_limits<Ticks>::max();

constexpr Ticks later(Ticks now, Ticks delay) { return delay >= never - now ? never : now + delay; }
constexpr Ticks ticks(Seconds s) { return to_picoseconds(s).count(); }

}  // namespace collcast::engine
