#include "nccl/collnet_shape.hpp"

namespace collcast::nccl {

namespace {

// A phase's argument: GPUs of a node, and its members of the network.
constexpr int most_gpus = 1 << 16;
int argument_of(int gpus, int networks) { return networks * most_gpus + gpus; }
int gpus_of(const Phase& p) { return p.argument % most_gpus; }
int networks_of(const Phase& p) { return p.argument / most_gpus; }

/// Which ways data go along the tree.
enum class Direction { up_and_down, down, up };

/// The tree. Without a way up and down both it hangs from the first node's head instead of its member of the network.
template <InsideNode inside, Direction way>
struct Tree {
  static constexpr bool from_head = way != Direction::up_and_down;
  static constexpr bool has_up = way != Direction::down, has_down = way != Direction::up;

  int gpus, first_network, of_node, nodes;

  explicit Tree(const Phase& p)
      : gpus(gpus_of(p)),
        first_network(gpus + members_of_switch(inside, gpus)),
        of_node(first_network + networks_of(p)),
        nodes(p.members / of_node) {}

  int node(int v) const { return v / of_node; }
  int local(int v) const { return v % of_node; }
  int at(int of, int which) const { return of * of_node + which; }
  int head(int of) const { return at(of, 0); }
  int network(int of) const { return at(of, first_network); }
  bool is_network(int v) const { return local(v) == first_network; }
  bool is_idle(int v) const { return local(v) > first_network; }
  bool hangs_all(int v) const { return node(v) == 0 && (from_head ? local(v) == 0 : is_network(v)); }

  int parent(int v) const {
    const int x = node(v);
    if (hangs_all(v) || is_idle(v)) return -1;
    if (is_network(v)) return x == 0 ? head(0) : network(0);
    return local(v) == 0 ? network(x) : at(x, parent_inside(local(v)));
  }
  int children(int v) const {
    const int x = node(v);
    if (is_idle(v)) return 0;
    if (!is_network(v)) return inside_children(local(v)) + (from_head && v == head(0) ? 1 : 0);
    return (x == 0 ? nodes - 1 : 0) + (has_own_head_below(x) ? 1 : 0);
  }
  int child(int v, int j) const {
    const int x = node(v);
    if (is_network(v)) return x == 0 && j < nodes - 1 ? network(1 + j) : head(x);
    // What goes on to other nodes does so first.
    const int before = from_head && v == head(0) ? 1 : 0;
    return j < before ? network(0) : at(x, inside_child(local(v), j - before));
  }
  /// Among the children of its parent.
  int place(int v) const {
    const int x = node(v);
    if (is_network(v)) return x == 0 ? 0 : x - 1;
    if (local(v) == 0) return x == 0 ? nodes - 1 : 0;
    return place_inside(local(v)) + (from_head && parent(v) == head(0) ? 1 : 0);
  }
  int depth(int v) const {
    const int x = node(v), of_network = (from_head ? 1 : 0) + (x == 0 ? 0 : 1);
    if (is_network(v)) return of_network;
    return (from_head && x == 0 ? 0 : of_network + 1) + depth_inside(local(v));
  }
  int deepest() const { return depth(at(nodes - 1, gpus - 1)); }
  int rounds() const { return (has_up && has_down ? 2 : 1) * deepest(); }

  int receives_up(int v) const { return has_up ? children(v) : 0; }
  int receives_down(int v) const { return has_down && parent(v) >= 0 ? 1 : 0; }
  int sends_up(int v) const { return has_up && parent(v) >= 0 ? 1 : 0; }

 private:
  bool has_own_head_below(int x) const { return x > 0 || !from_head; }

