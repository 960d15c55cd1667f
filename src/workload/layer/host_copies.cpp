#include "workload/layer/host_copies.hpp"

#include <algorithm>

#include "workload/layer/kept.hpp"
#include "workload/layer/parameters.hpp"

namespace collcast::workload {

Bandwidth host_copy_rate(const StepInputs& in) { return in.host_bandwidth * in.kernels.host_copies; }

HostCopies host_copies(const StepInputs& in) {
  const OffloadingTerms terms = offloading_terms(in);
  if (terms.layers == 0) return {};
  return {terms.each_way() / terms.of_layers, 1.0 / terms.of_layers};
}

Seconds copy_wait(const HostCopies& copies, Seconds busy) {
  if (copies.time == Seconds{}) return {};
  return std::max(copies.time + copies.idle * busy - busy, Seconds{});
}

}  // namespace collcast::workload

namespace collcast {

OffloadingTerms offloading_terms(const StepInputs& in) {
  OffloadingTerms terms;
  if (in.serving || in.options.cpu_offloading_num_layers == 0) return terms;
  terms.layers = in.options.cpu_offloading_num_layers;
  terms.of_layers = in.model.layers;
  PerShape<int> layers;
  for (int layer = 0; layer < terms.layers; ++layer) ++layers[layer_shape(in.model, layer)];
  for (const LayerShape shape : layer_shapes)
    if (layers[shape] > 0) terms.copied += workload::layer_activations(in, shape) * layers[shape];
  terms.rate = workload::host_copy_rate(in);
  return terms;
}

}  // namespace collcast
