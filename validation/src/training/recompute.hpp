// What a published row's word for recomputation stands for.
#pragma once

#include <string>

#include "collcast/validation/training_table.hpp"
#include "collcast/workload/step.hpp"

namespace collcast {

/// Puts it into the options, and says in `assumed` what is taken besides the row's words. `in` has the row's model,
/// layout and precision. False: the word is not known, or lacks what it needs, which `why` says.
bool put_recomputation(const TrainingRow&, StepInputs& in, std::string& assumed, std::string& why);

}  // namespace collcast
