// What holds for every route of every fabric, checked on all pairs of small ones.
#include <catch2/catch.hpp>

#include <limits>
#include <set>

#include "machines.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

struct Case {
  const char* name;
  TopologySpec spec;
  int nodes;
};

std::vector<Case> cases() {
  return {{"ring of 1", teaching(torus({}, true)), 1},
          {"ring of 2", teaching(torus({}, true)), 2},
          {"ring of 9", teaching(torus({}, true)), 9},
          {"mesh of 12", teaching(torus({}, false)), 12},
          {"torus 2x3x4", teaching(torus({2, 3, 4}, true)), 24},
          {"star of 7", teaching(star()), 7},
          {"hosts on leaves", teaching(plain_leaves(3, 2, 1.5)), 8},
          {"one dgx", dgx(std::monostate()), 1},
          {"dgx on a star", dgx(star()), 2},
          {"dgx on rails with spines", dgx(rails(2, 3, 2)), 5},
          {"dgx on rails alone", dgx(rails(4, 0, 1)), 3},
          {"dgx on plain leaves", dgx(plain_leaves(2, 2, 1)), 3},
          {"dgx on a torus", dgx(torus({2, 2}, true)), 4},
          {"pcie boxes on rails", pcie_box(rails(2, 2, 1)), 4},
          {"pcie boxes on a ring", pcie_box(torus({}, true)), 5},
          {"isolated rails", isolated_rails(3, rails(2, 2, 1)), 4}};
}

std::string endpoint_name(const Fabric& fabric, int rank) {
  const std::string group = fabric.spec().devices.front().name;
  const int per_node = fabric.ranks_per_node();
  if (fabric.spec().teaching) return group + std::to_string(rank);
  return "node" + std::to_string(rank / per_node) + "." + group + std::to_string(rank % per_node);
}

bool is_endpoint_or_nic(const std::string& name) {
  return name.find("gpu") != std::string::npos || name.find("host") != std::string::npos ||
         name.find("nic") != std::string::npos;
}

}  // namespace

TEST_CASE("every route begins and ends right, hangs together and visits no device twice") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const Fabric fabric = build(c.spec, c.nodes);
    REQUIRE(fabric.nodes() == c.nodes);
    REQUIRE(fabric.rank_count() == c.nodes * fabric.ranks_per_node());
    for (int from = 0; from < fabric.rank_count(); ++from)
      for (int to = 0; to < fabric.rank_count(); ++to)
        for (int lane = 0; lane < 3; ++lane) {
          const std::vector<std::string> route = stops(fabric, from, to, lane);  // contiguous, or it fails
          if (from == to) {
            REQUIRE(route.empty());
            continue;
          }
          REQUIRE(route.size() >= 2);
          REQUIRE(route.front() == endpoint_name(fabric, from));
          REQUIRE(route.back() == endpoint_name(fabric, to));
          REQUIRE(std::set<std::string>(route.begin(), route.end()).size() == route.size());
        }
  }
}

TEST_CASE("inside a node nothing passes through a GPU, a host or a NIC") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const Fabric fabric = build(c.spec, c.nodes);
    for (int from = 0; from < fabric.ranks_per_node(); ++from)
      for (int to = 0; to < fabric.ranks_per_node(); ++to) {
        const std::vector<std::string> route = stops(fabric, from, to);
        for (std::size_t i = 1; i + 1 < route.size(); ++i) REQUIRE_FALSE(is_endpoint_or_nic(route[i]));
      }
  }
}

TEST_CASE("a path is the sum of its links' latencies and their smallest bandwidth") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const Fabric fabric = build(c.spec, c.nodes);
    for (int from = 0; from < fabric.rank_count(); ++from)
      for (int to = 0; to < fabric.rank_count(); ++to) {
        Seconds latency{0};
        Bandwidth bandwidth(std::numeric_limits<double>::infinity());
        for (const LinkId link : links_of(fabric, from, to, 1)) {
          latency += fabric.links()[link.value()].latency;
          bandwidth = std::min(bandwidth, fabric.links()[link.value()].bandwidth);
        }
        const Path path = fabric.path(Rank(static_cast<std::uint32_t>(from)), Rank(static_cast<std::uint32_t>(to)), 1);
        REQUIRE(path.latency == latency);
        REQUIRE(path.bandwidth == bandwidth);
      }
  }
}

TEST_CASE("links 2c and 2c+1 are the directions of one cable") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const Fabric fabric = build(c.spec, c.nodes);
    REQUIRE(fabric.links().size() % 2 == 0);
    for (std::uint32_t link = 0; link < fabric.links().size(); link += 2) {
      const auto [from, to] = ends_of(fabric, LinkId(link));
      REQUIRE(from != to);
      REQUIRE(ends_of(fabric, LinkId(link + 1)) == std::pair(to, from));
      REQUIRE(fabric.links()[link].bandwidth == fabric.links()[link + 1].bandwidth);
      REQUIRE(fabric.links()[link].latency == fabric.links()[link + 1].latency);
    }
  }
}

TEST_CASE("routes only add to what they are given, and a lane gives the same route each time") {
  const Fabric fabric = build(dgx(rails(2, 2, 1)), 4);
  std::vector<LinkId> out = links_of(fabric, 0, 1);
  const std::vector<LinkId> before = out;
  fabric.route(Rank(3), Rank(20), 5, out);
  const std::vector<LinkId> added(out.begin() + static_cast<std::ptrdiff_t>(before.size()), out.end());
  CHECK(std::equal(before.begin(), before.end(), out.begin()));
  CHECK(added == links_of(fabric, 3, 20, 5));
  CHECK(added == links_of(build(dgx(rails(2, 2, 1)), 4), 3, 20, 5));
}

TEST_CASE("ranks are numbered node by node") {
  const Fabric fabric = build(pcie_box(star()), 3);
  CHECK(fabric.ranks_per_node() == 4);
  CHECK(fabric.node_of(Rank(0)) == NodeId(0));
  CHECK(fabric.node_of(Rank(3)) == NodeId(0));
  CHECK(fabric.node_of(Rank(4)) == NodeId(1));
  CHECK(fabric.node_of(Rank(11)) == NodeId(2));
}

TEST_CASE("a rank reaches itself at once") {
  const Fabric fabric = build(dgx(star()), 2);
  CHECK(links_of(fabric, 5, 5, 3).empty());
  CHECK(fabric.path(Rank(5), Rank(5)).latency == Seconds(0));
  CHECK(fabric.path(Rank(5), Rank(5)).bandwidth.value() == std::numeric_limits<double>::infinity());
}
