// The search space, cut into families of equal tp, pp, cp, ep and dp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collcast/planner/plan.hpp"

namespace collcast::planner {

struct Family {
  int tp = 1, pp = 1, dp = 1;                   ///< dp 0: tp x pp does not divide the GPUs
  std::optional<ObjectionKind> objection = {};  ///< to the degrees
  std::vector<int> micro_batch;
  std::vector<bool> sequence_parallel;
  std::vector<Recompute> recompute;
  std::vector<int> zero;
  std::vector<int> vpp;
  int cp = 1;
  int ep = 1;

  /// Of anything, so that a state can be split.
  bool has_replicas(const StepInputs& base) const;
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

/// Replicas of so many ranks as the degrees have together that the GPUs are; 0 where they do not divide them.
int replicas_of(int gpus, std::initializer_list<std::int64_t> degrees);
/// What is left of the GPUs for a further degree beside these, at least 1.
int left_beside(int gpus, std::initializer_list<std::int64_t> degrees);

/// Why a layout cannot run, in words: by divisibility, with its numbers, then by memory, then by what a timeline takes.
/// Empty if it can.
std::vector<std::string> objections(const PlanInputs&, const LayoutChoice&, int gpus_per_node);
/// What there is against the degrees of a layout alone: their product is not the GPUs.
std::vector<std::string> objections_to_degrees(const PlanInputs&, const LayoutChoice&);
/// Why a layout is rejected, by what is said of it; of an order of ranks with the one that it needs.
std::string reason_of(const Diagnostic& said);

/// step_misfits but for the number of gradient buckets: that is a limit of the timeline, and what does not fit the
/// memory is not to be blamed on it. `step` is lent and comes back as it was.
std::vector<StepMisfit> misfits_before_memory(StepInputs& step, int gpus);
/// Of a layout that divides; nothing if it fits.
std::optional<ObjectionKind> memory_objection(const MemoryUse&);
/// The same as long as no times are known: what an order that is made for times holds comes with them, and only the
/// state counts.
std::optional<ObjectionKind> objection_before_times(PipelineSchedule, const MemoryUse&);

}  // namespace collcast::planner
