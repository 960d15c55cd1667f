// A small job, its plan, and what was rejected of it.
#pragma once

#include <catch2/catch.hpp>

#include <utility>

#include "collcast/planner/plan.hpp"
#include "workload/inputs.hpp"

namespace collcast::test {

inline const Location here{"test"};

/// 8 layers of GQA for 16 GPUs, on GPUs of `memory` bytes, of which CUDA and NCCL take two to five.
inline PlanInputs small(std::int64_t memory = 7'500'000'000) {
  PlanInputs in;
  in.base = inputs(small_model(), layout(1, 1, 1), 1024, 1);
  in.base.batch.global_batch = 32;
  in.base.gpu.memory = Bytes(memory);
  in.gpus = 16;
  return in;
}

inline PlanResult planned(const PlanInputs& in, const Fabric& fabric, PlanOptions options = {1, 0}) {
  Result<PlanResult> result = plan(in, fabric, options, here);
  if (!result) FAIL(to_text(result.errors()));
  return std::move(result).value();
}

inline std::int64_t rejected(const PlanResult& p) {
  std::int64_t sum = 0;
  for (const Rejection& r : p.rejected) sum += r.count;
  return sum;
}

}  // namespace collcast::test
