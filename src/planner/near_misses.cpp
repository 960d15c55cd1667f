// The search once more without its costs: of each family the values that its memory depends on. Of the micro-batches
// the smallest that can be is enough, as a larger one needs no less; but with no_sync, whose sums of gradients one
// micro-batch alone does without: the largest, too.
#include "planner/near_misses.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collcast/base/bisect.hpp"
#include "planner/families.hpp"
#include "planner/servers.hpp"

namespace collcast::planner {

namespace {

/// With sequence parallelism a token of each sequence of a micro-batch is split over so many ranks.
int rows_split_over(const LayoutChoice& choice) { return choice.sequence_parallel ? choice.tp : 1; }

/// The layout that needs the least of those that are looked at.
class Smallest {
 public:
  /// Of servers only those that any multiple of so many `sequences` can be cut for; 0: all.
  Smallest(const PlanInputs& in, int gpus_per_node, int sequences = 0)
      : in_(in), gpus_per_node_(gpus_per_node), sequences_(sequences), step_(in.base) {}

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
      for (const bool sp : f.sequence_parallel) training(f, sp);
    }
  }

  void training(const Family& f, bool sequence_parallel) {
    std::vector<int> sizes = f.micro_batch;
    std::erase_if(sizes, [&](int size) { return in_.base.batch.global_batch % (std::int64_t{size} * f.dp) != 0; });
    const std::ptrdiff_t looked_at = in_.base.options.no_sync ? 1 : 0;
    if (std::ssize(sizes) > 1 + looked_at) sizes.erase(sizes.begin() + 1, sizes.end() - looked_at);
    for (const Recompute recompute : f.recompute)
      for (const int zero : f.zero)
        for (const int vpp : f.vpp)
          for (const int micro_batch : sizes) {
            LayoutChoice choice{f.tp, f.pp, f.dp, micro_batch, sequence_parallel, recompute, zero, vpp};
            choice.cp = f.cp;
            choice.ep = f.ep;
            // A tp that does not go with the model does so with no options.
            if (const auto wrong = weigh(choice); wrong && *wrong == "layout.tp") return;
          }
  }

  void servers() {
    for (const ServerFamily& f : server_families(in_)) {
      const int split = rows_split_over(f.choice);
      if (f.objection || (sequences_ > 0 && sequences_ % split != 0)) continue;
      const auto smallest = std::ranges::find_if(
          f.micro_batch, [&](int size) { return f.choice.batch % size == 0 && size % split == 0; });
      if (smallest == f.micro_batch.end()) continue;
      LayoutChoice choice = f.choice;
      choice.micro_batch = *smallest;
      weigh(choice);
    }
  }

  /// What is to blame for its being no step, if that is not the batch.
  std::optional<std::string> weigh(const LayoutChoice& choice) {
    const bool serves = in_.base.serving.has_value();
    const std::int64_t samples = std::int64_t{choice.micro_batch} * (serves ? 1 : choice.dp);
    if ((serves ? choice.batch : in_.base.batch.global_batch) % samples != 0) return {};
    // Each layout anew: what the last has of the sharding group or of expert TP is not what was asked.
    step_.layout = in_.base.layout;
    put(choice, step_);
    if (std::vector<StepMisfit> wrong = step_misfits(step_, in_.gpus, {}); !wrong.empty())
      return std::move(wrong.front().blamed);
    if (const std::optional<MemoryUse> memory = countable_peak_memory(step_, gpus_per_node_))
      keep_smaller(least_, {choice, *memory, made_for_times(step_.layout.schedule)});
    return {};
  }

  const PlanInputs& in_;
  int gpus_per_node_;
  int sequences_;
  StepInputs step_;
  std::optional<SmallestRejected> least_;
};

/// The sequences of which a server's batch is a multiple: of a micro-batch that was asked for, else of the fewest that
/// can be split.
std::vector<int> steps_of_batch(const PlanInputs& in) {
  std::vector<int> steps;
  for (const ServerFamily& f : server_families(in))
    for (const int sequences : all_or(in.space.micro_batch, {rows_split_over(f.choice)}))
      if (!f.objection && sequences % rows_split_over(f.choice) == 0) steps.push_back(sequences);
  return all_or(steps, {});
}

