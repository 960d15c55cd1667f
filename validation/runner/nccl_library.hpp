// The NVIDIA driver and NCCL, opened when they are first needed.
//
// Nothing of NVIDIA's is linked: the program starts on machines that have none of it, and says what is missing
// (docs/decisions/0010-lazy-nccl.md). Streams, events, memory and graphs come from the driver's own interface,
// whose functions are versioned by name; the CUDA runtime library is not needed.
#pragma once

#include <cuda.h>
#include <memory>
#include <nccl.h>
#include <string>
#include <vector>

#include "collcast/report/measured.hpp"

namespace collcast::runner {

/// The driver's functions, under the version that cuda.h means.
struct CudaFunctions {
  decltype(&cuInit) init = nullptr;
  decltype(&cuGetErrorString) error_string = nullptr;
  decltype(&cuDeviceGetCount) device_count = nullptr;
  decltype(&cuDeviceGet) device = nullptr;
  decltype(&cuDeviceGetName) device_name = nullptr;
  decltype(&cuDevicePrimaryCtxRetain) retain_context = nullptr;
  decltype(&cuCtxSetCurrent) set_context = nullptr;
  decltype(&cuCtxSynchronize) synchronize = nullptr;
  decltype(&cuMemAlloc) allocate = nullptr;
  decltype(&cuMemFree) free = nullptr;
  decltype(&cuMemcpyHtoD) copy_in = nullptr;
  decltype(&cuMemcpyDtoH) copy_out = nullptr;
  decltype(&cuMemcpyDtoDAsync) copy = nullptr;  ///< on the device
  decltype(&cuMemsetD8Async) fill = nullptr;
  decltype(&cuStreamCreate) create_stream = nullptr;
  decltype(&cuStreamQuery) query_stream = nullptr;
  decltype(&cuStreamBeginCapture) begin_capture = nullptr;
  decltype(&cuStreamEndCapture) end_capture = nullptr;
  decltype(&cuGraphInstantiateWithFlags) instantiate = nullptr;
  decltype(&cuGraphLaunch) launch = nullptr;
  decltype(&cuGraphExecDestroy) destroy_executable = nullptr;
  decltype(&cuGraphDestroy) destroy_graph = nullptr;
  decltype(&cuEventCreate) create_event = nullptr;
  decltype(&cuEventRecord) record = nullptr;
  decltype(&cuEventSynchronize) wait = nullptr;
  /// By hand: newer headers rename it to a version that older drivers lack.
  CUresult (*elapsed)(float* milliseconds, CUevent start, CUevent end) = nullptr;
};

struct NcclFunctions {
  decltype(&ncclGetVersion) version = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
  decltype(&ncclGetUniqueId) unique_id = nullptr;
  decltype(&ncclCommInitRank) init_rank = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclCommGetAsyncError) async_error = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclReduce) reduce = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
};

struct NvidiaLibraries {
  CudaFunctions cuda;
  NcclFunctions nccl;
  int devices = 0;
  int nccl_version = 0;              ///< as ncclGetVersion codes it
  std::vector<std::string> lacking;  ///< where not empty, the rest may not be called
};
/// The driver alone, initialised.
struct NvidiaDriver {
  CudaFunctions cuda;
  int devices = 0;
  std::vector<std::string> lacking;  ///< as NvidiaLibraries'
};
NvidiaDriver open_nvidia_driver();
/// Opens both and initialises the driver. After this the process must not fork ranks: CUDA does not survive it.
NvidiaLibraries open_nvidia_libraries();

/// The same question without that: asked by a process of its own, for `version`, `devices` and `lacking`.
void look_for_gpus(BackendEntry&);

/// "2.28.9" of 22809, "2.8.4" of 2804 (before 2.9 the code had one digit less).
std::string nccl_version_text(int code);

}  // namespace collcast::runner
