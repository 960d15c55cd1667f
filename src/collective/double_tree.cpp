// double_tree: two binary trees below the root, each with half of the data, arranged so that a rank which is
// inner in one is a leaf in the other: every rank sends and receives about as much as it holds.
//
// The trees are those of collcast/collective/in_order_tree.hpp.
#include "collcast/collective/in_order_tree.hpp"
#include "collective/algorithm.hpp"
#include "collective/trees.hpp"

namespace collcast {
namespace {

std::vector<LanePlan> double_tree_lanes(const Outline& o) {
  const int k = o.ranks;
  const auto tree = [k](const Shape& shape, int passes) {
    return lane_plan(
        1, {{.shape = &shape, .flow = Flow::forwarding, .rounds = passes * InOrderTree::rounds(k), .members = k}});
  };
  LanePlan first = o.kind == CollectiveKind::broadcast ? tree(shapes::tree_broadcast<InOrderTree>, 1)
                   : o.kind == CollectiveKind::reduce  ? tree(shapes::tree_reduce<InOrderTree>, 1)
                                                       : tree(shapes::tree_all_reduce<InOrderTree>, 2);
  LanePlan second = first;
  second.order = second_tree_order(k);
  return {std::move(first), std::move(second)};
}

}  // namespace

Algorithm double_tree() {
  using enum CollectiveKind;
  return {{"double_tree",
           "two complementary binary trees with half of the data each",
           {broadcast, reduce, all_reduce},
           true,
           true},
          Arrangement::rotated,
          false,
          double_tree_lanes};
}

}  // namespace collcast
