// What a pass waits for beside its kernels: launches of the host, and activations on their way to its memory and back.
#include <fmt/format.h>

#include "collcast/base/units.hpp"
#include "report/explain.hpp"

namespace collcast {

std::string waits_for_host(const StepInputs& in, Seconds waits) {
  if (!(waits > Seconds{})) return {};
  const bool launches = in.options.launch > Seconds{} || in.options.launch_backward.value_or(Seconds{}) > Seconds{};
  const bool copies = in.options.cpu_offloading_num_layers > 0;
  return fmt::format(", and {} that they wait for {}", format_seconds(waits),
                     launches && copies ? "their launches and the copies"
                     : launches         ? "their launches"
                                        : "the copies");
}

Term copies_term(const StepInputs& in) {
  const OffloadingTerms of = offloading_terms(in);
  return {
      "copies of a micro-batch, each way",
      fmt::format("activations of the first {} layers / (rate of the way to the host x host_copies)", of.layers),
      fmt::format("{} / ({} x {})", format_bytes(of.copied), format_bandwidth(in.host_bandwidth),
                  in.kernels.host_copies),
      of.each_way().count(),
      "s",
      fmt::format("beside the layers: a pass of each takes at least 1/{} of it, and of the pass itself", of.of_layers)};
}

}  // namespace collcast
