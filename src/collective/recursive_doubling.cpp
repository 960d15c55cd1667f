// recursive_doubling: log2(k) exchanges at distances 1, 2, 4 ...; the least rounds.
//
// all_reduce exchanges the whole buffer each time, with a fold before and after where k is no power of two.
// all_gather doubles what it sends; where k is no power of two it is Bruck's, around the ring of ranks.
// alltoall is Bruck's: in round j everything goes on by 2^j whose way is an odd multiple of 2^j, plus less.
// Sources: Thakur, Rabenseifner, Gropp 2005; Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient Algorithms for
// All-to-All Communications in Multiport Message-Passing Systems", 1997. Leaves out: the local copies that
// bring Bruck's blocks into order.
#include <algorithm>
#include <bit>

#include "collective/algorithm.hpp"
#include "collective/shapes.hpp"

namespace collcast {
namespace {

struct Dissemination {
  static int sends(const Phase& phase, Position) { return phase.rounds; }
  static int receives(const Phase& phase, Position) { return phase.rounds; }
};

// x has gathered units x, x+1, ... and hands as many as are still missing to x - 2^j.
struct BruckGather : Dissemination {
  static int units(const Phase& phase, int hop) { return std::min(1 << hop, phase.members - (1 << hop)); }
  static Hop send(const Phase& phase, Position v, int hop) {
    const int peer = (phase.index(v) + phase.members - (1 << hop)) % phase.members;
    return {hop, phase.at(v, peer), hop, hop, units(phase, hop) * phase.width};
  }
  static void carry(const Phase& phase, Position v, int hop, std::vector<Piece>& out) {
    for (int u = 0; u < units(phase, hop); ++u)
      shapes::append_unit(phase, v, (phase.index(v) + u) % phase.members, false, out);
  }
};

// A block on its way from s to s+way is at s + (way mod 2^j) before round j, and moves if bit j of way is set.
struct BruckExchange : Dissemination {
  static Hop send(const Phase& phase, Position v, int hop) {
    int blocks = 0;
    for (int way = 1; way < phase.members; ++way) blocks += (way >> hop) & 1;
    return {hop, (v + (1 << hop)) % phase.members, hop, hop, blocks};
  }
  static void carry(const Phase& phase, Position v, int hop, std::vector<Piece>& out) {
    const int k = phase.members;
    for (int way = 1; way < k; ++way) {
      if (((way >> hop) & 1) == 0) continue;
      const int source = (v + k - way % (1 << hop)) % k;
      out.push_back({source * k + (source + way) % k, false});
    }
  }
};

constexpr Shape bruck_all_gather = shapes::shape<BruckGather>("bruck_all_gather", BruckGather::carry);
constexpr Shape bruck_alltoall = shapes::shape<BruckExchange>("bruck_alltoall", BruckExchange::carry);

std::vector<LanePlan> recursive_doubling_lanes(const Outline& o) {
  const int k = o.ranks;
  const bool whole_cube = std::has_single_bit(static_cast<unsigned>(k));
  const auto phase = [k](const Shape& shape, int rounds) {
    return Phase{.shape = &shape, .flow = Flow::forwarding, .rounds = rounds, .members = k};
  };
  switch (o.kind) {
    case CollectiveKind::all_reduce:
      return {lane_plan(
          1, {phase(shapes::fold_in_column, whole_cube ? 0 : 1), phase(shapes::xor_column, shapes::floor_log2(k)),
              phase(shapes::fold_out_column, whole_cube ? 0 : 1)})};
    case CollectiveKind::all_gather:
      return {lane_plan(k, {phase(whole_cube ? shapes::xor_doubling : bruck_all_gather, shapes::ceil_log2(k))})};
    default:
      return {lane_plan(k * k, {phase(bruck_alltoall, shapes::ceil_log2(k))})};
  }
}

}  // namespace

Algorithm recursive_doubling() {
  using enum CollectiveKind;
  return {{"recursive_doubling",
           "log2(k) exchanges at doubling distances; all_gather and alltoall after Bruck",
           {all_reduce, all_gather, alltoall},
           true},
          Arrangement::rotated,
          false,
          recursive_doubling_lanes};
}

}  // namespace collcast
