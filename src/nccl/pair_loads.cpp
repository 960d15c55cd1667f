#include "nccl/pair_loads.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "nccl/groups_nodes.hpp"
#include "nccl/nearest_nics.hpp"
#include "nccl/terms.hpp"

namespace collcast::nccl {

double busiest(const LoadsByNic& loads) {
  double out = 0;
  for (const auto& [nic, load] : loads) out = std::max(out, load);
  return out;
}

std::vector<std::vector<int>> nics_of_ranks(const System& system, const Fabric& fabric, const Group& group, int most) {
  const GroupsNodes nodes = by_node(fabric, group);
  std::map<std::vector<int>, std::map<int, std::vector<int>>> known;  // by a node's GPUs, then by GPU
  for (const auto& [node, gpus] : nodes) {
    const auto [at, is_new] = known.try_emplace(gpus);
    if (!is_new) continue;
    const Nearest near = nearest_nics(system, gpus);
    for (const int gpu : gpus) {
      std::vector<int>& nics = at->second[gpu] = nics_of_pairs(system, near, gpus, gpu);
      nics.resize(std::min(nics.size(), static_cast<std::size_t>(most)));
      // None of those that NCCL has for it: as the machine's file has it.
      const auto per_node = static_cast<std::uint32_t>(fabric.ranks_per_node());
      if (nics.empty()) nics = {fabric.nic_of(Rank(node.value() * per_node + static_cast<std::uint32_t>(gpu)), 0)};
    }
  }
  std::vector<std::vector<int>> out;
  for (int i = 0; i < group.size(); ++i)
    out.push_back(known.at(nodes.at(fabric.node_of(group[i]))).at(gpu_in_node(fabric, group[i])));
  return out;
}

namespace {

/// Lanes that a pair is simulated by, at the most.
constexpr int most_lanes = 24;

/// As many as give each rank's NICs the same share, whichever the peer's are.
int lanes_of(const std::vector<std::vector<int>>& nics) {
  int out = 1, most = 1;
  for (const std::vector<int>& own : nics) {
    const int count = std::max(1, static_cast<int>(own.size()));
    most = std::max(most, count);
    if (out <= most_lanes) out = std::lcm(out, count);
  }
  return out <= most_lanes ? out : most;
}

/// The group's ranks on a node, by which NICs they are reached, and which GPUs relay to which NICs.
struct NodeOfPairs {
  std::vector<int> ranks;
  LoadsByNic by_nic;
  std::map<int, std::vector<int>> beside;

  int count() const { return static_cast<int>(ranks.size()); }
  double at(int nic) const {
    const auto found = by_nic.find(nic);
    return found == by_nic.end() ? 0 : found->second;
  }
};

class Pairs {
 public:
  Pairs(const System& system, const Fabric& fabric, const Group& group, std::vector<std::vector<int>> nics, bool relays)
      : fabric_(fabric), group_(group), nics_(std::move(nics)), lanes_(lanes_of(nics_)), relays_(relays) {
    for (int i = 0; i < group.size(); ++i) {
      NodeOfPairs& node = nodes_[fabric.node_of(group[i])];
      node.ranks.push_back(i);
      for (const int nic : own(i)) {
        node.by_nic[nic] += share(i);
        all_[nic] += share(i);
      }
      if (!relays) continue;
      const auto [at, is_new] = relayed_by_.try_emplace(gpu(i));
      if (is_new) at->second = relayed_nics(system, gpu(i));
      for (const int nic : at->second) node.beside[nic].push_back(gpu(i));
    }
  }

  PairLoads::Busiest alltoall() const {
    Loads out, in;
    for (const auto& [id, node] : nodes_) {
      double by_own = 0;
      for (const auto& [nic, ranks] : all_) {
        const double elsewhere = ranks - node.at(nic);
        if (node.beside.contains(nic))
          put(out[id], node, nic, -1, node.count() * elsewhere);
        else
          by_own += elsewhere;
      }
      for (const int i : node.ranks) {
        for (const int nic : own(i)) {
          out[id].nics[nic] += by_own * share(i);
          out[id].gpus[gpu(i)] += by_own * share(i);
          put(in[id], node, nic, gpu(i), (group_.size() - node.count()) * share(i));
        }
      }
    }
    return most(out, in);
  }
  PairLoads::Busiest scatter() const {
    return of_pairs([](int i) { return std::pair(0, i); });
  }
  PairLoads::Busiest gather() const {
    return of_pairs([](int i) { return std::pair(i, 0); });
  }
  PairLoads::Busiest next() const {
    return of_pairs([this](int i) { return std::pair(i, (i + 1) % group_.size()); });
  }
  double ranks_of_nic() const {
    double most = 0;
    for (const auto& [id, node] : nodes_) most = std::max(most, busiest(node.by_nic));
    return most;
  }
  int fewest_nics() const {
    return static_cast<int>(std::ranges::min_element(nics_, {}, &std::vector<int>::size)->size());
  }
  int lanes() const { return lanes_; }
  /// Parts that a rank, the root or the one that has most, sends over NVLink to GPUs beside other NICs than its own.
  double relayed_of_root() const { return relayed(0); }
  double most_relayed() const {
    double most = 0;
    for (int i = 0; i < group_.size(); ++i) most = std::max(most, relayed(i));
    return most;
  }
  const NodeOfPairs& first() const { return nodes_.at(fabric_.node_of(group_[0])); }

