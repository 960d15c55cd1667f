// Directions that a closed form must go as links get faster, each described and searched anew: where NCCL chooses alike
// and its channels are as many and go the same ways, nothing takes longer. And as what a calibration says is slower.
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collcast/evaluate/by_nccl.hpp"
#include "collcast/nccl/program.hpp"
#include "machines.hpp"

using namespace collcast;
using nccl::Communicator;
using nccl::Graph;

namespace {

bool same_ways(const Graph& a, const Graph& b) {
  const auto nics = [](const nccl::ChannelNics& x, const nccl::ChannelNics& y) {
    return x.in == y.in && x.out == y.out;
  };
  const auto nodes = [&](const nccl::NodeChannels& x, const nccl::NodeChannels& y) {
    return x.order == y.order && std::ranges::equal(x.nics, y.nics, nics);
  };
  return a.pattern == b.pattern && a.channels == b.channels && a.order == b.order && a.type_inside == b.type_inside &&
         a.type_between == b.type_between && std::ranges::equal(a.nics, b.nics, nics) &&
         std::ranges::equal(a.elsewhere, b.elsewhere, nodes);
}

bool same_channels(const Communicator& a, const Communicator& b) {
  return a.channels == b.channels && a.nvls_channels == b.nvls_channels && a.p2p_channels == b.p2p_channels &&
         a.p2p_channels_per_peer == b.p2p_channels_per_peer && a.pairs.relayed == b.pairs.relayed &&
         a.nvlink == b.nvlink && same_ways(a.ring, b.ring) && same_ways(a.tree, b.tree) &&
         a.nvls.has_value() == b.nvls.has_value() && (!a.nvls || same_ways(*a.nvls, *b.nvls));
}

/// Of every kind, algorithm and protocol that there is.
struct Timed {
  std::string what;
  nccl::Plan plan;
  double us = 0;
};
std::vector<Timed> timed(const Communicator& c, std::int64_t bytes) {
  std::vector<Timed> out;
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::broadcast,
                                    CollectiveKind::alltoall, CollectiveKind::sendrecv}) {
    const auto add = [&](const std::string& what, const nccl::Plan& plan) {
      out.push_back(
          {std::string(to_string(kind)) + " " + what, plan, test::us(nccl::run(c, kind, Bytes(bytes), plan).time())});
    };
    if (nccl::is_point_to_point(kind)) {
      const auto plan = nccl::plan(c, kind, Bytes(bytes));
      if (plan.ok()) add("", *plan);
      continue;
    }
    for (const auto& [algorithm, protocol] : test::choices(c, kind))
      add(std::string(to_string(algorithm)) + " " + std::string(to_string(protocol)),
          test::planned_as(c, kind, Bytes(bytes), algorithm, protocol));
  }
  return out;
}

std::vector<int> all_of(const std::string& machine, int nodes) {
  return std::vector<int>(static_cast<std::size_t>(nodes), test::built(machine, nodes).ranks_per_node());
}

/// What nodes with unlike numbers of GPUs find, each among its like; nothing where all are alike.
std::vector<Communicator> searched(const Fabric& fabric, const std::vector<int>& gpus) {
  std::vector<Communicator> out;
  if (std::ranges::adjacent_find(gpus, std::not_equal_to<>()) == gpus.end()) return out;
  for (const int one : gpus)
    if (const auto c = nccl::connect(fabric, test::first_of_nodes(fabric, {one, one})); c.ok()) out.push_back(*c);
  return out;
}

/// From one rate of what `set` says to the next, a step of them higher, in GB/s; on as many of each node's GPUs.
void sweep(const std::string& machine, const std::vector<int>& gpus, const std::string& set, double least, double most,
           double step) {
  const int nodes = static_cast<int>(gpus.size());
  std::optional<Communicator> before;
  std::vector<Communicator> before_alone;
  std::vector<Timed> with_less;
  double last = 0;
  for (double rate = least; rate <= most; rate *= step) {
    const Fabric fabric = test::built(machine, nodes, {set + "=" + std::to_string(rate) + "GB/s"});
    const auto c = nccl::connect(fabric, test::first_of_nodes(fabric, gpus));
    if (!c.ok()) continue;
    std::vector<Timed> now = timed(*c, std::int64_t{1} << 30);
    std::vector<Communicator> alone = searched(fabric, gpus);
    // What trees have inside a node is raised beside the speed of its own channels: more of them may have less.
    const bool same_trees = std::ranges::equal(alone, before_alone, same_channels);
    if (before && same_channels(*before, *c))
      for (const Timed& one : now)
        for (const Timed& old : with_less) {
          if (!same_trees && one.what.find("tree") != std::string::npos) continue;
          if (one.what != old.what || one.plan.channels != old.plan.channels || one.plan.threads != old.plan.threads)
            continue;
          INFO(machine << ", " << test::words(gpus) << "GPUs, " << set << " " << last << " -> " << rate << ": "
                       << one.what);
          CHECK(one.us <= old.us * (1 + 1e-9));
        }
    before = *c;
    before_alone = std::move(alone);
    with_less = std::move(now);
    last = rate;
  }
}

}  // namespace

