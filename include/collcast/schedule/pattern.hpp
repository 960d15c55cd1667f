// Pattern: what a group of ranks exchanges, said once and never spelled out.
//
// A Pattern answers, from (participant, hop, chunk), who gets how many bytes and what must have happened
// before. The closed form sums it, the recurrence and the engine walk it, `append` expands it, the proof
// runs it on sets of contributions: all five read only what is here. Nothing is stored per message.
//
//   Pattern = lanes that run side by side (channels, directions, trees), each on its own part of the data
//   Lane    = phases one after the other; blocks = equal parts the lane's data is counted in
//   Phase   = one regular shape of neighbours (ring, chain, tree, xor ...) and one Flow
//   Hop     = one send of one position in a phase: to whom, how many blocks, after which receives
//   chunk   = one of `chunks` equal pieces that every hop's payload is cut into
//
// A *participant* is an index into `group`. A *position* is an index into a lane's `order`, which maps it
// to a participant; lanes rotate the order so that they leave a node by different rails.
//
// Execution rules (every evaluator follows exactly these). "Left" = the last byte has left the sender and
// the links are free; "arrived" = left + route latency. Message (v, j, i) is chunk i of hop j of position
// v; hops of a position are in ascending round order. A message starts at the latest of:
//   circulating  v's previous message has left, in the order (j, i) with i fastest; and, for j > 0, the
//                chunk i of receive j-1 has arrived. All sends of a position go to one peer, all its
//                receives come from one peer, all hops carry the same number of blocks.   (ring)
//   forwarding   (v, j-1, i) has left; (v, j, i-1) has left; chunk i of each of the first `after`
//                receives has arrived. Hops of a position in one phase go to distinct peers. (chain, tree)
//   sequential   v's previous message has left, in the order (j, i) with i fastest.   (naive, pairwise)
//   concurrent   (v, j, i-1) has left; all hops at once.                             (direct)
// and in every case after the position has entered the phase: it enters phase p+1 of a lane when all its
// sends of phase p have left and all its receives of phase p have arrived (a barrier per position, not per
// group; a message may arrive before its receiver has entered the phase). A lane's position enters phase 0
// when its participant is ready. A participant finishes when its positions in all lanes have left their
// last phase.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collcast/base/quantity.hpp"
#include "collcast/schedule/group.hpp"

namespace collcast {

/// Index into a lane's order. An index, not a Rank: arithmetic on it is the algorithm.
using Position = int;

enum class Flow : std::uint8_t { circulating, forwarding, sequential, concurrent };

/// Whether a position's next hop begins when the one before has left, so that one is under way at a time.
constexpr bool sends_in_turn(Flow flow) { return flow == Flow::circulating || flow == Flow::sequential; }

/// How many of a position's hops differ, of `sends` in a phase: all of them, but those of a circulating phase go one
/// way and are alike, so that the first stands for the others.
constexpr int different_hops(Flow flow, int sends) { return flow == Flow::circulating && sends > 1 ? 1 : sends; }

/// One send of a position.
struct Hop {
  int round = 0;      ///< rounds order the hops of a phase; a round's hops happen side by side
  Position peer = 0;  ///< receiver
  int slot = 0;       ///< which of the receiver's receives this is, 0-based in ascending round order
  int after = 0;      ///< forwarding: number of own receives (a prefix, in round order) it waits for
  int blocks = 0;     ///< payload, in blocks of the lane
};

/// One block of a hop's payload, for proofs: what it is and what the receiver does with it.
struct Piece {
  int block = 0;
  bool reduce = false;  ///< add the contributions to what is there; false: replace it
};

struct Phase;

/// The neighbours of a phase as plain functions of (phase, position, hop): a table of functions, so that
/// a new algorithm is a new table in `collective` and nothing else changes.
struct Shape {
  const char* name;
  int (*sends)(const Phase&, Position);     ///< number of hops the position sends
  int (*receives)(const Phase&, Position);  ///< number of hops the position receives
  Hop (*send)(const Phase&, Position, int hop);
  /// The blocks of a hop's payload; appended. Never called while timing.
  void (*carries)(const Phase&, Position, int hop, std::vector<Piece>&);
};

/// A shape over sub-groups of the lane: the positions v with equal v / (members*stride) and equal
/// v % stride form one sub-group of `members`, in which v has index (v / stride) % members. The whole lane
/// is members = size, stride = 1.
struct Phase {
  const Shape* shape = nullptr;
  Flow flow = Flow::forwarding;
  int rounds = 0;  ///< 1 + the largest round of any hop
  int members = 1;
  int stride = 1;
  int width = 1;                                    ///< blocks per unit that the shape counts in
  int argument = 0;                                 ///< the shape's own parameter (a distance, a direction, a root ...)
  std::shared_ptr<const std::vector<int>> table{};  ///< the same where it is a list (the ranks of each node ...)

  /// different_hops of the position.
  int ways(Position v) const { return different_hops(flow, shape->sends(*this, v)); }

  int index(Position v) const { return (v / stride) % members; }
  Position at(Position v, int index) const { return v + (index - this->index(v)) * stride; }
};

struct Lane {
  std::vector<int> order;  ///< position -> participant; empty: the identity
  int blocks = 1;          ///< number of blocks that the lane's data is counted in
  Volume block{};          ///< bytes of one block
  int route_lane = 0;      ///< lane argument of Fabric::route
  std::vector<Phase> phases;

  int participant(Position v) const { return order.empty() ? v : order[static_cast<std::size_t>(v)]; }
};

struct Pattern {
  std::string algorithm;  ///< for labels and errors
  Group group;            ///< participant -> rank
  int chunks = 1;
  std::vector<Lane> lanes;

  int size() const { return group.size(); }
  Rank rank(const Lane& lane, Position v) const { return group[lane.participant(v)]; }
  /// Bytes of one chunk of a hop.
  Volume message(const Lane& lane, const Hop& hop) const {
    return lane.block * static_cast<double>(hop.blocks) / static_cast<double>(chunks);
  }
};

/// Number of messages that the pattern puts on the wire, and their bytes.
struct Traffic {
  std::int64_t messages = 0;
  Volume bytes{};
};
Traffic traffic(const Pattern&);

}  // namespace collcast
