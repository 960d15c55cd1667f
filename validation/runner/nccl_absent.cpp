// NCCL where it is not built in: what to do about it.
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
