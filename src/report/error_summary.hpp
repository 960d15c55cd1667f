// An ErrorSummary as documents and tables show it.
#pragma once

#include <string>
#include <vector>

#include "collcast/report/training_document.hpp"
#include "report/document.hpp"

namespace collcast {

/// Of ratios of predicted to measured.
ErrorSummary error_summary(std::vector<double> ratios);

/// n, mean_ape, median_ape, p90_ape, median_ratio; null where there is no row.
Json error_json(const ErrorSummary&);

/// "4.1% (6.0%, 12.3%)": median (mean, 90th percentile); "-" without a row.
std::string error_text(const ErrorSummary&);

/// "budget bf16: met, 3.2% within 4.0%": of a median over n rows.
std::string budget_text(const std::string& what, int n, double median_ape, double limit);

}  // namespace collcast
