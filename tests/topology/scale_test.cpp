// Fabrics of the size of real installations are their links and one node's routes.
#include <catch2/catch.hpp>

#include "machines.hpp"

using namespace collcast;
using namespace collcast::test;

TEST_CASE("12512 nodes of 8 GPUs on rails are built and routed end to end") {
  // 32 nodes per pod: 391 pods of 8 leaves, 16 spines.
  const Fabric fabric = build(dgx(rails(32, 16, 1)), 12'512);
  CHECK(fabric.rank_count() == 100'096);
  // Per node 8 NVLink, 8 + 8 + 4 PCIe and 1 socket cable, 8 NICs; 391 * 8 leaves to 16 spines each.
  CHECK(fabric.links().size() == 2u * (12'512 * (8 + 20 + 1 + 8) + 391 * 8 * 16));
  // Two bytes-heavy things are kept: links (here 24 MB) and the routes of one node.
  CHECK(fabric.links().size_bytes() < 100'000'000);
  // The last rank: node 12511 is port 12511 mod 32 = 31 of leaf 390 * 8 + 7, so lane 0 takes spine 15.
  CHECK(stops(fabric, 0, 100'095) == std::vector<std::string>{"node0.gpu0", "node0.plx0", "node0.nic0", "leaf0",
                                                              "spine15", "leaf3127", "node12511.nic7", "node12511.plx3",
                                                              "node12511.gpu7"});
}

TEST_CASE("a ring of 65536 ranks is 131072 links") {
  const Fabric fabric = build(teaching(torus({}, true)), 65'536);
  CHECK(fabric.links().size() == 131'072);
  CHECK(links_of(fabric, 65'535, 0).size() == 1);
  CHECK(links_of(fabric, 0, 32'768).size() == 32'768);
  CHECK(links_of(fabric, 0, 65'000).size() == 536);
}

TEST_CASE("a node of 576 GPUs on one switch is routed") {
  TopologySpec spec = isolated_rails(576, rails(4, 2, 1));
  const Fabric fabric = build(spec, 2);
  CHECK(stops(fabric, 575, 0) == std::vector<std::string>{"node0.gpu575", "node0.nvswitch0", "node0.gpu0"});
}
