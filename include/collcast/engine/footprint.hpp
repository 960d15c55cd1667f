// How much memory a simulation takes, before it takes it.
#pragma once

#include <span>

#include "collcast/base/quantity.hpp"
#include "collcast/schedule/pattern.hpp"
#include "collcast/schedule/programs.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast {

/// About how many bytes the engine has at most at once while it simulates the patterns together, links shared max-min:
/// its state is connections, positions and links, nothing per message. Up to half as much again, or less by a third,
/// where vectors are just about to grow, or have. The work of asking every position once per phase.
Bytes footprint(const Fabric&, std::span<const Pattern>);

/// And where a recurrence answers instead (engine.hpp): two rows of times for each chunk that circulates.
Bytes recurrence_footprint(const Pattern&);

/// The same of programs, with every group at its largest collective at once: more than is taken where groups repeat
/// what they have done, or where collectives of a rank follow each other.
Bytes footprint(const Fabric&, const Programs&);

}  // namespace collcast
