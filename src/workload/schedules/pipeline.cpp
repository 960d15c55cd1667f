#include "workload/schedules/pipeline.hpp"

#include <algorithm>
#include <cmath>

#include "workload/schedules/dualpipe.hpp"
#include "workload/schedules/dualpipe_v.hpp"
#include "workload/schedules/interleaved.hpp"
#include "workload/schedules/zero_bubble.hpp"
#include "workload/schedules/zero_bubble_v.hpp"

namespace collcast::workload {

std::vector<Turn> stage_order(PipelineSchedule schedule, int stages, int stage, int micro_batches, int chunks) {
  check(!is_own(schedule) && !made_for_times(schedule), "other orders are made elsewhere");
  if (goes_in_v(schedule)) {
    check(chunks == 2, "a V has two chunks a stage");
    if (from_both_ends(schedule)) return dualpipe_order(stages, stage, micro_batches);
    return schedule == PipelineSchedule::zb_v ? zero_bubble_v_order(stages, stage, micro_batches)
                                              : dualpipe_v_order(stages, stage, micro_batches);
  }
  check(chunks == 1 || schedule == PipelineSchedule::interleaved, "other stages have no chunks");
  if (splits_backward(schedule)) return zero_bubble_order(schedule, stages, stage, micro_batches);
  std::vector<Turn> order;
  order.reserve(2 * static_cast<std::size_t>(micro_batches) * static_cast<std::size_t>(chunks));
  if (schedule == PipelineSchedule::interleaved) {
    const InterleavedOrder interleaved(stages, chunks, micro_batches);
    for (int n = 0; n < 2 * interleaved.forwards(); ++n) order.push_back(interleaved.turn(stage, n));
    return order;
  }
  if (schedule == PipelineSchedule::gpipe) {
    for (int k = 0; k < micro_batches; ++k) order.push_back({false, k, 0});
    for (int k = micro_batches - 1; k >= 0; --k) order.push_back({true, k, 0});
    return order;
  }
  const int warm_up = std::min(micro_batches, stages - 1 - stage);
  for (int k = 0; k < warm_up; ++k) order.push_back({false, k, 0});
  for (int k = 0; k < micro_batches; ++k) {
    if (warm_up + k < micro_batches) order.push_back({false, warm_up + k, 0});
    order.push_back({true, k, 0});
  }
  return order;
}

bool has_whole_backwards(const ParallelLayout& layout) {
  return passes_pairs(layout.schedule) || (is_own(layout.schedule) && layout.own->has_whole());
}

std::optional<ChunkPlace> next_place(PipelineSchedule schedule, int stages, int chunks, int stage, const Turn& turn) {
  if (from_both_ends(schedule)) return next_in_dualpipe(stages, stage, turn);
  if (goes_in_v(schedule)) return next_in_v(stages, stage, turn);
  const int last = stages - 1;
  const bool round = turn.backward ? stage == 0 : stage == last;
  const int chunk = !round ? turn.chunk : turn.backward ? turn.chunk - 1 : turn.chunk + 1;
  if (chunk < 0 || chunk == chunks) return std::nullopt;
  return ChunkPlace{turn.backward ? (stage == 0 ? last : stage - 1) : (stage == last ? 0 : stage + 1), chunk};
}

bool begins(PipelineSchedule schedule, int stages, int chunks, int stage, const Turn& turn) {
  if (from_both_ends(schedule))
    return (stage == 0 || stage == stages - 1) && turn.chunk == (turn.backward ? chunks - 1 : 0);
  const int end = goes_in_v(schedule) ? 0 : stages - 1;
  return turn.backward ? stage == end && turn.chunk + 1 == chunks : stage == 0 && turn.chunk == 0;
}

bool goes_on(PipelineSchedule schedule, int stage, const ChunkPlace& to, const Turn& turn) {
  return goes_in_v(schedule) ? to.stage > stage : !turn.backward;
}

namespace {

/// The m-1 micro-batches after the first, from the window of stages that is slowest.
void add_steady_1f1b(std::span<const StageTime> stages, std::span<const Seconds> transfer, int micro_batches,
                     PipelineTerms& terms) {
  const double more = micro_batches - 1;
  for (std::size_t first = 0; first < stages.size(); ++first) {
    Seconds work{}, wire{};
    for (std::size_t last = first; last < stages.size(); ++last) {
      work += stages[last].forward + stages[last].backward;
      if (last > first) wire += transfer[last - 1];
      const double n = static_cast<double>(last - first + 1);
      Seconds time = work * (more / n);
      if (n > 1) time += 2 * wire / (n - 1) * (more - std::ceil(more / n));
      if (time <= terms.rest) continue;
      terms.rest = time;
      terms.first = static_cast<int>(first);
      terms.last = static_cast<int>(last);
      terms.window_work = work;
      terms.window_transfers = wire;
    }
  }
}

/// When the last turn of each stage of 1F1B has ended, each stage's turns in its order and each link's messages one
/// after the other.
///
/// Wave k has of stage i the backward of micro-batch k - p + i and then the forward of k: in this order a stage's turns
/// are those of stage_order, and all that a turn waits for is of this wave or of the one before.
class Order1f1b {
 public:
  Order1f1b(std::span<const StageTime> stages, std::span<const Seconds> transfer, int micro_batches)
      : stages_(stages),
        transfer_(transfer),
        last_(static_cast<int>(stages.size()) - 1),
        micro_batches_(micro_batches),
        free_(stages.size()),
        activation_(stages.size()),
        gradient_(stages.size()) {}

