#include "nccl/pcie_loads.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "nccl/limits.hpp"
#include "nccl/nearest_nics.hpp"

namespace collcast::nccl {

namespace {

/// Seconds for each byte of what passes a node's links, by device; a link's two directions are apart.
class Links {
 public:
  Links(const System& system, bool peer_access) : system_(&system), peer_access_(peer_access) {}

  /// Without peer access one writes to the memory at its processor, from which the other reads.
  void gpus(int from, int to) {
    const auto host = peer_access_ ? std::nullopt : processor(gpu(from));
    if (host) add(gpu(from), *host, 1);
    add(host.value_or(gpu(from)), gpu(to), 1);
  }
  void out(int from, int nic, double load = 1) { add(gpu(from), system_->first_nic + nic, load); }
  void in(int nic, int to, double load = 1) { add(system_->first_nic + nic, gpu(to), load); }

  double busiest() const {
    double out = 0;
    for (const auto& [link, seconds] : busy_) out = std::max(out, seconds);
    return out;
  }

 private:
  /// The nearest.
  std::optional<int> processor(int device) const {
    std::optional<int> out;
    std::size_t fewest = 0;
    for (int cpu = 0; cpu < static_cast<int>(system_->kinds.size()); ++cpu) {
      if (system_->kinds[static_cast<std::size_t>(cpu)] != DeviceKind::cpu) continue;
      const auto found = way(*system_, device, cpu);
      if (!found || (out && found->hops.size() >= fewest)) continue;
      out = cpu;
      fewest = found->hops.size();
    }
    return out;
  }
  int gpu(int number) const { return system_->first_gpu + number; }

  void add(int from, int to, double load) {
    const auto found = way(*system_, from, to);
    if (!found) return;
    for (const auto& [a, b] : found->hops) busy_[{a, b}] += load / rate(a, b);
  }

  double rate(int from, int to) const {
    double out = 0;
    for (const System::Edge& edge : system_->edges[static_cast<std::size_t>(from)])
      if (edge.to == to) out = std::max(out, edge.rate * 1e9);
    return out;
  }

  const System* system_;
  bool peer_access_;
  std::map<std::pair<int, int>, double> busy_;
};

/// A graph's channels on a node with these GPUs.
struct OnNode {
  const std::vector<std::vector<int>>& order;
  const std::vector<ChannelNics>& nics;
};
OnNode on_node(const Graph& graph, const std::vector<int>& gpus) {
  for (const NodeChannels& other : graph.elsewhere)
    if (other.gpus == gpus) return {other.order, other.nics};
  return {graph.order, graph.nics};
}

/// Of a communicator's channels and pairs on one node.
class Node {
 public:
  Node(const Communicator& c, const System& system, const std::vector<int>& gpus)
      : c_(c), system_(system), gpus_(gpus), several_(c.nodes > 1) {}

  /// Around rings, but for the hop into that GPU, or out of it; -1: all. Each hop takes a chunk of every channel.
  std::vector<double> rings(int not_into, int not_out_of) const {
    std::vector<double> out;
    Links links = none();
    const OnNode found = on_node(c_.ring, gpus_);
    for (int running = 0; running < c_.channels && !found.order.empty(); ++running) {
      const std::size_t channel = static_cast<std::size_t>(running) % found.order.size();
      const std::vector<int>& order = found.order[channel];
      for (std::size_t i = 0; i + (several_ ? 1 : 0) < order.size(); ++i) {
        const int from = order[i], to = order[(i + 1) % order.size()];
        if (from != to && from != not_out_of && to != not_into) links.gpus(from, to);
      }
      if (several_ && channel < found.nics.size()) {
        links.in(found.nics[channel].in, order.front());
        links.out(order.back(), found.nics[channel].out);
      }
      out.push_back(links.busiest());
    }
    return out;
  }

