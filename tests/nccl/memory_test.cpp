// What connecting takes of memory.
#include <catch2/catch.hpp>

#include <string>

#include "machines.hpp"
#include "support/counted_memory.hpp"

using namespace collcast;

TEST_CASE("connecting to a machine copies no description") {
  TopologySpec spec = test::shipped("dgx-a100");
  constexpr std::size_t length = 1000, count = 20'000;
  spec.sources.assign(count, std::string(length, 'x'));
  const Result<Fabric> fabric = Fabric::build(spec, 1);
  REQUIRE(fabric.ok());
  const Group all = Group::strided(Rank(0), 1, 8);
  const auto taken = [](const auto& work) {
    const std::size_t before = test::count_most_bytes_from_now();
    work();
    return test::counted_memory().most_bytes - before;
  };
  CHECK(taken([&] { REQUIRE(nccl::connect(*fabric, all).ok()); }) < length * count / 10);
  CHECK(taken([&] { REQUIRE(TopologySpec(spec).sources.size() == count); }) > length * count);
}
