// The constants of NCCL's tuning model, as read from src/graph/tuning.cc of NVIDIA/nccl v2.28.9-1, and what was
// otherwise before (v2.8, v2.18.3, v2.20.3 and v2.22.3).
//
// Rates are GB/s (10^9 bytes), latencies microseconds. Protocols stand in the order LL, LL128, Simple.
#pragma once

#include <array>

namespace collcast::nccl::tuned {

using PerProtocol = std::array<double, 3>;
using PerAlgorithm = std::array<PerProtocol, 7>;  // tree, ring, CollNet direct and chain, NVLS, NVLS tree, PAT

inline constexpr PerAlgorithm base_latency{
    {{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {8.0, 8.0, 8.0}}};

enum class Hardware { nvlink, pcie, network };
inline constexpr std::array<PerAlgorithm, 3> hop_latency{
    {{{{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}, {0, 0, 3.7}, {0, 0, 2.8}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4.0}}},
     {{{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, {0, 0, 3.7}, {0, 0, 2.8}, {0, 0, 0}, {0, 0, 0}, {0, 0, 4.0}}},
     {{{5.0, 8.5, 14}, {2.7, 4.0, 14}, {0, 0, 31}, {0, 0, 30}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14}}}}};

enum class Generation { volta, ampere, hopper, blackwell };
inline constexpr Generation generation_of(int compute_capability) {
  return compute_capability >= 100  ? Generation::blackwell
         : compute_capability >= 90 ? Generation::hopper
         : compute_capability >= 80 ? Generation::ampere
                                    : Generation::volta;
}

using PerScale = std::array<double, 3>;  // one node, two nodes, more
using Caps = std::array<PerScale, 4>;    // by generation

inline constexpr Caps ll_total{{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
inline constexpr Caps ring_ll128_per_channel{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {73.4, 34.6, 73.4}}};
inline constexpr Caps tree_ll128_per_channel{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}};
inline constexpr Caps tree_per_channel{{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}};
inline constexpr Caps nvls_tree_per_channel{{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 43.8}}};
inline constexpr std::array<double, 4> nvls_efficiency{0, 0, 0.85, 0.74};

/// Of a tree's bandwidth in an all_reduce, by the power of two of size / 64 bytes; 1 for larger ones.
using TreeFactor = std::array<double, 23>;
inline constexpr std::array<TreeFactor, 3> tree_factor{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};

/// Of the bus of the search's channels, what trees have, and LL128 in rings; of that the share of LL128 in trees, on
/// one node and on several, and what LL's divides by.
inline constexpr double tree_of_bus = 0.92, tree_ll128 = 7.0 / 9, tree_ll128_between = 120.0 / 128,
                        tree_ll_divisor = 3.8;

/// What differs from version to version; the values are those of 2.23 and later.
struct Version {
  PerProtocol tree_base = base_latency[0], ring_base = base_latency[1];
  /// Hops of trees and rings over NVLink, PCIe, the network.
  std::array<PerProtocol, 3> tree_hop{hop_latency[0][0], hop_latency[1][0], hop_latency[2][0]};
  std::array<PerProtocol, 3> ring_hop{hop_latency[0][1], hop_latency[1][1], hop_latency[2][1]};
  double nvls_tree_network_hop = hop_latency[2][5][2];
  Caps ll = ll_total, tree = tree_per_channel;
  TreeFactor ll128_tree_factor = tree_factor[1];
  /// LL's share of a ring's bus: of all_reduce, reduce and of everything over several nodes, and of the others.
  double ll_share = 0.5, ll_share_of_copies = 0.5;
  double ll128_alone = tree_of_bus;  ///< LL128's share of a ring's bus with fewer than two ranks per node
  double tree_ll128_between = tuned::tree_ll128_between;
  /// LL128's cap per channel of a ring, of broadcast, reduce, all_gather, reduce_scatter, all_reduce; 0: by generation.
  std::array<double, 5> ring_ll128{};
  double ampere_bus = 1e9;         ///< most of all channels on Ampere
  double ll_hop_between = 1;       ///< factor on LL's hops inside nodes where there are several
  bool posts = true;               ///< a hop inside takes no less than posting a message where there are several
  bool ring_crosses_back = false;  ///< all_reduce counts 2N hops between nodes, not 2(N-1)
  bool tree_hop_alone = true;      ///< one rank per node: the network's hop is the tree's
  bool plateau_by_chunk = true;    ///< from 64 bytes of a channel's chunk on; else from 4 KiB per rank on
  double plateau_of_new = 1.4;     ///< the plateau's factor from Ampere on
  bool plain_nvls = false;         ///< 5/6 of the slower of inside and between
  double tree_of_one_gpu = 0.85;   ///< of a tree whose nodes have one GPU (pattern 3)
  /// What the network's plugin says of a message: added, under Simple twice; in the network's place; not asked yet.
  enum class Plugin { adds, replaces, silent } plugin = Plugin::adds;
};

/// `version` as NCCL counts it; 0, one that is not known, counts as a current one, and so do those before 2.5, which
/// had no such model. Versions between those that were read count as the last one before them that was, 2.5 to 2.7
/// as 2.8.
inline Version version_of(int version) {
  Version out;
  const bool none = version < 20500;  // there was no such model yet
  if (none || version >= 22300) return out;
  out.tree_base[2] = 0;
  out.nvls_tree_network_hop = 14;
  out.ll128_alone = 0.7;
  out.ring_crosses_back = true;
  out.tree_hop_alone = false;
  out.plain_nvls = true;
  for (PerProtocol& hop : out.tree_hop) hop[2] = 28;
  if (version >= 21900) return out;
  out.plugin = version >= 21200 ? Version::Plugin::replaces : Version::Plugin::silent;
  out.ll_share = 1.0 / 4;
  out.ll_share_of_copies = 1.0 / 3;
  for (std::size_t g = 2; g < 4; ++g) out.ll[g] = out.ll[1];
  if (version >= 21800) {
    out.tree_hop[0][2] = 4, out.tree_hop[1][2] = 6, out.tree_hop[2][2] = 14;
    return out;
  }
  out.tree_of_one_gpu = 1;
  out.tree_base = {4.4, 4.4, 0};
  out.ring_base = {3.6, 10.0, 8.4};
  out.tree_hop[0][0] = 0.52;
  out.ring_hop[0][0] = 0.47;
  out.ring_hop[2][2] = 9.6;
  out.tree[1] = {24, 22.5, 16};
  out.ll128_tree_factor = {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, .92, .92};
  out.tree_ll128_between = 0.915;
  out.ring_ll128 = {18.8, 12.0, 18.3, 15.2, 16.9};
  out.ampere_bus = 235;
  out.ll_hop_between = 1.8;
  out.posts = false;
  out.ring_crosses_back = false;
  out.plateau_by_chunk = false;
  out.plateau_of_new = 1.9;
  return out;
}

}  // namespace collcast::nccl::tuned
