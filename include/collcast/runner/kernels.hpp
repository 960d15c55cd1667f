// Times single kernels on a GPU here: what `collcast measure kernels` calls.
//
// Matrix products by cuBLAS, copies and fills by the driver, each some calls back to back between two events of the
// GPU's clock. Opened when used, like NCCL (docs/decisions/0010-lazy-nccl.md).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collcast/report/measured_kernels.hpp"
#include "collcast/runner/runner.hpp"

namespace collcast {

struct KernelsPlan {
  std::vector<KernelCase> cases;
  int device = 0;
  int warmup = 3;  ///< calls before the clock runs
  int repetitions = 20;
};

struct KernelsSink {
  std::function<void(const KernelsMeasured&)> system;  ///< device, driver and library are known
  std::function<void(const KernelCase&)> begin;
  std::function<bool(const MeasuredKernel&)> row;  ///< a case is done; false: stop
  std::function<void(const std::string&)> note;    ///< what was left out, and why
};

/// In the order of the plan. What does not fit the GPU's memory is left out with a note. Lacking: no driver, no such
/// device, no cuBLAS where products are asked for.
MeasureOutcome measure_kernels(const KernelsPlan&, const KernelsSink&);

}  // namespace collcast
