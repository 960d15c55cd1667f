// Channels as NCCL's search finds them, or as a file states them.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/collective/collective.hpp"

namespace collcast::nccl {

/// What lies between two devices, best to worst.
enum class PathType { loc, nvl, nvb, c2c, pix, pxb, p2c, pxn, phb, sys, net, dis };
std::string_view to_string(PathType);  ///< "NVL"
std::optional<PathType> parse_path_type(std::string_view);

/// By which NICs of a node a channel comes in and goes out, numbered in the node, and what lies between them and the
/// GPU at that end: PXN where data reach the NIC through the GPU beside it.
struct ChannelNics {
  int in = 0, out = 0;
  PathType way_in = PathType::pix, way_out = PathType::pix;
  bool operator==(const ChannelNics&) const = default;
};

/// The search's channels through a node.
struct NodeChannels {
  std::vector<int> gpus;                ///< of the group, ascending
  std::vector<std::vector<int>> order;  ///< of each its GPUs; NVLS: the head
  std::vector<ChannelNics> nics;        ///< of each; empty: of one node, of NVLS, or not stated
};

/// What the search looks for, by NCCL's numbers [src/include/graph.h, NCCL_TOPO_PATTERN_*].
enum class GraphPattern : int {
  balanced_tree = 1,  ///< NICs are used by two GPUs: the first for the parent and a child, the second for a child
  split_tree = 2,     ///< the first for the parent, the second for children
  tree = 3,           ///< NICs are used by one GPU
  ring = 4,
  nvls = 5,
  collnet_direct = 6
};

/// Of a graph in a file, by NCCL's numbers [src/init.cc, initTransportsRank].
enum class GraphId : int { ring = 0, tree = 1, collnet_chain = 2, nvls = 3, collnet_direct = 4 };

/// One pattern of the search: C channels, each with a speed inside and between nodes.
struct Graph {
  GraphPattern pattern = GraphPattern::ring;
  int channels = 0;
  Bandwidth inside{}, between{};
  PathType type_inside = PathType::loc, type_between = PathType::loc;
  std::vector<std::vector<int>> order;    ///< of the search's channels: GPUs of the first node; NVLS: the head
  std::vector<ChannelNics> nics;          ///< of these; empty: of one node, of NVLS, or not stated
  std::vector<NodeChannels> elsewhere{};  ///< where nodes have other GPUs than the first
  /// Where nodes have unlike GPUs: what the channels of a node's own search have together, on the node where that is
  /// least. All nodes run as many as the one with fewest, and NCCL counts with the lowest speed of any; a node's links
  /// carry what its search found on them. None: where nodes are alike, or a file states the graph.
  struct Together {
    Bandwidth inside{}, between{};
  };
  std::optional<Together> least{};

  /// Of its channels together, what links have.
  Together together() const {
    return least.value_or(Together{static_cast<double>(channels) * inside, static_cast<double>(channels) * between});
  }
};

/// A graph of a file, which NCCL takes instead of its search's.
struct StatedGraph {
  GraphId id = GraphId::ring;
  Graph graph;
  int nics = 0;  ///< that its channels leave a node by; 0: of one node
  Location where;
  /// Of each channel, in their order, with its GPUs and NICs; empty where a graph was made otherwise.
  struct Place {
    Location channel;
    std::vector<Location> gpus;
    Location nic_in = {}, nic_out = {};
  };
  std::vector<Place> places = {};
  bool is_collnet() const { return id == GraphId::collnet_chain || id == GraphId::collnet_direct; }
};
/// NCCL_GRAPH_FILE; a pattern that it does not state is searched for.
struct GraphFile {
  std::string name;  ///< without its folder
  std::vector<StatedGraph> graphs;
};

enum class Algorithm;
enum class Protocol;

/// A line of the table that NCCL's example tuner reads: absent is any.
struct TunerRule {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes least{0}, most{std::numeric_limits<std::int64_t>::max()};  ///< both included
  Algorithm algorithm{};
  Protocol protocol{};
  std::optional<int> channels, nodes, ranks, operations;
  std::optional<bool> registered;  ///< buffers
  int line = 0;
};
/// NCCL_TUNER_CONFIG_FILE; the first rule that matches and can be run decides.
struct TunerFile {
  std::string name;  ///< without its folder
  std::vector<TunerRule> rules;
};

}  // namespace collcast::nccl