/// Below those that were searched; 0: none fits, or the search was ended.
int largest_batch(PlanInputs in, int gpus_per_node, SearchProgress& progress) {
  const std::vector<int> steps = steps_of_batch(in);
  const int too_many = in.space.batch.empty() ? in.base.serving->batch : std::ranges::min(in.space.batch);
  const bool is_asked = !in.space.micro_batch.empty();
  int most = 0;
  for (const int step : steps) {
    if (is_asked) in.space.micro_batch = {step};
    const auto fits = [&](int times) {
      if (progress.stopped()) return false;
      in.space.batch = {step * times};
      const std::optional<SmallestRejected> least = Smallest(in, gpus_per_node, step).find();
      return least && least->memory.fits();
    };
    most = std::max(most, step * most_that(most / step, (too_many + step - 1) / step, fits));
  }
  return progress.stopped() ? 0 : most;
}

/// Numbers below `gpus`, the nearest first, each a multiple of a larger power of two than the one before, then the
/// powers of two below the last.
std::vector<int> rounder_below(int gpus) {
  std::vector<int> out;
  for (int power = 1; power < gpus; power *= 2)
    if (const int round = (gpus - 1) / power * power; out.empty() || round < out.back()) out.push_back(round);
  while (!out.empty() && out.back() > 1) out.push_back(out.back() / 2);
  return out;
}

/// Adds the inputs to what nearly fits if a layout of theirs does.
using Fits = std::function<bool(NearMissKind, const PlanInputs&)>;

/// Where no layout divides the number: the nearest below that one does, and the nearest above that one fits, in steps
/// of `each` GPUs above and `each_below` below. `divides` is of those that `fits` looked at last.
void search_other_numbers(const PlanInputs& in, int each, int each_below, const Fits& fits, const bool& divides,
                          SearchProgress& progress) {
  constexpr int most_tried = 256;
  PlanInputs more = in, fewer = in;
  fewer.gpus = (in.gpus - 1) / each_below * each_below;
  // Fewer yet would have more to hold each.
  const auto is_last = [&] { return fits(NearMissKind::fewer_gpus, fewer) || divides || progress.stopped(); };
  bool found = false;
  for (int i = 0; i < most_tried && fewer.gpus > 0 && !found; ++i, fewer.gpus -= each_below) found = is_last();
  // Nodes of 72 GPUs have a factor that no degree takes: parts of them.
  if (!found && each_below > 1)
    for (const int gpus : rounder_below(in.gpus)) {
      fewer.gpus = gpus;
      if (is_last()) break;
    }
  for (int i = 1; i <= most_tried && !progress.stopped(); ++i) {
    more.gpus = in.gpus / each * each + i * each;
    if (fits(NearMissKind::more_gpus, more)) break;
  }
}

}  // namespace

std::vector<NearMiss> near_misses(const PlanInputs& in, const Fabric& fabric, bool any_divides,
                                  SearchProgress& progress) {
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
  all.space.values = in.space.values;
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
    if (const int batch = largest_batch(in, gpus_per_node, progress); batch > 0) {
      PlanInputs smaller = in;
      smaller.space.batch = {batch};
      fits(NearMissKind::smaller_batch, smaller);
    }
  }
  // Of one node any number, of several whole ones.
  const int each = in.gpus < gpus_per_node ? 1 : gpus_per_node, each_below = in.gpus <= gpus_per_node ? 1 : each;
  if (!any_divides) {
    search_other_numbers(in, each, each_below, fits, divides, progress);
    return out;
  }
  PlanInputs more = in, fewer = in;
  fewer.gpus = (in.gpus - 1) / each_below * each_below;
  // Two GPUs may do where three, which split nothing, do not; half as many have twice as much to hold.
  constexpr int most_below = 8;
  for (int i = 0; i < most_below && 2 * fewer.gpus > in.gpus && !progress.stopped(); ++i, fewer.gpus -= each_below)
    if (fits(NearMissKind::fewer_gpus, fewer)) break;
  for (int times = 2; times <= 64 && std::int64_t{in.gpus} * times <= 1'000'000 && !progress.stopped(); times *= 2) {
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