  // Inside a node, below its head.
  int parent_inside(int local) const {
    if constexpr (inside == InsideNode::direct) return 0;
    if constexpr (inside == InsideNode::chain) return local - 1;
    return local < gpus ? gpus + local : local > gpus ? gpus : 0;
  }
  int inside_children(int local) const {
    if constexpr (inside == InsideNode::direct) return local == 0 ? gpus - 1 : 0;
    if constexpr (inside == InsideNode::chain) return local + 1 < gpus ? 1 : 0;
    return local == 0 || local > gpus ? 1 : local == gpus ? gpus - 1 : 0;
  }
  int inside_child(int local, int j) const {
    if constexpr (inside == InsideNode::direct) return 1 + j;
    if constexpr (inside == InsideNode::chain) return local + 1;
    return local == 0 ? gpus : local == gpus ? gpus + 1 + j : local - gpus;
  }
  int place_inside(int local) const {
    if constexpr (inside == InsideNode::direct) return local - 1;
    if constexpr (inside == InsideNode::chain) return 0;
    return local > gpus ? local - gpus - 1 : 0;
  }
  int depth_inside(int local) const {
    if constexpr (inside == InsideNode::direct) return local == 0 ? 0 : 1;
    if constexpr (inside == InsideNode::chain) return local;
    return local == 0 ? 0 : local < gpus ? 3 : local == gpus ? 1 : 2;
  }
};

template <InsideNode inside, Direction way>
int sends(const Phase& p, Position v) {
  const Tree<inside, way> tree(p);
  const int x = p.index(v);
  return tree.sends_up(x) + (tree.has_down ? tree.children(x) : 0);
}

template <InsideNode inside, Direction way>
int receives(const Phase& p, Position v) {
  const Tree<inside, way> tree(p);
  return tree.receives_up(p.index(v)) + tree.receives_down(p.index(v));
}

template <InsideNode inside, Direction way>
Hop send(const Phase& p, Position v, int hop) {
  const Tree<inside, way> tree(p);
  const int x = p.index(v);
  if (hop < tree.sends_up(x))
    return {tree.deepest() - tree.depth(x), p.at(v, tree.parent(x)), tree.place(x), tree.receives_up(x), p.width};
  const int child = tree.child(x, hop - tree.sends_up(x));
  return {(tree.has_up ? tree.deepest() : 0) + tree.depth(child) - 1, p.at(v, child), tree.receives_up(child),
          tree.receives_up(x) + tree.receives_down(x), p.width};
}

template <InsideNode inside, Direction way>
void carries(const Phase& p, Position v, int hop, std::vector<Piece>& out) {
  const bool reduces = hop < Tree<inside, way>(p).sends_up(p.index(v));
  for (int b = 0; b < p.width; ++b) out.push_back({b, reduces});
}

template <InsideNode inside, Direction way>
constexpr Shape shape{"a tree through the network's reduction", &sends<inside, way>, &receives<inside, way>,
                      &send<inside, way>, &carries<inside, way>};

template <InsideNode inside, Direction way>
Phase of_tree(int nodes, int gpus, int networks) {
  Phase p{.shape = &shape<inside, way>,
          .flow = Flow::forwarding,
          .members = nodes * (gpus + members_of_switch(inside, gpus) + networks),
          .argument = argument_of(gpus, networks)};
  p.rounds = Tree<inside, way>(p).rounds();
  return p;
}

template <InsideNode inside>
Phase of_kind(CollectiveKind kind, int nodes, int gpus, int networks) {
  if (kind == CollectiveKind::all_gather) return of_tree<inside, Direction::down>(nodes, gpus, networks);
  if (kind == CollectiveKind::reduce_scatter) return of_tree<inside, Direction::up>(nodes, gpus, networks);
  check(kind == CollectiveKind::all_reduce, "the network does no other collectives");
  return of_tree<inside, Direction::up_and_down>(nodes, gpus, networks);
}

}  // namespace

Phase collnet_phase(CollectiveKind kind, InsideNode inside, int nodes, int gpus, int networks) {
  check(nodes > 1 && networks > 0, "a network joins several nodes");
  switch (inside) {
    case InsideNode::direct:
      return of_kind<InsideNode::direct>(kind, nodes, gpus, networks);
    case InsideNode::chain:
      check(kind == CollectiveKind::all_reduce, "chains add up for everybody");
      return of_tree<InsideNode::chain, Direction::up_and_down>(nodes, gpus, networks);
    case InsideNode::by_switch:
      check(gpus > 1, "a switch is between GPUs");
      return of_kind<InsideNode::by_switch>(kind, nodes, gpus, networks);
  }
  check(false, "a way inside a node is one of these");
  return {};
}

}  // namespace collcast::nccl
