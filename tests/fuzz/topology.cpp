// Any bytes as a machine file: a TopologySpec or diagnostics, and the Fabric of a small one, never a crash.
#include <cstddef>
#include <cstdint>

#include "collcast/scenario/scenario.hpp"
#include "collcast/topology/fabric.hpp"

namespace {

/// Small enough that a minute of fuzzing is not spent on routing a few large ones.
bool is_small(const collcast::TopologySpec& spec) {
  int devices = 0;
  for (const collcast::DeviceGroup& group : spec.devices) devices += group.count;
  return spec.default_nodes <= 16 && devices <= 32 && spec.links.size() <= 16;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = collcast::parse_topology(text, "fuzz.yaml");
  if (!spec) {
    (void)collcast::to_text(spec.errors());
  } else if (is_small(*spec)) {
    const auto fabric = collcast::Fabric::build(*spec);
    if (!fabric) (void)collcast::to_text(fabric.errors());
  }
  return 0;
}
