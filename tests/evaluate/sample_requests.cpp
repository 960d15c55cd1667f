#include "sample_requests.hpp"

#include <catch2/catch.hpp>

#include <random>

#include "agreement/answers.hpp"
#include "support/small_fabrics.hpp"

namespace collcast::test {

using enum CollectiveKind;

Fabric pods(int nodes, bool rails, int spines) {
  const auto link = [](const char* from, const char* to, Wiring wiring, double rate, double latency) {
    LinkGroup group;
    group.from = from;
    group.to = to;
    group.wiring = wiring;
    group.kind = LinkKind::pcie;
    group.bandwidth = Bandwidth(rate);
    group.latency = Seconds(latency);
    return group;
  };
  TopologySpec spec;
  spec.name = "pods";
  spec.devices = {
      {"gpu", DeviceKind::gpu, 4, {}}, {"nvswitch", DeviceKind::nvswitch, 1, {}}, {"nic", DeviceKind::nic, 2, {}}};
  spec.links = {link("gpu", "nvswitch", Wiring::all, 200e9, 300e-9), link("gpu", "nic", Wiring::spread, 30e9, 250e-9)};
  spec.network_devices = "nic";
  LeafSpineNetwork net;
  net.rail_optimized = rails;
  net.nodes_per_leaf = 3;
  net.spines = spines;
  net.oversubscription = 2;
  net.bandwidth = Bandwidth(25e9);
  net.latency = Seconds(500e-9);
  net.spine_latency = Seconds(200e-9);
  spec.network = net;
  const auto fabric = Fabric::build(spec, nodes);
  REQUIRE(to_text(fabric.errors()) == "");
  return fabric.value();
}

std::vector<Fabric> machines() {
  return {pods(9, true, 2), pods(9, false, 2), cluster_fabric(6, 4, Bandwidth(300e9), Bandwidth(25e9), Seconds(1e-6)),
          ring_fabric(12, Bandwidth(10e9), Seconds(1e-6)), star_fabric(12, Bandwidth(10e9), Seconds(2e-6))};
}

std::vector<CollectiveRequest> requests(const Fabric& fabric, int count) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<CollectiveRequest> all;
  while (static_cast<int>(all.size()) < count) {
    const int size = 2 + below(5), stride = 1 + below(5);
    const int span = (size - 1) * stride + 1;
    if (span > fabric.rank_count()) continue;
    const auto first = static_cast<std::uint32_t>(below(fabric.rank_count() - span + 1));
    const CollectiveKind kinds[] = {all_reduce, all_gather, reduce_scatter, broadcast};
    CollectiveRequest r{
        kinds[below(4)], Group::strided(Rank(first), stride, size), Bytes(std::int64_t{1} << below(31)), 0, {}};
    if (stride > 1 && first + static_cast<std::uint32_t>(span) < static_cast<std::uint32_t>(fabric.rank_count()))
      r.alongside.push_back(Group::strided(Rank(first + 1), stride, size));
    if (below(3) == 0) r.group = Group::listed({r.group[1], r.group[0]});
    if (below(3) == 0 && !r.alongside.empty()) r.alongside.clear();
    all.push_back(std::move(r));
  }
  return all;
}

}  // namespace collcast::test
