#include "nccl/tree_shape.hpp"

#include <algorithm>

#include "collcast/collective/in_order_tree.hpp"

namespace collcast::nccl {

namespace {

using Heads = InOrderTree;

/// One member of the tree, its neighbours and when it is sent to on the way down.
struct Member {
  int nodes, per_node, node, local;

  Member(const Phase& p, int x)
      : nodes(p.members / p.argument), per_node(p.argument), node(x / per_node), local(x % per_node) {}
  int at(int of_node, int of_local) const { return of_node * per_node + of_local; }
  int heads_below() const { return local == 0 ? Heads::children(nodes, node) : 0; }
  int children() const { return heads_below() + (local + 1 < per_node ? 1 : 0); }
  int child(int j) const { return j < heads_below() ? at(Heads::child(nodes, node, j), 0) : at(node, local + 1); }
  bool is_root() const { return node == 0 && local == 0; }
  int parent() const { return local > 0 ? at(node, local - 1) : at(Heads::parent(nodes, node), 0); }
  int place() const {
    if (local > 1) return 0;
    return local == 1 ? Heads::children(nodes, node) : Heads::place(nodes, node);
  }
  int round() const {
    const int head = node == 0 ? -1 : Heads::round(nodes, node);
    return local == 0 ? head : head + Heads::children(nodes, node) + local;
  }
};

int sends(const Phase& p, Position v) {
  const Member x(p, p.index(v));
  return (x.is_root() ? 0 : 1) + x.children();
}

Hop send(const Phase& p, Position v, int hop) {
  const Member x(p, p.index(v));
  const int rounds = p.rounds / 2, up = x.is_root() ? 0 : 1;
  if (hop < up) {
    const Member parent(p, x.parent());
    return {rounds - 1 - x.round(), p.at(v, x.parent()), parent.children() - 1 - x.place(), x.children(), p.width};
  }
  const int child = x.child(hop - up);
  const Member to(p, child);
  return {rounds + to.round(), p.at(v, child), to.children(), up + x.children(), p.width};
}

void carries(const Phase& p, Position v, int hop, std::vector<Piece>& out) {
  const bool reduces = hop == 0 && !Member(p, p.index(v)).is_root();
  for (int t = 0; t < p.width; ++t) out.push_back({t, reduces});
}

constexpr Shape shape{"chains below a tree", &sends, &sends, &send, &carries};

}  // namespace

Phase tree_phase(int nodes, int per_node) {
  Phase p{.shape = &shape, .flow = Flow::forwarding, .members = nodes * per_node, .argument = per_node};
  int last = -1;
  for (int node = 0; node < nodes; ++node)
    for (const int local : {0, per_node - 1}) last = std::max(last, Member(p, node * per_node + local).round());
  p.rounds = 2 * (last + 1);
  return p;
}

}  // namespace collcast::nccl
