// Ways in a machine some of whose cables have failed.
//
// A node that lost a cable, or the cable of one of its ports to the network, is routed anew by the rules of every node:
// GPUs whose NIC is gone take the next nearest. Between nodes the regular way is taken where it is whole; else that of
// the lanes after it (another spine), on a torus the shortest way that is left, and then other ports of the two nodes.
// Everything else goes as it did. Found anew for each question: only a fabric with failures pays for it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "network.hpp"
#include "node_routes.hpp"

namespace collcast::topology {

class Detours {
 public:
  /// `links` as of the fabric: a cable has failed if one of its links has no bandwidth.
  Detours(const NodePlan&, const Network&, int nodes, std::span<const Link> links);

  /// Appends the links of the way; none where nothing joins the two. `healthy` are the routes of the other nodes.
  void way(const NodeRoutes& healthy, Rank from, Rank to, int lane, std::vector<LinkId>& out) const;

 private:
  struct End {
    int node = 0, endpoint = 0;
    const NodeRoutes* routes = nullptr;
  };
  End end_of(const NodeRoutes& healthy, Rank) const;
  std::vector<int> ports_of(const End&, int lane) const;
  bool leaves(const End& from, int port) const;
  bool enters(const End& to, int port) const;
  bool fails(std::int64_t network_link) const { return failed_[static_cast<std::size_t>(network_link / 2)]; }
  /// Links of the network, numbered by it; nothing where all ways are cut.
  std::vector<std::int64_t> between(Port from, Port to, int lane) const;
  void inside(int node, Way, std::vector<LinkId>& out) const;

  const Network network_;
  DeviceRange endpoints_;
  int ports_ = 0;
  std::int64_t links_per_node_ = 0, first_network_link_ = 0;
  std::vector<bool> failed_;  ///< by cable of the network
  std::map<int, NodeRoutes> routes_;
  std::map<int, Failures> failures_;
};

}  // namespace collcast::topology
