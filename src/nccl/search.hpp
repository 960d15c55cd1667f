// NCCL's graph search in its result [src/graph/search.cc]: how many channels of which speed fit a node's links.
//
// For a pattern the speeds of a list are tried, fastest first; each channel books its speed on every link that it
// uses. The most channels x speed wins, at equal products the faster; a speed below 49 % of the winner's is not looked
// at any more. Where a solution's speed is 25 GB/s or more its channels are doubled and halved in speed, but not beyond
// Ampere with more than four channels of less than 50 GB/s.
//
// What NCCL does by backtracking under a time limit is counted here: behind a switch every ring fits until a GPU's
// links are full; over straight NVLinks rings are found by depth-first search, wider links first; over PCIe the GPUs
// stand in their order. Across nodes a channel enters and leaves by NICs at the least distance from the GPUs; over
// straight NVLinks the paths of all channels between them are searched together, and end beside the NIC that they began
// at where they can (crossNic 0).
#pragma once

#include "nccl/nearest_nics.hpp"
#include "nccl/system.hpp"

namespace collcast::nccl {

struct Found {
  Graph ring, tree;
  std::optional<Graph> nvls;
  double nvls_link = 0;  ///< of a GPU under NVLS (nvls_search.hpp)
  bool nvlink = false;
  int nics = 0;         ///< that channels use
  double nic_rate = 0;  ///< of each, GB/s: its line rate, or what PCIe carries between NICs and GPUs where that is less
  bool held_by_nics = false;        ///< across nodes: links inside them have room for more than NICs have
  bool trees_held_by_nics = false;  ///< the same of what trees have inside nodes
  PairNics of_pairs;                ///< across nodes
  int nics_beside = 1;              ///< that a GPU has nearest at most
};

/// Of `gpus` (numbers in the node, at least one) in one of `nodes` nodes; nothing where nothing joins them.
std::optional<Found> search(const System&, const std::vector<int>& gpus, int nodes);

/// Trees beside rings that are stated, of which NCCL's search wants exactly as many; nothing where they do not fit.
std::optional<Graph> trees(const System&, const std::vector<int>& gpus, int nodes, int channels);

}  // namespace collcast::nccl
