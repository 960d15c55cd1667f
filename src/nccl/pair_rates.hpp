// How pairs of GPUs on a node talk where NVLinks are straight: not all pairs have one, and those that have share none.
//
// A pair without an NVLink goes through one GPU that has one to both (NCCL 2.9 and newer, path NVB): the way of the
// most bandwidth, of equal ones the first that NCCL finds [src/graph/paths.cc, ncclTopoSetPaths]. The sender writes to
// that GPU's memory, the receiver reads from there, so both links carry the message and the GPU between does nothing.
// Pairs without such a way go over PCIe and sockets. Left out: NCCL_NVB_DISABLE, which is warned of, and versions
// before 2.9, over PCIe then.
#pragma once

#include <optional>
#include <vector>

#include "collcast/nccl/communicator.hpp"
#include "nccl/system.hpp"

namespace collcast::nccl {

/// Of these GPUs, each a rank, in one of `nodes` nodes; by data-sheet rates. None where NVLinks end at a switch or
/// there are none.
std::optional<PairRates> pair_rates(const System&, const std::vector<int>& gpus, int nodes);

/// What a GPU sends over straight NVLinks by rings in these orders, each carrying as much, on one of `nodes` nodes; by
/// data-sheet rates, until one link is full. None where NVLinks end at a switch or there are none.
std::optional<Bandwidth> ring_rate(const System&, const std::vector<std::vector<int>>& orders, int nodes);

/// Whether a GPU of it has no NVLink to another one, and some third GPU has one to both.
bool sends_through_gpus(const TopologySpec&);

}  // namespace collcast::nccl
