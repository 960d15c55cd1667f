// The precision of a step, on the GPU and in the tables of its kernels.
#include <algorithm>
#include <string>
#include <vector>

#include "collcast/workload/precisions.hpp"
#include "workload/checks/misfits.hpp"
#include "workload/layer/precision.hpp"

namespace collcast::workload {

namespace {

/// Those of `map` that are among `known`.
template <class Map>
std::vector<std::string> keys(const Map& map, const std::vector<std::string>& known) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map)
    if (std::ranges::find(known, name) != known.end()) names.push_back(name);
  return names;
}

/// Whether it is there.
template <class Map>
bool needs(Misfits& misfits, const Map& map, const std::string& key, const std::string& what) {
  const StepInputs& in = misfits.in;
  const bool there = map.find(key) != map.end();
  if (!there)
    misfits.wrong({in.serving ? "inference.precision" : "training.precision", "training.attention", "topology"},
                  what + " has no figure for " + key,
                  expected_one_of(key, keys(map, in.serving ? serving_precisions() : training_precisions())));
  return there;
}

}  // namespace

void check_kernels(Misfits& misfits) {
  const StepInputs& in = misfits.in;
  const std::string& name = in.options.precision;
  const auto precision = in.serving ? serving_precision(name) : training_precision(name);
  if (!precision) {
    misfits.wrong({in.serving ? "inference.precision" : "training.precision"}, "unknown precision '" + name + "'",
                  expected_one_of(name, in.serving ? serving_precisions() : training_precisions()));
    return;
  }
  if (in.gpu.model.empty()) {
    misfits.wrong({"topology"}, "the machine has no GPUs that compute",
                  "use a topology with compute rates, such as dgx-h100");
    return;
  }
  const std::string gpu = "the data sheet of " + in.gpu.model + misfits.seen("topology.gpu.peak");
  const std::string table = "the kernel table '" + in.kernels.name + "'" + misfits.seen("topology.gpu.kernels");
  // What the GPU itself does not have its kernels need not have either.
  bool has_core = needs(misfits, in.gpu.peak, precision->linear, gpu);
  if (has_core) needs(misfits, in.kernels.gemm, precision->linear, table + " (gemm)");
  if (precision->core != precision->linear) {
    has_core = needs(misfits, in.gpu.peak, precision->core, gpu);
    if (has_core) needs(misfits, in.kernels.gemm, precision->core, table + " (gemm)");
  }
  if (has_core && in.options.attention == Attention::flash)
    needs(misfits, in.kernels.attention, precision->core, table + " (attention)");
}

}  // namespace collcast::workload
