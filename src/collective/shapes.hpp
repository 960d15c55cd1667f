// The neighbourhoods that algorithms share, and what travels on them.
//
// A Shape is put together from neighbours (who sends to whom, in which round, after what) and a payload
// (which blocks). Neighbours know sub-groups only through Phase::index and Phase::at. Payloads count in
//   column  the `width` blocks b with b % stride == v % stride: all that a position of a flat lane has
//   unit u  the `width` blocks that member u of v's sub-group stands for: at(v, u) modulo the extent of a
//           sub-group (members*stride), and the same place in each further extent
// so that a ring inside nodes (stride 1, width = nodes) leaves exactly the blocks that a ring across nodes
// (stride = ranks per node, width 1) goes on with.
#pragma once

#include <bit>
#include <vector>

#include "collcast/schedule/pattern.hpp"

namespace collcast::shapes {

using Carries = void (*)(const Phase&, Position, int hop, std::vector<Piece>&);

template <class Neighbours>
constexpr Shape shape(const char* name, Carries carries) {
  return {name, Neighbours::sends, Neighbours::receives, Neighbours::send, carries};
}

void append_column(const Phase&, Position, bool reduce, std::vector<Piece>&);
void append_unit(const Phase&, Position, int unit, bool reduce, std::vector<Piece>&);

/// The column, replacing or adding to the receiver's.
void carry_column(const Phase&, Position, int hop, std::vector<Piece>&);
void reduce_column(const Phase&, Position, int hop, std::vector<Piece>&);
/// The sender's own unit.
void carry_own(const Phase&, Position, int hop, std::vector<Piece>&);

inline int floor_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1; }
inline int ceil_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1))); }

/// x to x+1 around, `rounds` times, one unit each.
struct Ring {
  static int sends(const Phase&, Position);
  static int receives(const Phase&, Position);
  static Hop send(const Phase&, Position, int hop);
};
/// x to x+1, from the first to the last; `width` blocks.
struct ChainDown {
  static int sends(const Phase&, Position);
  static int receives(const Phase&, Position);
  static Hop send(const Phase&, Position, int hop);
};
/// x to x-1, from the last to the first; `width` blocks.
struct ChainUp {
  static int sends(const Phase&, Position);
  static int receives(const Phase&, Position);
  static Hop send(const Phase&, Position, int hop);
};
/// Member 0 to each other, in turn (sequential) or at once; only in the sub-group of position 0.
struct FanOut {
  static int sends(const Phase&, Position);
  static int receives(const Phase&, Position);
  static Hop send(const Phase&, Position, int hop);
};
/// Each to member 0; only in the sub-group of position 0.
struct FanIn {
  static int sends(const Phase&, Position);
  static int receives(const Phase&, Position);
  static Hop send(const Phase&, Position, int hop);
};
/// Each to each: x to x+1, x+2, ... around, in turn (sequential) or at once.
struct Pairwise {
  static int sends(const Phase&, Position);
  static int receives(const Phase&, Position);
  static Hop send(const Phase&, Position, int hop);
};

/// Each to the next, once.
extern const Shape shift;
extern const Shape ring_reduce_scatter;  ///< members-1 rounds; member u ends with unit u
extern const Shape ring_all_gather;      ///< members-1 rounds; begins with unit u at member u
extern const Shape ring_all_reduce;      ///< both, in 2(members-1) rounds without a stop between
extern const Shape chain_broadcast, chain_reduce;
extern const Shape fan_out_column, fan_out_units;  ///< all to everyone; to each its unit
extern const Shape fan_in_column, fan_in_units;    ///< summed; each its unit
extern const Shape pairwise_gather, pairwise_reduce, pairwise_alltoall;

/// Distances 1, 2, 4 ... or the other way round among the first bit_floor(members) ("core"); the others
/// ("riders") have folded into member x - core before and get their result from it afterwards.
/// Phase::argument: how many core members also stand for the unit of their rider.
extern const Shape xor_column;                    ///< doubling distances, the whole column summed
extern const Shape xor_halving;                   ///< halving distances, halving units summed: unit u ends at u
extern const Shape xor_doubling;                  ///< doubling distances, doubling units
extern const Shape fold_in_column, fold_in_unit;  ///< rider to core: column summed; its unit
extern const Shape fold_out_column, fold_out_unit, fold_out_others;  ///< core to rider: column; its unit; all but it

}  // namespace collcast::shapes
