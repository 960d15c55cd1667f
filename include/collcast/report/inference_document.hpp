// Measured servers against forecasts, as plain values: the document of `collcast validate --inference`.
//
// The error of a figure is |predicted - measured| / measured (APE), of TTFT and of TPOT apart.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/report/table.hpp"
#include "collcast/report/training_document.hpp"

namespace collcast {

/// What a row is of, by which errors are summed up; as the row names them.
struct ServerFacts {
  std::string row_id, source_id, backend, system, model, mode, precision;
};

struct InferenceDeviation {
  ServerFacts of;
  std::string topology;  ///< machine that it was held against
  std::string layout;    ///< "tp 4, expert tp 4, ep 1"
  std::optional<Seconds> measured_ttft, measured_tpot;
  std::optional<Seconds> predicted_ttft;  ///< nothing: no forecast says it
  Seconds predicted_tpot{};
  std::vector<std::string> assumed;
  std::string architecture = {};               ///< of the model: checkpoints of one description have the same
  std::optional<double> tpot_scale = {};       ///< fitted to other rows; nothing: there are none
  std::optional<Seconds> ttft_remainder = {};  ///< what a first token takes beyond the forecast, likewise

  std::optional<double> ttft_ratio() const;  ///< predicted over measured
  std::optional<double> tpot_ratio() const;
  std::optional<Seconds> calibrated_ttft() const;
  std::optional<Seconds> calibrated_tpot() const;
  std::optional<double> calibrated_ttft_ratio() const;
  std::optional<double> calibrated_tpot_ratio() const;
};

/// What a first token takes beyond the forecast, one time fitted to all rows of a backend: the host's part (tokenizer,
/// HTTP, scheduling), and whatever else a forecast lacks.
struct TtftRemainder {
  std::string backend;
  int rows = 0;
  Seconds time{};
};

struct UnscoredServer {
  ServerFacts of;
  std::string why;
};

/// Rows that have one thing in common: their backend, system, mode, precision, model or source; or all.
struct InferenceSummaryRow {
  std::string by, name;  ///< "backend", "vllm"; "all", "all"
  int rows = 0, unscored = 0;
  ErrorSummary ttft, tpot;
  ErrorSummary calibrated_ttft, calibrated_tpot;  ///< rows that nothing could be fitted for are as forecast
};

/// "tpot.all=30%", "ttft.vllm=50%", "b200_sxm=25%" (both): a limit on a median error, not calibrated.
struct InferenceBudget {
  std::string figure;  ///< "ttft" or "tpot"; empty: both
  std::string name;    ///< of a summary's row; empty: all
  double limit = 0;
};
struct InferenceBudgetOutcome {
  InferenceBudget budget;
  int n = 0;
  double median_ape = 0;  ///< the larger one of both figures
  bool met() const { return n > 0 && median_ape <= budget.limit; }
};

struct InferenceReport {
  std::string library = "nccl";
  std::vector<ScoringMachine> machines;  ///< by name
  std::vector<InferenceDeviation> rows;  ///< as read
  std::vector<std::string> settings;     ///< with which servers were started, a line each as read
  std::vector<UnscoredServer> unscored;  ///< as read
  std::size_t not_reached = 0;           ///< rows that there was no time for
  std::vector<InferenceBudgetOutcome> budgets;
  std::vector<std::string> warnings;
  Diagnostics of_machines = {};                ///< what forecasts on them leave out; said where warnings are
  std::vector<TtftRemainder> remainders = {};  ///< by backend
};

/// By backend, system, mode, precision, model and source, then all.
std::vector<InferenceSummaryRow> summary(const InferenceReport&);
std::vector<InferenceBudgetOutcome> outcomes(const InferenceReport&, const std::vector<InferenceBudget>&);
std::string budget_text(const InferenceBudgetOutcome&);

std::string json(const InferenceReport&);
Table csv(const InferenceReport&);
Page page(const InferenceReport&);

}  // namespace collcast
