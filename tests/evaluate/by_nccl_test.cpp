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

CollectiveRequest all_reduce(Group group, std::int64_t bytes) {
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
    CHECK(time(all_reduce(eight, size)).value() == expected);
    CHECK(time(all_reduce(eight, size)).value() == expected);
  }
  CHECK(time(all_reduce(Group::strided(Rank(0), 1, 2), 8)).value() < time(all_reduce(eight, 8)).value());
}

TEST_CASE("by_nccl follows its variables") {
  const Fabric fabric = box();
  const std::vector<nccl::Setting> settings{{"NCCL_ALGO", "ring", {}}, {"NCCL_PROTO", "simple", {}}};
  const CollectiveTime ring = by_nccl(fabric, nccl::read_environment(settings).value());
  const CollectiveRequest request = all_reduce(Group::strided(Rank(0), 1, 8), 8);
  CHECK(ring(request).value() > by_nccl(fabric)(request).value());
}

TEST_CASE("one rank and no bytes take no time; groups at once are refused") {
  const Fabric fabric = box();
  const CollectiveTime time = by_nccl(fabric);
  CHECK(time(all_reduce(Group::strided(Rank(0), 1, 1), 8)).value() == Seconds(0));
  CHECK(time(all_reduce(Group::strided(Rank(0), 1, 8), 0)).value() == Seconds(0));
  CollectiveRequest two = all_reduce(Group::strided(Rank(0), 1, 4), 8);
  two.alongside = {Group::strided(Rank(4), 1, 4)};
  CHECK(time(two).errors().front().message == "library nccl does not know groups that run at once");
}
