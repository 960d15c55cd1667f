#include "nccl/next_pairs.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "nccl/nearest_nics.hpp"
#include "nccl/pair_loads.hpp"
#include "nccl/terms.hpp"

namespace collcast::nccl {

std::vector<NextOnNode> next_on_nodes(const Fabric& fabric, const Group& group) {
  std::map<NodeId, NextOnNode> nodes;
  for (int i = 0; i < group.size(); ++i) {
    const Rank from = group[i], to = group[(i + 1) % group.size()];
    const int sender = gpu_in_node(fabric, from), receiver = gpu_in_node(fabric, to);
    NextOnNode& node = nodes[fabric.node_of(from)];
    node.gpus.push_back(sender);
    if (fabric.node_of(from) != fabric.node_of(to)) {
      node.leaving.emplace_back(sender, receiver);
      nodes[fabric.node_of(to)].entering.push_back(receiver);
    } else if (from != to) {
      node.inside.emplace_back(sender, receiver);
    }
  }
  std::set<NextOnNode> unlike;
  for (auto& [id, node] : nodes) {
    for (std::vector<int>* each : {&node.gpus, &node.entering}) std::sort(each->begin(), each->end());
    for (auto* each : {&node.inside, &node.leaving}) std::sort(each->begin(), each->end());
    unlike.insert(std::move(node));
  }
  return {unlike.begin(), unlike.end()};
}

NextTerms next_terms(const System& system, const std::vector<NextOnNode>& nodes, int turns, bool relayed) {
  NextTerms out;
  for (const NextOnNode& node : nodes) {
    out.inside = out.inside || !node.inside.empty();
    if (node.leaving.empty()) continue;
    out.between = true;
    LoadsByNic sent, received;
    const Nearest near = nearest_nics(system, node.gpus);
    const auto add = [&](int gpu, LoadsByNic& loads) {
      const std::vector<int> nics = nics_of_pairs(system, near, node.gpus, gpu);
      for (std::size_t turn = 0; turn < static_cast<std::size_t>(turns) && !nics.empty(); ++turn)
        ++loads[nics[turn % nics.size()]];
    };
    for (const auto& [from, to] : node.leaving) {
      // A GPU relays that the group has on this node; beside others' NICs there is none [search.cc, ncclTopoGetNetDev].
      add(relayed && std::ranges::binary_search(node.gpus, to) ? to : from, sent);
      out.both_ways = out.both_ways || std::ranges::binary_search(node.entering, from);
    }
    for (const int gpu : node.entering) add(gpu, received);
    out.messages = std::max({out.messages, busiest(sent), busiest(received)});
  }
  return out;
}

}  // namespace collcast::nccl
