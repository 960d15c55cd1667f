// A pattern's time while others run, where they are not in its way.
#pragma once

#include <optional>
#include <span>

#include "collcast/engine/engine.hpp"

namespace collcast {

/// As `recurrence`, while `others` run at the same time: they change nothing unless they might use a link of the
/// pattern's. Then there is nothing, and the simulation of all has to say.
std::optional<Recurrence> recurrence_beside(const Fabric&, const Pattern&, std::span<const Pattern> others,
                                            const EngineWatch& = {});

}  // namespace collcast
