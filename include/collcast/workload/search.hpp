// Many layouts of one model on one machine: what a search varies, and closed forms at the price of their sums.
//
// Layouts with equal tp, pp, dp, cp, ep and vpp put the same ranks into the same groups and layers. A LayoutFamily
// works out those groups, the routes between stages, the kernels of a micro-batch and the price of every collective
// once, and then answers each choice of micro-batch, sequence parallelism, recomputation and optimizer sharding by
// adding up. The formulas are those of a single forecast: the same kernels, bytes, buckets and estimate_step.
// Servers have no such families: each is forecast by itself (estimate_serving), at prices that all share.
#pragma once

#include <compare>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "collcast/evaluate/evaluate.hpp"
#include "collcast/workload/step.hpp"

namespace collcast {

/// What a search varies of a step; order of ranks and the other options are the scenario's. Of a server `micro_batch`
/// is the sequences of a micro-batch, and recompute, zero, vpp and cp stay as they are.
struct LayoutChoice {
  int tp = 1, pp = 1, dp = 1;
  int micro_batch = 1;
  bool sequence_parallel = false;
  Recompute recompute = Recompute::none;
  int zero = 0;
  int vpp = 1;  ///< above 1: interleaved; 1: the scenario's schedule, 1F1B if that is interleaved
  int cp = 1;
  int ep = 1;
  int etp = 0;    ///< servers: ranks that each expert is split over; 0: tp
  int batch = 0;  ///< servers: sequences that a replica serves together; 0: the scenario's
  friend auto operator<=>(const LayoutChoice&, const LayoutChoice&) = default;
};
void put(const LayoutChoice&, StepInputs&);
/// Of a choice in the place of a layout that asks for a sharding group of `base.dp_shard` replicas: as many, or the
/// largest divisor of dp below; 0 stays 0.
int dp_shard_of(const LayoutChoice&, const ParallelLayout& base);
/// The same of ranks that each expert is split over: the largest that divides `base.etp`, and so an expert's width, and
/// the ranks of a stage. Servers: the choice's own.
int etp_of(const LayoutChoice&, const StepInputs& base);
/// Of a choice in the place of a layout with the schedule `base`. GPipe has no chunks and stays what it is,
/// as zero bubble does without them.
PipelineSchedule schedule_of(const LayoutChoice&, PipelineSchedule base);

/// Which values a search tries of CP, EP, ZeRO and chunks of a stage where none are listed.
enum class SearchValues {
  usual,  ///< CP and EP 1, ZeRO 0 and 1, one chunk, but for what the scenario has itself
  all     ///< those that divide
};
std::string_view to_string(SearchValues);

/// The values that a search may use; an empty list: all that fit.
struct SearchSpace {
  std::vector<int> tp, pp, dp, micro_batch;
  std::vector<bool> sequence_parallel;
  std::vector<Recompute> recompute;
  std::vector<int> zero;
  std::vector<int> cp;          ///< empty: 1, and where the scenario's is more all that fit
  std::vector<int> ep;          ///< the same
  std::vector<int> vpp;         ///< empty: 1, and with schedule interleaved all that fit up to most_stage_chunks
  std::vector<int> batch = {};  ///< servers; empty: the scenario's
  SearchValues values = SearchValues::usual;  ///< training, of empty lists
};
/// Of the chunks that a search tries by itself.
inline constexpr int most_stage_chunks = 8;
/// Of a sequence, on each rank of a CP group that a search of all values tries.
inline constexpr int least_tokens_of_cp = 1024;

/// A step whose fullest rank would need more memory than bytes are counted to, 1 EiB; the other limits of sizes do not
/// keep their product below that. `inputs` has passed check_step, `origins` as there.
Diagnostics check_memory(const StepInputs& inputs, const Origins& origins);
/// peak_memory of what check_memory accepts, of the rest nothing: both of a layout at the price of one.
std::optional<MemoryUse> countable_peak_memory(const StepInputs& inputs, int gpus_per_node);

/// What a step of this length achieves.
struct StepRates {
  double tokens_per_s_per_gpu = 0;
  FlopRate model_flops_per_gpu{};
  double mfu = 0, hfu = 0;
};
StepRates rates(const StepInputs&, Seconds step);

/// The prices of forecast_step's closed form, for requests that have been moved to the front of the machine
/// (collcast/evaluate/symmetry.hpp). May be called by several threads at once; the fabric must outlive it. Where
/// `goes_on` says no, prices fail.
CollectiveTime step_prices(const Fabric&, const CollectivePolicy&, const GoesOn& goes_on = {});

/// forecast_step's closed form of inference, but for the names of algorithms, at such prices. `inputs` has passed
/// check_step. May be called by several threads at once if `prices` may.
Result<StepResult> estimate_serving(const StepInputs& inputs, const Fabric&, const CollectiveTime& prices);

struct LayoutEstimate {
  Seconds step{};
  Breakdown breakdown;
  Orders made;  ///< of a schedule that is made for times; not of FaultyEstimate, whose order is the healthy one
};

class LayoutFamily {
 public:
  /// `base` has passed check_step with its tp, pp, dp, cp, ep and vpp; `prices` (as step_prices) outlives the family
  /// and is asked each question once.
  LayoutFamily(const StepInputs& base, const Fabric&, const CollectiveTime& prices);
  ~LayoutFamily();
  LayoutFamily(LayoutFamily&&) noexcept;
  LayoutFamily& operator=(LayoutFamily&&) noexcept;

  /// forecast_step's closed form of `choice`, whose degrees are the family's and which check_step accepts. Fails where
  /// a collective cannot be priced. Not for several threads at once.
  Result<LayoutEstimate> estimate(const LayoutChoice& choice);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace collcast
