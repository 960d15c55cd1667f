// `collcast validate --training`: published training steps against their forecasts.
#pragma once

#include <string>
#include <vector>

#include "cli/machine.hpp"
#include "cli/output.hpp"
#include "cli/patience.hpp"

namespace collcast::cli {

struct TrainingArgs {
  std::vector<std::string> paths;  ///< files and folders; empty: the shipped ones
  std::string library, method;     ///< library empty: nccl
  std::vector<std::string> env, budgets;
  MachineOptions machine;  ///< topology, and values set in it
  OutputOptions output;
};
Exit run_validate_training(const TrainingArgs&, const Patience&, const Session&);

}  // namespace collcast::cli
