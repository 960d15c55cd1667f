#include "nccl/pair_loads.hpp"

#include <algorithm>
#include <set>

namespace collcast::nccl {

double busiest(const LoadsByNic& loads) {
  double out = 0;
  for (const auto& [nic, load] : loads) out = std::max(out, load);
  return out;
}

namespace {

/// The group's ranks on a node, and by which NICs they are reached.
struct NodeOfPairs {
  int ranks = 0;
  LoadsByNic by_nic;
  std::set<int> beside;

  double at(int nic) const {
    const auto found = by_nic.find(nic);
    return found == by_nic.end() ? 0 : found->second;
  }
};

class Pairs {
 public:
  Pairs(const Fabric& fabric, const Group& group, int turns, bool relays)
      : fabric_(fabric), group_(group), turns_(turns), relays_(relays) {
    for (int i = 0; i < group.size(); ++i) {
      NodeOfPairs& node = nodes_[fabric.node_of(group[i])];
      ++node.ranks;
      for (const int nic : nics(i, turns)) {
        node.by_nic[nic] += 1.0 / turns;
        all_[nic] += 1.0 / turns;
      }
      for (const int nic : nics(i, fabric.nics_per_node())) node.beside.insert(nic);
    }
  }

  double alltoall() const {
    double most = 0;
    for (const auto& [id, node] : nodes_) {
      LoadsByNic out = sent(node, node.by_nic, node.ranks);
      for (const auto& [nic, ranks] : node.by_nic) most = std::max(most, ranks * (group_.size() - node.ranks));
      most = std::max(most, busiest(out));
    }
    return most;
  }
  double scatter() const {
    LoadsByNic own;
    for (const int nic : nics(0, turns_)) own[nic] += 1.0 / turns_;
    double most = busiest(sent(first(), own, 1));
    for (const auto& [id, node] : nodes_)
      if (&node != &first()) most = std::max(most, busiest(node.by_nic));
    return most;
  }
  double gather() const { return static_cast<double>(group_.size() - first().ranks) / turns_; }
  double next() const {
    std::map<NodeId, LoadsByNic> out, in;
    for (int i = 0; i < group_.size(); ++i) {
      const int to = (i + 1) % group_.size();
      const NodeId from_node = fabric_.node_of(group_[i]), to_node = fabric_.node_of(group_[to]);
      if (from_node == to_node) continue;
      const std::vector<int> leaving = nics(i, turns_), entering = nics(to, turns_);
      for (std::size_t turn = 0; turn < leaving.size(); ++turn) {
        const bool relayed = relays_ && nodes_.at(from_node).beside.contains(entering[turn]);
        out[from_node][relayed ? entering[turn] : leaving[turn]] += 1.0 / turns_;
        in[to_node][entering[turn]] += 1.0 / turns_;
      }
    }
    double most = 0;
    for (const auto* way : {&out, &in})
      for (const auto& [node, loads] : *way) most = std::max(most, busiest(loads));
    return most;
  }
  double ranks_of_nic() const {
    double most = 0;
    for (const auto& [id, node] : nodes_) most = std::max(most, busiest(node.by_nic));
    return most;
  }
  /// Parts that a rank, the root or the one that has most, sends over NVLink to GPUs beside other NICs than its own.
  double relayed_of_root() const { return relayed(0); }
  double most_relayed() const {
    double most = 0;
    for (int i = 0; i < group_.size(); ++i) most = std::max(most, relayed(i));
    return most;
  }
  const NodeOfPairs& first() const { return nodes_.at(fabric_.node_of(group_[0])); }

 private:
  /// A rank's next NIC is that of so many lanes further.
  std::vector<int> nics(int rank, int turns) const {
    std::vector<int> out;
    for (int turn = 0; turn < turns; ++turn)
      out.push_back(fabric_.nic_of(group_[rank], turn * fabric_.ranks_per_node()));
    return out;
  }

  double relayed(int rank) const {
    if (!relays_) return 0;
    const NodeOfPairs& node = nodes_.at(fabric_.node_of(group_[rank]));
    double out = 0;
    for (const int nic : node.beside)
      if (const auto found = all_.find(nic); found != all_.end()) out += found->second - node.at(nic);
    const std::vector<int> near = nics(rank, fabric_.nics_per_node());
    for (const int nic : std::set<int>(near.begin(), near.end()))
      if (const auto found = all_.find(nic); found != all_.end()) out -= found->second - node.at(nic);
    return out;
  }

  /// Of a node some of whose ranks, so many on these NICs, send a part to each rank on other nodes.
  LoadsByNic sent(const NodeOfPairs& node, const LoadsByNic& own, double senders) const {
    LoadsByNic out;
    double by_own = 0;
    for (const auto& [nic, ranks] : all_) {
      const double elsewhere = ranks - node.at(nic);
      if (relays_ && node.beside.contains(nic))
        out[nic] += senders * elsewhere;
      else
        by_own += elsewhere;
    }
    for (const auto& [nic, ranks] : own) out[nic] += ranks * by_own;
    return out;
  }

  const Fabric& fabric_;
  const Group& group_;
  int turns_;
  bool relays_;
  std::map<NodeId, NodeOfPairs> nodes_;
  LoadsByNic all_;
};

}  // namespace

PairLoads pair_loads(const Fabric& fabric, const Group& group, int turns, bool relays) {
  const Pairs pairs(fabric, group, turns, relays);
  return {pairs.alltoall(),     pairs.scatter(),         pairs.gather(),       pairs.next(),
          pairs.most_relayed(), pairs.relayed_of_root(), pairs.ranks_of_nic(), pairs.first().ranks};
}

}  // namespace collcast::nccl
