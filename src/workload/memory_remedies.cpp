#include "workload/memory_remedies.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "collcast/base/units.hpp"
#include "collcast/workload/search.hpp"

namespace collcast::workload {

namespace {

/// Values by their paths in a scenario.
using Values = std::vector<std::pair<std::string, std::string>>;

struct Change {
  Values values;
  StepInputs in;
};

std::string text_of(const Values& values) {
  std::string out;
  for (const auto& [path, value] : values) out += (out.empty() ? "" : ", ") + path + ": " + value;
  return out;
}

/// Where both have a path, the later value.
Values both(Values first, const Values& then) {
  for (const auto& [path, value] : then) {
    const auto same = std::ranges::find(first, path, &std::pair<std::string, std::string>::first);
    if (same == first.end())
      first.emplace_back(path, value);
    else
      same->second = value;
  }
  return first;
}

/// What a scenario can say otherwise of the same job on the same GPUs, in the order of what it costs.
class Changes {
 public:
  explicit Changes(const StepInputs& in) : in_(in) {}

  std::vector<Change> all() && {
    options();
    layouts();
    return std::move(all_);
  }

 private:
  template <class Set>
  void offer(bool possible, Values values, Set set) {
    if (!possible) return;
    Change change{std::move(values), in_};
    set(change.in);
    all_.push_back(std::move(change));
  }

  void options() {
    const TrainingOptions& o = in_.options;
    const bool schedule = !is_own(in_.layout.schedule), stages = in_.layout.pp > 1;
    offer(o.attention == Attention::unfused, {{"training.attention", "flash"}},
          [](StepInputs& in) { in.options.attention = Attention::flash; });
    offer(in_.layout.tp > 1 && !in_.layout.sequence_parallel, {{"layout.sequence_parallel", "true"}},
          [](StepInputs& in) { in.layout.sequence_parallel = true; });
    offer(!o.fuse_loss, {{"training.cross_entropy_loss_fusion", "true"}},
          [](StepInputs& in) { in.options.fuse_loss = true; });
    offer(o.zero == 3 && !o.reshard_after_forward, {{"training.reshard_after_forward", "true"}},
          [](StepInputs& in) { in.options.reshard_after_forward = true; });
    offer(o.zero == 3 && o.no_sync, {{"training.no_sync", "false"}},
          [](StepInputs& in) { in.options.no_sync = false; });
    for (int zero = o.zero + 1; zero <= 3; ++zero)
      offer(in_.layout.dp > 1, {{"training.zero", std::to_string(zero)}},
            [zero](StepInputs& in) { in.options.zero = zero; });
    int shard = in_.layout.dp_shard + 1;
    while (shard < in_.layout.dp && in_.layout.dp % shard != 0) ++shard;
    offer(o.zero > 0 && in_.layout.dp_shard > 0 && shard <= in_.layout.dp, {{"layout.dp_shard", std::to_string(shard)}},
          [shard](StepInputs& in) { in.layout.dp_shard = shard; });
    offer(o.compression.method != CompressionMethod::none && o.compression.error_feedback,
          {{"training.gradient_compression.error_feedback", "false"}},
          [](StepInputs& in) { in.options.compression.error_feedback = false; });
    offer(o.delayed_all_reduce, {{"training.delayed_all_reduce", "false"}},
          [](StepInputs& in) { in.options.delayed_all_reduce = false; });
    offer(o.gradient_bytes > 2, {{"training.gradient_bytes", "2"}},
          [](StepInputs& in) { in.options.gradient_bytes = 2; });
    Values plain{{"layout.schedule", "1f1b"}};
    if (in_.layout.vpp > 1) plain.emplace_back("layout.vpp", "1");
    offer(schedule && stages && in_.layout.schedule != PipelineSchedule::one_f_one_b, plain, [](StepInputs& in) {
      in.layout.schedule = PipelineSchedule::one_f_one_b;
      in.layout.vpp = 1;
    });
    offer(in_.batch.micro_batch > 1, {{"batch.micro_batch", std::to_string(in_.batch.micro_batch / 2)}},
          [](StepInputs& in) { in.batch.micro_batch /= 2; });
    offer(o.recompute == Recompute::none, {{"training.recompute", "selective"}},
          [](StepInputs& in) { in.options.recompute = Recompute::selective; });
    offer(o.recompute != Recompute::full, {{"training.recompute", "full"}},
          [](StepInputs& in) { in.options.recompute = Recompute::full; });
  }

