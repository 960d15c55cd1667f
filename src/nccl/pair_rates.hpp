// How pairs of GPUs on a node talk where NVLinks are straight: not all pairs have one, and those that have share none.
//
// A pair without an NVLink goes through one GPU that has one to both (nvlink_ways.hpp), else over PCIe and sockets. The
// busiest link of all messages at once is what takes the time.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "collcast/nccl/communicator.hpp"
#include "nccl/next_pairs.hpp"
#include "nccl/system.hpp"

namespace collcast::nccl {

/// Adds so many times the ranks that pairs reach by each NIC of a node with these GPUs, which go by theirs in turn, by
/// `most` at the most.
void add_ranks_by_nic(const System&, const std::vector<int>& gpus, int most, double times, std::map<int, double>&);

/// Of these GPUs of a node, each a rank, with that root (none: the first); by data-sheet rates, to the next all of a
/// GPU's NVLinks. What goes to ranks on other nodes, `beyond` by NIC, passes the NVLink to a GPU beside that NIC where
/// the sender is not (PXN). None where NVLinks end at a switch or there are none.
std::optional<PairRates> pair_rates(const System&, const std::vector<int>& gpus, std::optional<int> root = {},
                                    const std::map<int, double>& beyond = {});
/// From each to the next of the group, where both are on this node. None there, too, and where no two are.
std::optional<Bandwidth> next_rate(const System&, const NextOnNode&);

inline PairRates uniform(Bandwidth rate) { return {rate, rate, rate, rate}; }

/// Rates of a set of GPUs that nodes have of the group.
struct RatesOfNode {
  int gpus = 1;
  bool has_root = false;
  PairRates rates;
};
/// Of sets that are not all of one GPU, for as many peers as the largest has: everybody is done when the node is that
/// takes longest for its own peers; a root has those of its own node alone.
PairRates together(const std::vector<RatesOfNode>&);

/// What a GPU sends over straight NVLinks by rings in these orders, each carrying as much, on one of `nodes` nodes; by
/// data-sheet rates, until one link is full. On several a ring passes the link to the GPU beside the NIC that it leaves
/// by, too, where that relays (PXN). None where NVLinks end at a switch or there are none.
std::optional<Bandwidth> ring_rate(const System&, const std::vector<std::vector<int>>& orders,
                                   const std::vector<ChannelNics>& nics, int nodes);

/// Whether a GPU of it has no NVLink to another one, and some third GPU has one to both.
bool lacks_nvlinks(const TopologySpec&);

}  // namespace collcast::nccl
