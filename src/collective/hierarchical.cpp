// hierarchical: inside the nodes, across them among equal local indices, inside again, so that each byte
// crosses the network once per ring and every rank's way out of the node is used.
//
//   all_reduce      ring reduce_scatter inside, ring all_reduce across, ring all_gather inside
//   reduce_scatter  ring reduce_scatter inside, then across        all_gather  across, then inside
//   broadcast       scatter inside the root's node, chain across, ring all_gather inside
//   reduce          ring reduce_scatter inside, chain to the root's node, gather inside it
//   alltoall        to the local index inside, to the node across, everyone at once
// A position is node*per_node + local. Sources: Jia et al., "Highly Scalable Deep Learning Training System
// with Mixed-Precision", 2018, section 3.3; Cho et al., "BlueConnect", 2019.
#include "collective/algorithm.hpp"
#include "collective/shapes.hpp"

namespace collcast {
namespace {

// Inside: what v has for local index u of every node. Across: what v's node has for the node u at v's local index.
void carry_to_local(const Phase& phase, Position v, int hop, std::vector<Piece>& out) {
  const int ranks = phase.members * phase.width;
  const int local = phase.index(shapes::Pairwise::send(phase, v, hop).peer);
  for (int node = 0; node < phase.width; ++node) out.push_back({v * ranks + node * phase.members + local, false});
}
void carry_to_node(const Phase& phase, Position v, int hop, std::vector<Piece>& out) {
  const int ranks = phase.members * phase.width;
  const int to = shapes::Pairwise::send(phase, v, hop).peer;
  const int first = phase.index(v) * phase.width;
  for (int local = 0; local < phase.width; ++local) out.push_back({(first + local) * ranks + to, false});
}
const Shape to_local = shapes::shape<shapes::Pairwise>("to_local", carry_to_local);
const Shape to_node = shapes::shape<shapes::Pairwise>("to_node", carry_to_node);

std::vector<LanePlan> hierarchical_lanes(const Outline& o) {
  const int m = o.per_node;
  const int n = o.nodes;
  // `width`: blocks that one unit of the phase stands for
  const auto inside = [m](const Shape& shape, Flow flow, int rounds, int width) {
    return Phase{.shape = &shape, .flow = flow, .rounds = rounds, .members = m, .width = width};
  };
  const auto across = [m, n](const Shape& shape, Flow flow, int rounds, int width) {
    return Phase{.shape = &shape, .flow = flow, .rounds = rounds, .members = n, .stride = m, .width = width};
  };
  const auto ring_inside = [&](const Shape& shape, int width) {
    return inside(shape, Flow::circulating, m - 1, width);
  };
  const auto ring_across = [&](const Shape& shape, int turns) {
    return across(shape, Flow::circulating, turns * (n - 1), 1);
  };
  switch (o.kind) {
    case CollectiveKind::all_reduce:
      return {lane_plan(m * n, {ring_inside(shapes::ring_reduce_scatter, n), ring_across(shapes::ring_all_reduce, 2),
                                ring_inside(shapes::ring_all_gather, n)})};
    case CollectiveKind::reduce_scatter:
      return {
          lane_plan(m * n, {ring_inside(shapes::ring_reduce_scatter, n), ring_across(shapes::ring_reduce_scatter, 1)})};
    case CollectiveKind::all_gather:
      return {lane_plan(m * n, {ring_across(shapes::ring_all_gather, 1), ring_inside(shapes::ring_all_gather, n)})};
    case CollectiveKind::broadcast:
      return {lane_plan(
          m, {inside(shapes::fan_out_units, Flow::sequential, m - 1, 1),
              across(shapes::chain_broadcast, Flow::forwarding, n - 1, 1), ring_inside(shapes::ring_all_gather, 1)})};
    case CollectiveKind::reduce:
      return {lane_plan(
          m, {ring_inside(shapes::ring_reduce_scatter, 1), across(shapes::chain_reduce, Flow::forwarding, n - 1, 1),
              inside(shapes::fan_in_units, Flow::concurrent, m > 1 ? 1 : 0, 1)})};
    default:
      return {lane_plan(m * n * m * n, {inside(to_local, Flow::concurrent, m > 1 ? 1 : 0, n),
                                        across(to_node, Flow::concurrent, n > 1 ? 1 : 0, m)})};
  }
}

}  // namespace

Algorithm hierarchical() {
  using enum CollectiveKind;
  return {{"hierarchical",
           "inside the nodes, across them on every rail, inside again",
           {broadcast, reduce, all_reduce, all_gather, reduce_scatter, alltoall},
           true},
          Arrangement::aligned,
          true,
          hierarchical_lanes};
}

}  // namespace collcast
