// Rings, chains, fans and pairwise exchange. Trees are in trees.hpp, xor shapes in xor_shapes.cpp.
#include "collective/shapes.hpp"

namespace collcast::shapes {

void append_column(const Phase& phase, Position v, bool reduce, std::vector<Piece>& out) {
  for (int t = 0; t < phase.width; ++t) out.push_back({v % phase.stride + t * phase.stride, reduce});
}

void append_unit(const Phase& phase, Position v, int unit, bool reduce, std::vector<Piece>& out) {
  const int extent = phase.members * phase.stride;
  for (int t = 0; t < phase.width; ++t) out.push_back({phase.at(v, unit) % extent + t * extent, reduce});
}

void carry_column(const Phase& phase, Position v, int, std::vector<Piece>& out) { append_column(phase, v, false, out); }
void reduce_column(const Phase& phase, Position v, int, std::vector<Piece>& out) { append_column(phase, v, true, out); }
void carry_own(const Phase& phase, Position v, int, std::vector<Piece>& out) {
  append_unit(phase, v, phase.index(v), false, out);
}

int Ring::sends(const Phase& phase, Position) { return phase.rounds; }
int Ring::receives(const Phase& phase, Position) { return phase.rounds; }
Hop Ring::send(const Phase& phase, Position v, int hop) {
  const int x = phase.index(v);
  const int next = x + 1 == phase.members ? 0 : x + 1;
  return {hop, phase.at(v, next), hop, 0, phase.width};
}

int ChainDown::sends(const Phase& phase, Position v) { return phase.index(v) + 1 < phase.members ? 1 : 0; }
int ChainDown::receives(const Phase& phase, Position v) { return phase.index(v) > 0 ? 1 : 0; }
Hop ChainDown::send(const Phase& phase, Position v, int) {
  const int x = phase.index(v);
  return {x, phase.at(v, x + 1), 0, x > 0 ? 1 : 0, phase.width};
}

int ChainUp::sends(const Phase& phase, Position v) { return ChainDown::receives(phase, v); }
int ChainUp::receives(const Phase& phase, Position v) { return ChainDown::sends(phase, v); }
Hop ChainUp::send(const Phase& phase, Position v, int) {
  const int x = phase.index(v);
  return {phase.members - 1 - x, phase.at(v, x - 1), 0, receives(phase, v), phase.width};
}

namespace {

bool with_root(const Phase& phase, Position v) { return v < phase.members * phase.stride && v % phase.stride == 0; }
int modulo(int a, int n) { return ((a % n) + n) % n; }

}  // namespace

int FanOut::sends(const Phase& phase, Position v) { return v == 0 ? phase.members - 1 : 0; }
int FanOut::receives(const Phase& phase, Position v) { return with_root(phase, v) && v != 0 ? 1 : 0; }
Hop FanOut::send(const Phase& phase, Position v, int hop) {
  return {phase.flow == Flow::concurrent ? 0 : hop, phase.at(v, hop + 1), 0, 0, phase.width};
}

int FanIn::sends(const Phase& phase, Position v) { return FanOut::receives(phase, v); }
int FanIn::receives(const Phase& phase, Position v) { return FanOut::sends(phase, v); }
Hop FanIn::send(const Phase& phase, Position v, int) {
  const int x = phase.index(v);
  return {0, phase.at(v, 0), x - 1, 0, phase.width};
}

int Pairwise::sends(const Phase& phase, Position) { return phase.members - 1; }
int Pairwise::receives(const Phase& phase, Position) { return phase.members - 1; }
Hop Pairwise::send(const Phase& phase, Position v, int hop) {
  const int peer = (phase.index(v) + 1 + hop) % phase.members;
  return {phase.flow == Flow::concurrent ? 0 : hop, phase.at(v, peer), hop, 0, phase.width};
}

namespace {

// Unit x-1 sets out from x and collects a contribution at every stop; after members-1 hops it is at x-1.
void carry_ring_reduce(const Phase& phase, Position v, int hop, std::vector<Piece>& out) {
  append_unit(phase, v, modulo(phase.index(v) - 1 - hop, phase.members), true, out);
}
void carry_ring_gather(const Phase& phase, Position v, int hop, std::vector<Piece>& out) {
  append_unit(phase, v, modulo(phase.index(v) - hop, phase.members), false, out);
}
void carry_ring_all_reduce(const Phase& phase, Position v, int hop, std::vector<Piece>& out) {
  const int turn = phase.members - 1;
  if (hop < turn)
    carry_ring_reduce(phase, v, hop, out);
  else
    carry_ring_gather(phase, v, hop - turn, out);
}

void carry_fan_out_unit(const Phase& phase, Position v, int hop, std::vector<Piece>& out) {
  append_unit(phase, v, hop + 1, false, out);
}

void reduce_peers_unit(const Phase& phase, Position v, int hop, std::vector<Piece>& out) {
  append_unit(phase, v, (phase.index(v) + 1 + hop) % phase.members, true, out);
}
void carry_pair(const Phase& phase, Position v, int hop, std::vector<Piece>& out) {
  out.push_back({v * phase.members + Pairwise::send(phase, v, hop).peer, false});
}

}  // namespace

const Shape shift = shape<Ring>("shift", carry_own);
const Shape ring_reduce_scatter = shape<Ring>("ring_reduce_scatter", carry_ring_reduce);
const Shape ring_all_gather = shape<Ring>("ring_all_gather", carry_ring_gather);
const Shape ring_all_reduce = shape<Ring>("ring_all_reduce", carry_ring_all_reduce);
const Shape chain_broadcast = shape<ChainDown>("chain_broadcast", carry_column);
const Shape chain_reduce = shape<ChainUp>("chain_reduce", reduce_column);
const Shape fan_out_column = shape<FanOut>("fan_out", carry_column);
const Shape fan_out_units = shape<FanOut>("fan_out_units", carry_fan_out_unit);
const Shape fan_in_column = shape<FanIn>("fan_in", reduce_column);
const Shape fan_in_units = shape<FanIn>("fan_in_units", carry_own);
const Shape pairwise_gather = shape<Pairwise>("pairwise_gather", carry_own);
const Shape pairwise_reduce = shape<Pairwise>("pairwise_reduce", reduce_peers_unit);
const Shape pairwise_alltoall = shape<Pairwise>("pairwise_alltoall", carry_pair);

}  // namespace collcast::shapes
