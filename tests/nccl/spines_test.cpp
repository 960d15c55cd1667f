// Leaves whose uplinks carry less than their nodes send: the closed form has their busiest uplink, as the simulation.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "collcast/evaluate/by_nccl.hpp"
#include "collcast/nccl/program.hpp"
#include "machines.hpp"

using namespace collcast;
using nccl::Algorithm;
using nccl::Communicator;
using nccl::Protocol;

namespace {

using Sets = std::vector<std::string>;

/// A network of small leaves.
struct Network {
  const char* machine;
  int nodes;
  Sets sets;
};
std::vector<Network> networks() {
  const Sets rails{"network.nodes_per_leaf=2", "network.spines=2"};
  const Sets plain{"network.rail_optimized=false", "network.nodes_per_leaf=4", "network.spines=4"};
  const Sets pairs{"network.rail_optimized=false", "network.nodes_per_leaf=2", "network.spines=8"};
  return {{"dgx-h100", 4, rails}, {"dgx-h100", 8, rails}, {"dgx-h100", 8, plain},
          {"dgx-h100", 6, pairs}, {"dgx-a100", 4, rails}, {"dgx-a100", 8, plain}};
}

Sets with(Sets sets, double oversubscription) {
  sets.push_back("network.oversubscription=" + std::to_string(oversubscription));
  return sets;
}

/// All GPUs, or the first of each node.
Group ranks_of(const Fabric& fabric, bool all) {
  const int gpus = fabric.ranks_per_node();
  return all ? Group::strided(Rank(0), 1, fabric.rank_count()) : Group::strided(Rank(0), gpus, fabric.nodes());
}

struct Asked {
  CollectiveKind kind;
  std::optional<std::pair<Algorithm, Protocol>> as;
  std::string text() const {
    return std::string(to_string(kind)) +
           (as ? " " + std::string(to_string(as->first)) + " " + std::string(to_string(as->second)) : "");
  }
};
std::vector<Asked> all_asked(const Communicator& c) {
  std::vector<Asked> out;
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::broadcast})
    for (const auto& choice : test::choices(c, kind)) out.push_back({kind, choice});
  for (const CollectiveKind kind :
       {CollectiveKind::alltoall, CollectiveKind::sendrecv, CollectiveKind::scatter, CollectiveKind::gather})
    out.push_back({kind, {}});
  return out;
}

nccl::Plan plan_of(const Communicator& c, const Asked& asked, Bytes size) {
  if (asked.as) return test::planned_as(c, asked.kind, size, asked.as->first, asked.as->second);
  const auto plan = nccl::plan(c, asked.kind, size);
  REQUIRE(plan.ok());
  return *plan;
}

Communicator connected(const Fabric& fabric, const Group& group, bool relays = true) {
  const auto c = nccl::connect(fabric, group, test::environment({{"NCCL_PXN_DISABLE", relays ? "0" : "1"}}));
  REQUIRE(c.ok());
  return *c;
}

double closed(const Communicator& c, const Asked& asked, Bytes size) {
  return test::us(nccl::run(c, asked.kind, size, plan_of(c, asked, size)).time());
}

double simulated_time(const Fabric& fabric, const Group& group, const Communicator& c, const Asked& asked, Bytes size) {
  const auto program = nccl::program(fabric, group, c, asked.kind, size, plan_of(c, asked, size));
  REQUIRE(program.ok());
  return test::us(*simulate(*program));
}

}  // namespace

TEST_CASE(
    "leaves that carry upwards what comes from below have no load of spines, thinner ones where they are passed") {
  const Sets rails{"network.nodes_per_leaf=2", "network.spines=2"};
  const auto loads = [&](int nodes, double oversubscription, bool relays = true) {
    const Fabric fabric = test::built("dgx-h100", nodes, with(rails, oversubscription));
    return connected(fabric, ranks_of(fabric, true), relays).spines;
  };
  CHECK_FALSE(loads(4, 1));
  CHECK_FALSE(loads(4, 0.5));
  CHECK_FALSE(loads(2, 8));   // on one leaf of each rail, where PXN keeps to rails
  CHECK(loads(2, 8, false));  // without, pairs change rails over spines
  const auto four = loads(4, 4);
  REQUIRE(four);
  // Two NICs of 50 GB/s below a leaf, a quarter of it up, on two uplinks.
  CHECK(four->uplink.value() == Approx(2 * 50e9 / (4 * 2)));
  // A rank of a node on the leaf sends to the 2 x 8 on other leaves, by the receiver's rail: 16 x 2 parts, half by
  // either spine.
  CHECK(four->alltoall.busiest.front() == Approx(16));
  // Each rail has both of its channels at a leaf's edge, to nodes of one place.
  const Fabric fabric = test::built("dgx-h100", 4, with(rails, 4));
  const Communicator c = connected(fabric, ranks_of(fabric, true));
  REQUIRE(c.spines->rings.busiest.size() == static_cast<std::size_t>(c.channels));
  CHECK(std::ranges::is_sorted(c.spines->rings.busiest));
  CHECK(c.spines->rings.busiest.back() == Approx(c.channels / 8.0));
  CHECK(c.spines->ring_share == Approx(0.5));
}

