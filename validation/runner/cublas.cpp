#include "runner/cublas.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <dlfcn.h>
#include <string>
#include <type_traits>

#include "runner/communicator.hpp"

namespace collcast::runner {

namespace {

constexpr int success = 0, plain = 0, transposed = 1, any_algorithm = -1;
constexpr int in_float32 = 68;                                     // CUBLAS_COMPUTE_32F
constexpr int float32 = 0, float16 = 2, bfloat16 = 14, e4m3 = 28;  // cudaDataType_t
// cublasLtMatmulDescAttributes_t, cublasLtMatmulPreferenceAttributes_t
constexpr int transpose_a = 3, transpose_b = 4, fast_accumulation = 25, most_workspace = 1;
constexpr std::size_t workspace = std::size_t{32} << 20U;  // what NVIDIA asks for on Hopper

/// cublasLtMatmulHeuristicResult_t.
struct Heuristic {
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

void* opened(const std::string& name) { return ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); }

void check(int status, const char* what) {
  if (status != success) throw Broken(fmt::format("cuBLAS: {}: status {}", what, status));
}

// NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are integers, cuBLAS' pointers
void* at(CUdeviceptr p) { return reinterpret_cast<void*>(p); }

}  // namespace

struct Cublas::Functions {
  using Handle = void*;
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

  // cuBLASLt, whose handle cuBLAS' own stands for. Opened with the first product of fp8.
  int major = 0;  ///< of the library that was found
  bool has_lt = false;
  int (*describe)(void** description, int compute, int scale_type) = nullptr;
  int (*forget)(void* description) = nullptr;
  int (*set)(void* description, int attribute, const void* value, std::size_t bytes) = nullptr;
  int (*lay_out)(void** layout, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t ld) = nullptr;
  int (*forget_layout)(void* layout) = nullptr;
  int (*prefer)(void** preference) = nullptr;
  int (*forget_preference)(void* preference) = nullptr;
  int (*set_preference)(void* preference, int attribute, const void* value, std::size_t bytes) = nullptr;
  int (*choose)(Handle, void* description, void* a, void* b, void* c, void* d, void* preference, int asked,
                void* results, int* returned) = nullptr;  ///< Heuristic
  int (*multiply)(Handle, void* description, const void* alpha, const void* a, void* a_layout, const void* b,
                  void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                  const void* algorithm, void* workspace, std::size_t workspace_bytes, CUstream) = nullptr;

  template <class Function>
  static void find(Function& function, void* library, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    if (function == nullptr) throw Broken(fmt::format("cuBLAS is too old: it has no {}", name), Ending::lacking);
  }

  Functions() {
    void* library = nullptr;
    for (int one = 13; one >= 11 && library == nullptr; --one)
      if (library = opened(fmt::format("libcublas.so.{}", one)); library != nullptr) major = one;
    if (library == nullptr)
      throw Broken(
          "libcublas.so.13, .12 and .11 cannot be opened: cuBLAS is not installed where the loader looks; install "
          "libcublas of the CUDA toolkit or name its folder in LD_LIBRARY_PATH",
          Ending::lacking);
    find(create, library, "cublasCreate_v2");
    find(destroy, library, "cublasDestroy_v2");
    find(set_stream, library, "cublasSetStream_v2");
    find(version, library, "cublasGetVersion_v2");
    find(gemm, library, "cublasGemmEx");
    find(batched_gemm, library, "cublasGemmStridedBatchedEx");
  }

  void open_lt() {
    if (has_lt) return;
    const std::string name = fmt::format("libcublasLt.so.{}", major);
    void* library = opened(name);
    if (library == nullptr)
      throw Broken(fmt::format("{} cannot be opened: products of fp8 need it beside libcublas.so.{}", name, major),
                   Ending::lacking);
    find(describe, library, "cublasLtMatmulDescCreate");
    find(forget, library, "cublasLtMatmulDescDestroy");
    find(set, library, "cublasLtMatmulDescSetAttribute");
    find(lay_out, library, "cublasLtMatrixLayoutCreate");
    find(forget_layout, library, "cublasLtMatrixLayoutDestroy");
    find(prefer, library, "cublasLtMatmulPreferenceCreate");
    find(forget_preference, library, "cublasLtMatmulPreferenceDestroy");
    find(set_preference, library, "cublasLtMatmulPreferenceSetAttribute");
    find(choose, library, "cublasLtMatmulAlgoGetHeuristic");
    find(multiply, library, "cublasLtMatmul");
    has_lt = true;
  }
};

/// Descriptors of one shape, and the algorithm that cuBLASLt puts first.
struct Cublas::Fp8Product {
  const Functions& f;
  void *description = nullptr, *a = nullptr, *b = nullptr, *c = nullptr, *preference = nullptr;
  Heuristic chosen{};
  bool found = false;

