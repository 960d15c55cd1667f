// A group of GPUs as NCCL sees it after ncclCommInit: how they are joined, and the channels that its search finds.
//
// Link speeds are counted as NCCL counts them (docs/nccl.md has the rules and their source), which is below the data
// sheet; what a run can reach is taken from the machine's description. Nodes with unlike sets of GPUs count with the
// slowest of each figure, as NCCL's exchange between ranks does.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "collcast/nccl/environment.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast::nccl {

/// Of a GPU to its peers on the node, each direction: among all at once, from each to the next, and from or to one.
struct PairRates {
  Bandwidth all{}, next{}, gather{}, scatter{};  ///< the latter two of the first GPU, as root
};

/// Of sends and receives where nodes have unlike GPUs, or these unlike numbers of NICs: gather and scatter have the
/// group's first rank as root.
struct PairLoads {
  /// Parts of a rank for one peer that the busiest NIC, or GPU's way to its NICs, sends or takes in.
  struct Busiest {
    double nic = 0, way = 0;
  };
  Busiest alltoall, scatter, gather, next;
  double relayed = 0;          ///< of a rank's, over GPUs beside other NICs than its own, at the most
  double relayed_of_root = 0;  ///< the same of the root's
  double ranks_of_nic = 1;     ///< that the NIC which most have goes with
  int ranks_of_root = 1;       ///< on the root's node
  int fewest_nics = 1;         ///< by which some rank's pairs go
  int lanes = 1;               ///< so many for each pair, by which NICs are taken in turn
};

/// What passes links between leaves and spines.
struct SpineLoad {
  std::vector<double> busiest;  ///< of one such link in one direction: of the first channel (or NIC), of two, ...
  std::vector<std::pair<LinkId, double>> by_link;  ///< ascending, of all
};

/// Where uplinks are thinner than leaves or NICs: by the routes that simulated channels take.
struct SpineLoads {
  Bandwidth uplink{};             ///< of a link between a leaf and a spine
  SpineLoad rings;                ///< channels, all around
  SpineLoad broadcasts, reduces;  ///< channels, from the first rank on and up to it
  SpineLoad trees;                ///< messages of a chunk
  SpineLoad pat;                  ///< parts of a rank for one channel
  SpineLoad nvls_trees;           ///< messages of a head's chunk on one of its two trees, of all heads
  double ring_share = 0;          ///< of a ring's sends from node to node, those over a spine
  double nvls_tree_way = 0;       ///< messages over spines from a node up an NVLS tree, at the most
  /// Parts for one peer, by the NICs of a GPU that its pairs go by in turn.
  SpineLoad alltoall, next, scatter, gather;
};
/// With those of a group alongside, which runs the same.
void add_alongside(const SpineLoads& other, SpineLoads&);

/// Of NICs that do not have as many channels each: of nodes with unlike GPUs, each by its own search, or of like nodes
/// whose rings share theirs unevenly.
struct UnevenNics {
  /// So many NICs that share a node's channels evenly are as busy as the busiest one of all nodes is, of rings and of
  /// trees.
  double of_rings = 1, of_trees = 1;
  /// Of a tree's messages, what like nodes' busiest NIC would have with as many channels, over what it has.
  double relief_of_trees = 1;
};

/// Of the NICs by which a node's channels leave it.
struct NicTerms {
  int count = 0;
  Bandwidth rate{};                  ///< of one: the line's, or that of PCIe between NICs and GPUs where it is less
  bool by_pcie = false;              ///< it is PCIe's
  bool hold_trees = false;           ///< what NCCL books for trees across nodes; else links inside them hold it
  int beside_gpu = 1;                ///< that a GPU has nearest at most
  std::optional<UnevenNics> uneven;  ///< none where all have as many channels, or are not said
};

/// Of a sendrecv, in which each rank sends to the group's next.
struct NextTerms {
  bool inside = false, between = false;  ///< some are on one node, some on two
  bool both_ways = false;                ///< a GPU sends to another node and receives from one
  double messages = 1;                   ///< of the busiest NIC each way; not where nodes have unlike GPUs (PairLoads)
};

/// Of sends and receives between nodes.
struct PairTerms {
  double nics = 0;       ///< of a node that its GPUs have nearest, by which all their pairs go at once
  int nics_of_gpu = 1;   ///< by which the channels of one GPU's pairs go in turn, at the most
  Bandwidth nic_rate{};  ///< of one of these: the line's, or its slot's
  Bandwidth gpu_rate{};  ///< of a GPU's way to its own
  NextTerms next;
  std::vector<PairLoads> loads;  ///< by one of a GPU's NICs, by up to two, ...; none where all have as many, or no NICs
  bool relayed = false;          ///< a message leaves by the receiver's rail (PXN)
};

