// The search space, cut into families of equal tp, pp, cp, ep and dp.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "collcast/planner/plan.hpp"

namespace collcast::planner {

/// Reasons that need no numbers to be understood; others are check_step's messages.
/// Of a layout asked about by itself those of its degrees have their numbers.
inline constexpr const char* degrees_do_not_divide = "tp x pp does not divide the number of GPUs";
inline constexpr const char* degrees_with_cp_do_not_divide = "tp x pp x cp does not divide the number of GPUs";
inline constexpr const char* degrees_are_not_gpus = "tp x pp x dp is not the number of GPUs";
inline constexpr const char* batch_does_not_divide = "global_batch is not a multiple of micro_batch x dp";
inline constexpr const char* half_from_either_end = "dualpipe needs an even number of micro-batches";
inline constexpr const char* micro_batches_go_round = "vpp needs micro-batches in multiples of pp";
inline constexpr const char* state_does_not_fit = "parameters, gradients and optimizer state do not fit the GPU";
inline constexpr const char* activations_do_not_fit = "activations do not fit the GPU beside the model's state";
inline constexpr const char* runtime_does_not_fit =
    "CUDA's context, NCCL's buffers and the allocator's fragments do not fit the GPU beside the step";

struct Family {
  int tp = 1, pp = 1, dp = 1;       ///< dp 0: tp x pp does not divide the GPUs
  const char* objection = nullptr;  ///< to the degrees; nullptr: none
  std::vector<int> micro_batch;
  std::vector<bool> sequence_parallel;
  std::vector<Recompute> recompute;
  std::vector<int> zero;
  std::vector<int> vpp;
  int cp = 1;
  int ep = 1;

  /// Of anything, so that a state can be split.
  bool has_replicas(const ParallelLayout& base) const;
  std::int64_t layouts() const;
};

/// What was asked for, each value once and in order; else all.
template <class T>
std::vector<T> all_or(std::vector<T> asked, std::vector<T> all) {
  std::sort(asked.begin(), asked.end());
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  return asked.empty() ? all : asked;
}

/// Once where the value makes no difference.
template <class T>
std::vector<T> if_it_matters(bool matters, std::vector<T> values) {
  if (!matters) values.resize(1);
  return values;
}

/// In ascending order of tp, then pp, then cp, then ep. Values that make no difference are taken once.
std::vector<Family> families(const PlanInputs&);

/// The divisors of n, ascending.
std::vector<int> divisors(int n);

/// Why a layout cannot run: by divisibility, then by memory, then by what a timeline takes. Empty if it can.
std::vector<std::string> objections(const PlanInputs&, const LayoutChoice&, int gpus_per_node);
/// What there is against the degrees of a layout alone: their product is not the GPUs.
std::vector<std::string> objections_to_degrees(const PlanInputs&, const LayoutChoice&);
/// check_step but for the number of gradient buckets: that is a limit of the timeline, and what does not fit the memory
/// is not to be blamed on it. `step` is lent and comes back as it was.
Diagnostics check_before_memory(StepInputs& step, int gpus);
/// Of a layout that divides; nullptr if it fits.
const char* memory_objection(const MemoryUse&);
/// The same as long as no times are known: what an order that is made for times holds comes with them, and only the
/// state counts.
const char* objection_before_times(PipelineSchedule, const MemoryUse&);
/// Of one that divides and needs more than can be counted (check_memory).
inline constexpr const char* memory_beyond_count = "needs more than 1 EiB of memory on a GPU";

}  // namespace collcast::planner
