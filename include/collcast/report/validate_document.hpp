// Measured against predicted, as plain values: the document of `collcast validate`.
//
// The error of a row is |predicted - measured| / measured (APE). Bands of size are taken apart, as latency makes small
// messages and bandwidth large ones. Tables that their own source calls broken are summed up apart.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/report/documents.hpp"

namespace collcast {

/// Below 64 KiB, to 4 MiB, above.
enum class Band { small, medium, large };
inline constexpr std::array<Band, 3> bands{Band::small, Band::medium, Band::large};
std::string_view to_string(Band);
Band band_of(Bytes);

/// One row: what was measured and what is predicted.
struct Deviation {
  Bytes size{};
  Seconds measured{}, predicted{};
  std::optional<double> spread;  ///< (p95 - median) / median over the repetitions
  bool in_place = false;
  std::uint16_t algorithm = 0;  ///< that the prediction picked, of those of its table
  double ape() const;
};

/// How the machine of a table that no file describes was made of one that a file does; names and texts for people.
struct Derivation {
  std::string base, network;         ///< the likest description; another one's network, empty: none
  std::vector<std::string> used;     ///< fields that it goes by, with their values
  std::vector<std::string> changed;  ///< against the likest, with the field that says so; none: it is the likest
  std::vector<std::string> assumed;  ///< what nobody said and is the likest's
  std::vector<std::string> equals;   ///< as like as the likest
};

struct BandError {
  int n = 0;
  double mean_ape = 0, median_ape = 0, p90_ape = 0;
  double median_ratio = 0;       ///< predicted over measured
  std::optional<double> spread;  ///< median over the rows that have one
};
/// Rows of one figure, of which the errors alone are kept.
class ErrorPool {
 public:
  void add(const Deviation&);
  /// Of what was added; nothing is left.
  BandError take();

 private:
  std::vector<double> apes_, ratios_, spreads_;
};

/// What may hold a table back, in words that stay.
struct Fault {
  std::string cause;  ///< sockets, protocol, rails, port, gdr, fabric, peer_access, nvlink, pcie
  std::string evidence, look;
};

struct ScoredTable {
  std::string id, collective, system, healthy, topology, matched_by;
  bool calibrated = false;
  bool complete = true;               ///< the test finished, and no row was left out
  std::optional<Derivation> derived;  ///< matched by GPU, or derived
  int nodes = 0, ranks = 0;
  std::vector<std::string> algorithms;  ///< that were picked, from small sizes to large
  std::vector<Deviation> rows;          ///< from small sizes to large
  std::array<BandError, 3> errors{};    ///< by band
  std::size_t rows_not_reached = 0;     ///< the largest, that there was no time for
  double slowness = 0;                  ///< measured over predicted at the largest sizes, of a table with faults
  std::vector<Fault> faults;            ///< likeliest first; none: it is not far slower than its forecast
  /// Of one of `algorithms`, which gets it where it is new.
  std::uint16_t index_of(const std::string& algorithm);
};

struct UnscoredTable {
  std::string id, why, hint;
  Location where = {};  ///< of what the table says or lacks
};

/// "all_reduce.large=8%": a limit on the median error of sound tables, those that no source calls broken.
struct Budget {
  std::string collective;  ///< empty: all
  Band band = Band::large;
  double limit = 0;
};
struct BudgetOutcome {
  Budget budget;
  int n = 0;
  double median_ape = 0;
  bool met() const { return n > 0 && median_ape <= budget.limit; }
};

/// A machine that tables were scored on.
struct ScoringMachine {
  std::string topology, digest;  ///< of the description as it was used, an overlay put in
  bool calibrated = false;
  Seconds base_latency{};
};

struct ValidateReport {
  std::string library = "ideal";
  std::string method = "estimate";
  std::string statistic = "mean";        ///< of the repetitions of a row
  std::string part;                      ///< "1/2": which of the sizes; empty: all
  std::vector<ScoringMachine> machines;  ///< by name
  std::vector<ScoredTable> tables;
  std::vector<UnscoredTable> unscored;
  std::vector<BudgetOutcome> budgets;
  std::vector<std::string> warnings;
  std::vector<std::string> said;  ///< warnings that people had on the error stream
  bool left_out = false;          ///< each table by a calibration to the others of its system
  std::size_t not_reached = 0;    ///< tables that there was no time for
  bool every_table = false;       ///< people's page: all tables, not only the farthest off
  /// There was no time for tables, or for rows of some.
  bool is_partial() const;
};

/// How many nodes a table was measured on.
enum class NodeCount { any, one, several };
std::string_view to_string(NodeCount);

/// Over the rows of all tables of a collective (empty: of all) that are sound, or that a source calls broken.
struct SummaryRow {
  std::string collective;  ///< empty: all
  bool healthy = true;     ///< not called broken by the source
  Band band = Band::small;
  NodeCount nodes = NodeCount::any;
  int tables = 0;
  BandError error;
  bool known = true;  ///< every source says so, the one or the other
};
std::vector<SummaryRow> summary(const ValidateReport&);
/// All collectives, one node and several apart.
std::vector<SummaryRow> summary_by_nodes(const ValidateReport&);
/// The same of tables whose sources call them sound, without those of which nobody says.
std::vector<SummaryRow> summary_of_sound(const ValidateReport&);
/// Both apart.
std::vector<SummaryRow> summary_by_collective_and_nodes(const ValidateReport&);
/// The budgets against sound tables.
std::vector<BudgetOutcome> outcomes(const ValidateReport&, const std::vector<Budget>&);
std::string budget_text(const BudgetOutcome&);

std::string json(const ValidateReport&);
/// The same without holding it whole.
void write_json(std::ostream&, const ValidateReport&);
Table csv(const ValidateReport&);
Page page(const ValidateReport&);

/// Measured against predicted, a mark per row, as an SVG picture: one node and several beside each other, a colour per
/// collective, lines where a forecast is right and 20 % off. Legible on a light page and on a dark one.
std::string plot(const ValidateReport&);

}  // namespace collcast
