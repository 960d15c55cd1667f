// Single kernels on one GPU: products by cuBLAS, copies and fills by the driver.
//
// A repetition is some calls back to back between two events; enough of them that the GPU's clock, half a microsecond
// fine, is a thousandth of it. Operands are zeros, so that no value overflows: a GPU that is limited by its power runs
// them faster than a training step's, which a note says.
#include "collcast/runner/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <dlfcn.h>
#include <utility>

#include "collcast/base/units.hpp"
#include "runner/communicator.hpp"
#include "runner/machine.hpp"
#include "runner/nccl_library.hpp"

namespace collcast {

namespace {

using runner::Broken;
using runner::CudaFunctions;

/// cuBLAS by its own ABI, whose header the build need not have (cublas_api.h, library_types.h; CUDA 11 to 13).
struct Cublas {
  using Handle = void*;
  static constexpr int success = 0, plain = 0, transposed = 1, any_algorithm = -1;
  static constexpr int in_float32 = 68;  ///< CUBLAS_COMPUTE_32F

  int (*create)(Handle*) = nullptr;
  int (*destroy)(Handle) = nullptr;
  int (*set_stream)(Handle, CUstream) = nullptr;
  int (*version)(Handle, int*) = nullptr;
  int (*gemm)(Handle, int a_form, int b_form, int m, int n, int k, const void* alpha, const void* a, int a_type,
              int lda, const void* b, int b_type, int ldb, const void* beta, void* c, int c_type, int ldc, int compute,
              int algorithm) = nullptr;
  int (*batched_gemm)(Handle, int a_form, int b_form, int m, int n, int k, const void* alpha, const void* a, int a_type,
                      int lda, long long a_stride, const void* b, int b_type, int ldb, long long b_stride,
                      const void* beta, void* c, int c_type, int ldc, long long c_stride, int count, int compute,
                      int algorithm) = nullptr;
};

/// cudaDataType_t.
int cuda_type(const std::string& dtype) { return dtype == "bfloat16" ? 14 : 2; }

Cublas open_cublas() {
  void* library = nullptr;
  for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"})
    if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw Broken(
        "libcublas.so.13, .12 and .11 cannot be opened: cuBLAS is not installed where the loader looks; install "
        "libcublas of the CUDA toolkit or name its folder in LD_LIBRARY_PATH",
        Ending::lacking);
  Cublas out;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr) throw Broken(fmt::format("cuBLAS is too old: it has no {}", name), Ending::lacking);
  };
  find(out.create, "cublasCreate_v2");
  find(out.destroy, "cublasDestroy_v2");
  find(out.set_stream, "cublasSetStream_v2");
  find(out.version, "cublasGetVersion_v2");
  find(out.gemm, "cublasGemmEx");
  find(out.batched_gemm, "cublasGemmStridedBatchedEx");
  return out;
}

