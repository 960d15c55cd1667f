// Star, ring, torus and mesh: lengths, order of dimensions, lanes.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "machines.hpp"

using namespace collcast;
using namespace collcast::test;
using Stops = std::vector<std::string>;

namespace {

/// Coordinates of a node, row-major.
std::vector<int> coordinates(int node, const std::vector<int>& dims) {
  std::vector<int> result(dims.size());
  for (std::size_t d = dims.size(); d-- > 0; node /= dims[d]) result[d] = node % dims[d];
  return result;
}

int product(const std::vector<int>& dims) {
  int result = 1;
  for (const int size : dims) result *= size;
  return result;
}

}  // namespace

TEST_CASE("the rate of a network's links is read and set whatever its shape, and there is none without a network") {
  const std::vector<NetworkSpec> shapes{StarNetwork{gb_per_s(10), Seconds(0)},
                                        TorusNetwork{{}, true, gb_per_s(10), Seconds(0)},
                                        LeafSpineNetwork{true, 4, 2, 1, gb_per_s(10)}};
  for (NetworkSpec shape : shapes) {
    CHECK(network_rate(shape) == gb_per_s(10));
    set_network_rate(shape, gb_per_s(25));
    CHECK(network_rate(shape) == gb_per_s(25));
  }
  NetworkSpec none;
  set_network_rate(none, gb_per_s(25));
  CHECK(network_rate(none) == Bandwidth{});
  CHECK(std::holds_alternative<std::monostate>(none));
}

TEST_CASE("a star has two links on every path") {
  const Fabric fabric = build(teaching(star()), 5);
  CHECK(fabric.links().size() == 2 * 5);
  CHECK(stops(fabric, 0, 4) == Stops{"host0", "switch", "host4"});
  CHECK(stops(fabric, 4, 0, 7) == Stops{"host4", "switch", "host0"});
  const Path path = fabric.path(Rank(1), Rank(2));
  CHECK(path.latency.count() == Approx(2 * 500e-9));
  CHECK(path.bandwidth == gb_per_s(10));
  CHECK(fabric.nics_per_node() == 0);
}

TEST_CASE("a torus route is as long as the ring distances of its coordinates together") {
  const auto dims = GENERATE(std::vector<int>{1}, std::vector<int>{2}, std::vector<int>{3}, std::vector<int>{8},
                             std::vector<int>{2, 2}, std::vector<int>{3, 4}, std::vector<int>{1, 5},
                             std::vector<int>{4, 1, 2}, std::vector<int>{2, 3, 4}, std::vector<int>{3, 1, 1, 2, 2});
  const bool wrap = GENERATE(true, false);
  const int nodes = product(dims);
  const Fabric fabric = build(teaching(torus(dims, wrap)), nodes);
  // Wrapped: a cable up from every node per dimension of 2 or more; else one less per line.
  std::size_t cables = 0;
  for (const int size : dims)
    if (size > 1) cables += static_cast<std::size_t>(wrap ? nodes : nodes / size * (size - 1));
  CHECK(fabric.links().size() == 2 * cables);
  for (int from = 0; from < nodes; ++from)
    for (int to = 0; to < nodes; ++to)
      for (const int lane : {0, 1}) {
        const auto a = coordinates(from, dims), b = coordinates(to, dims);
        int distance = 0;
        for (std::size_t d = 0; d < dims.size(); ++d) {
          const int apart = std::abs(a[d] - b[d]);
          distance += wrap ? std::min(apart, dims[d] - apart) : apart;
        }
        const Stops route = stops(fabric, from, to, lane);
        CHECK(static_cast<int>(route.size()) == (from == to ? 0 : distance + 1));
        CHECK(links_of(fabric, to, from, lane).size() == links_of(fabric, from, to, lane).size());
        CHECK(fabric.path(Rank(static_cast<std::uint32_t>(from)), Rank(static_cast<std::uint32_t>(to)), lane)
                  .latency.count() == Approx(distance * 500e-9));
      }
}

