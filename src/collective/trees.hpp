// Up, down, and up-then-down along any rooted tree, with the whole column or each subtree's units.
//
// A tree over members 0 (the root) to m-1 is a struct of static functions:
//   children(m, x), child(m, x, j)   children in the order in which x sends to them
//   parent(m, x), place(m, x)        x = child(parent, place)
//   round(m, x)                      when x is sent to on the way down; grows along every path and with j
//   rounds(m)                        1 + the largest of these
//   subtree(m, x)                    members x .. x+subtree-1 hang below and including x (units only)
// The way up is the way down played backwards.
#pragma once

#include "collective/shapes.hpp"

namespace collcast::shapes {

template <class Tree>
struct TreeDown {
  static int sends(const Phase& p, Position v) { return Tree::children(p.members, p.index(v)); }
  static int receives(const Phase& p, Position v) { return p.index(v) > 0 ? 1 : 0; }
  static Hop send(const Phase& p, Position v, int hop) {
    const int child = Tree::child(p.members, p.index(v), hop);
    return {Tree::round(p.members, child), p.at(v, child), 0, receives(p, v), p.width};
  }
};

template <class Tree>
struct TreeUp {
  static int sends(const Phase& p, Position v) { return p.index(v) > 0 ? 1 : 0; }
  static int receives(const Phase& p, Position v) { return Tree::children(p.members, p.index(v)); }
  static Hop send(const Phase& p, Position v, int) {
    const int x = p.index(v);
    const int parent = Tree::parent(p.members, x);
    const int slot = Tree::children(p.members, parent) - 1 - Tree::place(p.members, x);
    return {Tree::rounds(p.members) - 1 - Tree::round(p.members, x), p.at(v, parent), slot,
            Tree::children(p.members, x), p.width};
  }
};

/// One phase: what has reached the root turns round at once, chunk by chunk.
template <class Tree>
struct TreeUpDown {
  static int sends(const Phase& p, Position v) { return TreeUp<Tree>::sends(p, v) + TreeDown<Tree>::sends(p, v); }
  static int receives(const Phase& p, Position v) { return sends(p, v); }
  static Hop send(const Phase& p, Position v, int hop) {
    const int up = TreeUp<Tree>::sends(p, v);
    if (hop < up) return TreeUp<Tree>::send(p, v, hop);
    Hop down = TreeDown<Tree>::send(p, v, hop - up);
    down.round += Tree::rounds(p.members);
    down.slot = Tree::children(p.members, p.index(down.peer));
    down.after = receives(p, v);
    return down;
  }
  static void carry(const Phase& p, Position v, int hop, std::vector<Piece>& out) {
    append_column(p, v, hop < TreeUp<Tree>::sends(p, v), out);
  }
};

/// The units of a subtree along the edge to it.
template <class Tree>
struct TreeScatter : TreeDown<Tree> {
  static Hop send(const Phase& p, Position v, int hop) {
    Hop result = TreeDown<Tree>::send(p, v, hop);
    result.blocks = Tree::subtree(p.members, p.index(result.peer)) * p.width;
    return result;
  }
  static void carry(const Phase& p, Position v, int hop, std::vector<Piece>& out) {
    const int child = Tree::child(p.members, p.index(v), hop);
    for (int u = child; u < child + Tree::subtree(p.members, child); ++u) append_unit(p, v, u, false, out);
  }
};
template <class Tree>
struct TreeGather : TreeUp<Tree> {
  static Hop send(const Phase& p, Position v, int hop) {
    Hop result = TreeUp<Tree>::send(p, v, hop);
    result.blocks = Tree::subtree(p.members, p.index(v)) * p.width;
    return result;
  }
  static void carry(const Phase& p, Position v, int, std::vector<Piece>& out) {
    const int x = p.index(v);
    for (int u = x; u < x + Tree::subtree(p.members, x); ++u) append_unit(p, v, u, false, out);
  }
};

/// Whole columns along `Tree`.
template <class Tree>
inline constexpr Shape tree_broadcast = shape<TreeDown<Tree>>("tree_down", carry_column);
template <class Tree>
inline constexpr Shape tree_reduce = shape<TreeUp<Tree>>("tree_up", reduce_column);
template <class Tree>
inline constexpr Shape tree_all_reduce = shape<TreeUpDown<Tree>>("tree_up_down", TreeUpDown<Tree>::carry);

/// Binomial: x hangs below x without its lowest set bit, large subtrees first.
struct Binomial {
  static int lowest_bit(int x) { return std::countr_zero(static_cast<unsigned>(x)); }
  static int rounds(int m) { return ceil_log2(m); }
  static int children(int m, int x) {
    if (x == 0) return ceil_log2(m);
    const int beyond = m - 1 - x;
    const int reachable = beyond == 0 ? 0 : floor_log2(beyond) + 1;
    return reachable < lowest_bit(x) ? reachable : lowest_bit(x);
  }
  static int child(int m, int x, int j) { return x + (1 << (children(m, x) - 1 - j)); }
  static int parent(int, int x) { return x & (x - 1); }
  static int place(int m, int x) { return children(m, parent(m, x)) - 1 - lowest_bit(x); }
  static int round(int m, int x) { return rounds(m) - 1 - lowest_bit(x); }
  static int subtree(int m, int x) {
    const int full = 1 << lowest_bit(x);
    return full < m - x ? full : m - x;
  }
};
inline constexpr Shape binomial_scatter = shape<TreeScatter<Binomial>>("tree_scatter", TreeScatter<Binomial>::carry);
inline constexpr Shape binomial_gather = shape<TreeGather<Binomial>>("tree_gather", TreeGather<Binomial>::carry);

}  // namespace collcast::shapes
