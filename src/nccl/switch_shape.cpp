#include "nccl/switch_shape.hpp"

#include <algorithm>

#include "collcast/collective/in_order_tree.hpp"
#include "nccl/members_by_node.hpp"

namespace collcast::nccl {

namespace {

using Heads = InOrderTree;

/// A phase's member, by its node and what it is there.
struct Member {
  MembersByNode all;
  int nodes, node, gpus, local;

  Member(const Phase& p, Position v)
      : all(p),
        nodes(all.nodes()),
        node(all.node_of(p.index(v))),
        gpus(all.size(node) / 2 - 1),
        local(p.index(v) - all.begin(node)) {}

  bool is_head() const { return local == 0; }
  bool is_gpu() const { return local < gpus; }
  bool is_adder() const { return local == gpus; }
  bool is_multicast() const { return local == gpus + 1; }
  int adder() const { return of_node(node, gpus); }
  int multicast() const { return of_node(node, gpus + 1); }
  int outlet(int of_gpu) const { return of_node(node, gpus + 2 + of_gpu); }
  /// Of an outlet: the GPU that it leads to.
  int served() const { return local - gpus - 2; }
  int gpu(int of_local) const { return of_node(node, of_local); }
  int head_of(int of_node_number) const { return of_node(of_node_number, 0); }

  // A head's place in the tree over nodes.
  bool is_root() const { return node == 0; }
  int children() const { return Heads::children(nodes, node); }
  int parent() const { return Heads::parent(nodes, node); }
  int child(int j) const { return Heads::child(nodes, node, j); }
  /// Of a head: sums of its node and of the nodes below are there.
  int added() const { return 1 + children(); }