TEST_CASE("each direction between two neighbours of a torus has its own link") {
  const Fabric fabric = build(teaching(torus({3, 4}, true)), 12);
  std::set<std::pair<std::string, std::string>> joined;
  for (std::uint32_t link = 0; link < fabric.links().size(); ++link) joined.insert(ends_of(fabric, LinkId(link)));
  CHECK(joined.size() == 12 * 4);  // every node to its four neighbours
}

TEST_CASE("a torus route corrects the last dimension first") {
  // 3 x 4, row-major: host1 is (0,1), host7 is (1,3); along the row by 2, then down by 1.
  CHECK(stops(build(teaching(torus({3, 4}, false)), 12), 1, 7) == Stops{"host1", "host2", "host3", "host7"});
  // With wrap 2 is half way around 4: an odd lane goes the other way around.
  const Fabric wrapped = build(teaching(torus({3, 4}, true)), 12);
  CHECK(stops(wrapped, 1, 7, 0) == Stops{"host1", "host2", "host3", "host7"});
  CHECK(stops(wrapped, 1, 7, 1) == Stops{"host1", "host0", "host3", "host7"});
}

TEST_CASE("a ring of two has two cables, one per lane parity") {
  const Fabric fabric = build(teaching(torus({}, true)), 2);
  CHECK(fabric.links().size() == 4);
  const auto even = links_of(fabric, 0, 1, 0), odd = links_of(fabric, 0, 1, 1);
  REQUIRE(even.size() == 1);
  REQUIRE(odd.size() == 1);
  CHECK(even != odd);
  CHECK(links_of(fabric, 0, 1, 2) == even);
  // All four links are used: two ways there and two back.
  CHECK(std::set<LinkId>{even[0], odd[0], links_of(fabric, 1, 0, 0)[0], links_of(fabric, 1, 0, 1)[0]}.size() == 4);
}

TEST_CASE("half way around a ring the lane picks the direction; elsewhere it does not") {
  const Fabric fabric = build(teaching(torus({}, true)), 4);
  CHECK(stops(fabric, 0, 2, 0) == Stops{"host0", "host1", "host2"});
  CHECK(stops(fabric, 0, 2, 1) == Stops{"host0", "host3", "host2"});
  CHECK(stops(fabric, 0, 3, 0) == Stops{"host0", "host3"});
  CHECK(stops(fabric, 0, 3, 1) == Stops{"host0", "host3"});
}

TEST_CASE("without dimensions wrap means one ring and no wrap the most square mesh") {
  CHECK(build(teaching(torus({}, true)), 12).links().size() == 2 * 12);
  // 12 = 3 x 4: 3 rows of 3 cables and 4 columns of 2; 7 = 1 x 7 is a line.
  CHECK(build(teaching(torus({}, false)), 12).links().size() == 2 * (3 * 3 + 4 * 2));
  CHECK(build(teaching(torus({}, false)), 7).links().size() == 2 * 6);
  CHECK(build(teaching(torus({}, false)), 16).links().size() == 2 * (4 * 3 + 4 * 3));
}

TEST_CASE("each NIC of a node has a torus of its own, and the sender takes the receiver's") {
  const Fabric fabric = build(pcie_box(torus({}, true)), 3);
  CHECK(fabric.nics_per_node() == 2);
  // gpu0 is near nic0, gpu3 near nic1: the sender crosses its sockets to nic1.
  CHECK(stops(fabric, 0, 4 + 3) ==
        Stops{"node0.gpu0", "node0.cpu0", "node0.cpu1", "node0.nic1", "node1.nic1", "node1.cpu1", "node1.gpu3"});
}

TEST_CASE("a machine of one node on a torus has no network links") {
  const Fabric fabric = build(teaching(torus({}, GENERATE(true, false))), 1);
  CHECK(fabric.links().empty());
  CHECK(links_of(fabric, 0, 0).empty());
}

