#include "workload/memory/memory_remedies.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "collcast/base/bisect.hpp"
#include "collcast/base/check.hpp"
#include "collcast/base/units.hpp"
#include "collcast/workload/search.hpp"
#include "workload/changes.hpp"
#include "workload/gradient_exchange.hpp"
#include "workload/memory/state_copies.hpp"
#include "workload/serving/serving.hpp"

namespace collcast::workload {

namespace {

/// Nothing for what is no step.
std::optional<MemoryUse> memory_of(const StepInputs& in, const Fabric& fabric, int ranks) {
  if (!check_step(in, ranks, {}).empty()) return {};
  return countable_peak_memory(in, fabric.ranks_per_node());
}

/// Whether states come from the host in chunks of what would be offered, or smaller ones.
bool in_smaller_chunks(const TrainingOptions& options) {
  const int size = options.optimizer_state_offload->chunk_size_mb;
  return size > 0 && size <= states_on_host.chunk_size_mb;
}

/// One degree so many times larger, with whole nodes more where the machine has too few GPUs.
Change on_more_gpus(const StepInputs& in, const Degree& degree, int times, int node, int ranks) {
  Change out{{}, in};
  out.in.layout.*degree.value *= times;
  out.values.emplace_back(degree.path, std::to_string(out.in.layout.*degree.value));
  if (const int needed = out.in.layout.world(); needed > ranks) {
    const int nodes = (needed + node - 1) / node;
    out.ranks = nodes * node;
    out.values.emplace_back("nodes", std::to_string(nodes));
  }
  return out;
}

/// What a scenario can say otherwise of the same job on the same GPUs, in the order of what it costs; of one that
/// serves also on more of them.
class Changes {
 public:
  Changes(const StepInputs& in, const Fabric& fabric, int ranks) : in_(in), fabric_(fabric), ranks_(ranks), to_(in) {}

  std::vector<Change> all() && {
    if (in_.serving) {
      served_at_once();
      shorter_passes();
      layouts();
      experts_of_fewer_replicas();
      to_.offer(in_.serving->kv_bytes > 1, {{"inference.kv_precision", "fp8"}},
                [](StepInputs& in) { in.serving->kv_bytes = 1; });
      more_gpus();
    } else {
      options();
      layouts();
    }
    std::vector<Change> changes = std::move(to_).all();
    for (Change& one : changes)
      if (one.in.serving) one.in.serving->cut(one.in.layout);
    return changes;
  }

