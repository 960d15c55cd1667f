#include "collcast/workload/power.hpp"

#include <cmath>

#include "collcast/base/units.hpp"

namespace collcast {

double clock_at_power(double share) { return std::cbrt(share); }

KernelModel at_power(KernelModel kernels, double share) {
  if (share >= 1) return kernels;
  const double clock = clock_at_power(share);
  for (auto* rates : {&kernels.gemm, &kernels.attention, &kernels.attention_gradient, &kernels.grouped_gemm,
                      &kernels.grouped_gemm_gradient})
    for (auto& [precision, kernel] : *rates) {
      kernel.compute *= clock;
      if (kernel.sustained < 1) kernel.sustained *= clock;
      const std::string at =
          format_count(share) + " of the power, " + format_count(clock) + " of the clock (gpu.power_limit): ";
      kernel.source = at + kernel.source;
      if (!kernel.sustained_source.empty()) kernel.sustained_source = at + kernel.sustained_source;
    }
  return kernels;
}

}  // namespace collcast
