// Exchange along the dimensions of a hypercube, and the fold that brings any number of members to one.
//
// The core is the largest power of two; rider x >= core folds into x - core. Source: Thakur, Rabenseifner,
// Gropp, "Optimization of Collective Communication Operations in MPICH", 2005, who pair neighbours instead;
// the number and the sizes of messages are the same.
#include <algorithm>

#include "collective/shapes.hpp"

namespace collcast::shapes {
namespace {

int core(const Phase& phase) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(phase.members))); }
int riders(const Phase& phase) { return phase.members - core(phase); }

// Aligned run of `length` core members that contains `x`.
int run_begin(int x, int length) { return x & ~(length - 1); }
int run_units(const Phase& phase, int begin, int length) {
  return length + std::clamp(phase.argument - begin, 0, length);
}
void append_run(const Phase& phase, Position v, int begin, int length, bool reduce, std::vector<Piece>& out) {
  for (int x = begin; x < begin + length; ++x) {
    append_unit(phase, v, x, reduce, out);
    if (x < phase.argument) append_unit(phase, v, x + core(phase), reduce, out);
  }
}

struct Cube {
  static int sends(const Phase& phase, Position v) {
    return phase.index(v) < core(phase) ? floor_log2(phase.members) : 0;
  }
  static int receives(const Phase& phase, Position v) { return sends(phase, v); }
  static Hop exchange(const Phase& phase, Position v, int hop, int distance, int blocks) {
    return {hop, phase.at(v, phase.index(v) ^ distance), hop, hop, blocks};
  }
};

struct XorColumn : Cube {
  static Hop send(const Phase& phase, Position v, int hop) { return exchange(phase, v, hop, 1 << hop, phase.width); }
};

// Doubling: what x has gathered from its run of `distance` members goes to the run beside it.
struct XorDoubling : Cube {
  static Hop send(const Phase& phase, Position v, int hop) {
    const int distance = 1 << hop;
    const int begin = run_begin(phase.index(v), distance);
    return exchange(phase, v, hop, distance, run_units(phase, begin, distance) * phase.width);
  }
  static void carry(const Phase& phase, Position v, int hop, std::vector<Piece>& out) {
    append_run(phase, v, run_begin(phase.index(v), 1 << hop), 1 << hop, false, out);
  }
};

// Halving: the half that the partner will go on with goes there.
struct XorHalving : Cube {
  static int distance(const Phase& phase, int hop) { return core(phase) >> (hop + 1); }
  static int half(const Phase& phase, Position v, int hop) {
    const int d = distance(phase, hop);
    return run_begin(phase.index(v) ^ d, d);
  }
  static Hop send(const Phase& phase, Position v, int hop) {
    const int d = distance(phase, hop);
    return exchange(phase, v, hop, d, run_units(phase, half(phase, v, hop), d) * phase.width);
  }
  static void carry(const Phase& phase, Position v, int hop, std::vector<Piece>& out) {
    append_run(phase, v, half(phase, v, hop), distance(phase, hop), true, out);
  }
};

struct FoldIn {
  static int sends(const Phase& phase, Position v) { return phase.index(v) >= core(phase) ? 1 : 0; }
  static int receives(const Phase& phase, Position v) { return phase.index(v) < riders(phase) ? 1 : 0; }
  static Hop send(const Phase& phase, Position v, int) {
    return {0, phase.at(v, phase.index(v) - core(phase)), 0, 0, phase.width};
  }
};

struct FoldOut {
  static int sends(const Phase& phase, Position v) { return FoldIn::receives(phase, v); }
  static int receives(const Phase& phase, Position v) { return FoldIn::sends(phase, v); }
  static Hop send(const Phase& phase, Position v, int) {
    return {0, phase.at(v, phase.index(v) + core(phase)), 0, 0, phase.width};
  }
  static void carry_unit(const Phase& phase, Position v, int, std::vector<Piece>& out) {
    append_unit(phase, v, phase.index(v) + core(phase), false, out);
  }
};

struct FoldOutOthers : FoldOut {
  static Hop send(const Phase& phase, Position v, int hop) {
    Hop result = FoldOut::send(phase, v, hop);
    result.blocks = (phase.members - 1) * phase.width;
    return result;
  }
  static void carry(const Phase& phase, Position v, int, std::vector<Piece>& out) {
    for (int u = 0; u < phase.members; ++u)
      if (u != phase.index(v) + core(phase)) append_unit(phase, v, u, false, out);
  }
};

}  // namespace

const Shape xor_column = shape<XorColumn>("xor_column", reduce_column);
const Shape xor_halving = shape<XorHalving>("xor_halving", XorHalving::carry);
const Shape xor_doubling = shape<XorDoubling>("xor_doubling", XorDoubling::carry);
const Shape fold_in_column = shape<FoldIn>("fold_in", reduce_column);
const Shape fold_in_unit = shape<FoldIn>("fold_in_unit", carry_own);
const Shape fold_out_column = shape<FoldOut>("fold_out", carry_column);
const Shape fold_out_unit = shape<FoldOut>("fold_out_unit", FoldOut::carry_unit);
const Shape fold_out_others = shape<FoldOutOthers>("fold_out_others", FoldOutOthers::carry);

}  // namespace collcast::shapes