 private:
  void options() {
    const TrainingOptions& o = in_.options;
    const bool schedule = !is_own(in_.layout.schedule);
    to_.offer(o.attention == Attention::unfused, {{"training.attention", "flash"}},
              [](StepInputs& in) { in.options.attention = Attention::flash; });
    to_.offer(in_.layout.tp > 1 && !in_.layout.sequence_parallel, {{"layout.sequence_parallel", "true"}},
              [](StepInputs& in) { in.layout.sequence_parallel = true; });
    to_.offer(!o.fuse_loss, {{"training.cross_entropy_loss_fusion", "true"}},
              [](StepInputs& in) { in.options.fuse_loss = true; });
    to_.offer(o.zero == 3 && !o.reshard_after_forward, {{"training.reshard_after_forward", "true"}},
              [](StepInputs& in) { in.options.reshard_after_forward = true; });
    to_.offer(o.zero == 3 && o.no_sync, {{"training.no_sync", "false"}},
              [](StepInputs& in) { in.options.no_sync = false; });
    for (int zero = o.zero + 1; zero <= 3; ++zero)
      to_.offer(exchanges_gradients(in_), {{"training.zero", std::to_string(zero)}},
                [zero](StepInputs& in) { in.options.zero = zero; });
    int shard = in_.layout.dp_shard + 1;
    while (shard < in_.layout.dp && in_.layout.dp % shard != 0) ++shard;
    to_.offer(o.zero > 0 && in_.layout.dp_shard > 0 && shard <= in_.layout.dp,
              {{"layout.dp_shard", std::to_string(shard)}}, [shard](StepInputs& in) { in.layout.dp_shard = shard; });
    to_.offer(o.compression.method != CompressionMethod::none && o.compression.error_feedback,
              {{"training.gradient_compression.error_feedback", "false"}},
              [](StepInputs& in) { in.options.compression.error_feedback = false; });
    to_.offer(o.delayed_all_reduce, {{"training.delayed_all_reduce", "false"}},
              [](StepInputs& in) { in.options.delayed_all_reduce = false; });
    // Gradients of 16 bits are copied for an optimizer that reads fp32: which is less depends on what else is split.
    const int otherwise = o.gradient_bytes > 2 ? 2 : 4;
    to_.offer(true, {{"training.gradient_bytes", std::to_string(otherwise)}},
              [otherwise](StepInputs& in) { in.options.gradient_bytes = otherwise; });
    const PrecisionAwareOptimizer now = o.precision_aware_optimizer.value_or(PrecisionAwareOptimizer());
    to_.offer(o.optimizer && (now.exp_avg_dtype == StateFormat::fp32 || now.exp_avg_sq_dtype == StateFormat::fp32),
              {{"training.precision_aware_optimizer.exp_avg_dtype", "bf16"},
               {"training.precision_aware_optimizer.exp_avg_sq_dtype", "bf16"}},
              [now](StepInputs& in) {
                in.options.precision_aware_optimizer = now;
                in.options.precision_aware_optimizer->exp_avg_dtype = StateFormat::bf16;
                in.options.precision_aware_optimizer->exp_avg_sq_dtype = StateFormat::bf16;
              });
    to_.offer(o.optimizer && (offloaded_states(o) < 1 || !in_smaller_chunks(o)),
              {{"training.optimizer_state_offload.fraction", "1"},
               {"training.optimizer_state_offload.chunk_size_mb", std::to_string(states_on_host.chunk_size_mb)}},
              [](StepInputs& in) { in.options.optimizer_state_offload = states_on_host; });
    Values plain{{"layout.schedule", "1f1b"}};
    if (in_.layout.vpp > 1) plain.emplace_back("layout.vpp", "1");
    to_.offer(schedule && in_.layout.schedule != PipelineSchedule::one_f_one_b, plain, [](StepInputs& in) {
      in.layout.schedule = PipelineSchedule::one_f_one_b;
      in.layout.vpp = 1;
    });
    to_.offer(in_.batch.micro_batch > 1, {{"batch.micro_batch", std::to_string(in_.batch.micro_batch / 2)}},
              [](StepInputs& in) { in.batch.micro_batch /= 2; });
    to_.offer(o.recompute == Recompute::none, {{"training.recompute", "selective"}},
              [](StepInputs& in) { in.options.recompute = Recompute::selective; });
    offloading();
    to_.offer(o.recompute != Recompute::full, {{"training.recompute", "full"}},
              [](StepInputs& in) { in.options.recompute = Recompute::full; });
  }

  /// Activations in the host's memory: of the fewest layers that make it fit, else of as many as can be.
  void offloading() {
    const int now = in_.options.cpu_offloading_num_layers, most = in_.model.layers - 1;
    const auto of = [&](int layers) {
      StepInputs in = in_;
      in.options.cpu_offloading_num_layers = layers;
      return in;
    };
    if (now >= most || !check_step(of(most), ranks_, {}).empty()) return;
    const int enough = 1 + most_that(now, most, [&](int layers) { return !fits(of(layers)); });
    to_.offer(true, {{"training.cpu_offloading_num_layers", std::to_string(enough)}},
              [enough](StepInputs& in) { in.options.cpu_offloading_num_layers = enough; });
  }