  /// Up and down chains, and between nodes so many messages each way by the NIC of the first GPU.
  std::vector<double> chains(const Graph& graph, double messages) const {
    std::vector<double> out;
    Links links = none();
    const OnNode found = on_node(graph, gpus_);
    for (int running = 0; running < c_.channels && !found.order.empty(); ++running) {
      const std::size_t channel = static_cast<std::size_t>(running) % found.order.size();
      const std::vector<int>& order = found.order[channel];
      for (std::size_t i = 0; i + 1 < order.size(); ++i) {
        links.gpus(order[i], order[i + 1]);
        links.gpus(order[i + 1], order[i]);
      }
      if (several_ && channel < found.nics.size()) {
        links.in(found.nics[channel].in, order.front(), messages);
        links.out(order.front(), found.nics[channel].in, messages);
      }
      out.push_back(links.busiest());
    }
    return out;
  }

  /// Around rings, hop by hop.
  PcieLoads::Slowest of_ring() const {
    PcieLoads::Slowest out;
    double all = 0;
    const OnNode found = on_node(c_.ring, gpus_);
    for (std::size_t channel = 0; channel < found.order.size(); ++channel) {
      const std::vector<int>& order = found.order[channel];
      for (std::size_t i = 0; i + (several_ ? 1 : 0) < order.size(); ++i, ++all)
        keep(alone(order[i], order[(i + 1) % order.size()]), out);
      if (!several_ || channel >= found.nics.size()) continue;
      Links between = none();
      between.in(found.nics[channel].in, order.front());
      between.out(order.back(), found.nics[channel].out);
      keep(between.busiest(), out);
      ++all;
    }
    if (all > 0) out.count /= all;
    return out;
  }
  /// Up or down a tree's chain, mean of the channels.
  PcieLoads::Slowest of_chain() const {
    PcieLoads::Slowest out;
    const OnNode found = on_node(c_.tree, gpus_);
    for (const std::vector<int>& order : found.order)
      for (std::size_t i = 0; i + 1 < order.size(); ++i) keep(alone(order[i], order[i + 1]), out);
    if (!found.order.empty()) out.count /= static_cast<double>(found.order.size());
    return out;
  }
  double along_chain() const {
    double out = 0;
    for (const std::vector<int>& order : on_node(c_.tree, gpus_).order) {
      double all = 0;
      for (std::size_t i = 0; i + 1 < order.size(); ++i) all += alone(order[i], order[i + 1]);
      out = std::max(out, all);
    }
    return out;
  }
  double to_nic() const {
    double out = 0;
    const OnNode found = on_node(c_.tree, gpus_);
    for (std::size_t channel = 0; several_ && channel < found.nics.size(); ++channel) {
      Links way = none();
      way.out(found.order[channel].front(), found.nics[channel].in);
      out = std::max(out, way.busiest());
    }
    return out;
  }

  /// All pairs, or those from and to that GPU.
  double alltoall() const {
    const Nearest near = nearest_nics(system_, gpus_);
    Links links = none();
    for (const int from : gpus_) {
      for (const int to : gpus_)
        if (from != to) links.gpus(from, to);
      for (const auto& [nic, parts] : by_nic(near, from)) {
        links.out(from, nic, remote() * parts);
        links.in(nic, from, remote() * parts);
      }
    }
    return links.busiest();
  }
  /// As root, to everybody, or from everybody.
  double of_root(int root, bool sends) const {
    const Nearest near = nearest_nics(system_, gpus_);
    Links links = none();
    for (const int gpu : gpus_)
      if (gpu != root) sends ? links.gpus(root, gpu) : links.gpus(gpu, root);
    for (const auto& [nic, parts] : by_nic(near, root))
      sends ? links.out(root, nic, remote() * parts) : links.in(nic, root, remote() * parts);
    return links.busiest();
  }
  /// Each GPU's one part, from or to a root on another node.
  double to_root(bool root_sends) const {
    const Nearest near = nearest_nics(system_, gpus_);
    Links links = none();
    for (const int gpu : gpus_)
      for (const auto& [nic, parts] : by_nic(near, gpu))
        root_sends ? links.in(nic, gpu, parts) : links.out(gpu, nic, parts);
    return links.busiest();
  }
  /// From each to the group's next.
  double next(const NextOnNode& pairs) const {
    const Nearest near = nearest_nics(system_, gpus_);
    Links links = none();
    for (const auto& [from, to] : pairs.inside) links.gpus(from, to);
    for (const auto& [from, to] : pairs.leaving)
      for (const auto& [nic, parts] : by_nic(near, from)) links.out(from, nic, parts);
    for (const int to : pairs.entering)
      for (const auto& [nic, parts] : by_nic(near, to)) links.in(nic, to, parts);
    return links.busiest();
  }

