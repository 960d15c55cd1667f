// Training rows as tests vary them, and the machines that they are put on.
#pragma once

#include <string>

#include "collcast/validation/training.hpp"

namespace collcast::test {

/// The shipped ones.
const ScoredMachines& training_machines();

/// A GPT of 3.6 billion parameters on 64 A100, as several sources have it.
TrainingRow gpt_row();

/// Of the shipped rows, or of the file that follows.
inline const std::string training_command =
    "export COLLCAST_DATA=" + std::string(COLLCAST_SOURCE_DIR) + "; collcast validate --training ";

}  // namespace collcast::test
