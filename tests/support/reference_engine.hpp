// A plain simulator to hold the engine against: it says what a time means, not how to find it fast.
//
// It knows explicit operations only (an exchange is given to it as append() spells it out), looks at
// every operation at every instant, and shares out all links anew whenever anything starts or ends. It is
// written from engine.hpp and from the arithmetic that src/engine/water_filling.hpp and progress.hpp state, and shares
// no code with the engine; the picoseconds must be equal.
#pragma once

#include "collcast/engine/engine.hpp"

namespace collcast::test {

/// The operations' times, the links' use and the finish; counters stay 0.
Timeline reference_simulate(const Fabric& fabric, const Schedule& schedule, Sharing sharing);

}  // namespace collcast::test
