// Neighbourhoods for tests of the schedule and the engine, each small enough to check by eye.
//
// They carry no data (nothing is proved about contents here): only who sends to whom, in which round,
// after what.
#pragma once

#include <string>
#include <vector>

#include "collcast/schedule/pattern.hpp"

namespace collcast::test {

extern const Shape ring_shape;       ///< v to v+1 around, `rounds` times
extern const Shape chain_shape;      ///< v to v+1, from the first to the last
extern const Shape fan_out_shape;    ///< 0 to each other, one round each
extern const Shape fan_in_shape;     ///< each other to 0, all in round 0
extern const Shape tree_down_shape;  ///< binomial, from 0
extern const Shape tree_up_shape;    ///< binomial, to 0
extern const Shape xor_shape;        ///< v with v xor `argument`, where that exists
extern const Shape everyone_shape;   ///< v to v+1, v+2 ... around
extern const Shape relay_shape;      ///< the same, the hop of round j after the first j receives

Phase ring_phase(int members, int rounds);
Phase chain_phase(int members);
/// The other shapes, with a flow that they allow.
Phase phase_of(const Shape& shape, Flow flow, int members, int argument = 0);

/// One lane over ranks 0 ... size-1.
Pattern pattern_of(int size, std::vector<Phase> phases, Volume block, int chunks = 1);

/// Ring all-reduce of `bytes` among `size` ranks: 2(size-1) rounds of one block.
Pattern ring_all_reduce(int size, Volume bytes, int chunks = 1);
/// Chunked broadcast along a chain.
Pattern chain_broadcast(int size, Volume bytes, int chunks = 1);

}  // namespace collcast::test
