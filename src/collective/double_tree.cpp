// double_tree: two binary trees below the root, each with half of the data, arranged so that a rank which is
// inner in one is a leaf in the other: every rank sends and receives about as much as it holds.
//
// The first tree is the in-order one over ranks 1 to n = k-1 (leaves are odd, the distance to a child halves
// on every level); the second is its mirror image for even n, itself shifted by one for odd n. Both hang
// below rank 0. Sources: Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction
// and scan", 2009; the arithmetic of the tree as in NCCL's trees.cc.
#include <algorithm>
#include <bit>

#include "collective/algorithm.hpp"
#include "collective/trees.hpp"

namespace collcast {
namespace {

struct InOrder {
  static int lowest_bit(int x) { return x & -x; }
  static int top(int m) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(m))) / 2; }
  // The child above x: half as far as the one below, or nearer where the tree is cut off.
  static int upper(int m, int x) {
    int distance = lowest_bit(x) / 2;
    while (distance > 0 && x + distance >= m) distance /= 2;
    return distance > 0 ? x + distance : 0;
  }
  static int children(int m, int x) {
    if (x == 0) return m > 1 ? 1 : 0;
    if (lowest_bit(x) == 1) return 0;
    return upper(m, x) > 0 ? 2 : 1;
  }
  static int child(int m, int x, int j) {
    if (x == 0) return top(m);
    return j == 0 ? x - lowest_bit(x) / 2 : upper(m, x);
  }
  static int parent(int m, int x) {
    if (x == top(m)) return 0;
    const int bit = lowest_bit(x);
    const int above = (x ^ bit) | (bit << 1);
    return above < m ? above : x ^ bit;
  }
  static int place(int m, int x) { return child(m, parent(m, x), 0) == x ? 0 : 1; }
  static int round(int m, int x) {
    int result = 0;
    for (; x != top(m); x = parent(m, x)) result += 1 + place(m, x);
    return result;
  }
  // The last round is on the way up from the top: at x itself, or below its lower child, whose tree is full,
  // at the leaf that is served second on every level.
  static int rounds(int m) {
    int last = -1;
    int now = 0;
    for (int x = top(m); x > 0 && x < m; x = upper(m, x), now += 2) {
      const int levels = shapes::floor_log2(lowest_bit(x));
      last = std::max({last, now, levels > 0 ? now + 1 + 2 * (levels - 1) : 0});
    }
    return last + 1;
  }
};

std::vector<int> complement(int k) {
  const int n = k - 1;
  std::vector<int> order{0};
  for (int x = 1; x <= n; ++x) order.push_back(n % 2 == 0 ? n + 1 - x : x % n + 1);
  return order;
}

std::vector<LanePlan> plan(const Outline& o) {
  const int k = o.ranks;
  const auto tree = [k](const Shape& shape, int passes) {
    return lane_plan(
        1, {{.shape = &shape, .flow = Flow::forwarding, .rounds = passes * InOrder::rounds(k), .members = k}});
  };
  LanePlan first = o.kind == CollectiveKind::broadcast ? tree(shapes::tree_broadcast<InOrder>, 1)
                   : o.kind == CollectiveKind::reduce  ? tree(shapes::tree_reduce<InOrder>, 1)
                                                       : tree(shapes::tree_all_reduce<InOrder>, 2);
  LanePlan second = first;
  second.order = complement(k);
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
          plan};
}

}  // namespace collcast
