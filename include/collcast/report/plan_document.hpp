// collcast.plan.v1: layouts ranked, the Pareto set, what was rejected and why, one layout beside the best, variants.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collcast/planner/why.hpp"
#include "collcast/report/documents.hpp"

namespace collcast {

/// The best of a variant of the scenario.
struct PlanVariant {
  std::string name;  ///< of the what_if; empty: the scenario as it is
  MachineSummary machine;
  int gpus = 0;
  std::int64_t evaluated = 0, feasible = 0;
  bool partial = false;
  std::optional<PlannedLayout> best;
  StepInputs base;  ///< of which `best` is a choice
};

struct PlanReport {
  MachineSummary machine;
  std::string scenario, title, what_if;
  PlanInputs inputs;
  PlanResult result;
  std::optional<std::size_t> rows;  ///< of the ranking; nothing: ten for people, all for programs
  std::optional<Why> why;
  std::vector<PlanVariant> variants;  ///< the base first; empty: nobody asked
  std::vector<std::string> notes;     ///< on what was taken for granted
  std::vector<std::string> said;      ///< warnings that people had on the error stream
  std::string stopped_by = {};        ///< of a partial result, where that is known: "stopped by Ctrl-C"
};

/// What a partial result lacks, for people.
std::string partial_text(const PlanReport&);
/// Where no layout fits: which needs the least, and what would make one fit.
std::string nothing_fits_text(const PlanReport&);

std::string json(const PlanReport&);
Table csv(const PlanReport&);
Page page(const PlanReport&);

}  // namespace collcast
