#include "report/error_summary.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "report/errors.hpp"
#include "report/wording.hpp"

namespace collcast {

ErrorSummary error_summary(std::vector<double> ratios) {
  std::vector<double> apes;
  for (const double ratio : ratios) apes.push_back(std::abs(ratio - 1));
  return error_of<ErrorSummary>(std::move(apes), std::move(ratios));
}

Json error_json(const ErrorSummary& error) {
  const auto known = [&](double value) { return error.n > 0 ? Json(value) : Json(); };
  return {{"n", error.n},
          {"mean_ape", known(error.mean_ape)},
          {"median_ape", known(error.median_ape)},
          {"p90_ape", known(error.p90_ape)},
          {"median_ratio", known(error.median_ratio)}};
}

std::string error_text(const ErrorSummary& error) {
  return error.n == 0
             ? "-"
             : fmt::format("{} ({}, {})", percent(error.median_ape), percent(error.mean_ape), percent(error.p90_ape));
}

std::string budget_text(const std::string& what, int n, double median_ape, double limit) {
  if (n == 0) return fmt::format("budget {}: missed, as no row has that", what);
  const bool met = median_ape <= limit;
  return fmt::format("budget {}: {}, {} {} {}", what, met ? "met" : "missed", percent(median_ape),
                     met ? "within" : "instead of", percent(limit));
}

}  // namespace collcast