  explicit Fp8Product(const Functions& functions) : f(functions) {}
  void choose(void* handle, const KernelCase& what) {
    const auto m = static_cast<std::uint64_t>(what.m), n = static_cast<std::uint64_t>(what.n),
               k = static_cast<std::uint64_t>(what.k);
    check(f.describe(&description, in_float32, float32), "cublasLtMatmulDescCreate");
    const std::int32_t a_form = transposed, b_form = plain;
    check(f.set(description, transpose_a, &a_form, sizeof a_form), "cublasLtMatmulDescSetAttribute");
    check(f.set(description, transpose_b, &b_form, sizeof b_form), "cublasLtMatmulDescSetAttribute");
    const std::int8_t fast = 1;
    check(f.set(description, fast_accumulation, &fast, sizeof fast), "cublasLtMatmulDescSetAttribute");
    check(f.lay_out(&a, e4m3, k, n, what.k), "cublasLtMatrixLayoutCreate");
    check(f.lay_out(&b, e4m3, k, m, what.k), "cublasLtMatrixLayoutCreate");
    check(f.lay_out(&c, bfloat16, n, m, what.n), "cublasLtMatrixLayoutCreate");
    check(f.prefer(&preference), "cublasLtMatmulPreferenceCreate");
    check(f.set_preference(preference, most_workspace, &workspace, sizeof workspace),
          "cublasLtMatmulPreferenceSetAttribute");
    int returned = 0;
    found = f.choose(handle, description, a, b, c, c, preference, 1, &chosen, &returned) == success && returned > 0 &&
            chosen.state == success;
  }
  ~Fp8Product() {
    if (preference != nullptr) f.forget_preference(preference);
    for (void* layout : {a, b, c})
      if (layout != nullptr) f.forget_layout(layout);
    if (description != nullptr) f.forget(description);
  }
  Fp8Product(const Fp8Product&) = delete;
  Fp8Product& operator=(const Fp8Product&) = delete;
};

Cublas::Cublas(CUstream stream) : f_(std::make_unique<Functions>()), stream_(stream) {
  check(f_->create(&handle_), "cublasCreate");
  if (const int status = f_->set_stream(handle_, stream); status != 0) {
    f_->destroy(handle_);
    check(status, "cublasSetStream");
  }
}

Cublas::~Cublas() {
  fp8_.reset();
  if (handle_ != nullptr) f_->destroy(handle_);
}

std::string Cublas::version() const {
  int code = 0;
  check(f_->version(handle_, &code), "cublasGetVersion");
  return fmt::format("cuBLAS {}.{}.{}", code / 10000, code / 100 % 100, code % 100);  // 120804 -> 12.8.4
}

std::size_t Cublas::workspace_bytes() { return workspace; }

std::string Cublas::objection(const KernelCase& what) const {
  if (what.dtype != "fp8") return {};
  if (what.batch > 1) return "products of fp8 are measured one at a time";
  if (what.n % 16 != 0 || what.k % 16 != 0) return "products of fp8 take n and k that 16 divides";
  return {};
}

bool Cublas::prepare(const KernelCase& what) {
  fp8_.reset();
  if (what.dtype != "fp8") return true;
  f_->open_lt();
  fp8_ = std::make_unique<Fp8Product>(*f_);
  fp8_->choose(handle_, what);
  return fp8_->found;
}

void Cublas::multiply(const KernelCase& what, CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, CUdeviceptr beside) {
  // Rows of C[m, n] = A[m, k] B[n, k]^T one after the other are columns of its transpose, B A^T, to cuBLAS.
  const float one = 1, zero = 0;
  if (fp8_ != nullptr)
    return check(f_->multiply(handle_, fp8_->description, &one, at(b), fp8_->a, at(a), fp8_->b, &zero, at(c), fp8_->c,
                              at(c), fp8_->c, fp8_->chosen.algorithm, at(beside), workspace, stream_),
                 "cublasLtMatmul");
  const int m = static_cast<int>(what.m), n = static_cast<int>(what.n), k = static_cast<int>(what.k);
  const int type = what.dtype == "bfloat16" ? bfloat16 : float16;
  if (what.batch == 1)
    return check(f_->gemm(handle_, transposed, plain, n, m, k, &one, at(b), type, k, at(a), type, k, &zero, at(c), type,
                          n, in_float32, any_algorithm),
                 "cublasGemmEx");
  check(f_->batched_gemm(handle_, transposed, plain, n, m, k, &one, at(b), type, k, what.n * what.k, at(a), type, k,
                         what.m * what.k, &zero, at(c), type, n, what.m * what.n, static_cast<int>(what.batch),
                         in_float32, any_algorithm),
        "cublasGemmStridedBatchedEx");
}

}  // namespace collcast::runner
