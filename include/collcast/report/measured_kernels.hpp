// collcast.kerneltimes.v1: what kernels took on the GPU here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collcast/base/quantity.hpp"
#include "collcast/report/table.hpp"

namespace collcast {

enum class KernelKind {
  gemm,       ///< C[m, n] = A[m, k] * B[k, n], the weight B transposed as a linear layer keeps it
  attention,  ///< `batch` such products at once, as an attention's scores and their values are
  copy,       ///< of `bytes` from one place of the GPU's memory to another: twice as many cross it
  fill        ///< of `bytes` with a value
};
const char* to_string(KernelKind);

struct KernelCase {
  KernelKind kind = KernelKind::gemm;
  std::string dtype;  ///< bfloat16, float16 or fp8 (E4M3 operands, a bfloat16 result); of copy and fill none
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  Bytes bytes{};  ///< of copy and fill

  bool is_product() const { return kind == KernelKind::gemm || kind == KernelKind::attention; }
  Flops flops() const;  ///< 2 * batch * m * n * k
  /// Bytes of A, B and C; of the source and the target of a copy; of what is filled. 0: there is none.
  std::array<std::int64_t, 3> operands() const;
  Volume moved() const;  ///< through the GPU's memory: each operand once
  std::string text() const;
};

struct MeasuredKernel {
  KernelCase what;
  int repetitions = 0, calls = 1;  ///< calls back to back in a repetition, whose time is divided by them
  Seconds median{}, least{};       ///< of a call, by the GPU's clock
};

struct KernelsMeasured {
  std::string system, device, driver, library;  ///< "cuBLAS 12.8.4"; empty: nothing was asked of it
  std::vector<MeasuredKernel> rows;
  std::vector<std::string> notes, problems;
  bool complete = false;
};

std::string json(const KernelsMeasured&);
/// Of gemm alone a table as `validate --kernels` reads it: system, device, dtype, m, n, k, latency_ms, min_ms, tflops,
/// gbytes_per_s. Else kernel and shape ("8x4096x4096x128": batch, m, n, k; bytes) stand for m, n and k.
Table csv(const KernelsMeasured&);
Page page(const KernelsMeasured&);

}  // namespace collcast