/// What passes links of PCIe and between sockets, where a node's GPUs have no others: seconds of the busiest one, by
/// what the machine's file says that it carries, for each byte of
struct PcieLoads {
  /// A chunk of the first channel, of two, ...: at each hop of a ring, or of chains from and to the first rank; of
  /// trees; of chains to and from a reduction in the network.
  std::vector<double> rings, broadcasts, reduces, trees, collnet_chains;
  double alltoall = 0, next = 0, scatter = 0, gather = 0;  ///< a part for one peer
  /// The same of a hop by itself, the slowest, and how many are: of a ring's the share, of a tree's chain all.
  struct Slowest {
    double hop = 0, count = 0;
  };
  Slowest of_ring, of_chain;
  double along_chain = 0;  ///< all hops of a tree's chain one after the other, of the slowest chain
  double to_nic = 0;       ///< of a way between a tree's first GPU and its NIC, the slowest
};

/// Of a GPU's links on its node.
struct GpuTerms {
  Bandwidth nvlink{};        ///< of one GPU; without NVLink 0
  Bandwidth nvls{};          ///< of these what NVLS moves, before its efficiency, both all data and a head's part
  bool has_nvlinks = false;  ///< also where the group's channels go over PCIe
  double ring_links = 1;     ///< share of it that rings can fill where NVLinks are straight
  double tree_sends = 1;     ///< of a tree's chunk, by the GPU of a node that sends most, mean of its channels
  PairRates pair_rates{};    ///< over NVLink, which not all pairs may have; without, of a ring over PCIe
  Bandwidth pcie{};          ///< of its way to PCIe, by the data sheet; 0: it has none
  PcieLoads over_pcie{};     ///< nothing where the group's GPUs have NVLinks
};

/// With a reduction in the network: what the search finds for it.
struct Collnet {
  Graph chain;
  std::optional<Graph> direct;  ///< none without an NVSwitch, and with more than eight GPUs on a node
};

inline constexpr std::string_view none_described = "no reduction in the network is described";

struct Communicator {
  int ranks = 0, nodes = 0;
  int ranks_per_node = 0;  ///< ranks / nodes, rounded down
  int most_on_a_node = 0;  ///< ranks of the node that has most
  std::vector<int> ranks_of_nodes;
  int compute_capability = 0;
  CpuFamily cpu = CpuFamily::unknown;
  bool nvlink = false;    ///< every neighbour inside a node is reached over NVLink
  bool nvswitch = false;  ///< through a switch
  Graph ring, tree;
  std::optional<Graph> nvls;
  std::optional<Collnet> collnet;
  std::string without_collnet{none_described};  ///< why there is none; empty: there is
  /// Loops around all nodes that a call of a broadcast or reduce from the group's first rank waits for where calls
  /// follow one another: with one of the ring's channels, with two, ... Empty on one node.
  std::vector<double> chain_waits;
  int channels = 0;       ///< that run: the search's, doubled, within the environment's limits
  int nvls_channels = 0;  ///< 0: no NVLS
  int p2p_channels = 0, p2p_channels_per_peer = 0;

  // Of the machine's description, for the run.
  NicTerms nics;
  PairTerms pairs;
  std::optional<SpineLoads> spines;  ///< none where no uplink is thin, or nothing passes spines
  GpuTerms gpu;
  Seconds network_latency{};  ///< from NIC to NIC; of one rail where NICs are on rails
  Seconds across_rails{};     ///< what the way of a pair on two rails takes beyond, without PXN
  Seconds plugin_latency{};   ///< of a message, as NCCL's network plugin says
  NcclFactors factors{};      ///< of a calibration
  Environment environment{};  ///< with what the machine sets, where the job has several nodes
};

/// Fails where the group is not on NVIDIA GPUs, their compute capability is unknown, or nothing joins them.
Result<Communicator> connect(const Fabric&, const Group&, const Environment& = {});

/// connect()'s answers, kept by fabric, ranks and variables, as a search takes longer than a price. Fabrics must stay
/// alive. May be asked by several threads at once.
class Communicators {
 public:
  Result<Communicator> of(const Fabric&, const Group&, const Environment&);

 private:
  using Key = std::tuple<const Fabric*, std::vector<Rank>, std::string, const GraphFile*, const TunerFile*>;
  std::mutex mutex_;
  std::map<Key, Result<Communicator>> known_;
};

/// By the name that a machine's file gives the GPU: 90 for H100; nothing for a name that is not known.
std::optional<int> compute_capability(std::string_view gpu_model);

}  // namespace collcast::nccl