/// 120804 -> 12.8.4.
std::string cublas_version_text(int code) {
  return fmt::format("cuBLAS {}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

/// One GPU with a stream, its clock, and what a kernel works on.
class Gpu {
 public:
  Gpu(const KernelsPlan& plan, CudaFunctions functions) : plan_(plan), c_(functions) {
    cuda(c_.device(&device_, plan.device), "the device");
    CUcontext context = nullptr;
    cuda(c_.retain_context(&context, device_), "a context");
    cuda(c_.set_context(context), "a context");
    cuda(c_.create_stream(&stream_, CU_STREAM_NON_BLOCKING), "a stream");
    cuda(c_.create_event(&start_, CU_EVENT_DEFAULT), "an event");
    cuda(c_.create_event(&stop_, CU_EVENT_DEFAULT), "an event");
  }
  ~Gpu() {
    release();
    if (handle_ != nullptr) blas_.destroy(handle_);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  std::string name() const {
    char text[256] = {};
    cuda(c_.device_name(text, sizeof text, device_), "the device's name");
    return text;
  }
  /// "cuBLAS 12.8.4".
  std::string use_cublas() {
    blas_ = open_cublas();
    blas(blas_.create(&handle_), "cublasCreate");
    blas(blas_.set_stream(handle_, stream_), "cublasSetStream");
    int version = 0;
    blas(blas_.version(handle_, &version), "cublasGetVersion");
    return cublas_version_text(version);
  }

  /// Nothing where its operands do not fit the GPU's memory.
  std::optional<MeasuredKernel> measure(const KernelCase& what) {
    release();
    if (!allocate(what)) return std::nullopt;
    for (int i = 0; i < std::max(1, plan_.warmup); ++i) call(what);
    const double once = seconds_of(what, 1);
    // A thousand times the clock's half a microsecond, no more than a thousand calls.
    const int calls = static_cast<int>(std::clamp(std::ceil(5e-4 / std::max(once, 1e-9)), 1.0, 1000.0));
    std::vector<double> times;
    for (int i = 0; i < plan_.repetitions; ++i) times.push_back(seconds_of(what, calls) / calls);
    std::sort(times.begin(), times.end());
    const std::size_t half = times.size() / 2;
    const double median = times.size() % 2 == 1 ? times[half] : (times[half - 1] + times[half]) / 2;
    release();
    return MeasuredKernel{what, plan_.repetitions, calls, Seconds(median), Seconds(times.front())};
  }

 private:
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are integers, cuBLAS' pointers
  static void* at(CUdeviceptr p) { return reinterpret_cast<void*>(p); }

  void cuda(CUresult result, const char* what) const {
    if (result == CUDA_SUCCESS) return;
    const char* text = nullptr;
    c_.error_string(result, &text);
    throw Broken(fmt::format("CUDA: {}: {}", what, text == nullptr ? "unknown error" : text));
  }
  static void blas(int status, const char* what) {
    if (status != Cublas::success) throw Broken(fmt::format("cuBLAS: {}: status {}", what, status));
  }

  bool allocate(const KernelCase& what) {
    const auto sizes = what.operands();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 0) continue;
      const CUresult result = c_.allocate(&operands_[i], static_cast<std::size_t>(sizes[i]));
      if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        release();
        return false;
      }
      cuda(result, "allocating GPU memory");
      cuda(c_.fill(operands_[i], 0, static_cast<std::size_t>(sizes[i]), stream_), "filling GPU memory");
    }
    return true;
  }
  void release() {
    for (CUdeviceptr& operand : operands_) {
      if (operand != 0) c_.free(operand);
      operand = 0;
    }
  }

  double seconds_of(const KernelCase& what, int calls) {
    cuda(c_.record(start_, stream_), "an event");
    for (int i = 0; i < calls; ++i) call(what);
    cuda(c_.record(stop_, stream_), "an event");
    cuda(c_.wait(stop_), "running the kernel");
    float milliseconds = 0;
    cuda(c_.elapsed(&milliseconds, start_, stop_), "the GPU's clock");
    return static_cast<double>(milliseconds) / 1e3;
  }

  void call(const KernelCase& what) {
    const auto bytes = static_cast<std::size_t>(what.bytes.value());
    switch (what.kind) {
      case KernelKind::copy:
        return cuda(c_.copy(operands_[1], operands_[0], bytes, stream_), "a copy");
      case KernelKind::fill:
        return cuda(c_.fill(operands_[0], 0, bytes, stream_), "a fill");
      case KernelKind::gemm:
      case KernelKind::attention:
        break;
    }
    // Rows of C[m, n] = A[m, k] B[n, k]^T one after the other are columns of its transpose, B A^T, to cuBLAS.
    const float one = 1, zero = 0;
    const int m = static_cast<int>(what.m), n = static_cast<int>(what.n), k = static_cast<int>(what.k);
    const int type = cuda_type(what.dtype);
    if (what.batch == 1)
      return blas(blas_.gemm(handle_, Cublas::transposed, Cublas::plain, n, m, k, &one, at(operands_[1]), type, k,
                             at(operands_[0]), type, k, &zero, at(operands_[2]), type, n, Cublas::in_float32,
                             Cublas::any_algorithm),
                  "cublasGemmEx");
    blas(
        blas_.batched_gemm(handle_, Cublas::transposed, Cublas::plain, n, m, k, &one, at(operands_[1]), type, k,
                           what.n * what.k, at(operands_[0]), type, k, what.m * what.k, &zero, at(operands_[2]), type,
                           n, what.m * what.n, static_cast<int>(what.batch), Cublas::in_float32, Cublas::any_algorithm),
        "cublasGemmStridedBatchedEx");
  }

  const KernelsPlan& plan_;
  CudaFunctions c_;
  Cublas blas_;
  Cublas::Handle handle_ = nullptr;
  CUdevice device_ = 0;
  CUstream stream_ = nullptr;
  CUevent start_ = nullptr, stop_ = nullptr;
  CUdeviceptr operands_[3] = {};  ///< A, B and C; source and target; what is filled
};

void run(const KernelsPlan& plan, const KernelsSink& sink, MeasureOutcome& outcome) {
  const runner::NvidiaDriver driver = runner::open_nvidia_driver();
  if (!driver.lacking.empty()) throw Broken(fmt::format("{}", fmt::join(driver.lacking, "; ")), Ending::lacking);
  if (plan.device >= driver.devices)
    throw Broken(fmt::format("there is no GPU {}: {} here", plan.device, driver.devices), Ending::lacking);
  Gpu gpu(plan, driver.cuda);
  KernelsMeasured system;
  system.device = gpu.name();
  system.driver = runner::nvidia_driver_version();
  if (std::any_of(plan.cases.begin(), plan.cases.end(), [](const KernelCase& what) { return what.is_product(); }))
    system.library = gpu.use_cublas();
  sink.system(system);
  for (const KernelCase& what : plan.cases) {
    sink.begin(what);
    const std::optional<MeasuredKernel> row = gpu.measure(what);
    if (!row) {
      sink.note(fmt::format("{} is left out: it does not fit the GPU's memory", what.text()));
      continue;
    }
    if (sink.row(*row)) continue;
    outcome.ending = Ending::stopped;
    return;
  }
}

}  // namespace

MeasureOutcome measure_kernels(const KernelsPlan& plan, const KernelsSink& sink) {
  MeasureOutcome out;
  try {
    run(plan, sink, out);
  } catch (const Broken& broken) {
    out.ending = broken.ending;
    out.problems.emplace_back(broken.what());
  }
  return out;
}

}  // namespace collcast
