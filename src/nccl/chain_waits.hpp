// How far calls of a chain, of a broadcast or a reduce, follow one another over several nodes.
//
// Kernels of one call after the other run on each GPU, and each ends when all of its channels have. Channels that enter
// the nodes beside different NICs pass the GPUs of the root's node in unlike orders: one that is behind the root in
// channel A is before it, and so the chain's last, in channel B. It goes on with the next call in A only when this call
// has come around in B. The time per call is then the greatest mean of such waits: loops around all nodes over the
// calls that they take. Of rotations of one order, m of them, m - 1 loops take m calls; where a channel each has what
// the other one's chain ends at, a loop each call.
#pragma once

#include <vector>

namespace collcast::nccl {

/// Loops around all nodes that a call waits for, 0 to 1: with the first of `orders`, in which a ring's channels pass
/// the GPUs of the root's node, with the first two, and so on. `root`: one of those GPUs.
std::vector<double> chain_waits(const std::vector<std::vector<int>>& orders, int root);

}  // namespace collcast::nccl
