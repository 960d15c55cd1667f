// The constants of NCCL's tuning model, as read from src/graph/tuning.cc of NVIDIA/nccl v2.28.9-1.
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

}  // namespace collcast::nccl::tuned
