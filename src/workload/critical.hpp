// The critical path of a simulated step: the chain of operations, each waiting for the one before it, that ends
// last. Only what is on it can make the step shorter.
//
// The chain is cut into visits: what it does on one stage before it goes on to another (a message belongs to its
// sender). Visits that walk along neighbouring stages, and visits or sequences of visits that repeat, are merged
// and counted. Each operation is charged from the end of the one before it, so the charges sum to the step.
#pragma once

#include <span>

#include "collcast/engine/engine.hpp"
#include "collcast/workload/step.hpp"

namespace collcast::workload {

enum class Doing {
  forward,
  backward,
  weights,
  message_on,
  message_back,
  bucket,
  reduction,
  tied,
  optimizer,
  gather,
  task
};
inline constexpr std::size_t doings = static_cast<std::size_t>(Doing::task) + 1;

/// What an operation is part of.
struct Place {
  int stage = 0;
  Doing doing = Doing::task;
  int number = 0;  ///< of the micro-batch, the bucket or the task's operation
  int chunk = -1;  ///< of the stage that a forward or backward is of; -1: it has only one
};

/// `places` by OpId.
CriticalPath critical_path_of(const Schedule&, const Timeline&, std::span<const Place> places);

}  // namespace collcast::workload
