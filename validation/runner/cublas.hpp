// cuBLAS by its own ABI, whose headers the build need not have (cublas_api.h, cublasLt.h, library_types.h; CUDA 11 to
// 13), opened when it is first needed (docs/decisions/0010-lazy-nccl.md).
#pragma once

#include <cuda.h>
#include <memory>
#include <string>

#include "collcast/report/measured_kernels.hpp"

namespace collcast::runner {

/// Products of one handle on one stream. Everything that fails is thrown as Broken.
class Cublas {
 public:
  /// Lacking where no cuBLAS can be opened.
  explicit Cublas(CUstream);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  std::string version() const;  ///< "cuBLAS 12.8.4"
  /// Bytes of the GPU's memory that a product of fp8 may use beside its operands.
  static std::size_t workspace_bytes();
  /// Why this library has no such product, or nothing: fp8 takes n and k of whole 16 bytes.
  std::string objection(const KernelCase&) const;
  /// Chooses how to compute a product that prepare() was not called for last; nothing where that is always cuBLAS' own
  /// choice. False: it has no algorithm for it.
  bool prepare(const KernelCase&);
  /// C[m, n] = A[m, k] * B[n, k]^T, `batch` times, rows one after the other. A product of fp8 uses `workspace`.
  void multiply(const KernelCase&, CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, CUdeviceptr workspace);

 private:
  struct Functions;
  struct Fp8Product;
  std::unique_ptr<Functions> f_;
  std::unique_ptr<Fp8Product> fp8_;
  void* handle_ = nullptr;
  CUstream stream_ = nullptr;
};

}  // namespace collcast::runner
