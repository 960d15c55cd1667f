// Programs written out as a Schedule, rank by rank: what the implicit run must equal to the picosecond.
#pragma once

#include <vector>

#include "collcast/schedule/programs.hpp"
#include "collcast/schedule/schedule.hpp"

namespace collcast::test {

struct SpelledPrograms {
  Schedule schedule;
  std::vector<std::vector<std::vector<OpId>>> ops;  ///< by rank, stream and instruction
};
/// `messages`: exchanges message by message too, else as exchanges. Stops if the programs wait for each other.
SpelledPrograms spell_out(const Programs&, bool messages);

}  // namespace collcast::test
