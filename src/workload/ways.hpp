// In how many ways the groups of a stage lie on the machine, so that the slowest can be priced for all.
//
// The groups of a dimension cut the ranks into equal tiles. Where tiles and what the machine is made of (sockets,
// nodes, pods) divide each other, all groups lie alike, and one stands for all; that is seen without looking at any.
// Else a group of six lies on one node of eight here and across two there. Where a tile begins decides it, and that
// comes round with the least common multiple of a stride and a pod: groups that begin alike are looked at once, with
// those that communicate beside them; those on nodes that a stage or the layout ends on, with fewer beside them, by
// themselves. Two lie alike that share the same things in the same order, whichever these are:
// nodes are equal, and so are the sockets of a node and the pods of a network. Left out: a torus's distances within a
// row.
#pragma once

#include <vector>

#include "workload/plan.hpp"

namespace collcast::workload {

/// Groups of a stage that lie alike: the first, by the rank of it whose group it is, and how many there are; where all
/// lie alike, 1.
struct Way {
  Rank rank;
  int groups = 1;
};

/// Of a stage's groups; the first is that of the stage's first rank.
std::vector<Way> ways_of(const ParallelLayout&, const Fabric&, GroupOf, int stage);
/// Of its TP groups together with their peers of the next stage (of the last: of the first).
std::vector<Way> message_ways(const ParallelLayout&, const Fabric&, int stage);

/// The slowest of what groups that lie in different ways ask for, which counts for all of them.
class SlowestWay {
 public:
  explicit SlowestWay(CollectiveCost& cost) : cost_(cost) {}
  void take(CollectiveRequest request, Seconds time, int groups);
  /// Where all take the same the groups are as one.
  void finish();

 private:
  CollectiveCost& cost_;
};

}  // namespace collcast::workload
