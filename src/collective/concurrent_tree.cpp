// concurrent_tree: a binomial tree in which a rank sends to all its children at once, as Gloo's broadcast does
// (gloo/broadcast.cc): position x sends to x + 1, 2, 4 ... beyond its own highest bit. Children share their parent's
// link, so none has its data before all have; `tree` sends to one after the other. reduce is the same backwards.
//
// A phase for each level: a rank of level l, which has l bits, enters phase l when its parent's message is there.
#include <bit>

#include "collective/algorithm.hpp"
#include "collective/shapes.hpp"

namespace collcast {
namespace {

int highest_bit(int x) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(x))); }
int level(int x) { return std::popcount(static_cast<unsigned>(x)); }
int parent(int x) { return x - highest_bit(x); }

/// Children of x among m members are x + first << j, first the lowest power of two above x.
int first_child(int x) { return x == 0 ? 1 : 2 * highest_bit(x); }
int children(int m, int x) {
  const int ways = (m - 1 - x) / first_child(x);
  return ways > 0 ? shapes::floor_log2(ways) + 1 : 0;
}
int place(int x) { return shapes::floor_log2(highest_bit(x) / first_child(parent(x))); }

/// Phase::argument: the level that sends down.
struct LevelDown {
  static int sends(const Phase& p, Position v) {
    const int x = p.index(v);
    return level(x) == p.argument ? children(p.members, x) : 0;
  }
  static int receives(const Phase& p, Position v) { return level(p.index(v)) == p.argument + 1 ? 1 : 0; }
  static Hop send(const Phase& p, Position v, int hop) {
    const int x = p.index(v);
    return {0, p.at(v, x + (first_child(x) << hop)), 0, 0, p.width};
  }
};

/// Phase::argument: the level that is sent up to.
struct LevelUp {
  static int sends(const Phase& p, Position v) { return LevelDown::receives(p, v); }
  static int receives(const Phase& p, Position v) { return LevelDown::sends(p, v); }
  static Hop send(const Phase& p, Position v, int) {
    const int x = p.index(v);
    return {0, p.at(v, parent(x)), place(x), 0, p.width};
  }
};

constexpr Shape level_broadcast = shapes::shape<LevelDown>("level_down", shapes::carry_column);
constexpr Shape level_reduce = shapes::shape<LevelUp>("level_up", shapes::reduce_column);

std::vector<LanePlan> concurrent_tree_lanes(const Outline& o) {
  const int k = o.ranks, levels = shapes::floor_log2(k);  // the most bits of a number below k
  const bool down = o.kind == CollectiveKind::broadcast;
  std::vector<Phase> phases;
  for (int i = 0; i < levels; ++i)
    phases.push_back({.shape = down ? &level_broadcast : &level_reduce,
                      .flow = Flow::concurrent,
                      .rounds = 1,
                      .members = k,
                      .argument = down ? i : levels - 1 - i});
  return {lane_plan(1, std::move(phases))};
}

}  // namespace

Algorithm concurrent_tree() {
  using enum CollectiveKind;
  return {{"concurrent_tree", "a binomial tree that sends to all children at once", {broadcast, reduce}, false},
          Arrangement::rotated,
          false,
          concurrent_tree_lanes};
}

}  // namespace collcast