TEST_CASE("other rates on a machine's links leave its routes as they are") {
  const Fabric fabric = build(teaching(star()), 5);
  std::vector<Link> links(fabric.links().begin(), fabric.links().end());
  const Stops way = stops(fabric, 1, 2);
  std::vector<LinkId> route;
  fabric.route(Rank(1), Rank(2), 0, route);
  links[route.front().value()].bandwidth = gb_per_s(2.5);
  links[route.back().value()].latency = ns(900);
  const Fabric slower = fabric.with_links(links);
  CHECK(stops(slower, 1, 2) == way);
  CHECK(slower.path(Rank(1), Rank(2)).bandwidth == gb_per_s(2.5));
  CHECK(slower.path(Rank(1), Rank(2)).latency.count() == Approx(500e-9 + 900e-9));
  CHECK(slower.path(Rank(3), Rank(4)).bandwidth == gb_per_s(10));
  CHECK(fabric.path(Rank(1), Rank(2)).bandwidth == gb_per_s(10));
  CHECK(slower.link_name(route.front()) == fabric.link_name(route.front()));
}

TEST_CASE("drives come first on a way, each lane's own, and leave the rest as it is") {
  const Fabric fabric = build(teaching(star()), 4);
  const Fabric driven = fabric.with_drives(3, gb_per_s(2), {0, 1});
  REQUIRE(driven.links().size() == fabric.links().size() + 4 * 3);
  for (const int lane : {0, 1, 2, 3, 4}) {
    std::vector<LinkId> way, plain;
    driven.route(Rank(2), Rank(1), lane, way);
    fabric.route(Rank(2), Rank(1), lane % 2, plain);
    REQUIRE(way.size() == plain.size() + 1);
    // Rank 2's drives follow those of ranks 0 and 1.
    CHECK(way.front().value() == fabric.links().size() + 2 * 3 + static_cast<std::size_t>(lane % 3));
    CHECK(std::vector<LinkId>(way.begin() + 1, way.end()) == plain);
    CHECK(driven.link_name(way.front()) == "host2, lane " + std::to_string(lane % 3));
  }
  CHECK(driven.path(Rank(2), Rank(1)).bandwidth == gb_per_s(2));
  CHECK(driven.path(Rank(2), Rank(1)).latency == fabric.path(Rank(2), Rank(1)).latency);
  std::vector<LinkId> none;
  driven.route(Rank(1), Rank(1), 0, none);
  CHECK(none.empty());
}

TEST_CASE("behind drives lanes go the ways of the lanes that are named") {
  const Fabric fabric = build(dgx(star()), 2);
  const Fabric driven = fabric.with_drives(3, gb_per_s(2), {8, 1, 9});
  for (int lane = 0; lane < 9; ++lane) {
    const int of = std::vector<int>{8, 1, 9}[static_cast<std::size_t>(lane % 3)];
    std::vector<LinkId> way, plain;
    driven.route(Rank(2), Rank(11), lane, way);
    fabric.route(Rank(2), Rank(11), of, plain);
    CHECK(std::vector<LinkId>(way.begin() + 1, way.end()) == plain);
    CHECK(driven.nic_of(Rank(2), lane) == fabric.nic_of(Rank(2), of));
    CHECK(stops(fabric, 2, 11, of)[2] == "node0.nic" + std::to_string(fabric.nic_of(Rank(2), of)));
  }
}

TEST_CASE("drives between nodes are apart by the number of the node that is sent to") {
  const Fabric fabric = build(teaching(star()), 16);
  const Fabric driven = fabric.with_drives(2, gb_per_s(8), {0, 1}, Fabric::DrivesBetweenNodes{gb_per_s(2), 5});
  CHECK(driven.links().size() == fabric.links().size() + 16 * 2 * 6);  // one inside, five to others
  CHECK(driven.path(Rank(8), Rank(4)).bandwidth == gb_per_s(2));
  for (const int lane : {0, 1}) {
    std::set<LinkId> drives;
    for (const std::uint32_t to : {0U, 4U, 12U}) {  // 0, 4 and 2 modulo 5
      std::vector<LinkId> way;
      driven.route(Rank(8), Rank(to), lane, way);
      drives.insert(way.front());
      CHECK(driven.link_name(way.front()) ==
            "host8, lane " + std::to_string(lane) + " to other nodes, way " + std::to_string(to % 5));
    }
    CHECK(drives.size() == 3);
    std::vector<LinkId> way;
    driven.route(Rank(8), Rank(9), lane, way);  // 4 modulo 5, as 4 is
    CHECK(drives.contains(way.front()));
  }
}