TEST_CASE("NICs that are described faster make nothing slower whose channels stay") {
  for (const std::string& machine : test::machines_of_gpus())
    for (const int nodes : {2, 3}) sweep(machine, all_of(machine, nodes), "network.link.bandwidth", 1, 150, 1.08);
}

TEST_CASE(
    "over nodes with unlike GPUs faster NICs make nothing slower either: a node's links have its own search's room") {
  for (const char* machine : {"l40s-pcie", "pcie-a100", "azure-ndmv4", "dgx-h100", "dgx1-v100", "polaris"}) {
    const int all = all_of(machine, 2).front();
    for (const int second : {1, 2, 3})
      for (const std::vector<int>& gpus : {std::vector<int>{all, second}, std::vector<int>{second, all, all}})
        sweep(machine, gpus, "network.link.bandwidth", 1, 150, 1.08);
  }
}

TEST_CASE("links of a node that are described faster make nothing slower whose channels stay") {
  for (const std::string& machine : test::machines_of_gpus()) {
    const std::size_t links = test::shipped(machine).links.size();
    for (std::size_t link = 0; link < links; ++link)
      for (const int nodes : {1, 2})
        sweep(machine, all_of(machine, nodes), "node.links." + std::to_string(link) + ".bandwidth", 3, 1200, 1.5);
  }
}

TEST_CASE("longer times and lower rates of a calibration make nothing quicker") {
  // NCCL's own choice knows no factors: each plan is held against itself.
  const std::vector<double NcclFactors::*> rates{
      &NcclFactors::ll,      &NcclFactors::ll128,    &NcclFactors::simple,     &NcclFactors::network,
      &NcclFactors::sockets, &NcclFactors::ll_proxy, &NcclFactors::host_bridge};
  for (const auto& [machine, gpus] :
       std::vector<std::pair<std::string, std::vector<int>>>{{"dgx-h100", {1, 1, 1, 1, 1, 1, 1, 1}},
                                                             {"dgx-h100", {8, 8, 8, 8}},
                                                             {"dgx-h100", {8, 3, 8}},
                                                             {"polaris", {4, 4, 4}},
                                                             {"l40s-pcie", {8, 8}}}) {
    const Fabric fabric = test::built(machine, static_cast<int>(gpus.size()));
    const Communicator c = *nccl::connect(fabric, test::first_of_nodes(fabric, gpus));
    for (const NcclFactor& factor : nccl_factors)
      for (std::int64_t bytes = 1 << 10; bytes <= 1 << 30; bytes *= 8) {
        const bool rate = std::ranges::count(rates, factor.value) > 0;
        std::vector<Timed> before;
        for (double value = factor.least; value <= factor.most; value *= 1.3) {
          Communicator with = c;
          with.factors.*factor.value = value;
          std::vector<Timed> now = timed(with, bytes);
          for (std::size_t i = 0; i < before.size(); ++i) {
            const double less = (rate ? now : before)[i].us, more = (rate ? before : now)[i].us;
            INFO(machine << ", " << test::words(gpus) << "GPUs, " << bytes << " bytes, " << now[i].what << ", "
                         << factor.name << " up to " << value);
            CHECK(less <= more * (1 + 1e-9));
          }
          before = std::move(now);
        }
      }
  }
}

TEST_CASE("slower proxies make no ring over nodes quicker, by either method") {
  const Fabric fabric = test::built("dgx-h100", 8);
  const Group group = test::first_of_nodes(fabric, {1, 1, 1, 1, 1, 1, 1, 1});
  Communicator c = *nccl::connect(fabric, group);
  for (const auto protocol : {nccl::Protocol::ll, nccl::Protocol::ll128, nccl::Protocol::simple})
    for (const std::int64_t bytes : {1 << 16, 1 << 20, 1 << 23}) {
      const nccl::Plan plan =
          test::planned_as(c, CollectiveKind::all_gather, Bytes(bytes), nccl::Algorithm::ring, protocol);
      double closed = 0, simulated = 0;
      for (const double factor : {0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0}) {
        c.factors.message_gap = factor;
        const auto program = nccl::program(fabric, group, c, CollectiveKind::all_gather, Bytes(bytes), plan);
        REQUIRE(program.ok());
        const double closed_now = nccl::run(c, CollectiveKind::all_gather, Bytes(bytes), plan).time().count();
        const double simulated_now = simulate(*program)->count();
        INFO(to_string(protocol) << ", " << bytes << " bytes, gaps of " << factor);
        CHECK(closed_now >= closed * (1 - 1e-9));
        CHECK(simulated_now >= simulated * (1 - 1e-9));
        closed = closed_now;
        simulated = simulated_now;
      }
    }
}
