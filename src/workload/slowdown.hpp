// How much slower kernels are while a collective runs beside them.
//
// A kernel of NCCL holds an SM for each of its channels from begin to end, whatever its bytes do meanwhile. A product
// or an attention of time g beside a collective of time c has the rate r of the kernel table (`beside_collectives`)
// until that is over, and its own from then on:
//   min(g/r, g + (1 - r) c)
// Kernels that are bound by memory keep theirs: an activation of 940 MB takes 1.02 times as long beside 24 blocks
// (validation/data/one-gpu/beside-h200.csv), so stretches of both kinds go at g/(products/r + others). r is the same
// for collectives within nodes and across them: beside 16 blocks, the channels of the latter, those products take what
// they take beside 24, as they run in waves.
//
// Messages between two ranks on different nodes have two channels (docs/nccl.md): they, and so a ring of CP across
// nodes, slow nothing. Left out: PP's messages, which are few; that collectives of few channels (two between GPUs on
// PCIe) leave more of the GPU, if not in proportion (beside 2, 4 and 8 blocks products keep 0.91, 0.81 and 0.80 of
// their rate); what a collective loses by the kernels beside it; two collectives at once hold SMs each, which is r for
// each, counted as if they ran side by side from the begin on.
#pragma once

#include <span>

#include "collcast/workload/step.hpp"

namespace collcast::workload {

/// What kernels of that rate take while a collective runs that takes so long.
Seconds beside_collective(double rate, Seconds kernels, Seconds collective);

/// Of kernels one after the other, as one: 1 where none is slowed.
double rate_beside(const KernelModel&, std::span<const Operation>);

/// Whether messages from rank to rank of a group slow kernels: they stay within a node.
bool messages_slow(const Group&, const Fabric&);

}  // namespace collcast::workload
