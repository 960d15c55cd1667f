// A hop whose links nobody else uses, as the recurrences read it.
#pragma once

#include "collcast/schedule/pattern.hpp"
#include "engine/ticks.hpp"

namespace collcast::engine {

/// One hop with its times; `left` advances as the phase is evaluated.
struct Wire {
  Position from = 0;
  Hop hop;
  Ticks alone = 0, latency = 0;
  Ticks left = 0;
};

}  // namespace collcast::engine
