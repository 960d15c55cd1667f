// ring and bidirectional_ring: each rank talks to its neighbours only.
//
// broadcast and reduce are a chunked chain from and to the root; all_reduce circulates every k-th of the buffer
// twice around, 2(k-1) rounds without a stop in between; all_gather and reduce_scatter once. The
// bidirectional ring does the same with half of the data in either direction. Sources: Patarasuk, Yuan,
// "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009; Chan et al. 2007 (bucket).
#include "collective/algorithm.hpp"
#include "collective/shapes.hpp"

namespace collcast {
namespace {

LanePlan lane(const Outline& o) {
  const int k = o.ranks;
  const auto chain = [k](const Shape& shape) {
    return Phase{.shape = &shape, .flow = Flow::forwarding, .rounds = k - 1, .members = k};
  };
  const auto around = [k](const Shape& shape, int turns) {
    return Phase{.shape = &shape, .flow = Flow::circulating, .rounds = turns * (k - 1), .members = k};
  };
  switch (o.kind) {
    case CollectiveKind::broadcast:
      return lane_plan(1, {chain(shapes::chain_broadcast)});
    case CollectiveKind::reduce:
      return lane_plan(1, {chain(shapes::chain_reduce)});
    case CollectiveKind::all_reduce:
      return lane_plan(k, {around(shapes::ring_all_reduce, 2)});
    case CollectiveKind::all_gather:
      return lane_plan(k, {around(shapes::ring_all_gather, 1)});
    default:
      return lane_plan(k, {around(shapes::ring_reduce_scatter, 1)});
  }
}

std::vector<LanePlan> one_way(const Outline& o) { return {lane(o)}; }

std::vector<LanePlan> both_ways(const Outline& o) {
  LanePlan backwards = lane(o);
  for (int p = 0; p < o.ranks; ++p) backwards.order.push_back(p == 0 ? 0 : o.ranks - p);
  return {lane(o), std::move(backwards)};
}

std::vector<CollectiveKind> kinds() {
  using enum CollectiveKind;
  return {broadcast, reduce, all_reduce, all_gather, reduce_scatter};
}

}  // namespace

Algorithm ring() {
  return {{"ring", "around one ring; broadcast and reduce as a chunked chain", kinds(), true, true},
          Arrangement::snake,
          false,
          one_way};
}

Algorithm bidirectional_ring() {
  return {{"bidirectional_ring", "half of the data each way around", kinds(), true, true},
          Arrangement::snake,
          false,
          both_ways};
}

}  // namespace collcast
