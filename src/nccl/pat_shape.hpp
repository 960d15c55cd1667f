// NCCL's parallel aggregated trees (PAT) as neighbours: log2 of the ranks steps, each of a power of two places along.
//
// All_gather begins with the farthest step: who has the parts of ranks at multiples of 2d behind him sends those that
// still lack d places along, so that messages grow as steps become short. Reduce_scatter is the same backwards, sums on
// their way to their rank. Any number of ranks [src/include/collectives.h, PatAGAlgorithm and PatRSAlgorithm].
#pragma once

#include "collcast/collective/collective.hpp"
#include "collcast/schedule/pattern.hpp"

namespace collcast::nccl {

/// all_gather or reduce_scatter of `ranks`, a block for each; a phase of blocks of width 1.
Phase pat_phase(CollectiveKind, int ranks);

}  // namespace collcast::nccl
