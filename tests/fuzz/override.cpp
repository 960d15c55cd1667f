// Any bytes as lines of what options say: path=value, put into a machine file that has a little of everything; values
// of a sweep; faults; a tolerance.
#include <cstddef>
#include <cstdint>

#include "collcast/base/check.hpp"
#include "collcast/report/comparison.hpp"
#include "collcast/scenario/scenario.hpp"
#include "collcast/scenario/sweep.hpp"

namespace {

constexpr std::string_view machine =
    "schema: collcast.topology.v1\n"
    "name: m\n"
    "node:\n"
    "  devices: {gpu: {kind: gpu, count: 8}, sw: {kind: nvswitch}}\n"
    "  links: [{from: gpu, to: sw, kind: nvlink, bandwidth: 1GB/s, latency: 0s, source: s}]\n"
    "network: {kind: star, attach: gpu, source: s, link: {bandwidth: 10GB/s, latency: 0s}}\n";

void read_sweep(std::string_view line) {
  const auto axis = collcast::parse_sweep(line);
  if (!axis) return (void)collcast::to_text(axis.errors());
  collcast::check(!axis->path.empty() && !axis->values.empty(), "an axis has a path and values");
  (void)collcast::check_sweep({*axis, *axis});
}

void read_faults(std::string_view line) {
  const auto faults = collcast::parse_faults({std::string(line)});
  if (!faults) (void)collcast::to_text(faults.errors());
}

void read_tolerance(std::string_view line) {
  const auto tolerance = collcast::parse_tolerance(line);
  if (!tolerance) return (void)collcast::to_text(tolerance.errors());
  collcast::check(tolerance->second.amount >= 0, "a tolerance is not negative");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<collcast::Override> overrides;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (const auto parsed = collcast::parse_override(line)) overrides.push_back(*parsed);
    read_sweep(line);
    read_faults(line);
    read_tolerance(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto spec = collcast::parse_topology(machine, "m.yaml", overrides);
  if (!spec) (void)collcast::to_text(spec.errors());
  return 0;
}
