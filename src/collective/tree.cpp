// tree: a binomial tree from the root. all_reduce reduces up and broadcasts down in one phase, so that chunks
// already come down while others still go up; gather and scatter carry the parts of whole subtrees.
// Sources: Thakur, Rabenseifner, Gropp 2005; Chan et al. 2007 (minimum spanning tree).
#include "collective/algorithm.hpp"
#include "collective/trees.hpp"

namespace collcast {
namespace {

using shapes::Binomial;

std::vector<LanePlan> tree_lanes(const Outline& o) {
  const int k = o.ranks;
  const auto along = [k](const Shape& shape, int passes) {
    return Phase{.shape = &shape, .flow = Flow::forwarding, .rounds = passes * Binomial::rounds(k), .members = k};
  };
  switch (o.kind) {
    case CollectiveKind::broadcast:
      return {lane_plan(1, {along(shapes::tree_broadcast<Binomial>, 1)})};
    case CollectiveKind::reduce:
      return {lane_plan(1, {along(shapes::tree_reduce<Binomial>, 1)})};
    case CollectiveKind::all_reduce:
      return {lane_plan(1, {along(shapes::tree_all_reduce<Binomial>, 2)})};
    case CollectiveKind::gather:
      return {lane_plan(k, {along(shapes::binomial_gather, 1)})};
    default:
      return {lane_plan(k, {along(shapes::binomial_scatter, 1)})};
  }
}

}  // namespace

Algorithm tree() {
  using enum CollectiveKind;
  return {{"tree", "a binomial tree from the root", {broadcast, reduce, all_reduce, gather, scatter}, true, true},
          Arrangement::rotated,
          false,
          tree_lanes};
}

}  // namespace collcast
