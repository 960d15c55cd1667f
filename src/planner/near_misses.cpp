// The search once more without its costs: of each family the values that its memory depends on. Of the micro-batches
// the smallest that divides is enough, as a larger one needs no less.
#include "planner/near_misses.hpp"

#include <algorithm>

#include "planner/families.hpp"
#include "planner/servers.hpp"

namespace collcast::planner {

namespace {

/// The layout that needs the least of those that are looked at.
class Smallest {
 public:
  Smallest(const PlanInputs& in, int gpus_per_node) : in_(in), gpus_per_node_(gpus_per_node), step_(in.base) {}

  std::optional<SmallestRejected> find() && {
    if (in_.base.serving)
      servers();
    else
      training();
    return std::move(least_);
  }

 private:
  void training() {
    for (const Family& f : families(in_)) {
      if (f.objection) continue;
      for (const bool sp : f.sequence_parallel)
        for (const Recompute recompute : f.recompute)
          for (const int zero : f.zero)
            for (const int vpp : f.vpp)
              weigh({f.tp, f.pp, f.dp, f.micro_batch.front(), sp, recompute, zero, vpp, f.cp, f.ep});
    }
  }

  void servers() {
    for (const ServerFamily& f : server_families(in_)) {
      if (f.objection) continue;
      LayoutChoice choice = f.choice;
      choice.micro_batch = f.micro_batch.front();
      weigh(choice);
    }
  }

  void weigh(const LayoutChoice& choice) {
    const bool serves = in_.base.serving.has_value();
    const std::int64_t samples = std::int64_t{choice.micro_batch} * (serves ? 1 : choice.dp);
    if ((serves ? choice.batch : in_.base.batch.global_batch) % samples != 0) return;
    // Each layout anew: what the last has of the sharding group or of expert TP is not what was asked.
    step_.layout = in_.base.layout;
    put(choice, step_);
    if (!check_step(step_, in_.gpus, {}).empty()) return;
    if (const std::optional<MemoryUse> memory = countable_peak_memory(step_, gpus_per_node_))
      keep_smaller(least_, {choice, *memory, made_for_times(step_.layout.schedule)});
  }

  const PlanInputs& in_;
  int gpus_per_node_;
  StepInputs step_;
  std::optional<SmallestRejected> least_;
};

}  // namespace

std::vector<NearMiss> near_misses(const PlanInputs& in, const Fabric& fabric, bool any_divides, Desk& desk) {
  const int gpus_per_node = fabric.ranks_per_node();
  std::vector<NearMiss> out;
  bool divides = false;  // of those that were looked at last
  const auto fits = [&](NearMissKind kind, const PlanInputs& other) {
    const std::optional<SmallestRejected> least = Smallest(other, gpus_per_node).find();
    divides = least.has_value();
    if (!least || !least->memory.fits()) return false;
    const int nodes = (other.gpus + gpus_per_node - 1) / gpus_per_node;
    out.push_back(
        {kind, other.gpus, nodes, other.gpus > fabric.rank_count(), least->choice, least->memory, least->at_most});
    return true;
  };
  PlanInputs all = in;
  all.space = {};
  all.space.batch = in.space.batch;
  fits(NearMissKind::all_values, all);
  for (const int zero : {2, 3}) {
    PlanInputs sharded = in;
    sharded.space.zero = {zero};
    if (!in.base.serving && fits(NearMissKind::zero, sharded)) break;
  }
  if (!in.base.serving && any_divides && in.base.options.optimizer) {
    PlanInputs offloaded = in;
    offloaded.base.options.optimizer_state_offload = states_on_host;
    fits(NearMissKind::host_states, offloaded);
  }
  if (in.base.serving && any_divides) {
    PlanInputs other = in;
    const auto fits_with = [&](int batch) {
      other.space.batch = {batch};
      const std::optional<SmallestRejected> least = Smallest(other, gpus_per_node).find();
      return least && least->memory.fits();
    };
    int some = 0, too_many = in.base.serving->batch;
    if (!in.space.batch.empty()) too_many = std::ranges::min(in.space.batch);
    while (some + 1 < too_many && !desk.stopped()) {
      const int middle = some + (too_many - some) / 2;
      (fits_with(middle) ? some : too_many) = middle;
    }
    if (some > 0 && fits_with(some)) fits(NearMissKind::smaller_batch, other);
  }
  // Of one node any number, of several whole ones.
  const int each = in.gpus < gpus_per_node ? 1 : gpus_per_node;
  PlanInputs more = in, fewer = in;
  fewer.gpus = (in.gpus - 1) / each * each;
  if (!any_divides) {
    constexpr int most_tried = 256;
    // Fewer yet would have more to hold each.
    for (int i = 0; i < most_tried && fewer.gpus > 0 && !desk.stopped(); ++i, fewer.gpus -= each)
      if (fits(NearMissKind::fewer_gpus, fewer) || divides) break;
    for (int i = 1; i <= most_tried && !desk.stopped(); ++i) {
      more.gpus = in.gpus / each * each + i * each;
      if (fits(NearMissKind::more_gpus, more)) break;
    }
    return out;
  }
  // Two GPUs may do where three, which split nothing, do not; half as many have twice as much to hold.
  constexpr int most_below = 8;
  for (int i = 0; i < most_below && 2 * fewer.gpus > in.gpus && !desk.stopped(); ++i, fewer.gpus -= each)
    if (fits(NearMissKind::fewer_gpus, fewer)) break;
  for (int times = 2; times <= 64 && std::int64_t{in.gpus} * times <= 1'000'000 && !desk.stopped(); times *= 2) {
    more.gpus = in.gpus * times;
    if (fits(NearMissKind::more_gpus, more)) break;
  }
  return out;
}

}  // namespace collcast::planner

namespace collcast {

std::string_view to_string(NearMissKind kind) {
  switch (kind) {
    case NearMissKind::all_values:
      return "all_values";
    case NearMissKind::zero:
      return "zero";
    case NearMissKind::host_states:
      return "host_states";
    case NearMissKind::more_gpus:
      return "more_gpus";
    case NearMissKind::fewer_gpus:
      return "fewer_gpus";
    case NearMissKind::smaller_batch:
      return "smaller_batch";
  }
  check(false, "a known near miss");
  return {};
}

}  // namespace collcast
