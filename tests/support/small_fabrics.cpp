#include "support/small_fabrics.hpp"

#include <stdexcept>
#include <utility>

#include "support/dice.hpp"

namespace collcast::test {

namespace {

Fabric built(const TopologySpec& spec, int nodes) {
  Result<Fabric> fabric = Fabric::build(spec, nodes);
  if (!fabric) throw std::runtime_error(to_text(fabric.errors()));
  return std::move(fabric).value();
}

}  // namespace

Fabric teaching_fabric(int ranks, NetworkSpec network) {
  TopologySpec spec;
  spec.name = spec.file = "test";
  spec.teaching = true;
  spec.devices = {{"host", DeviceKind::host, 1, {}}};
  spec.network_devices = "host";
  spec.network = std::move(network);
  return built(spec, ranks);
}

Fabric ring_fabric(int ranks, Bandwidth bandwidth, Seconds latency) {
  return teaching_fabric(ranks, TorusNetwork{{ranks}, true, bandwidth, latency});
}

Fabric star_fabric(int ranks, Bandwidth bandwidth, Seconds latency) {
  return teaching_fabric(ranks, StarNetwork{bandwidth, latency});
}

Fabric cabled_fabric(int ranks, int switches, const std::vector<Cable>& cables) {
  TopologySpec spec;
  spec.name = spec.file = "test";
  spec.devices = {{"host", DeviceKind::host, ranks, {}}};
  if (switches > 0) spec.devices.push_back({"switch", DeviceKind::nvswitch, switches, {}});
  const auto group = [&](int v) { return v < ranks ? "host" : "switch"; };
  for (const Cable& cable : cables) {
    LinkGroup link;
    link.from = group(cable.a);
    link.to = group(cable.b);
    link.wiring = Wiring::pairs;
    link.pairs = {{cable.a < ranks ? cable.a : cable.a - ranks, cable.b < ranks ? cable.b : cable.b - ranks}};
    link.bandwidth = cable.bandwidth;
    link.latency = cable.latency;
    spec.links.push_back(std::move(link));
  }
  return built(spec, 1);
}

Fabric with_unequal_links(const Fabric& fabric) {
  Dice dice(1);
  std::vector<Link> links(fabric.links().begin(), fabric.links().end());
  for (Link& link : links) link.bandwidth = Bandwidth(link.bandwidth.value() / dice.between(1, 2));
  return fabric.with_links(std::move(links));
}

}  // namespace collcast::test
