// Measured matrix products against forecasts, as plain values: the document of `collcast validate --kernels`.
//
// The error of a row is |predicted - measured| / measured. A forecast interpolates among measured products of the GPU's
// kernel table; of those only the ones with another (n, k) count here, so that no row is scored by itself.
#pragma once

#include <string>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/report/table.hpp"
#include "collcast/report/training_document.hpp"

namespace collcast {

struct KernelDeviation {
  std::string row_id;     ///< FILE:LINE
  std::string source_id;  ///< the table's system
  std::string precision;  ///< of the forecast
  std::string pass;       ///< empty: none in particular
  std::string topology;   ///< machine that it was held against
  double m = 0, n = 0, k = 0;
  Seconds measured{}, predicted{};
  Seconds roofline{};  ///< the forecast without measured products
  bool interpolated = false;
};

/// Rows of one reason; there may be thousands.
struct UnscoredKernels {
  std::string source_id, why;
  int rows = 0;
  Location where = {};  ///< what keeps them from it; no file: no place in particular
};

/// A system and a precision; empty: all.
struct KernelSummaryRow {
  std::string source_id, precision;
  ErrorSummary time, roofline;
  int interpolated = 0;
};

/// "all=4%", "bf16=5%", "h100_sxm.fp8=4%": a limit on a median error.
struct KernelBudget {
  std::string source_id, precision;  ///< empty: all
  double limit = 0;
};
struct KernelBudgetOutcome {
  KernelBudget budget;
  int n = 0;
  double median_ape = 0;
  bool met() const { return n > 0 && median_ape <= budget.limit; }
};

/// Products of one GPU by its own data sheet and the kernel table that was measured on another, as of a GPU that nobody
/// measured: with that table's measured products, and by its roofline alone.
struct ForeignKernels {
  std::string source_id;  ///< the products' system
  std::string kernels;    ///< name of the kernel table
  std::string precision;
  std::vector<double> time, roofline;  ///< of each product, predicted / measured
  int uncovered = 0;                   ///< products that the table says nothing of
};

struct KernelReport {
  std::vector<KernelDeviation> rows;  ///< as read
  std::vector<UnscoredKernels> unscored;
  std::vector<KernelBudgetOutcome> budgets;
  std::vector<ForeignKernels> foreign = {};  ///< by system, table and precision
  std::vector<std::string> warnings = {};    ///< machines that other GPUs are in than were measured
};

/// Each system by precision, then all of a precision, then all.
std::vector<KernelSummaryRow> summary(const KernelReport&);
std::vector<KernelBudgetOutcome> outcomes(const KernelReport&, const std::vector<KernelBudget>&);
std::string budget_text(const KernelBudgetOutcome&);

std::string json(const KernelReport&);
Table csv(const KernelReport&);
Page page(const KernelReport&);

}  // namespace collcast