  const std::vector<Seconds>& ends() {
    for (int wave = 0; wave <= micro_batches_ + last_; ++wave) {
      // Upstream stages read what their successor has sent in the wave before.
      for (int i = 0; i <= last_; ++i)
        if (const int k = wave - 1 - last_ + i; k >= 0 && k < micro_batches_) backward(at(i));
      if (wave >= micro_batches_) continue;
      for (int i = 0; i <= last_; ++i) forward(at(i));
    }
    return free_;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void forward(std::size_t i) {
    free_[i] = std::max(free_[i], activation_[i]) + stages_[i].forward;
    if (i < at(last_)) activation_[i + 1] = std::max(activation_[i + 1], free_[i]) + transfer_[i];
  }
  void backward(std::size_t i) {
    free_[i] = std::max(free_[i], gradient_[i]) + stages_[i].backward;
    if (i > 0) gradient_[i - 1] = std::max(gradient_[i - 1], free_[i]) + transfer_[i - 1];
  }

  std::span<const StageTime> stages_;
  std::span<const Seconds> transfer_;
  int last_, micro_batches_;
  std::vector<Seconds> free_;                   ///< when the stage's last turn has ended
  std::vector<Seconds> activation_, gradient_;  ///< when the last message to the stage has come
};

/// The backward of the last micro-batch on its way from each stage to stage 0, where nothing holds it up.
std::vector<Seconds> ways_to_first(std::span<const StageTime> stages, std::span<const Seconds> transfer) {
  std::vector<Seconds> out(stages.size());
  for (std::size_t i = 1; i < stages.size(); ++i) out[i] = out[i - 1] + stages[i - 1].backward + transfer[i - 1];
  return out;
}

/// In GPipe's backward the micro-batches after the first come through at the pace of the slowest machine so far: what
/// is slower further on holds them up there.
void add_waits_gpipe(std::span<const StageTime> stages, std::span<const Seconds> transfer, int micro_batches,
                     std::vector<Seconds>& ahead) {
  std::vector<Seconds> pace(stages.size());
  for (std::size_t i = stages.size(); i-- > 0;) {
    pace[i] = stages[i].backward;
    if (i + 1 < stages.size()) pace[i] = std::max({pace[i], pace[i + 1], transfer[i]});
  }
  for (std::size_t i = 0; i < stages.size(); ++i) ahead[i] += (pace.front() - pace[i]) * (micro_batches - 1);
}

}  // namespace

Pipeline run_pipeline(PipelineSchedule schedule, std::span<const StageTime> stages, std::span<const Seconds> transfer,
                      int micro_batches) {
  check(!stages.empty() && transfer.size() + 1 == stages.size() && micro_batches >= 1,
        "one transfer between two stages");
  check(schedule == PipelineSchedule::gpipe || schedule == PipelineSchedule::one_f_one_b,
        "other schedules are run_interleaved's and with_order's");
  Pipeline out{{}, ways_to_first(stages, transfer), {}};
  PipelineTerms& terms = out.terms;
  for (const StageTime& s : stages) {
    terms.work += s.forward + s.backward;
    terms.slowest_forward = std::max(terms.slowest_forward, s.forward);
    terms.slowest_backward = std::max(terms.slowest_backward, s.backward);
  }
  for (const Seconds c : transfer) {
    terms.transfers += c;
    terms.slowest_forward = std::max(terms.slowest_forward, c);
    terms.slowest_backward = std::max(terms.slowest_backward, c);
  }
  if (schedule == PipelineSchedule::gpipe) {
    terms.rest = (terms.slowest_forward + terms.slowest_backward) * (micro_batches - 1);
    add_waits_gpipe(stages, transfer, micro_batches, out.ahead);
    return out;
  }
  add_steady_1f1b(stages, transfer, micro_batches, terms);
  Order1f1b order(stages, transfer, micro_batches);
  const std::vector<Seconds>& ends = order.ends();
  const Seconds end = *std::max_element(ends.begin(), ends.end());
  // Of sums in another order the last bits differ: that is none.
  const auto differ = [&](Seconds by) { return std::abs(by.count()) > 1e-12 * end.count(); };
  if (const Seconds more = end - terms.total(); differ(more)) terms.order = more;
  for (std::size_t i = 0; i < stages.size(); ++i)
    if (const Seconds wait = end - ends[i] - out.ahead[i]; differ(wait)) out.ahead[i] += wait;
  return out;
}

}  // namespace collcast::workload
