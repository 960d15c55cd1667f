// Single kernels on one GPU: products by cuBLAS, copies and fills by the driver.
//
// A repetition is some calls back to back between two events; enough of them that the GPU's clock, half a microsecond
// fine, is a thousandth of it. Operands of products are pseudo-random: multiplying zeros takes less power, and a GPU
// that its power limits runs them faster than any training step's.
#include "collcast/runner/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "collcast/base/units.hpp"
#include "runner/communicator.hpp"
#include "runner/cublas.hpp"
#include "runner/machine.hpp"
#include "runner/nccl_library.hpp"

namespace collcast {

namespace {

using runner::Broken;
using runner::CudaFunctions;

/// Numbers that products are taken of, as they lie in memory: pseudo-random, of magnitude 1/8 to 2 and both signs (fp8:
/// to 1), so that sums of any length stay finite and the multipliers' bits change as a training step's do.
std::vector<std::byte> pseudo_random(const std::string& dtype) {
  constexpr std::size_t bytes = std::size_t{1} << 20U;
  std::vector<std::byte> out(bytes);
  std::mt19937 dice(20261126);  // NOLINT(cert-msc51-cpp): the same on every machine
  const auto put = [&](std::size_t i, unsigned value) {
    out[i] = static_cast<std::byte>(value & 0xffU);
    out[i + 1] = static_cast<std::byte>(value >> 8U);
  };
  if (dtype == "fp8") {  // sign, four bits of exponent (bias 7), three of fraction
    for (std::byte& value : out) {
      const auto bits = static_cast<unsigned>(dice());
      value = static_cast<std::byte>((bits & 0x87U) | ((4U + (bits >> 8U) % 3U) << 3U));
    }
    return out;
  }
  for (std::size_t i = 0; i < bytes; i += 2) {
    const auto bits = static_cast<unsigned>(dice());
    const unsigned step = (bits >> 16U) % 4U;  // 2^-3 to 2^0
    // bfloat16: eight bits of exponent (bias 127), seven of fraction; float16: five (bias 15), ten
    put(i, dtype == "bfloat16" ? (bits & 0x807fU) | ((124U + step) << 7U) : (bits & 0x83ffU) | ((12U + step) << 10U));
  }
  return out;
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
  ~Gpu() { release(); }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  std::string name() const {
    char text[256] = {};
    cuda(c_.device_name(text, sizeof text, device_), "the device's name");
    return text;
  }
  /// Its version.
  std::string use_cublas() {
    blas_.emplace(stream_);
    return blas_->version();
  }

  /// Why it was not measured, in `why`: its operands do not fit the GPU's memory, cuBLAS has no such product.
  std::optional<MeasuredKernel> measure(const KernelCase& what, std::string& why) {
    release();
    if (what.is_product()) why = blas_->objection(what);
    if (!why.empty()) return std::nullopt;
    if (!allocate(what)) {
      why = "it does not fit the GPU's memory";
      return std::nullopt;
    }
    if (what.is_product() && !blas_->prepare(what)) {
      why = "cuBLAS has no algorithm for it on this GPU";
      return std::nullopt;
    }
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
  void cuda(CUresult result, const char* what) const {
    if (result == CUDA_SUCCESS) return;
    const char* text = nullptr;
    c_.error_string(result, &text);
    throw Broken(fmt::format("CUDA: {}: {}", what, text == nullptr ? "unknown error" : text));
  }

  bool allocate(const KernelCase& what) {
    const auto operands = what.operands();
    std::vector<std::int64_t> sizes(operands.begin(), operands.end());
    sizes.push_back(what.dtype == "fp8" ? static_cast<std::int64_t>(runner::Cublas::workspace_bytes()) : 0);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 0) continue;
      const auto bytes = static_cast<std::size_t>(sizes[i]);
      const CUresult result = c_.allocate(&memory_[i], bytes);
      if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        release();
        return false;
      }
      cuda(result, "allocating GPU memory");
      if (what.is_product() && i < 2)
        randomize(memory_[i], bytes, what.dtype);
      else
        cuda(c_.fill(memory_[i], 0, bytes, stream_), "filling GPU memory");
    }
    return true;
  }
  /// The pattern once from here, then over and over, each time as much as there is already.
  void randomize(CUdeviceptr to, std::size_t bytes, const std::string& dtype) {
    auto& pattern = patterns_[dtype];
    if (pattern.empty()) pattern = pseudo_random(dtype);
    std::size_t done = std::min(bytes, pattern.size());
    cuda(c_.copy_in(to, pattern.data(), done), "filling GPU memory");
    cuda(c_.synchronize(), "filling GPU memory");
    for (; done < bytes; done += std::min(done, bytes - done))
      cuda(c_.copy(to + done, to, std::min(done, bytes - done), stream_), "filling GPU memory");
  }
  void release() {
    for (CUdeviceptr& piece : memory_) {
      if (piece != 0) c_.free(piece);
      piece = 0;
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
        return cuda(c_.copy(memory_[1], memory_[0], bytes, stream_), "a copy");
      case KernelKind::fill:
        return cuda(c_.fill(memory_[0], 0, bytes, stream_), "a fill");
      case KernelKind::gemm:
      case KernelKind::attention:
        break;
    }
    blas_->multiply(what, memory_[0], memory_[1], memory_[2], memory_[3]);
  }

  const KernelsPlan& plan_;
  CudaFunctions c_;
  std::optional<runner::Cublas> blas_;
  std::map<std::string, std::vector<std::byte>> patterns_;  ///< by dtype
  CUdevice device_ = 0;
  CUstream stream_ = nullptr;
  CUevent start_ = nullptr, stop_ = nullptr;
  CUdeviceptr memory_[4] = {};  ///< A, B, C and what cuBLAS works in; source and target; what is filled
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
    std::string why;
    const std::optional<MeasuredKernel> row = gpu.measure(what, why);
    if (!row) {
      sink.note(fmt::format("{} is left out: {}", what.text(), why));
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
