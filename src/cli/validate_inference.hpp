// `collcast validate --inference`: measured servers against their forecasts.
#pragma once

#include <string>
#include <vector>

#include "cli/machine.hpp"
#include "cli/output.hpp"
#include "cli/patience.hpp"

namespace collcast::cli {

struct InferenceArgs {
  std::vector<std::string> paths;  ///< files and folders; empty: the shipped table
  std::string library;             ///< empty: nccl
  std::vector<std::string> env, budgets;
  MachineOptions machine;  ///< topology, and values set in it
  OutputOptions output;
};
Exit run_validate_inference(const InferenceArgs&, const Patience&, const Session&);

}  // namespace collcast::cli
