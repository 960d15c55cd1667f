// What one file of this folder says about its algorithm. catalogue.cpp lists them; collective.cpp turns a plan
// into a Pattern (sizes, channels, orders), so an algorithm only speaks of blocks and positions.
//
// Numbering of blocks, by kind, with k ranks; position p stands for the rank that the lane's order puts there:
//   broadcast, reduce, all_reduce              any number of blocks, all equal parts of the one buffer
//   all_gather, reduce_scatter, gather, scatter, sendrecv   k blocks; block p is position p's
//   alltoall                                   k*k blocks; block s*k+d goes from position s to position d
#pragma once

#include <vector>

#include "collcast/collective/collective.hpp"

namespace collcast {

/// All that a plan may depend on.
struct Outline {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int ranks = 1;
  int nodes = 1;  ///< regular nodes: ranks = nodes * per_node, positions node by node
  int per_node = 1;
};

/// One lane. Several lanes of a plan carry equal parts of the data.
struct LanePlan {
  int blocks = 1;
  std::vector<Phase> phases;
  std::vector<int> order;  ///< position -> position of the channel's order; keeps 0; empty: the identity
};

/// How a channel's order visits the nodes of a group.
enum class Arrangement : std::uint8_t {
  snake,    ///< local order rotated by the channel, reversed on every other node: neighbours across share a rail
  rotated,  ///< local order rotated by the channel
  aligned   ///< rotated, and the same on every node, the root's local index first
};

struct Algorithm {
  AlgorithmInfo info;
  Arrangement arrangement = Arrangement::rotated;
  bool regular_nodes = false;  ///< needs as many ranks on every node
  std::vector<LanePlan> (*plan)(const Outline&) = nullptr;
};

/// A lane of these phases, without those that have nothing to do.
inline LanePlan lane_plan(int blocks, std::vector<Phase> phases) {
  std::erase_if(phases, [](const Phase& p) { return p.rounds == 0; });
  return {blocks, std::move(phases), {}};
}

/// The algorithms, in the order in which they are listed.
const std::vector<Algorithm>& catalogue();

}  // namespace collcast