 private:
  /// Of a node, in one direction.
  struct OfNode {
    LoadsByNic nics;
    std::map<int, double> gpus;  ///< ways to NICs
  };
  using Loads = std::map<NodeId, OfNode>;

  int gpu(int rank) const { return gpu_in_node(fabric_, group_[rank]); }
  const std::vector<int>& own(int rank) const { return nics_[static_cast<std::size_t>(rank)]; }
  double share(int rank) const { return 1.0 / static_cast<double>(own(rank).size()); }
  int nic(int rank, int lane) const { return own(rank)[static_cast<std::size_t>(lane) % own(rank).size()]; }

  /// By the way of that GPU, or where others relay to the NIC, of these.
  static void put(OfNode& loads, const NodeOfPairs& node, int nic, int gpu, double parts) {
    loads.nics[nic] += parts;
    const auto beside = node.beside.find(nic);
    if (beside == node.beside.end() || std::ranges::find(beside->second, gpu) != beside->second.end()) {
      loads.gpus[gpu] += parts;
      return;
    }
    for (const int other : beside->second) loads.gpus[other] += parts / static_cast<double>(beside->second.size());
  }
  static PairLoads::Busiest most(const Loads& out, const Loads& in) {
    PairLoads::Busiest most;
    for (const auto* way : {&out, &in})
      for (const auto& [node, loads] : *way) {
        most.nic = std::max(most.nic, busiest(loads.nics));
        most.way = std::max(most.way, busiest(loads.gpus));
      }
    return most;
  }

  /// Of each rank its one pair.
  template <class PairOf>
  PairLoads::Busiest of_pairs(const PairOf& pair_of) const {
    Loads out, in;
    for (int i = 0; i < group_.size(); ++i) {
      const auto [from, to] = pair_of(i);
      const NodeId leaving = fabric_.node_of(group_[from]), entering = fabric_.node_of(group_[to]);
      if (leaving == entering) continue;
      for (int lane = 0; lane < lanes_; ++lane) {
        const int entered = nic(to, lane);
        const bool relayed = nodes_.at(leaving).beside.contains(entered);
        put(out[leaving], nodes_.at(leaving), relayed ? entered : nic(from, lane), gpu(from), 1.0 / lanes_);
        put(in[entering], nodes_.at(entering), entered, gpu(to), 1.0 / lanes_);
      }
    }
    return most(out, in);
  }

  double relayed(int rank) const {
    if (!relays_) return 0;
    const NodeOfPairs& node = nodes_.at(fabric_.node_of(group_[rank]));
    const std::vector<int>& near = relayed_by_.at(gpu(rank));
    double out = 0;
    for (const auto& [nic, gpus] : node.beside)
      if (const auto found = all_.find(nic); found != all_.end() && std::ranges::find(near, nic) == near.end())
        out += found->second - node.at(nic);
    return out;
  }

  const Fabric& fabric_;
  const Group& group_;
  std::vector<std::vector<int>> nics_;
  int lanes_;
  bool relays_;
  std::map<NodeId, NodeOfPairs> nodes_;
  LoadsByNic all_;
  std::map<int, std::vector<int>> relayed_by_;  // of GPUs
};

}  // namespace

std::vector<PairLoads> pair_loads(const System& system, const Fabric& fabric, const Group& group, int most,
                                  bool relays) {
  std::vector<PairLoads> out;
  for (int nics = 1; nics <= most; ++nics) {
    const Pairs pairs(system, fabric, group, nics_of_ranks(system, fabric, group, nics), relays);
    out.push_back({pairs.alltoall(), pairs.scatter(), pairs.gather(), pairs.next(), pairs.most_relayed(),
                   pairs.relayed_of_root(), pairs.ranks_of_nic(), pairs.first().count(), pairs.fewest_nics(),
                   pairs.lanes()});
  }
  return out;
}

}  // namespace collcast::nccl
