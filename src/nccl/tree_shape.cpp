#include "nccl/tree_shape.hpp"

#include <algorithm>

#include "collcast/collective/in_order_tree.hpp"
#include "nccl/members_by_node.hpp"

namespace collcast::nccl {

namespace {

using Heads = InOrderTree;

/// One member of the tree, its neighbours and when it is sent to on the way down.
struct Member {
  MembersByNode all;
  int nodes, node, local;

  Member(const Phase& p, int x) : all(p), nodes(all.nodes()), node(all.node_of(x)), local(x - all.begin(node)) {}
  int at(int of_node, int of_local) const { return all.begin(of_node) + of_local; }
  int heads_below() const { return local == 0 ? Heads::children(nodes, node) : 0; }
  int children() const { return heads_below() + (local + 1 < all.size(node) ? 1 : 0); }
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

Phase tree_phase(std::span<const int> members_of_nodes) {
  Phase p{.shape = &shape, .flow = Flow::forwarding, .table = MembersByNode::table(members_of_nodes)};
  const MembersByNode all(p);
  p.members = all.begin(all.nodes());
  int last = -1;
  for (int node = 0; node < all.nodes(); ++node)
    for (const int member : {all.begin(node), all.begin(node + 1) - 1})
      last = std::max(last, Member(p, member).round());
  p.rounds = 2 * (last + 1);
  return p;
}

}  // namespace collcast::nccl
