#include "machines.hpp"

#include <catch2/catch.hpp>

namespace collcast::test {

namespace {

LinkGroup link(std::string from, std::string to, Wiring wiring, LinkKind kind, Bandwidth bandwidth, Seconds latency) {
  LinkGroup group;
  group.from = std::move(from);
  group.to = std::move(to);
  group.wiring = wiring;
  group.kind = kind;
  group.bandwidth = bandwidth;
  group.latency = latency;
  return group;
}

LinkGroup pcie(std::string from, std::string to, Wiring wiring) {
  return link(std::move(from), std::move(to), wiring, LinkKind::pcie, gb_per_s(25), ns(300));
}

TopologySpec machine(std::string name, std::vector<DeviceGroup> devices, NetworkSpec network) {
  TopologySpec spec;
  spec.name = std::move(name);
  spec.file = "test.yaml";
  spec.where = {"test.yaml", 1, 1};
  spec.origins.set("network", {"test.yaml", 90, 3});
  spec.devices = std::move(devices);
  for (std::size_t i = 0; i < spec.devices.size(); ++i)
    spec.devices[i].where = {"test.yaml", static_cast<int>(10 + i), 5};
  spec.network = std::move(network);
  return spec;
}

void place_links(TopologySpec& spec) {
  for (std::size_t i = 0; i < spec.links.size(); ++i) spec.links[i].where = {"test.yaml", static_cast<int>(50 + i), 5};
}

}  // namespace

TopologySpec teaching(NetworkSpec network) {
  TopologySpec spec = machine("teaching", {{"host", DeviceKind::host, 1, {}}}, std::move(network));
  spec.teaching = true;
  spec.network_devices = "host";
  return spec;
}

TorusNetwork torus(std::vector<int> dims, bool wrap) { return {std::move(dims), wrap, gb_per_s(10), ns(500)}; }
StarNetwork star() { return {gb_per_s(10), ns(500)}; }
LeafSpineNetwork rails(int nodes_per_leaf, int spines, double oversubscription) {
  return {true, nodes_per_leaf, spines, oversubscription, gb_per_s(50), ns(600), ns(700)};
}
LeafSpineNetwork plain_leaves(int nodes_per_leaf, int spines, double oversubscription) {
  return {false, nodes_per_leaf, spines, oversubscription, gb_per_s(50), ns(600), ns(700)};
}

TopologySpec dgx(NetworkSpec network) {
  TopologySpec spec = machine("dgx",
                              {{"gpu", DeviceKind::gpu, 8, {}},
                               {"nvswitch", DeviceKind::nvswitch, 1, {}},
                               {"plx", DeviceKind::pcie_switch, 4, {}},
                               {"cpu", DeviceKind::cpu, 2, {}},
                               {"nic", DeviceKind::nic, 8, {}}},
                              std::move(network));
  spec.links = {link("gpu", "nvswitch", Wiring::all, LinkKind::nvlink, gb_per_s(300), ns(250)),
                pcie("gpu", "plx", Wiring::spread), pcie("nic", "plx", Wiring::spread),
                pcie("plx", "cpu", Wiring::spread),
                link("cpu", "cpu", Wiring::all, LinkKind::socket, gb_per_s(20), ns(100))};
  place_links(spec);
  spec.network_devices = "nic";
  return spec;
}

TopologySpec pcie_box(NetworkSpec network) {
  TopologySpec spec = machine(
      "pcie-box", {{"gpu", DeviceKind::gpu, 4, {}}, {"cpu", DeviceKind::cpu, 2, {}}, {"nic", DeviceKind::nic, 2, {}}},
      std::move(network));
  spec.links = {pcie("gpu", "cpu", Wiring::spread), pcie("nic", "cpu", Wiring::one_to_one),
                link("cpu", "cpu", Wiring::all, LinkKind::socket, gb_per_s(20), ns(100))};
  place_links(spec);
  spec.network_devices = "nic";
  return spec;
}

TopologySpec isolated_rails(int gpus, NetworkSpec network) {
  TopologySpec spec = machine("isolated-rails",
                              {{"gpu", DeviceKind::gpu, gpus, {}},
                               {"nvswitch", DeviceKind::nvswitch, 1, {}},
                               {"plx", DeviceKind::pcie_switch, gpus, {}},
                               {"nic", DeviceKind::nic, gpus, {}}},
                              std::move(network));
  spec.links = {link("gpu", "nvswitch", Wiring::all, LinkKind::nvlink, gb_per_s(300), ns(250)),
                pcie("gpu", "plx", Wiring::one_to_one), pcie("nic", "plx", Wiring::one_to_one)};
  place_links(spec);
  spec.network_devices = "nic";
  return spec;
}

Fabric build(const TopologySpec& spec, int nodes) {
  Result<Fabric> fabric = Fabric::build(spec, nodes);
  INFO(to_text(fabric.errors()));
  REQUIRE(fabric.ok());
  return *fabric;
}

std::vector<LinkId> links_of(const Fabric& fabric, int from, int to, int lane) {
  std::vector<LinkId> links;
  fabric.route(Rank(static_cast<std::uint32_t>(from)), Rank(static_cast<std::uint32_t>(to)), lane, links);
  return links;
}

std::pair<std::string, std::string> ends_of(const Fabric& fabric, LinkId link) {
  const std::string name = fabric.link_name(link);
  const std::size_t arrow = name.find(" -> ");
  REQUIRE(arrow != std::string::npos);
  return {name.substr(0, arrow), name.substr(arrow + 4)};
}

std::vector<std::string> stops(const Fabric& fabric, int from, int to, int lane) {
  std::vector<std::string> names;
  for (const LinkId link : links_of(fabric, from, to, lane)) {
    auto [start, end] = ends_of(fabric, link);
    if (names.empty()) names.push_back(start);
    REQUIRE(start == names.back());
    names.push_back(std::move(end));
  }
  return names;
}

Diagnostics refused(const TopologySpec& spec, int nodes) {
  const Result<Fabric> fabric = Fabric::build(spec, nodes);
  REQUIRE_FALSE(fabric.ok());
  return fabric.errors();
}

}  // namespace collcast::test