  /// The same GPUs otherwise: one degree halved for another.
  void layouts() {
    const ParallelLayout& l = in_.layout;
    to_.offer(in_.model.experts.count > 0, {{"layout.ep", std::to_string(2 * l.ep)}},
              [](StepInputs& in) { in.layout.ep *= 2; });
    for (const Degree& smaller : {dp_degree, pp_degree, tp_degree, cp_degree})
      for (const Degree& larger : {pp_degree, tp_degree, cp_degree}) to_.offer(traded(in_, smaller, larger));
  }

  bool fits(const StepInputs& in) const {
    const std::optional<MemoryUse> use = memory_of(in, fabric_, ranks_);
    return use && use->fits();
  }

  /// The most sequences that fit of those that go with the rest, else the fewest; and more micro-batches of them.
  void served_at_once() {
    const Serving& s = *in_.serving;
    const bool by_stages = s.cut_by_stages && !s.is_continuous() && s.batch >= in_.layout.pp;
    const int cuts = by_stages ? in_.layout.pp : s.micro_batches;
    const int each = cuts * (in_.layout.sequence_parallel ? in_.layout.tp : 1);
    const auto sequences = [&](int batch) {
      StepInputs in = in_;
      in.serving->batch = batch;
      in.serving->cut(in.layout);
      return in;
    };
    const auto cut_into = [&](int micro_batches) {
      StepInputs in = in_;
      in.serving->micro_batches = micro_batches;
      in.serving->cut_by_stages = false;
      return in;
    };
    const int some =
        most_that(1, (s.batch + each - 1) / each, [&](int times) { return fits(sequences(each * times)); });
    to_.offer(each * some < s.batch, {{"inference.batch", std::to_string(each * some)}},
              [&](StepInputs& in) { in = sequences(each * some); });
    int cut = s.micro_batches;
    for (int more = cut + 1; more <= s.batch && s.batching == Batching::at_once && !fits(cut_into(cut)); ++more)
      if (s.batch % more == 0) cut = more;
    to_.offer(cut > s.micro_batches, {{"inference.microbatches", std::to_string(cut)}},
              [&](StepInputs& in) { in = cut_into(cut); });
  }

  /// Fewer tokens in a pass of a load: of the halves of what it has the most that fit, else the fewest.
  void shorter_passes() {
    const Serving& s = *in_.serving;
    if (!s.load) return;
    const auto of_tokens = [&](int tokens) {
      StepInputs in = in_;
      in.serving->load->max_batched_tokens = tokens;
      return in;
    };
    constexpr int fewest = 2048;
    const int beside_tokens = std::max(fewest, 2 * s.batch * s.verified_tokens());
    int tokens = s.load->max_batched_tokens;
    while (tokens / 2 >= beside_tokens && !fits(of_tokens(tokens))) tokens /= 2;
    to_.offer(tokens < s.load->max_batched_tokens, {{"inference.load.max_batched_tokens", std::to_string(tokens)}},
              [&](StepInputs& in) { in = of_tokens(tokens); });
  }

  /// Experts that are spread over replicas on half of them, each of twice the GPUs, which split every expert.
  void experts_of_fewer_replicas() {
    if (in_.layout.ep == 1) return;
    std::optional<Change> change = traded(in_, dp_degree, tp_degree);
    if (!change) return;
    change->in.layout.ep = 1;
    change->values.emplace_back("layout.ep", "1");
    to_.offer(std::move(*change));
  }

  /// Twice as many of them for a replica.
  void more_gpus() {
    for (const Degree& degree : {pp_degree, tp_degree})
      to_.offer(on_more_gpus(in_, degree, 2, fabric_.ranks_per_node(), ranks_));
  }

