// `collcast validate --kernels`: measured matrix products against their forecasts.
#pragma once

#include <string>
#include <vector>

#include "cli/machine.hpp"
#include "cli/output.hpp"

namespace collcast::cli {

struct KernelArgs {
  std::vector<std::string> paths;  ///< files and folders; empty: the shipped kernel tables
  std::vector<std::string> budgets;
  MachineOptions machine;  ///< topology, and values set in it
  OutputOptions output;
};
Exit run_validate_kernels(const KernelArgs&, const Session&);

}  // namespace collcast::cli
