#include "nccl/gpu_terms.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "nccl/pair_rates.hpp"
#include "nccl/pcie_loads.hpp"

namespace collcast::nccl {

namespace {

/// Of a tree's chunk: a GPU inside a chain sends it up and down, one at its end once. On one node the search's chains
/// may have other ends each.
double tree_sends(const Communicator& c) {
  if (c.nodes > 1 || c.tree.order.empty()) return c.most_on_a_node > 2 ? 2 : 1;
  std::map<int, int> sends;
  for (const std::vector<int>& chain : c.tree.order)
    for (std::size_t i = 0; i < chain.size(); ++i) sends[chain[i]] += i == 0 || i + 1 == chain.size() ? 1 : 2;
  int most = 0;
  for (const auto& [gpu, count] : sends) most = std::max(most, count);
  return static_cast<double>(most) / static_cast<double>(c.tree.order.size());
}

/// Of NVLinks of a GPU of this rate, the share that rings fill on the node where they fill least.
double share_of_rings(const System& system, const Graph& ring, int nodes, Bandwidth gpu_rate) {
  if (!(gpu_rate > Bandwidth())) return 1;
  double least = 1;
  const auto share = [&](const std::vector<std::vector<int>>& orders, const std::vector<ChannelNics>& nics) {
    const auto reached = ring_rate(system, orders, nics, nodes);
    return reached ? reached->value() / gpu_rate.value() : 1;
  };
  least = std::min(least, share(ring.order, ring.nics));
  for (const NodeChannels& other : ring.elsewhere) least = std::min(least, share(other.order, other.nics));
  return least;
}

/// Of a set of GPUs that nodes have, of which pairs reach ranks `by_nic`, theirs with them. Where ways are PCIe's, what
/// a ring inside their node has, whatever NICs do to one over several.
RatesOfNode rates_of_node(const Communicator& c, bool over_nvlink, const System& system, const std::vector<int>& gpus,
                          const Root& root, std::map<int, double> by_nic) {
  RatesOfNode out{static_cast<int>(gpus.size()), gpus == root.on_node, {}};
  if (over_nvlink) {
    if (!by_nic.empty()) add_ranks_by_nic(system, gpus, c.pairs.nics_of_gpu, -1, by_nic);
    const auto straight = pair_rates(system, gpus, out.has_root ? root.gpu : gpus.front(), by_nic);
    out.rates = straight.value_or(uniform(system.nvlink_rate));
    return out;
  }
  const auto found = c.nodes > 1 ? search(system, gpus, 1) : std::nullopt;
  out.rates = uniform((found ? found->ring : c.ring).together().inside);
  return out;
}

}  // namespace

GpuTerms gpu_terms(const Communicator& c, const Found& found, const System& system, const GroupsNodes& nodes,
                   const std::vector<NextOnNode>& next, const Root& root) {
  const bool over_nvlink = found.nvlink;
  GpuTerms out;
  out.nvlink = over_nvlink ? system.nvlink_rate : Bandwidth();
  out.nvls = Bandwidth(found.nvls_link * 1e9);
  out.has_nvlinks = system.has_nvlink();
  out.ring_links = share_of_rings(system, c.ring, c.nodes, out.nvlink);
  out.tree_sends = tree_sends(c);
  std::map<int, double> by_nic;
  if (c.pairs.relayed && !system.nvswitch)
    for (const auto& [node, gpus] : nodes) add_ranks_by_nic(system, gpus, c.pairs.nics_of_gpu, 1, by_nic);
  std::vector<RatesOfNode> of_nodes;
  for (const std::vector<int>& gpus : unlike_nodes(nodes))
    if (gpus.size() > 1) of_nodes.push_back(rates_of_node(c, over_nvlink, system, gpus, root, by_nic));
  out.pair_rates = of_nodes.empty() ? uniform(over_nvlink ? out.nvlink : c.ring.together().inside) : together(of_nodes);
  for (const NextOnNode& node : next)
    if (const auto straight = over_nvlink ? next_rate(system, node) : std::nullopt)
      out.pair_rates.next = std::min(out.pair_rates.next, *straight);
  for (const System::Edge& edge : system.edges[static_cast<std::size_t>(system.first_gpu)])
    out.pcie = std::max(out.pcie, Bandwidth(edge.rate * 1e9));
  if (!c.nvlink && (c.nodes == 1 || !out.has_nvlinks))
    out.over_pcie = pcie_loads(c, system, unlike_nodes(nodes), next, root.gpu, root.on_node);
  return out;
}

}  // namespace collcast::nccl
