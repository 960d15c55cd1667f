// What is thrown while a rank measures, as the outcome that its process reports.
#pragma once

#include <fmt/format.h>

#include "runner/communicator.hpp"

namespace collcast::runner {

/// True where a rank did not come to the end of its sweep.
inline bool went_off(const MeasureOutcome& outcome) {
  return outcome.ending != Ending::finished && outcome.ending != Ending::wrong;
}

/// What `measuring` returns, or why it did not.
template <class F>
MeasureOutcome outcome_of(F&& measuring) {
  try {
    return measuring();
  } catch (const Broken& broken) {
    // Whoever asked to stop knows why.
    if (broken.ending == Ending::stopped) return {broken.ending, {}, 0};
    return {broken.ending, {broken.what()}, 0, broken.library_busy};
  } catch (const std::exception& error) {
    // Of what no layer below expected: better a message than a rank that aborts.
    return {Ending::broken, {fmt::format("unexpected failure: {}", error.what())}, 0};
  }
}

}  // namespace collcast::runner
