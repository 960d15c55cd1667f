// Whether a run was ended by its watch, or failed by itself.
#pragma once

#include "collcast/engine/engine.hpp"

namespace collcast {

/// The same watch, which sets `ended` where it ends a run; none where there is none. Both must outlive it.
inline EngineWatch telling_end(const EngineWatch& watch, bool& ended) {
  if (!watch) return {};
  return [&watch, &ended](const EngineProgress& now) {
    ended = !watch(now);
    return !ended;
  };
}

}  // namespace collcast
