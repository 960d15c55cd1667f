// Simulation of Programs: every rank for itself, every collective message by message, in one run.
//
// The same engine as of a Schedule (engine.hpp), with the same rules for links. An exchange exists from its first
// participant's arrival to its last one's departure, so that memory is that of what goes on at once: nothing is
// stored for the messages and exchanges to come, whatever the number of ranks and instructions.
#pragma once

#include <vector>

#include "collcast/engine/engine.hpp"
#include "collcast/schedule/programs.hpp"

namespace collcast {

/// Of the ranks of one program.
struct ProgramTimes {
  int ranks = 0;
  SimTime first_end{}, last_end{};    ///< of the first streams' ends
  std::vector<Picoseconds> accounts;  ///< instructions of the first streams, by account, summed over the ranks
};

struct ProgramsTimeline {
  std::vector<ProgramTimes> programs;
  std::vector<LinkUse> links;  ///< by LinkId
  SimTime finish{};
  EngineCounters counters;
  std::int64_t exchanges = 0;
};

/// Fails as the run of a Schedule does, and where programs wait for each other, naming ranks and what they wait for.
Result<ProgramsTimeline> simulate(const Fabric&, const Programs&, const EngineOptions& = {});

}  // namespace collcast
