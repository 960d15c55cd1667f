// naive: one after another, without any cleverness. The root sends to each in turn; towards the root all
// send at once and queue at its link; every-to-every kinds are pairwise exchange, one partner after another.
// Source: the linear algorithms of Pjesivac-Grbovic et al., "Performance Analysis of MPI Collective
// Operations", 2007. Leaves out: a root that admits its senders one by one (rendezvous).
#include "collective/algorithm.hpp"
#include "collective/shapes.hpp"

namespace collcast {
namespace {

std::vector<LanePlan> naive_lanes(const Outline& o) {
  const int k = o.ranks;
  const auto in_turn = [k](const Shape& shape) {
    return Phase{.shape = &shape, .flow = Flow::sequential, .rounds = k - 1, .members = k};
  };
  const auto to_root = [k](const Shape& shape) {
    return Phase{.shape = &shape, .flow = Flow::sequential, .rounds = k > 1 ? 1 : 0, .members = k};
  };
  switch (o.kind) {
    case CollectiveKind::broadcast:
      return {lane_plan(1, {in_turn(shapes::fan_out_column)})};
    case CollectiveKind::scatter:
      return {lane_plan(k, {in_turn(shapes::fan_out_units)})};
    case CollectiveKind::reduce:
      return {lane_plan(1, {to_root(shapes::fan_in_column)})};
    case CollectiveKind::gather:
      return {lane_plan(k, {to_root(shapes::fan_in_units)})};
    case CollectiveKind::all_reduce:
      return {lane_plan(1, {to_root(shapes::fan_in_column), in_turn(shapes::fan_out_column)})};
    case CollectiveKind::all_gather:
      return {lane_plan(k, {in_turn(shapes::pairwise_gather)})};
    case CollectiveKind::reduce_scatter:
      return {lane_plan(k, {in_turn(shapes::pairwise_reduce)})};
    case CollectiveKind::alltoall:
      return {lane_plan(k * k, {in_turn(shapes::pairwise_alltoall)})};
    case CollectiveKind::sendrecv:
      break;
  }
  return {};
}

}  // namespace

Algorithm naive() {
  using enum CollectiveKind;
  return {{"naive",
           "the root sends to each in turn; every-to-every in turns of one partner",
           {broadcast, reduce, all_reduce, all_gather, reduce_scatter, alltoall, gather, scatter},
           false},
          Arrangement::rotated,
          false,
          naive_lanes};
}

}  // namespace collcast
