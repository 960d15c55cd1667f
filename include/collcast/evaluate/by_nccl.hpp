// NCCL as another library behind the same question: how long does a collective take.
#pragma once

#include "collcast/evaluate/evaluate.hpp"
#include "collcast/nccl/run.hpp"

namespace collcast {

/// A request's time as NCCL runs it, by closed form; the fabric must outlive it. Groups alongside are refused: the
/// closed form of a run has a group's links to itself. May be asked by several threads at once.
CollectiveTime by_nccl(const Fabric&, nccl::Environment = {});

}  // namespace collcast
