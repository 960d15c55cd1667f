// Published training steps against forecasts, as plain values: the document of `collcast validate --training`.
//
// The error of a row is |predicted - measured| / measured (APE), of its time and of its memory. Tiers say how much of a
// row its source states and are summed up apart. `calibrated` is the forecast times a scale that was fitted to other
// rows.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/report/validate_document.hpp"
#include "collcast/workload/step.hpp"

namespace collcast {

/// allocated: tensors; reserved: what the allocator holds; used: with the CUDA context and NCCL, as nvidia-smi shows.
enum class MemoryMeasure { allocated, reserved, used };
std::string_view to_string(MemoryMeasure);

struct TrainingMemory {
  MemoryUse use;                                     ///< of the fullest stage's rank
  MemoryMeasure measure = MemoryMeasure::allocated;  ///< what the row counts
  /// Before it fails the allocator gives back what it only caches: a GPU shows no more than it has.
  Bytes measured() const {
    return measure == MemoryMeasure::allocated  ? use.allocated()
           : measure == MemoryMeasure::reserved ? use.reserved()
                                                : std::min(use.peak(), use.capacity);
  }
};

struct TrainingDeviation {
  std::string row_id, source_id, tier;
  std::string gpu, precision, schedule, topology;
  std::string job;            ///< rows that are alternatives for one job have the same
  std::string configuration;  ///< rows that repeat one have the same
  std::string measured_by;    ///< the column of the time; empty: it has none
  std::optional<Seconds> measured;
  Seconds predicted{};
  std::optional<double> scale;  ///< fitted to rows of other configurations
  Breakdown breakdown;
  std::optional<Bytes> measured_memory;
  TrainingMemory memory;
  bool measured_oom = false;
  bool predicted_oom() const { return !memory.use.fits(); }
  std::vector<std::string> assumed;

  std::optional<double> ape() const;
  std::optional<Seconds> calibrated() const;
  std::optional<double> calibrated_ape() const;
  std::optional<double> memory_ape() const;
};

struct UnscoredRow {
  std::string row_id, source_id, tier, why;
};

/// Over rows: as BandError, of values that are there.
struct ErrorSummary {
  int n = 0;
  double mean_ape = 0, median_ape = 0, p90_ape = 0;
  double median_ratio = 0;  ///< predicted over measured
};

/// A source and a tier; empty: all. `without`: all but that source, which has most of them.
struct TrainingSummaryRow {
  std::string source_id, tier;
  int rows = 0, unscored = 0;
  ErrorSummary time, calibrated, memory;
  int scaled = 0;            ///< rows of `calibrated` that have a scale; the others are as they are
  int oom = 0, flagged = 0;  ///< measured out of memory, and predicted so
  int false_oom = 0;         ///< ran, and predicted not to fit
  std::string without = {};
};

/// How well the forecast orders the alternatives of one job.
struct TrainingRanking {
  std::string source_id, job;
  int n = 0;
  double spearman = 0;
  double slowdown = 0;  ///< of the layout predicted fastest, over the fastest measured: 0.03 is 3 %
};
/// Of the jobs of a source; empty: of all, or of all but `without`, which has most of them.
struct TrainingRankingSummary {
  std::string source_id, without;
  int jobs = 0;
  double median_spearman = 0, least_spearman = 0;
  double median_slowdown = 0, most_slowdown = 0;
};
/// Jobs of fewer alternatives are not ranked.
inline constexpr int least_alternatives = 5;

/// "dgxc.A=20%", "calibrated.A=8%", "memory.all=3%": a limit on a median error.
struct TrainingBudget {
  enum class Figure { time, calibrated, memory };
  Figure figure = Figure::time;
  std::string source_id, tier;  ///< empty: all
  double limit = 0;
};
struct TrainingBudgetOutcome {
  TrainingBudget budget;
  int n = 0;
  double median_ape = 0;
  bool met() const { return n > 0 && median_ape <= budget.limit; }
};

struct TrainingReport {
  std::string library = "nccl";
  std::string method = "estimate";
  std::vector<ScoringMachine> machines;  ///< by name
  std::vector<TrainingDeviation> rows;   ///< as read
  std::vector<UnscoredRow> unscored;     ///< as read
  std::size_t not_reached = 0;           ///< rows that there was no time for
  std::vector<TrainingBudgetOutcome> budgets;
  std::vector<std::string> warnings;
  Diagnostics of_machines = {};  ///< what forecasts on them leave out; said where warnings are
};

/// Each source by tier, then all sources by tier and in all; behind each of these the same without the source that has
/// more than half of its rows, if one has.
std::vector<TrainingSummaryRow> summary(const TrainingReport&);
std::vector<TrainingRanking> rankings(const TrainingReport&);
/// Each source, then all, then all without the source that has more than half of the jobs, if one has.
std::vector<TrainingRankingSummary> summary(const std::vector<TrainingRanking>&);
std::vector<TrainingBudgetOutcome> outcomes(const TrainingReport&, const std::vector<TrainingBudget>&);
std::string budget_text(const TrainingBudgetOutcome&);

std::string json(const TrainingReport&);
Table csv(const TrainingReport&);
Page page(const TrainingReport&);

}  // namespace collcast
