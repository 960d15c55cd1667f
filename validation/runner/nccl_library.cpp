#include "runner/nccl_library.hpp"

#include <fmt/format.h>

#include <dlfcn.h>

namespace collcast::runner {

namespace {

/// The functions of one library. Opened for the life of the process: neither library can be unloaded safely.
class Opened {
 public:
  Opened(const char* file, std::vector<std::string>& lacking, const std::string& remedy)
      : file_(file), handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)), lacking_(lacking) {
    if (handle_ == nullptr) lacking_.push_back(fmt::format("{} cannot be opened: {}", file, remedy));
  }

  bool is_open() const { return handle_ != nullptr; }

  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
    if (function == nullptr) lacking_.push_back(fmt::format("{} is too old: it has no {}", file_, name));
  }

 private:
  const char* file_;
  void* handle_;
  std::vector<std::string>& lacking_;
};

// The name that the header's macro stands for, such as cuMemAlloc_v2.
#define COLLCAST_TEXT(x) #x
#define COLLCAST_NAME(x) COLLCAST_TEXT(x)
#define COLLCAST_FIND(member, function) library.find(member, COLLCAST_NAME(function))

void find_functions(Opened& library, CudaFunctions& f) {
  COLLCAST_FIND(f.init, cuInit);
  COLLCAST_FIND(f.error_string, cuGetErrorString);
  COLLCAST_FIND(f.device_count, cuDeviceGetCount);
  COLLCAST_FIND(f.device, cuDeviceGet);
  COLLCAST_FIND(f.device_name, cuDeviceGetName);
  COLLCAST_FIND(f.retain_context, cuDevicePrimaryCtxRetain);
  COLLCAST_FIND(f.set_context, cuCtxSetCurrent);
  COLLCAST_FIND(f.synchronize, cuCtxSynchronize);
  COLLCAST_FIND(f.allocate, cuMemAlloc);
  COLLCAST_FIND(f.free, cuMemFree);
  COLLCAST_FIND(f.copy_in, cuMemcpyHtoD);
  COLLCAST_FIND(f.copy_out, cuMemcpyDtoH);
  COLLCAST_FIND(f.copy, cuMemcpyDtoDAsync);
  COLLCAST_FIND(f.fill, cuMemsetD8Async);
  COLLCAST_FIND(f.create_stream, cuStreamCreate);
  COLLCAST_FIND(f.query_stream, cuStreamQuery);
  COLLCAST_FIND(f.begin_capture, cuStreamBeginCapture);
  COLLCAST_FIND(f.end_capture, cuStreamEndCapture);
  COLLCAST_FIND(f.instantiate, cuGraphInstantiateWithFlags);
  COLLCAST_FIND(f.launch, cuGraphLaunch);
  COLLCAST_FIND(f.destroy_executable, cuGraphExecDestroy);
  COLLCAST_FIND(f.destroy_graph, cuGraphDestroy);
  COLLCAST_FIND(f.create_event, cuEventCreate);
  COLLCAST_FIND(f.record, cuEventRecord);
  COLLCAST_FIND(f.wait, cuEventSynchronize);
  library.find(f.elapsed, "cuEventElapsedTime");
}

void find_functions(Opened& library, NcclFunctions& f) {
  COLLCAST_FIND(f.version, ncclGetVersion);
  COLLCAST_FIND(f.error_string, ncclGetErrorString);
  COLLCAST_FIND(f.last_error, ncclGetLastError);
  COLLCAST_FIND(f.unique_id, ncclGetUniqueId);
  COLLCAST_FIND(f.init_rank, ncclCommInitRank);
  COLLCAST_FIND(f.destroy, ncclCommDestroy);
  COLLCAST_FIND(f.abort, ncclCommAbort);
  COLLCAST_FIND(f.async_error, ncclCommGetAsyncError);
  COLLCAST_FIND(f.group_start, ncclGroupStart);
  COLLCAST_FIND(f.group_end, ncclGroupEnd);
  COLLCAST_FIND(f.all_reduce, ncclAllReduce);
  COLLCAST_FIND(f.broadcast, ncclBroadcast);
  COLLCAST_FIND(f.reduce, ncclReduce);
  COLLCAST_FIND(f.all_gather, ncclAllGather);
  COLLCAST_FIND(f.reduce_scatter, ncclReduceScatter);
  COLLCAST_FIND(f.send, ncclSend);
  COLLCAST_FIND(f.recv, ncclRecv);
}

#undef COLLCAST_FIND
#undef COLLCAST_NAME
#undef COLLCAST_TEXT

std::string error_text(const CudaFunctions& cuda, CUresult result) {
  const char* text = nullptr;
  cuda.error_string(result, &text);
  return text == nullptr ? fmt::format("error {}", static_cast<int>(result)) : text;
}

}  // namespace

NvidiaDriver open_nvidia_driver() {
  NvidiaDriver out;
  Opened driver("libcuda.so.1", out.lacking, "no NVIDIA driver here; it comes with the driver of a GPU");
  if (driver.is_open()) find_functions(driver, out.cuda);
  if (driver.is_open() && out.lacking.empty()) {
    CUresult result = out.cuda.init(0);
    if (result == CUDA_SUCCESS) result = out.cuda.device_count(&out.devices);
    if (result != CUDA_SUCCESS) {
      out.lacking.push_back(fmt::format("no usable NVIDIA GPU: {}", error_text(out.cuda, result)));
    } else if (out.devices == 0) {
      out.lacking.emplace_back("no NVIDIA GPU: the driver sees no device");
    }
  }
  return out;
}

NvidiaLibraries open_nvidia_libraries() {
  const NvidiaDriver driver = open_nvidia_driver();
  NvidiaLibraries out;
  out.cuda = driver.cuda;
  out.devices = driver.devices;
  out.lacking = driver.lacking;
  Opened library(
      "libnccl.so.2", out.lacking,
      "NCCL is not installed where the loader looks; install libnccl2 or name its folder in LD_LIBRARY_PATH");
  if (library.is_open()) {
    find_functions(library, out.nccl);
    if (out.nccl.version != nullptr) out.nccl.version(&out.nccl_version);
  }
  return out;
}

std::string nccl_version_text(int code) {
  if (code < 10000) return fmt::format("{}.{}.{}", code / 1000, code / 100 % 10, code % 100);
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

}  // namespace collcast::runner
