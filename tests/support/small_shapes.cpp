#include "support/small_shapes.hpp"

#include <bit>

namespace collcast::test {

namespace {

void carry_nothing(const Phase&, Position, int, std::vector<Piece>&) {}

int every_round(const Phase& p, Position) { return p.rounds; }
Hop to_next(const Phase& p, Position v, int j) { return {j, p.at(v, (p.index(v) + 1) % p.members), j, 0, p.width}; }

int not_last(const Phase& p, Position v) { return p.index(v) + 1 < p.members ? 1 : 0; }
int not_first(const Phase& p, Position v) { return p.index(v) > 0 ? 1 : 0; }
Hop along(const Phase& p, Position v, int) {
  return {p.index(v), p.at(v, p.index(v) + 1), 0, p.index(v) > 0 ? 1 : 0, p.width};
}

int root_to_all(const Phase& p, Position v) { return p.index(v) == 0 ? p.members - 1 : 0; }
Hop to_each(const Phase& p, Position v, int j) {
  return {p.flow == Flow::concurrent ? 0 : j, p.at(v, j + 1), 0, 0, p.width};
}
Hop to_root(const Phase& p, Position v, int) { return {0, p.at(v, 0), p.index(v) - 1, 0, p.width}; }

// In round r of the tree the positions below 2^r have the data and v sends to v + 2^r.
int first_round(Position v) { return static_cast<int>(std::bit_width(static_cast<unsigned>(v))); }
int tree_children(const Phase& p, Position v) {
  int n = 0;
  for (int r = first_round(v); (v + (1 << r)) < p.members; ++r) ++n;
  return n;
}
Hop to_child(const Phase& p, Position v, int j) {
  const int r = first_round(v) + j;
  return {r, v + (1 << r), 0, v > 0 ? 1 : 0, p.width};
}
// The other way round: child v + 2^r reports in the r-th round from the end.
int tree_rounds(const Phase& p) { return static_cast<int>(std::bit_width(static_cast<unsigned>(p.members - 1))); }
Hop to_parent(const Phase& p, Position v, int) {
  const int r = first_round(v) - 1;  // the round in which v would get the data
  const Position parent = v - (1 << r);
  const int slot = tree_children(p, parent) - 1 - (r - first_round(parent));
  return {tree_rounds(p) - 1 - r, parent, slot, tree_children(p, v), p.width};
}

int has_partner(const Phase& p, Position v) { return (v ^ p.argument) < p.members ? 1 : 0; }
Hop to_partner(const Phase& p, Position v, int) { return {0, v ^ p.argument, 0, 0, p.width}; }

int all_others(const Phase& p, Position) { return p.members - 1; }
Hop to_other(const Phase& p, Position v, int j) {
  return {p.flow == Flow::concurrent ? 0 : j, (v + 1 + j) % p.members, j, 0, p.width};
}
Hop relay(const Phase& p, Position v, int j) { return {j, (v + 1 + j) % p.members, j, j, p.width}; }

}  // namespace

const Shape ring_shape{"ring", every_round, every_round, to_next, carry_nothing};
const Shape chain_shape{"chain", not_last, not_first, along, carry_nothing};
const Shape fan_out_shape{"fan out", root_to_all, not_first, to_each, carry_nothing};
const Shape fan_in_shape{"fan in", not_first, root_to_all, to_root, carry_nothing};
const Shape tree_down_shape{"tree down", tree_children, not_first, to_child, carry_nothing};
const Shape tree_up_shape{"tree up", not_first, tree_children, to_parent, carry_nothing};
const Shape xor_shape{"xor", has_partner, has_partner, to_partner, carry_nothing};
const Shape everyone_shape{"everyone", all_others, all_others, to_other, carry_nothing};
const Shape relay_shape{"relay", all_others, all_others, relay, carry_nothing};

Phase phase_of(const Shape& shape, Flow flow, int members, int argument) {
  Phase phase;
  phase.shape = &shape;
  phase.flow = flow;
  phase.members = members;
  phase.argument = argument;
  phase.rounds = 1;
  for (Position v = 0; v < members; ++v)
    for (int j = 0; j < shape.sends(phase, v); ++j)
      phase.rounds = std::max(phase.rounds, shape.send(phase, v, j).round + 1);
  return phase;
}

Phase ring_phase(int members, int rounds) {
  Phase phase;
  phase.shape = &ring_shape;
  phase.flow = Flow::circulating;
  phase.rounds = rounds;
  phase.members = members;
  return phase;
}

Phase chain_phase(int members) { return phase_of(chain_shape, Flow::forwarding, members); }

Pattern pattern_of(int size, std::vector<Phase> phases, Volume block, int chunks) {
  Pattern pattern;
  pattern.algorithm = phases.empty() ? "nothing" : phases.front().shape->name;
  pattern.group = Group::strided(Rank(0), 1, size);
  pattern.chunks = chunks;
  pattern.lanes.resize(1);
  pattern.lanes[0].block = block;
  pattern.lanes[0].phases = std::move(phases);
  return pattern;
}

Pattern ring_all_reduce(int size, Volume bytes, int chunks) {
  return pattern_of(size, {ring_phase(size, 2 * (size - 1))}, bytes / static_cast<double>(size), chunks);
}

Pattern chain_broadcast(int size, Volume bytes, int chunks) {
  return pattern_of(size, {chain_phase(size)}, bytes, chunks);
}

}  // namespace collcast::test
