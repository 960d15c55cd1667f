// How much memory a simulation takes, before it takes it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/schedule/pattern.hpp"
#include "collcast/schedule/programs.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast {

/// About how many bytes the engine has at most at once while it simulates the patterns together, links shared max-min:
/// its state is connections, positions and links, nothing per message. Up to half as much again, or less by a third,
/// where vectors are just about to grow, or have. The work of asking every position once per phase.
Bytes footprint(const Fabric&, std::span<const Pattern>);

/// And where a recurrence answers instead (engine.hpp), to a half likewise: who has each link, the hops of a phase, and
/// two rows of times for each chunk that circulates.
Bytes recurrence_footprint(const Fabric&, const Pattern&);

/// Errors that are none of the input, but of the machine that this runs on: their place.
inline constexpr std::string_view memory_place = "memory";
/// "to simulate WHAT takes about 2 GiB of memory, more than the 1 GiB that there is room for", at memory_place.
Diagnostic lacks_memory(const std::string& what, Bytes needed, Bytes room);
/// That of the patterns at once, or of one that a recurrence answers, where they need more than `room`; else nothing.
/// Less work than footprint() where it is plain that there is room.
std::optional<Diagnostic> lacks_memory(const Fabric&, std::span<const Pattern>, Bytes room);

/// footprint() of programs, with every group at its largest collective at once: more than is taken where groups repeat
/// what they have done, or where collectives of a rank follow each other.
Bytes footprint(const Fabric&, const Programs&);

}  // namespace collcast
