// Which of several patterns at once can be in each other's way.
#pragma once

#include <vector>

#include "collcast/evaluate/evaluate.hpp"

namespace collcast {

/// The first, and those of the others that share a link with it or with one that is kept. The rest changes neither its
/// closed form nor its simulation: links are all that patterns have in common. Only patterns of one kind are told
/// apart, of as many ranks and equal phases; else all are kept.
std::vector<Pattern> that_meet_the_first(const Fabric&, std::vector<Pattern>);

}  // namespace collcast