TEST_CASE("an alltoall loads uplinks as the routes of all its pairs do, of alike nodes and of unlike ones") {
  const auto some = [](const Fabric& fabric, int less) {  // of every node that many fewer than of the last one
    std::vector<Rank> ranks;
    for (int rank = 0; rank < fabric.rank_count(); ++rank)
      if (rank % fabric.ranks_per_node() + less * (rank / fabric.ranks_per_node() % 3) < fabric.ranks_per_node())
        ranks.emplace_back(static_cast<std::uint32_t>(rank));
    return Group::listed(std::move(ranks));
  };
  for (const Network& network : networks())
    for (const int less : {0, 1, 3})
      for (const bool relays : {true, false}) {
        INFO(network.machine << ' ' << network.nodes << ", less " << less << (relays ? "" : ", no relays"));
        const Fabric fabric = test::built(network.machine, network.nodes, with(network.sets, 8));
        const Group group = some(fabric, less);
        const Communicator c = connected(fabric, group, relays);
        REQUIRE(c.spines);
        const Asked asked{CollectiveKind::alltoall, {}};
        const auto program =
            nccl::program(fabric, group, c, asked.kind, Bytes(1 << 20), plan_of(c, asked, Bytes(1 << 20)));
        REQUIRE(program.ok());
        std::map<LinkId, double> loads;
        std::vector<LinkId> way;
        for (int turn = 0; turn < c.pairs.nics_of_gpu; ++turn)
          for (int from = 0; from < group.size(); ++from)
            for (int to = 0; to < group.size(); ++to) {
              if (fabric.node_of(group[from]) == fabric.node_of(group[to])) continue;
              way.clear();
              program->machine.route(group[from], group[to], turn * fabric.ranks_per_node(), way);
              for (const LinkId link : way)
                if (program->machine.joins_leaf_to_spine(link)) loads[link] += 1.0 / c.pairs.nics_of_gpu;
            }
        REQUIRE(loads.size() == c.spines->alltoall.by_link.size());
        for (const auto& [link, load] : c.spines->alltoall.by_link) CHECK(load == Approx(loads.at(link)));
      }
}

TEST_CASE("thinner uplinks are never quicker, by either method, and as thin as that they take in proportion") {
  for (const Network& network : networks())
    for (const bool all : {true, false})
      for (const std::int64_t size : {std::int64_t{256} << 10, std::int64_t{64} << 20}) {
        std::vector<double> last;
        for (const double o : {1.0, 1.001, 1.5, 2.0, 4.0, 16.0, 400.0, 800.0}) {
          const Fabric fabric = test::built(network.machine, network.nodes, with(network.sets, o));
          const Group group = ranks_of(fabric, all);
          const Communicator c = connected(fabric, group);
          std::vector<double> now;
          for (const Asked& asked : all_asked(c)) now.push_back(closed(c, asked, Bytes(size)));
          REQUIRE((last.empty() || last.size() == now.size()));
          const std::vector<Asked> asked = all_asked(c);
          for (std::size_t i = 0; i < last.size(); ++i) {
            INFO(network.machine << ' ' << network.nodes << ' ' << asked[i].text() << ' ' << size << " at " << o);
            CHECK(now[i] >= last[i] * (1 - 1e-9));
            if (o == 800 && now[i] > 1.5 * last[i]) CHECK(now[i] < 2.01 * last[i]);
          }
          last = std::move(now);
        }
      }
}

TEST_CASE("closed form and simulation of oversubscribed leaves are as near as docs/nccl.md says") {
  std::vector<double> off;
  for (const Network& network : networks())
    for (const bool all : {true, false}) {
      std::vector<double> simulations;
      for (const double o : {1.0, 2.0, 8.0}) {
        const Fabric fabric = test::built(network.machine, network.nodes, with(network.sets, o));
        const Group group = ranks_of(fabric, all);
        const Communicator c = connected(fabric, group);
        std::size_t at = 0;
        for (const Asked& asked : all_asked(c)) {
          const Bytes size(16 << 20);
          INFO(network.machine << ' ' << network.nodes << (all ? " all " : " one ") << asked.text() << " at " << o);
          const double ratio_of = simulated_time(fabric, group, c, asked, size),
                       ratio = ratio_of / closed(c, asked, size);
          const bool is_nvls = asked.as && asked.as->first == Algorithm::nvls_tree;
          if (o > 1) {
            CHECK(ratio > 0.86);
            CHECK(ratio < (is_nvls ? 1.6 : 1.17));
            off.push_back(std::abs(ratio - 1));
          }
          // The simulation, too, is never quicker over thinner ones.
          if (at < simulations.size()) CHECK(ratio_of >= simulations[at] * 0.9999);
          at < simulations.size() ? void(simulations[at] = ratio_of) : simulations.push_back(ratio_of);
          ++at;
        }
      }
    }
  std::ranges::sort(off);
  CHECK(off[off.size() / 2] < 0.01);
  CHECK(off[off.size() * 9 / 10] < 0.06);
}

TEST_CASE("groups at once share the spines that both pass, and others none") {
  // Every other node: one of four nodes each, of all GPUs; a pod has two, of either group one.
  const Sets sets{"network.rail_optimized=false", "network.nodes_per_leaf=2", "network.spines=1",
                  "network.oversubscription=16"};
  const Fabric fabric = test::built("dgx-h100", 8, sets);
  const auto of_nodes = [](std::initializer_list<unsigned> nodes) {
    std::vector<Rank> ranks;
    for (const unsigned node : nodes)
      for (unsigned gpu = 0; gpu < 8; ++gpu) ranks.emplace_back(8 * node + gpu);
    return Group::listed(ranks);
  };
  const auto price = by_nccl(fabric, nccl::Environment{});
  const auto time = [&](CollectiveKind kind, std::vector<Group> alongside) {
    CollectiveRequest request{kind, of_nodes({0, 2}), Bytes(256 << 20), 0, {}};
    request.alongside = std::move(alongside);
    return price(request).value().count();
  };
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::alltoall}) {
    INFO(to_string(kind));
    const double alone = time(kind, {});
    CHECK(time(kind, {of_nodes({1, 3})}) == Approx(2 * alone).epsilon(0.05));
    CHECK(time(kind, {of_nodes({4, 6})}) == Approx(alone));
  }
}
