// What the words of a training table's columns stand for: a scenario's own words, and those of the sources. Words count
// whole; what a row says besides and no input has is told.
#pragma once

#include <optional>
#include <string>

#include "collcast/base/diagnostic.hpp"
#include "collcast/workload/config.hpp"

namespace collcast {

template <class T>
struct Meaning {
  T value{};
  std::string assumed;  ///< where that is not all that the row says
};

/// An unknown word is an error with what is expected.
Result<Meaning<std::string>> precision_of_row(const std::string& cell);
Result<Meaning<int>> zero_of_row(const std::string& cell);
Result<Meaning<PipelineSchedule>> schedule_of_row(const std::string& cell);

/// In small letters: of which kind of training a row is, and whether it names anything that overlaps.
bool known_task(const std::string& text);
bool names_overlap(const std::string& text);

/// How many replicas share a state: 128 of "fsdp128". Not of "fsdp2", which is PyTorch's second FSDP.
std::optional<int> fsdp_ranks(const std::string& cell);

}  // namespace collcast