  /// The same GPUs otherwise: half as many replicas.
  void layouts() {
    const ParallelLayout& l = in_.layout;
    offer(in_.model.experts.count > 0, {{"layout.ep", std::to_string(2 * l.ep)}},
          [](StepInputs& in) { in.layout.ep *= 2; });
    if (l.dp % 2 != 0) return;
    const std::string half = std::to_string(l.dp / 2);
    const auto twice = [&](int ParallelLayout::*degree, const char* path) {
      offer(true, {{path, std::to_string(2 * (l.*degree))}, {"layout.dp", half}}, [degree](StepInputs& in) {
        in.layout.*degree *= 2;
        in.layout.dp /= 2;
      });
    };
    twice(&ParallelLayout::pp, "layout.pp");
    twice(&ParallelLayout::tp, "layout.tp");
    twice(&ParallelLayout::cp, "layout.cp");
  }

  const StepInputs& in_;
  std::vector<Change> all_;
};

/// Nothing for what is no step.
std::optional<MemoryUse> memory_of(const StepInputs& in, const Fabric& fabric) {
  if (!check_step(in, fabric.rank_count(), {}).empty() || !check_memory(in, {}).empty()) return {};
  return peak_memory(in, fabric.ranks_per_node());
}

/// A change that fits or not, and what it needs.
struct Tried {
  Change change;
  MemoryUse use;
  /// Of an order that is made for times what it may hold is known here, not what it holds.
  std::string text() const {
    const char* at_most = made_for_times(change.in.layout.schedule) ? "at most " : "";
    return text_of(change.values) + " (" + at_most + format_bytes(volume(use.peak())) + ")";
  }
};

/// Those that make it smaller.
std::vector<Tried> tried(const StepInputs& in, const Fabric& fabric) {
  const Bytes as_it_is = peak_memory(in, fabric.ranks_per_node()).peak();
  std::vector<Tried> out;
  for (Change& change : Changes(in).all())
    if (const std::optional<MemoryUse> use = memory_of(change.in, fabric); use && use->peak() < as_it_is)
      out.push_back({std::move(change), *use});
  return out;
}

/// Behind a first change further ones, each the one after which it is smallest.
Tried followed_up(Tried first, const Fabric& fabric) {
  constexpr int most_further = 4;
  for (int n = 0; n < most_further && !first.use.fits(); ++n) {
    std::vector<Tried> next = tried(first.change.in, fabric);
    const auto least = std::ranges::min_element(next, {}, [](const Tried& t) { return t.use.peak(); });
    if (least == next.end()) break;
    least->change.values = both(first.change.values, least->change.values);
    first = std::move(*least);
  }
  return first;
}

/// The fewest values that together make it fit, else the smallest, behind the first changes that alone make it
/// smallest; nothing where no change makes it smaller.
std::optional<Tried> by_several(const StepInputs& in, const Fabric& fabric) {
  constexpr std::ptrdiff_t most_followed_up = 4;
  // Orders of so many micro-batches take milliseconds to go through.
  constexpr int most_micro_batches = 4096;
  std::vector<Tried> firsts = tried(in, fabric);
  std::ranges::stable_sort(firsts, {}, [](const Tried& t) { return t.use.peak(); });
  if (in.batch.passes(in.layout) > most_micro_batches)
    return firsts.empty() ? std::nullopt : std::optional(std::move(firsts.front()));
  firsts.erase(firsts.begin() + std::min(std::ssize(firsts), most_followed_up), firsts.end());
  std::optional<Tried> best;
  for (Tried& first : firsts) {
    Tried one = followed_up(std::move(first), fabric);
    const bool fewer =
        best && one.use.fits() && best->use.fits() && one.change.values.size() < best->change.values.size();
    const bool smaller = best && !best->use.fits() && one.use.peak() < best->use.peak();
    if (!best || fewer || smaller) best = std::move(one);
  }
  return best;
}

}  // namespace

std::string what_would_fit(const StepInputs& in, const Fabric& fabric) {
  constexpr std::size_t most_named = 3;
  std::vector<std::string> fitting;
  for (const Tried& one : tried(in, fabric))
    if (one.use.fits() && fitting.size() < most_named) fitting.push_back(one.text());
  if (!fitting.empty()) {
    std::string out = "it fits with " + fitting.front();
    for (std::size_t i = 1; i < fitting.size(); ++i) out += (i + 1 < fitting.size() ? ", " : " or ") + fitting[i];
    return out;
  }
  const std::optional<Tried> several = by_several(in, fabric);
  if (several && several->use.fits()) return "it fits with all of " + several->text();
  const std::string search = "collcast plan looks at all layouts";
  return several ? "not even " + several->text() + " would fit; " + search : "no change makes it smaller; " + search;
}

}  // namespace collcast::workload
