#include "workload/unchanged.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "collcast/workload/search.hpp"
#include "workload/plan.hpp"

namespace collcast::workload {

namespace {

/// Those of a scenario that are not as they are by default, and bear on one thing each.
class AllMade {
 public:
  AllMade(const StepInputs& in, const Origins& origins) : in_(in), origins_(origins) {}

  std::vector<Made> all() && {
    const TrainingOptions& o = in_.options;
    made(o.overlap_tp != TpOverlap::none, "training.overlap_tp", "with none",
         [](StepInputs& in) { in.options.overlap_tp = TpOverlap::none; });
    made(!o.moe_grouped_gemm, "training.moe_grouped_gemm", "with true",
         [](StepInputs& in) { in.options.moe_grouped_gemm = true; });
    made(o.moe_capacity_factor > 0, "training.moe_capacity_factor", "without it",
         [](StepInputs& in) { in.options.moe_capacity_factor = 0; });
    made(o.moe_token_dispatcher == TokenDispatcher::flex, "training.moe_token_dispatcher", "with alltoall",
         [](StepInputs& in) { in.options.moe_token_dispatcher = TokenDispatcher::alltoall; });
    made(o.optimizer_state_offload.has_value(), "training.optimizer_state_offload", "without it",
         [](StepInputs& in) { in.options.optimizer_state_offload.reset(); });
    formats();
    groups();
    return std::move(all_);
  }

 private:
  void made(bool is, const std::string& path, const char* otherwise, const std::function<void(StepInputs&)>& undo) {
    if (!is) return;
    all_.push_back({path, otherwise, in_});
    undo(all_.back().in);
  }

  void formats() {
    using Format = std::optional<WireFormat> CommunicationFormats::*;
    for (const auto& [key, format] : {std::pair<const char*, Format>{"tp_gather", &CommunicationFormats::tp_gather},
                                      {"tp_reduce", &CommunicationFormats::tp_reduce},
                                      {"ep_dispatch", &CommunicationFormats::ep_dispatch},
                                      {"ep_combine", &CommunicationFormats::ep_combine},
                                      {"gradients", &CommunicationFormats::gradients},
                                      {"parameters", &CommunicationFormats::parameters}})
      made((in_.options.communication.*format).has_value(), std::string("training.communication.") + key, "without it",
           [format = format](StepInputs& in) { (in.options.communication.*format).reset(); });
  }

  /// What a model's config.json says of them is no setting.
  void groups() {
    const std::string path = "model.experts.groups";
    const bool of_config = origins_.knows("model.config") && origins_.of(path).file == origins_.of("model.hidden").file;
    const bool own = origins_.knows(path) && !of_config;
    made(own && in_.model.experts.groups > 1, path, "with groups and group_top_k of 1", [](StepInputs& in) {
      in.model.experts.groups = 1;
      in.model.experts.group_top_k = 1;
    });
  }

  const StepInputs& in_;
  const Origins& origins_;
  std::vector<Made> all_;
};

void add_pass(const std::vector<Stretch>& pass, std::vector<double>& to) {
  for (const Stretch& s : pass) to.insert(to.end(), {s.time.count(), s.beside.count()});
}

/// All that a plan and the fullest rank's memory are made of; nothing where there is no price.
std::optional<std::vector<double>> figures(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  const Result<StepPlan> plan = make_priced_plan(in, fabric, time);
  const std::optional<MemoryUse> memory = countable_peak_memory(in, fabric.ranks_per_node());
  if (!plan || !memory) return {};
  std::vector<double> all{static_cast<double>(plan->zero), static_cast<double>(memory->peak().value())};
  for (const Seconds transfer : plan->transfer) all.push_back(transfer.count());
  for (const StagePlan& stage : plan->stages) {
    for (const UnitWork& work : stage.works) {
      for (const std::vector<Stretch>* pass : {&work.forward, &work.backward, &work.weights, &work.whole_backward})
        add_pass(*pass, all);
      all.insert(all.end(), {work.gather.count(), work.reduce.count()});
    }
    for (const Bucket& bucket : stage.buckets) all.push_back(bucket.time.count());
    all.insert(all.end(), {stage.tied_embedding.count(), stage.gather.count(), stage.optimizer_time().count()});
    for (const CollectiveCost& cost : stage.collectives) all.push_back(cost.time.count());
  }
  return all;
}

/// Up to what the rounding of sums adds.
bool are_same(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double rounding = 1e-12;
  return std::ranges::equal(a, b, [](double x, double y) { return std::abs(x - y) <= rounding * std::abs(x); });
}

}  // namespace

std::vector<Made> without_effect(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time,
                                 const Origins& origins) {
  std::vector<Made> all = AllMade(in, origins).all();
  if (all.empty()) return all;
  const auto now = figures(in, fabric, time);
  std::erase_if(all, [&](const Made& one) {
    if (!now || !check_step(one.in, fabric.rank_count(), {}).empty()) return true;
    const auto then = figures(one.in, fabric, time);
    return !then || !are_same(*now, *then);
  });
  return all;
}

}  // namespace collcast::workload