  const StepInputs& in_;
  const Fabric& fabric_;
  int ranks_;
  Offers to_;
};

/// A change that fits or not, and what it needs.
struct Tried {
  Change change;
  int ranks;
  MemoryUse use;
  /// Of an order that is made for times what it may hold is known here, not what it holds.
  std::string text() const {
    const char* at_most = made_for_times(change.in.layout.schedule) ? "at most " : "";
    return text_of(change.values) + " (" + at_most + format_bytes(volume(use.peak())) + ")";
  }
};

/// Those that make it smaller.
std::vector<Tried> tried(const StepInputs& in, const Fabric& fabric, int ranks) {
  const std::optional<MemoryUse> as_it_is = memory_of(in, fabric, ranks);
  check(as_it_is.has_value(), "what is mended is a step");
  std::vector<Tried> out;
  for (Change& one : Changes(in, fabric, ranks).all()) {
    const int on = one.ranks > 0 ? one.ranks : ranks;
    const std::optional<MemoryUse> use = memory_of(one.in, fabric, on);
    if (use && use->peak() < as_it_is->peak()) out.push_back({std::move(one), on, *use});
  }
  return out;
}

/// Behind a first change further ones, each the one after which it is smallest.
Tried followed_up(Tried first, const Fabric& fabric) {
  constexpr int most_further = 4;
  for (int n = 0; n < most_further && !first.use.fits(); ++n) {
    std::vector<Tried> next = tried(first.change.in, fabric, first.ranks);
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
  constexpr std::ptrdiff_t most_followed_up = 5;
  // Orders of so many micro-batches take milliseconds to go through.
  constexpr int most_micro_batches = 4096;
  std::vector<Tried> firsts = tried(in, fabric, fabric.rank_count());
  std::ranges::stable_sort(firsts, {}, [](const Tried& t) { return t.use.peak(); });
  if (!in.serving && in.batch.passes(in.layout) > most_micro_batches)
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

/// A training step of one degree larger, TP within a node, as it is or changed in what makes it smallest: on the fewest
/// GPUs of those.
std::optional<Tried> on_fewest_more(const StepInputs& in, const std::optional<Tried>& changed, const Fabric& fabric) {
  constexpr int most_times = 64;
  const int ranks = fabric.rank_count(), node = fabric.ranks_per_node();
  for (int times = 2; times <= most_times; ++times)
    for (const Tried* base : {static_cast<const Tried*>(nullptr), changed ? &*changed : nullptr})
      for (const Degree& degree : {pp_degree, tp_degree, dp_degree}) {
        Change more = on_more_gpus(base == nullptr ? in : base->change.in, degree, times, node, ranks);
        const int on = std::max(more.ranks, ranks);
        if (degree.value == tp_degree.value && more.in.layout.tp > node) continue;
        const std::optional<MemoryUse> use = memory_of(more.in, fabric, on);
        if (!use || !use->fits()) continue;
        if (base != nullptr) more.values = both(base->change.values, more.values);
        return Tried{std::move(more), on, *use};
      }
  return {};
}

}  // namespace

std::string what_would_fit(const StepInputs& in, const Fabric& fabric) {
  constexpr std::size_t most_named = 3;
  std::vector<std::string> fitting;
  for (const Tried& one : tried(in, fabric, fabric.rank_count()))
    if (one.use.fits() && fitting.size() < most_named) fitting.push_back(one.text());
  if (!fitting.empty()) {
    std::string out = "it fits with " + fitting.front();
    for (std::size_t i = 1; i < fitting.size(); ++i) out += (i + 1 < fitting.size() ? ", " : " or ") + fitting[i];
    return out;
  }
  const std::optional<Tried> several = by_several(in, fabric);
  if (several && several->use.fits()) return "it fits with all of " + several->text();
  std::string search;
  if (!in.serving) {
    if (const std::optional<Tried> more = on_fewest_more(in, several, fabric))
      search = "; on " + std::to_string(more->change.in.layout.world()) + " GPUs it fits with " + more->text();
    search += "; collcast plan --search all looks at other layouts";
  }
  return several ? "not even " + several->text() + " would fit" + search
                 : "none of the changes tried makes it smaller" + search;
}

}  // namespace collcast::workload
