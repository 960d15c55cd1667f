// A machine, routed and immutable: endpoints (ranks), directed links, and the way between any two ranks.
//
// Nodes are equal, so what is inside a node is routed once (shortest time for a 1 MiB message, Boost.Graph
// inside) and reused; the network between nodes is regular (star, torus, leaf/spine), so its routes are
// computed, never stored: a Fabric of a hundred thousand GPUs is its list of links and one table per node
// kind. `lane` picks among equal ways (parallel links of a ring of two, NICs at equal distance, spines);
// the rule is docs/decisions/0002-rails-and-lanes.md. Routes are static: they do not see load.
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collcast/base/id.hpp"
#include "collcast/topology/spec.hpp"

namespace collcast {

struct Link {
  Bandwidth bandwidth{};
  Seconds latency{};
  LinkKind kind = LinkKind::direct;
};

/// alpha and beta of a route: the sum of its latencies and its smallest bandwidth.
struct Path {
  Seconds latency{};
  Bandwidth bandwidth{};
};

class Fabric {
 public:
  /// Routes `spec` with `nodes` nodes (0: the file's default). Unreachable ranks, unknown device names,
  /// wiring that does not fit its counts are diagnostics, all at once; a number of nodes that cannot be is one at
  /// `asked_at`, or at the file.
  static Result<Fabric> build(const TopologySpec& spec, int nodes = 0, const Location& asked_at = {});

  int nodes() const;
  int ranks_per_node() const;
  int rank_count() const;  ///< nodes * ranks_per_node
  NodeId node_of(Rank) const;
  int nics_per_node() const;  ///< 0 where the network attaches to the endpoints themselves
  /// Number in its node of the NIC by which the network reaches the rank on that lane. Only where there are NICs.
  int nic_of(Rank, int lane) const;

  /// By LinkId; 2c and 2c+1 are the two directions of one cable.
  std::span<const Link> links() const;
  /// "node3.gpu5 -> node3.nvswitch0", "leaf0 -> spine2"; a node that is a single device is "host3".
  std::string link_name(LinkId) const;
  bool joins_leaf_to_spine(LinkId) const;  ///< either direction
  /// The nodes that a link's ends are in, by the machine's numbers; none: a switch between nodes. Not of a drive.
  struct NodesOfLink {
    std::optional<int> from, to;
  };
  NodesOfLink nodes_of(LinkId) const;

  /// Appends the links from `from` to `to`, in order; nothing for from == to. Any lane >= 0 is valid.
  void route(Rank from, Rank to, int lane, std::vector<LinkId>& out) const;
  Path path(Rank from, Rank to, int lane = 0) const;

  /// The same machine with other rates and latencies on its links, by LinkId and as many as links(). A cable with a
  /// link of no bandwidth has failed: routes go round it, and ranks that nothing joins any more have no links on their
  /// way.
  Fabric with_links(std::vector<Link> links) const;

  /// Of each lane, the drives for other nodes: the same one for nodes whose numbers are equal modulo `ways`.
  struct DrivesBetweenNodes {
    Bandwidth rate{};
    int ways = 1;
  };
  /// The same machine where each rank has `lanes` drives: what it sends on a lane passes the lane's own link first, of
  /// this rate and no latency, such as the threads of a channel. Lanes beyond begin again; the ways behind the drives
  /// are those of the lanes `ways`, in turn. With `between_nodes` what goes to other nodes passes those instead. Ids
  /// follow those of the other links, by rank, then by lane.
  Fabric with_drives(int lanes, Bandwidth rate, std::vector<int> ways,
                     std::optional<DrivesBetweenNodes> between_nodes = std::nullopt) const;

  /// The same machine whose network is by_receivers_rail from some NICs alone (by node, then by NIC): where the
  /// receiver's rail is another one, a node is left by the sender's own NIC.
  Fabric with_relays(std::vector<bool> nics) const;

  /// The NICs by which a lane enters and leaves a node, numbered in it; -1: those of the rule.
  struct PortsOfLane {
    int in = -1, out = -1;
  };
  /// The same machine where lanes enter and leave nodes by these NICs, whichever of a node's ranks they come from or go
  /// to: by lane, those beyond begin again, and by node. Lanes are those of a route, before with_drives' ways. Of
  /// leaves and spines those that enter by one NIC take its spines in turn, one from its own on. On a
  /// network that keeps rails apart a node is left by the receiver's rail all the same.
  Fabric with_ports(std::vector<std::vector<PortsOfLane>> of_lanes) const;

  /// Of two of a node's endpoints, numbered in it: by a third's devices; -1: by no NVLink; -2: by host memory.
  struct WayInNode {
    int from = 0, to = 0, through = -1;
  };
  /// The same machine where these pairs, on every node, take this way and not the cheapest. A way through another
  /// endpoint is those to it and on from it, without what would go there and back. Pairs that have no such way, and the
  /// ways to NICs, stay as they are.
  Fabric with_ways(std::span<const WayInNode> ways) const;

  /// The same machine where these are each rank's nearest NICs, numbered in its node, in the order in which its lanes
  /// take them in turn; none where the rank keeps those that it has.
  Fabric with_nearest(std::vector<std::vector<int>> of_ranks) const;

  /// The same machine for a job that has its nodes in another order: the job's node i is the machine's nodes[i], each
  /// named once, and further ones are those that are left, in their order. Ranks are the job's from then on; links keep
  /// their numbers and names. Not of a part.
  Fabric placed(const std::vector<int>& nodes) const;
  bool is_placed() const;
  Rank on_machine(Rank) const;  ///< its number without the placement

  /// No link's rate or latency was changed: nodes are equal.
  bool is_as_built() const;
  /// Some nodes of the machine, whatever the placement, ascending and each once, as a machine of their own: its ranks
  /// are theirs, and its links those of the nodes and all that ways between them may take, each numbered anew in the
  /// order they had. Links keep their names. Nothing where links were changed, and on a torus of more than one node,
  /// whose ways pass through others.
  std::optional<Fabric> part(std::vector<int> nodes) const;

  const TopologySpec& spec() const;
  /// The whole graph for Graphviz, one cluster per node.
  void write_dot(std::ostream&) const;

 private:
  struct Layout;
  explicit Fabric(std::shared_ptr<const Layout>);
  std::shared_ptr<const Layout> layout_;
};

}  // namespace collcast
