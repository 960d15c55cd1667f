// An order of work gone through turn by turn, without events: a recurrence in (max, +), exact for any times. Each stage
// does its turns one after the other, each link passes the messages of a direction one after the other.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "workload/schedules/pipeline.hpp"

namespace collcast::workload {

/// A pipeline of stages, each with one or more chunks.
struct ChunkedStages {
  int stages = 1, chunks = 1;
  std::vector<StageTime> times;   ///< of chunk c of stage i at [i * chunks + c]
  std::vector<Seconds> transfer;  ///< from stage i to i + 1 and back; interleaved chunks > 1: also from last to first
  bool blocking = false;          ///< messages hold their sender

  StageTime of(int stage, int chunk) const {
    return times[static_cast<std::size_t>(stage) * static_cast<std::size_t>(chunks) + static_cast<std::size_t>(chunk)];
  }
  StageTime of(int stage) const;
};

/// When a stage begins its first turn and ends its last.
struct StageSpan {
  Seconds begin{}, end{};
};
std::vector<StageSpan> stage_spans(PipelineSchedule, const ChunkedStages&, const Orders&);

/// When a turn's message can leave, and when its stage can go on.
struct TurnEnd {
  Seconds sent{}, free{};
};
/// A turn of a stage.
struct TakenTurn {
  int stage = 0;
  Seconds begin{};
  TurnEnd end{};  ///< for the clock to say
};
/// Stages that take each turn together, as they wait for each other in it: all of the same order.
using Team = std::vector<std::size_t>;
/// Of a turn of a team's stages; asked once for each, of a stage in its order.
using TurnClock = std::function<void(const Turn&, std::span<TakenTurn>)>;
/// What a turn takes that nothing slows.
Seconds time_of(const StageTime&, const Turn&);
/// Every stage for itself.
std::vector<Team> each_alone(std::size_t stages);
/// As above, of turns as long as the clock says. Each stage is in one team.
std::vector<StageSpan> stage_spans(PipelineSchedule, const ChunkedStages&, const Orders&, const std::vector<Team>&,
                                   const TurnClock&);

/// What the formula of a schedule and its order say together: `order` of the terms is what the order adds, `ahead` and
/// `later` are by the last turn of a stage and of each of its chunks.
Pipeline with_order(const PipelineTerms& formula, PipelineSchedule, const ChunkedStages&, const Orders&);

}  // namespace collcast::workload
