// Any bytes as lines of path=value, put into a machine file that has a little of everything.
#include <cstddef>
#include <cstdint>

#include "collcast/scenario/scenario.hpp"

namespace {

constexpr std::string_view machine =
    "schema: collcast.topology.v1\n"
    "name: m\n"
    "node:\n"
    "  devices: {gpu: {kind: gpu, count: 8}, sw: {kind: nvswitch}}\n"
    "  links: [{from: gpu, to: sw, kind: nvlink, bandwidth: 1GB/s, latency: 0s, source: s}]\n"
    "network: {kind: star, attach: gpu, source: s, link: {bandwidth: 10GB/s, latency: 0s}}\n";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<collcast::Override> overrides;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto parsed = collcast::parse_override(text.substr(0, end));
    if (parsed) overrides.push_back(*parsed);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto spec = collcast::parse_topology(machine, "m.yaml", overrides);
  if (!spec) (void)collcast::to_text(spec.errors());
  return 0;
}
