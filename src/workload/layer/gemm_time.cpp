#include "collcast/workload/gemm_time.hpp"

namespace collcast {

Volume gemm_bytes(const GemmShape& s, std::optional<GemmPass> pass, double bytes_per_element) {
  const double result = pass == GemmPass::weight_gradient ? 8 : 2;
  return Volume(bytes_per_element * (s.m * s.k + s.k * s.n) + result * s.m * s.n);
}

Roofline roofline(const KernelEfficiency& kernel, FlopRate peak, Bandwidth memory, Flops flops, Volume bytes) {
  const Seconds compute = flops.value() > 0 ? flops / (peak * kernel.compute) : Seconds{};
  return {kernel.overhead, compute, bytes / (memory * kernel.memory)};
}

Roofline roofline(const KernelEfficiency& kernel, FlopRate peak, Bandwidth memory, const GemmShape& s, Volume bytes) {
  return roofline(kernel, peak, memory, Flops(2 * s.m * s.n * s.k), bytes);
}

}  // namespace collcast
