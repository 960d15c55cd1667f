// JSON results of collcast, read back: what `compare` and `report` work on.
//
// Each document becomes named rows of named figures, so that what holds two results together does not know their
// schemas. A text of a stranger is harmless from here on: control characters in its names are spelled out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"

namespace collcast {

struct SavedFigure {
  std::string name;             ///< its key, which ends in its unit: "step_s"
  std::optional<double> value;  ///< nothing: not run, or without a meaning there
};
/// A part of a figure; the parts sum to it.
struct SavedTerm {
  std::string of;  ///< "step_s", "peak_bytes"
  std::string name;
  double value = 0;
};
/// What a figure was made from: an input, or a choice such as the algorithm.
struct SavedFact {
  /// What a page lists such facts by.
  enum class About { other, machine_digest, calibrated_machine, parameter, unused_table, fault };
  std::string name, value;
  About about = About::other;
  std::string of = {};    ///< the machine or table; its name may be any text
  std::string part = {};  ///< of a parameter its name, of a calibrated machine what the fit holds for
};

struct SavedRow {
  std::string name;  ///< empty: the result has one row
  std::vector<SavedFigure> figures;
  std::vector<SavedTerm> terms;
  std::vector<SavedFact> facts;
  /// That the row's times, and rates and shares of them, are of: "simulate" or "estimate"; empty: it does not say.
  std::string method;
  std::optional<double> estimate_s;  ///< by closed form, beside such times; no figure
  bool of_cut_list = false;          ///< the document has some of its rows only: one that another has says nothing
};

/// A row of `gates` as the document says it.
struct SavedGate {
  std::string figure, bound;
  double limit = 0, value = 0;
  bool kept = false;
};

struct SavedResult {
  std::string schema;   ///< "collcast.step.v1"
  std::string version;  ///< of the tool that wrote it
  std::string name;     ///< of the scenario, or what was asked for
  std::string title;    ///< may be empty
  std::string digest;   ///< of machine, library, groups and inputs; empty where the document does not list its inputs
  std::vector<SavedFact> facts;
  std::vector<SavedRow> rows;
  std::vector<SavedGate> gates;
  std::vector<std::string> warnings;
  std::string document;  ///< the JSON itself, compact
};

/// One result, or those that a collcast.report.v1 holds. Text that is not whole, is no JSON or not of this tool, and
/// keys of the wrong kind are errors at their place.
Result<std::vector<SavedResult>> read_saved(std::string_view text, const std::string& file);
/// What a collcast.report.v1 says that it left out, each with the reason; empty for any other text.
std::vector<std::string> left_out_of(std::string_view text);
/// "collcast.compare.v1": the schema of a document of this tool that is no result for read_saved; empty for any other.
std::string no_result(std::string_view text);

}  // namespace collcast