 private:
  int of_node(int number, int of_local) const { return all.begin(number) + of_local; }
};

/// When what happens: GPUs to adders, adders to heads, up the tree, down the tree, heads to multicasts, those to their
/// outlets, these to GPUs.
struct Rounds {
  int levels;
  explicit Rounds(int nodes) : levels(nodes > 1 ? Heads::rounds(nodes) : 0) {}
  static constexpr int to_adder = 0, to_head = 1;
  int up(int nodes, int from) const { return 2 + levels - 1 - Heads::round(nodes, from); }
  int down(int nodes, int to) const { return 2 + levels + Heads::round(nodes, to); }
  int to_multicast() const { return 2 + 2 * levels; }
  int to_outlet(int hop) const { return to_multicast() + 1 + hop; }
  int to_gpu(int gpus) const { return to_outlet(gpus); }
};

Hop to(const Phase& p, Position v, int round, int member, int slot, int after) {
  return {round, p.at(v, member), slot, after, p.width};
}

void one_block(const Phase& p, bool reduce, std::vector<Piece>& out) {
  for (int b = 0; b < p.width; ++b) out.push_back({b, reduce});
}

// all_reduce

int all_reduce_sends(const Phase& p, Position v) {
  const Member x(p, v);
  if (x.is_head()) return 2 + (x.is_root() ? 0 : 1) + x.children();
  return x.is_multicast() ? x.gpus : 1;
}

int all_reduce_receives(const Phase& p, Position v) {
  const Member x(p, v);
  if (x.is_head()) return x.added() + (x.is_root() ? 0 : 1) + 1;
  return x.is_adder() ? x.gpus : 1;
}

/// To the adder, up the tree, down the tree, to the multicast.
Hop of_head(const Phase& p, Position v, const Member& x, int hop) {
  const Rounds rounds(x.nodes);
  const int up = x.is_root() ? 0 : 1, all = x.added() + up;
  if (hop == 0) return to(p, v, Rounds::to_adder, x.adder(), x.local, 0);
  if (hop <= up) {
    const int parent = x.parent();
    const int slot = Heads::children(x.nodes, parent) - Heads::place(x.nodes, x.node);
    return to(p, v, rounds.up(x.nodes, x.node), x.head_of(parent), slot, x.added());
  }
  const int below = hop - 1 - up;
  if (below == x.children()) return to(p, v, rounds.to_multicast(), x.multicast(), 0, all);
  const int child = x.child(below);
  return to(p, v, rounds.down(x.nodes, child), x.head_of(child), 1 + Heads::children(x.nodes, child), all);
}

Hop all_reduce_send(const Phase& p, Position v, int hop) {
  const Member x(p, v);
  if (x.is_head()) return of_head(p, v, x, hop);
  if (x.is_gpu()) return to(p, v, Rounds::to_adder, x.adder(), x.local, 0);
  if (x.is_adder()) return to(p, v, Rounds::to_head, x.gpu(0), 0, x.gpus);
  const Rounds rounds(x.nodes);
  if (x.is_multicast()) return to(p, v, rounds.to_outlet(hop), x.outlet(hop), 0, 1);
  const int slot = x.served() == 0 ? x.added() + (x.is_root() ? 0 : 1) : 0;
  return to(p, v, rounds.to_gpu(x.gpus), x.gpu(x.served()), slot, 1);
}

void all_reduce_carries(const Phase& p, Position v, int hop, std::vector<Piece>& out) {
  const Member x(p, v);
  const bool goes_up = x.is_head() && hop <= (x.is_root() ? 0 : 1);
  one_block(p, goes_up || (x.is_gpu() && !x.is_head()) || x.is_adder(), out);
}

constexpr Shape all_reduce_shape{"reduction and multicast in the switch", &all_reduce_sends, &all_reduce_receives,
                                 &all_reduce_send, &all_reduce_carries};

// all_gather: the head's own to all.

int all_gather_sends(const Phase& p, Position v) {
  const Member x(p, v);
  if (x.is_multicast()) return x.gpus;
  return x.is_adder() || (x.is_gpu() && !x.is_head()) ? 0 : 1;
}

int all_gather_receives(const Phase& p, Position v) { return Member(p, v).is_adder() ? 0 : 1; }

Hop all_gather_send(const Phase& p, Position v, int hop) {
  const Member x(p, v);
  if (x.is_head()) return to(p, v, 0, x.multicast(), 0, 0);
  return x.is_multicast() ? to(p, v, 1 + hop, x.outlet(hop), 0, 1) : to(p, v, 1 + x.gpus, x.gpu(x.served()), 0, 1);
}

void all_gather_carries(const Phase& p, Position, int, std::vector<Piece>& out) { one_block(p, false, out); }

constexpr Shape all_gather_shape{"multicast in the switch", &all_gather_sends, &all_gather_receives, &all_gather_send,
                                 &all_gather_carries};

// reduce_scatter: the sum to the head.

int reduce_scatter_sends(const Phase& p, Position v) {
  const Member x(p, v);
  return x.is_gpu() || x.is_adder() ? 1 : 0;
}

int reduce_scatter_receives(const Phase& p, Position v) {
  const Member x(p, v);
  return x.is_head() ? 1 : x.is_adder() ? x.gpus : 0;
}

Hop reduce_scatter_send(const Phase& p, Position v, int) {
  const Member x(p, v);
  return x.is_gpu() ? to(p, v, Rounds::to_adder, x.adder(), x.local, 0)
                    : to(p, v, Rounds::to_head, x.gpu(0), 0, x.gpus);
}

void reduce_scatter_carries(const Phase& p, Position, int, std::vector<Piece>& out) { one_block(p, true, out); }

constexpr Shape reduce_scatter_shape{"reduction in the switch", &reduce_scatter_sends, &reduce_scatter_receives,
                                     &reduce_scatter_send, &reduce_scatter_carries};

}  // namespace

Phase switch_phase(CollectiveKind kind, std::span<const int> gpus_of_nodes) {
  std::vector<int> of_nodes;
  for (const int gpus : gpus_of_nodes) of_nodes.push_back(gpus + switch_members(gpus));
  Phase p{.flow = Flow::forwarding, .table = MembersByNode::table(of_nodes)};
  const int nodes = MembersByNode(p).nodes(), most = std::ranges::max(gpus_of_nodes);
  p.members = MembersByNode(p).begin(nodes);
  switch (kind) {
    case CollectiveKind::all_gather:
      p.shape = &all_gather_shape;
      p.rounds = 2 + most;
      break;
    case CollectiveKind::reduce_scatter:
      p.shape = &reduce_scatter_shape;
      p.rounds = 2;
      break;
    default:
      check(kind == CollectiveKind::all_reduce, "NVLS has no other collectives");
      p.shape = &all_reduce_shape;
      p.rounds = Rounds(nodes).to_gpu(most) + 1;
  }
  check(nodes == 1 || kind == CollectiveKind::all_reduce, "only all_reduce has a tree over nodes");
  return p;
}

}  // namespace collcast::nccl
