// The pair of binary trees that let every member send about as much as it receives.
//
// The first is the in-order tree over members 1 to n = m-1 (leaves are odd, the distance to a child halves on every
// level); the second is its mirror image for even n, itself shifted by one for odd n. Both hang below member 0, and who
// is inner in one is a leaf in the other. Sources: Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan", 2009; the arithmetic of the tree as in NCCL's trees.cc.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

namespace collcast {

/// Of m members, 0 the root; x: a member.
struct InOrderTree {
  static int lowest_bit(int x) { return x & -x; }
  static int top(int m) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(m))) / 2; }
  /// The child above x: half as far as the one below, or nearer where the tree is cut off; 0: none.
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
  /// In the order in which x sends to them.
  static int child(int m, int x, int j) {
    if (x == 0) return top(m);
    return j == 0 ? x - lowest_bit(x) / 2 : upper(m, x);
  }
  /// x > 0.
  static int parent(int m, int x) {
    if (x == top(m)) return 0;
    const int bit = lowest_bit(x);
    const int above = (x ^ bit) | (bit << 1);
    return above < m ? above : x ^ bit;
  }
  /// x = child(parent, place).
  static int place(int m, int x) { return child(m, parent(m, x), 0) == x ? 0 : 1; }
  /// When x > 0 is sent to on the way down, where a member sends once a round.
  static int round(int m, int x) {
    int result = 0;
    for (; x != top(m); x = parent(m, x)) result += 1 + place(m, x);
    return result;
  }
  /// 1 + the largest of these. The last round is on the way up from the top: at x itself, or below its lower child,
  /// whose tree is full, at the leaf that is served second on every level.
  static int rounds(int m) {
    int last = -1;
    int now = 0;
    for (int x = top(m); x > 0 && x < m; x = upper(m, x), now += 2) {
      const int levels = static_cast<int>(std::bit_width(static_cast<unsigned>(lowest_bit(x)))) - 1;
      last = std::max({last, now, levels > 0 ? now + 1 + 2 * (levels - 1) : 0});
    }
    return last + 1;
  }
};

/// Member of the first tree -> member that has its place in the second.
inline std::vector<int> second_tree_order(int m) {
  const int n = m - 1;
  std::vector<int> order{0};
  for (int x = 1; x <= n; ++x) order.push_back(n % 2 == 0 ? n + 1 - x : x % n + 1);
  return order;
}

}  // namespace collcast
