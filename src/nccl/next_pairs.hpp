// What a sendrecv, in which each of a group's ranks sends to the next of its order, has on a node.
#pragma once

#include <compare>
#include <utility>
#include <vector>

#include "collcast/nccl/communicator.hpp"
#include "collcast/schedule/group.hpp"
#include "nccl/system.hpp"

namespace collcast::nccl {

/// GPUs are numbered in their node.
struct NextOnNode {
  std::vector<int> gpus;                     ///< the group's there, ascending
  std::vector<std::pair<int, int>> inside;   ///< from and to, ascending
  std::vector<std::pair<int, int>> leaving;  ///< from, and to on another node
  std::vector<int> entering;

  auto operator<=>(const NextOnNode&) const = default;
};

/// Of the group's nodes, each once of those that are alike.
std::vector<NextOnNode> next_on_nodes(const Fabric&, const Group&);

/// As closed forms need them of a communicator whose pairs go by `turns` NICs in turn.
NextTerms next_terms(const System&, const std::vector<NextOnNode>&, int turns, bool relayed);

}  // namespace collcast::nccl
