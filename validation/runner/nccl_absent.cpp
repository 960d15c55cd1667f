// NCCL where it is not built in: what to do about it.
#include "collcast/runner/kernels.hpp"
#include "runner/communicator.hpp"

namespace collcast::runner {

Backend nccl_backend() {
  Backend out;
  out.entry.name = "nccl";
  out.entry.what = "NVIDIA GPUs";
  out.entry.lacking = {
      "NCCL is not built in: build where CMake finds cuda.h and nccl.h (CUDA toolkit and libnccl-dev), with "
      "-DCOLLCAST_WITH_NCCL=ON"};
  return out;
}

}  // namespace collcast::runner

namespace collcast {

MeasureOutcome measure_kernels(const KernelsPlan&, const KernelsSink&) {
  MeasureOutcome out;
  out.ending = Ending::lacking;
  out.problems = {
      "kernels of GPUs are not built in: build where CMake finds cuda.h and nccl.h (CUDA toolkit and libnccl-dev), "
      "with "
      "-DCOLLCAST_WITH_NCCL=ON"};
  return out;
}

}  // namespace collcast
