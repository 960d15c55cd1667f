// The rows that a machine is fitted to, by the forecasts that they have: tables of one collective on the same ranks,
// with the same variables, have the same forecast at the same size, and it is priced once, however many rows there are.
#pragma once

#include <cstdint>
#include <vector>

#include "collcast/validation/machines.hpp"
#include "collcast/validation/validate.hpp"
#include "log_times.hpp"

namespace collcast {

/// A table that is fitted to, and how much it counts beside the others.
struct FitTable {
  const PlacedTable* place = nullptr;
  double weight = 1;
};

class FitRows {
 public:
  /// `most_sizes` of each table, evenly over all of its sizes.
  FitRows(const std::vector<FitTable>&, Statistic, std::size_t most_sizes);

  struct Forecast {
    std::uint32_t run = 0;
    Bytes size{};
  };
  struct Row {
    std::uint32_t forecast = 0;
    Seconds measured{};
  };
  struct Table {
    double weight = 1;
    std::vector<Row> rows;  ///< from small sizes to large
  };
  /// A table of each of those whose forecasts differ by more than the size.
  const std::vector<const PlacedTable*>& runs() const { return runs_; }
  const std::vector<Forecast>& forecasts() const { return forecasts_; }
  const std::vector<Table>& tables() const { return tables_; }
  /// Of all tables.
  double weight() const;
  std::size_t count() const;

 private:
  std::vector<const PlacedTable*> runs_;
  std::vector<Forecast> forecasts_;
  std::vector<Table> tables_;
};

/// What rows of a table count.
enum class RowWeight {
  whole,         ///< the table's weight, each
  root_of_band,  ///< together the root of their number, in each band of sizes: they are off together
};

/// How far forecasts are from the rows: the weighed mean of |log(predicted / measured)|. Up to
/// `most_rows_one_by_one` rows are summed as they come; of more the times by LogTimes, and rows are not kept.
inline constexpr std::size_t most_rows_one_by_one = 2048;

class FitLoss {
 public:
  FitLoss(FitRows, RowWeight, std::size_t most_one_by_one = most_rows_one_by_one);

  const std::vector<const PlacedTable*>& runs() const { return runs_; }
  const std::vector<FitRows::Forecast>& forecasts() const { return forecasts_; }
  /// Of all tables.
  double weight() const { return weight_; }
  /// `predicted` is in the order of the forecasts. Errors count in full up to about `full`.
  double of(const std::vector<Seconds>& predicted, double full) const;

 private:
  double of_whole_rows(const std::vector<Seconds>& predicted, double full) const;
  double of_bands(const std::vector<Seconds>& predicted, double full) const;
  void gather(const FitRows&);

  std::vector<const PlacedTable*> runs_;
  std::vector<FitRows::Forecast> forecasts_;
  double weight_ = 0;
  RowWeight row_weight_;
  std::vector<FitRows::Table> tables_;  ///< one by one; else empty
  std::vector<LogTimes> times_;         ///< by forecast
  double row_weights_ = 0;              ///< of all rows in `times_`
};

}  // namespace collcast