 private:
  Links none() const { return Links(system_, c_.environment.peer_access); }
  double alone(int from, int to) const {
    Links hop = none();
    if (from != to) hop.gpus(from, to);
    return hop.busiest();
  }
  static void keep(double seconds, PcieLoads::Slowest& into) {
    if (seconds > into.hop * (1 + 1e-9)) into = {seconds, 0};
    if (seconds > into.hop * (1 - 1e-9)) ++into.count;
  }
  double remote() const { return c_.ranks - static_cast<double>(gpus_.size()); }
  /// Shares of a GPU's parts for other nodes, which go by NICs in turn.
  std::map<int, double> by_nic(const Nearest& near, int gpu) const {
    std::map<int, double> out;
    if (!several_) return out;
    const std::vector<int> nics = nics_of_pairs(system_, near, gpus_, gpu);
    for (const int nic : nics) out[nic] += 1.0 / static_cast<double>(nics.size());
    return out;
  }

  const Communicator& c_;
  const System& system_;
  const std::vector<int>& gpus_;
  bool several_;
};

}  // namespace

PcieLoads pcie_loads(const Communicator& c, const System& system, const std::vector<std::vector<int>>& unlike,
                     const std::vector<NextOnNode>& next, int root, const std::vector<int>& of_root) {
  PcieLoads out;
  const auto keep = [](double& most, double load) { most = std::max(most, load); };
  const auto keep_each = [&](std::vector<double>& most, const std::vector<double>& loads) {
    most.resize(std::max(most.size(), loads.size()));
    for (std::size_t i = 0; i < loads.size(); ++i) keep(most[i], loads[i]);
  };
  const auto keep_slowest = [](PcieLoads::Slowest& most, const PcieLoads::Slowest& one) {
    if (one.hop > most.hop) most = one;
  };
  const bool several = c.nodes > 1;
  for (const std::vector<int>& gpus : unlike) {
    const Node node(c, system, gpus);
    const std::vector<double> around = node.rings(-1, -1);
    keep_each(out.rings, around);
    // On other nodes than the root's a chain passes all hops of its ring.
    keep_each(out.broadcasts, several ? around : node.rings(root, -1));
    keep_each(out.reduces, several ? around : node.rings(-1, root));
    keep_each(out.trees, node.chains(c.tree, tree_messages(c)));
    if (c.collnet) keep_each(out.collnet_chains, node.chains(c.collnet->chain, 1));
    keep_slowest(out.of_ring, node.of_ring());
    keep_slowest(out.of_chain, node.of_chain());
    keep(out.along_chain, node.along_chain());
    keep(out.to_nic, node.to_nic());
    keep(out.alltoall, node.alltoall());
    for (const bool sends : {false, true}) {
      double& load = sends ? out.scatter : out.gather;
      if (gpus == of_root) keep(load, node.of_root(root, sends));
      if (several) keep(load, node.to_root(sends));
    }
  }
  for (const NextOnNode& pairs : next) keep(out.next, Node(c, system, pairs.gpus).next(pairs));
  return out;
}

}  // namespace collcast::nccl
