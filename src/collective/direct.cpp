// direct: everything straight to where it belongs, all at once. The least latency and, where every pair has
// links of its own (a switch that does not block), the least time; all_reduce is reduce_scatter, then
// all_gather. Source: Chan, Heimlich, Purkayastha, van de Geijn, "Collective communication: theory, practice,
// and experience", 2007.
#include "collective/algorithm.hpp"
#include "collective/shapes.hpp"

namespace collcast {
namespace {

std::vector<LanePlan> direct_lanes(const Outline& o) {
  const int k = o.ranks;
  const auto at_once = [k](const Shape& shape) {
    return Phase{.shape = &shape, .flow = Flow::concurrent, .rounds = k > 1 ? 1 : 0, .members = k};
  };
  switch (o.kind) {
    case CollectiveKind::broadcast:
      return {lane_plan(1, {at_once(shapes::fan_out_column)})};
    case CollectiveKind::scatter:
      return {lane_plan(k, {at_once(shapes::fan_out_units)})};
    case CollectiveKind::reduce:
      return {lane_plan(1, {at_once(shapes::fan_in_column)})};
    case CollectiveKind::gather:
      return {lane_plan(k, {at_once(shapes::fan_in_units)})};
    case CollectiveKind::all_reduce:
      return {lane_plan(k, {at_once(shapes::pairwise_reduce), at_once(shapes::pairwise_gather)})};
    case CollectiveKind::all_gather:
      return {lane_plan(k, {at_once(shapes::pairwise_gather)})};
    case CollectiveKind::reduce_scatter:
      return {lane_plan(k, {at_once(shapes::pairwise_reduce)})};
    case CollectiveKind::alltoall:
      return {lane_plan(k * k, {at_once(shapes::pairwise_alltoall)})};
    case CollectiveKind::sendrecv:
      return {lane_plan(k, {at_once(shapes::shift)})};
  }
  return {};
}

}  // namespace

Algorithm direct() {
  using enum CollectiveKind;
  return {{"direct",
           "everything straight to where it belongs, all at once",
           {broadcast, reduce, all_reduce, all_gather, reduce_scatter, alltoall, gather, scatter, sendrecv},
           false},
          Arrangement::rotated,
          false,
          direct_lanes};
}

}  // namespace collcast
