// Two sets of results held together: what moved, by which term, and whether it may.
//
// Results are paired by name, their rows by theirs. A figure is worse where it moved against its direction by more than
// its tolerance; what the base has and the new one lacks is missing. Both break the gate. What is better, what moved
// without a direction and what was added are told, and so is what one side simulated and the other has by closed form.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/report/saved.hpp"
#include "collcast/report/table.hpp"

namespace collcast {

struct Tolerance {
  double amount = 0;
  bool relative = true;  ///< a share of the base; else in the figure's unit
};
/// Without a word of the user: 1 % of the base, or one percentage point of an error (`mean_ape`, `median_ape`, `ape`).
struct Tolerances {
  std::optional<Tolerance> all;  ///< of every figure that has none of its own
  std::vector<std::pair<std::string, Tolerance>> own;
  Tolerance of(std::string_view figure) const;
};
/// Figures that have a direction, so that a tolerance can be broken.
std::vector<std::string> gated_figures();
/// What `figure=amount` or `amount` says: "step_s=2%", "peak_bytes=1GiB", "mean_ape=2points", "3%"; or what was
/// expected.
Result<std::pair<std::string, Tolerance>> parse_tolerance(std::string_view text);

enum class Finding { within, better, worse, changed, missing, added };
std::string_view to_string(Finding);
inline bool breaks(Finding finding) { return finding == Finding::worse || finding == Finding::missing; }

struct TermChange {
  std::string name;
  double base = 0, now = 0;
};
struct FigureChange {
  std::string name;
  std::optional<double> base, now;
  Tolerance tolerance;
  Finding finding = Finding::within;
  std::vector<TermChange> terms;   ///< that moved, the most first; only of a figure that did
  bool by_another_method = false;  ///< simulated on one side, by closed form on the other: not judged
};
struct FactChange {
  std::string name, base, now;  ///< empty: not there
};
struct RowChange {
  std::string name;
  Finding finding = Finding::within;  ///< missing or added as a whole, else within
  std::vector<FigureChange> figures;
  std::vector<FactChange> facts;
};
struct ResultChange {
  std::string name;
  std::string schema;
  Finding finding = Finding::within;  ///< as for rows
  std::string base_version, version, base_digest, digest;
  std::vector<RowChange> rows;
  std::vector<FactChange> facts;
};

struct Comparison {
  std::vector<ResultChange> results;
  int count(Finding) const;  ///< of figures; of rows and results that are missing or added as a whole
  bool kept() const { return count(Finding::worse) + count(Finding::missing) == 0; }
};

/// A result of one of the sides, under the name that it is paired by.
struct NamedResult {
  /// The name of a file, say, may hold anything.
  NamedResult(const std::string& name_of_a_stranger, SavedResult saved);
  std::string name;
  SavedResult result;
};
/// Results of one name but of different schemas cannot be compared, nor several of one name on one side.
Result<Comparison> compare(const std::vector<NamedResult>& base, const std::vector<NamedResult>& now,
                           const Tolerances&);

std::string json(const Comparison&);
Table csv(const Comparison&);
Page page(const Comparison&);
/// JUnit XML: a suite per result, a case per figure.
std::string junit(const Comparison&);

}  // namespace collcast
