// Where a request is on the machine, as far as its answers depend on it: its nodes alone, numbered in their order.
//
// Nodes are equal, so which ones a request uses matters only for the ways between them:
//   one node, star, no network   not at all
//   leaf/spine                   by which nodes share a pod and, where there are spines, by each node's place in its
//                                pod: the spine of a way is (place of the receiver's port + lane) mod spines
//   torus                        by all of it: ways pass through other nodes
// Spines are equal too: places that are all further by as much use other spines in the same order, as long as none of
// them is the last and the next the first again. Two requests of equal keys thus have equal links in equal order, and
// whatever goes by links and their order answers them alike, to the last bit.
#pragma once

#include <limits>
#include <vector>

#include "collcast/evaluate/evaluate.hpp"
#include "evaluate/request_key.hpp"

namespace collcast {

struct Place {
  std::vector<int> nodes;     ///< that the request uses, ascending; empty: it stays where it is, on the whole machine
  CollectiveRequest request;  ///< by the numbers of those nodes' ranks
  RequestKey on;              ///< how the nodes lie, but for `shift`
  int shift = 0;              ///< spines that their places are further
  int room = unlimited;       ///< lanes from 0 on for which no spine comes round again

  static constexpr int unlimited = std::numeric_limits<int>::max();
  bool has_spines() const { return room != unlimited; }
};

/// A rank that the machine does not have stays where it is.
Place place_of(const Fabric&, const CollectiveRequest&);

}  // namespace collcast
