// NCCL behind the function type that every library answers.
#include "collcast/evaluate/by_nccl.hpp"

#include <catch2/catch.hpp>

using namespace collcast;

namespace {

/// Eight H100 on a switch.
Fabric box() {
  TopologySpec spec;
  spec.name = "box";
  spec.gpu.model = "H100";
  spec.devices = {{"gpu", DeviceKind::gpu, 8, {}}, {"nvswitch", DeviceKind::nvswitch, 1, {}}};
  LinkGroup link;
  link.from = "gpu";
  link.to = "nvswitch";
  link.kind = LinkKind::nvlink;
  link.bandwidth = Bandwidth(450e9);
  link.latency = Seconds(500e-9);
  spec.links = {link};
  return Fabric::build(spec, 1).value();
}

/// Two nodes of four A100 on a switch, with one NIC of 25 GB/s each, and others that no network of it joins.
Fabric two_boxes_with_one_nic(int idle_nics = 0) {
  TopologySpec spec;
  spec.name = "boxes";
  spec.gpu.model = "A100";
  spec.devices = {{"gpu", DeviceKind::gpu, 4, {}},
                  {"nvswitch", DeviceKind::nvswitch, 1, {}},
                  {"pcie", DeviceKind::pcie_switch, 1, {}},
                  {"nic", DeviceKind::nic, 1, {}}};
  const auto link = [](const char* from, const char* to, LinkKind kind, double rate) {
    LinkGroup out;
    out.from = from;
    out.to = to;
    out.kind = kind;
    out.bandwidth = Bandwidth(rate);
    out.latency = Seconds(500e-9);
    return out;
  };
  spec.links = {link("gpu", "nvswitch", LinkKind::nvlink, 300e9), link("gpu", "pcie", LinkKind::pcie, 31.5e9),
                link("nic", "pcie", LinkKind::pcie, 31.5e9)};
  if (idle_nics > 0) {
    spec.devices.push_back({"storage", DeviceKind::nic, idle_nics, {}});
    spec.links.push_back(link("storage", "pcie", LinkKind::pcie, 31.5e9));
  }
  spec.network_devices = "nic";
  StarNetwork network;
  network.bandwidth = Bandwidth(25e9);
  network.latency = Seconds(1e-6);
  spec.network = network;
  return Fabric::build(spec, 2).value();
}

CollectiveRequest all_reduce_of(Group group, std::int64_t bytes) {
  return {CollectiveKind::all_reduce, std::move(group), Bytes(bytes), 0, {}};
}

}  // namespace

TEST_CASE("by_nccl answers with the run of what NCCL plans") {
  const Fabric fabric = box();
  const CollectiveTime time = by_nccl(fabric);
  const Group eight = Group::strided(Rank(0), 1, 8);
  const nccl::Communicator c = nccl::connect(fabric, eight).value();
  for (const std::int64_t size : {std::int64_t{8}, std::int64_t{1} << 20, std::int64_t{1} << 30}) {
    const nccl::Plan plan = nccl::plan(c, CollectiveKind::all_reduce, Bytes(size)).value();
    const Seconds expected = nccl::run(c, CollectiveKind::all_reduce, Bytes(size), plan).time();
    CHECK(time(all_reduce_of(eight, size)).value() == expected);
    CHECK(time(all_reduce_of(eight, size)).value() == expected);
  }
  CHECK(time(all_reduce_of(Group::strided(Rank(0), 1, 2), 8)).value() < time(all_reduce_of(eight, 8)).value());
}

TEST_CASE("by_nccl follows its variables") {
  const Fabric fabric = box();
  const std::vector<nccl::Setting> settings{{"NCCL_ALGO", "ring", {}}, {"NCCL_PROTO", "simple", {}}};
  const CollectiveTime ring = by_nccl(fabric, nccl::read_environment(settings).value());
  const CollectiveRequest request = all_reduce_of(Group::strided(Rank(0), 1, 8), 8);
  CHECK(ring(request).value() > by_nccl(fabric)(request).value());
}

TEST_CASE("one rank and no bytes take no time") {
  const Fabric fabric = box();
  const CollectiveTime time = by_nccl(fabric);
  CHECK(time(all_reduce_of(Group::strided(Rank(0), 1, 1), 8)).value() == Seconds(0));
  CHECK(time(all_reduce_of(Group::strided(Rank(0), 1, 8), 0)).value() == Seconds(0));
}

TEST_CASE("groups at once share a node's NICs, and nothing inside a node") {
  const Fabric fabric = two_boxes_with_one_nic();
  const CollectiveTime time = by_nccl(fabric);
  const std::int64_t gib = std::int64_t{1} << 30;
  const auto pair = [](std::uint32_t first) { return Group::strided(Rank(first), 4, 2); };
  CollectiveRequest request = all_reduce_of(pair(0), gib);
  const double alone = time(request).value().count();
  request.alongside = {pair(1), pair(2), pair(3)};
  // Two ranks send N each; four pairs share 25 GB/s, of which 0.975 are reached. What a run takes beside its data is
  // less than a hundredth of it. Alone a pair is bound by its channels.
  CHECK(time(request).value().count() == Approx(4.0 * gib / (0.975 * 25e9)).epsilon(0.01));
  CHECK(alone < time(request).value().count() / 2);
  CollectiveRequest inside = all_reduce_of(Group::strided(Rank(0), 1, 2), gib);
  const Seconds two = time(inside).value();
  inside.alongside = {Group::strided(Rank(2), 1, 2), pair(0)};
  CHECK(time(inside).value() == two);
  // Wherever a group sits, it takes the same.
  CHECK(time(all_reduce_of(Group::strided(Rank(4), 1, 2), gib)).value() == two);
}

TEST_CASE("groups at once share the NICs of the network alone") {
  const Fabric fabric = two_boxes_with_one_nic(), more = two_boxes_with_one_nic(4);
  CollectiveRequest request = all_reduce_of(Group::strided(Rank(0), 4, 2), std::int64_t{1} << 30);
  for (const std::uint32_t first : {1U, 2U, 3U}) request.alongside.push_back(Group::strided(Rank(first), 4, 2));
  CHECK(by_nccl(more)(request).value() == by_nccl(fabric)(request).value());
}
