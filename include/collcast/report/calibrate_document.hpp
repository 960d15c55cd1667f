// What `collcast calibrate` found, as plain values.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "collcast/base/quantity.hpp"
#include "collcast/report/validate_document.hpp"
#include "collcast/topology/spec.hpp"

namespace collcast {

struct CalibrateReport {
  /// 10th and 90th percentile of measured over forecast; 0: no row.
  struct Interval {
    double low = 0, high = 0;
  };
  /// Rows of a table, with the forecasts that they share. A log of a night has millions of rows: what is of their
  /// size is there once.
  struct Residuals {
    struct Forecast {
      Bytes size{};
      Seconds described{}, fitted{};  ///< without the fit and with it
    };
    struct Row {
      Seconds measured{};
      std::uint32_t forecast = 0;  ///< which of `forecasts`
      bool in_place = false;
    };
    std::string table, collective;
    int ranks = 0, nodes = 0;
    std::vector<Row> rows;            ///< from small sizes to large
    std::vector<Forecast> forecasts;  ///< likewise
    const Forecast& of(const Row& row) const { return forecasts[row.forecast]; }
    double error(const Row& row) const { return of(row).fitted / row.measured - 1; }
  };
  struct Machine {
    std::string topology, digest;         ///< of the description that was fitted on
    std::vector<std::string> matched_by;  ///< how its tables found it: "system", "gpu", "option"
    Seconds base_latency{};
    double latency_scale = 1;
    std::array<double, 3> efficiency{1, 1, 1};  ///< NVLink, PCIe, network
    NcclFactors nccl;                           ///< of library nccl, which has none of the above
    int evaluations = 0;                        ///< of the model by the optimiser
    std::vector<std::string> tables;
    std::array<BandError, 3> before{}, after{};  ///< over the rows that were fitted to
    std::array<Interval, 3> interval{};          ///< after the fit
    bool unseen = false;                         ///< the interval is of fits to the other tables
    std::vector<Band> worse;                     ///< bands that the fit took from to give to others
    std::vector<Band> far_off;                   ///< bands that are far off with the fit, too, and are not in `worse`
    std::vector<std::string> fitted;             ///< parameters that a row depends on; the others stay as described
    std::vector<std::string> at_bounds;          ///< of these, those that would go farther
    std::vector<std::string> bounds;             ///< for each of at_bounds: "hop ended at its bound of 6: why"
    /// With what each may be.
    struct Parameter {
      std::string name;
      double value = 0, least = 0, most = 0;  ///< seconds of base_latency, else a factor
    };
    std::vector<Parameter> parameters;
    /// What the fit has seen.
    Bytes least_size{}, most_size{};
    int least_ranks = 0, most_ranks = 0, least_nodes = 0, most_nodes = 0;
    std::vector<std::string> collectives;
    std::vector<Residuals> residuals;  ///< of the tables that it was scored on
    std::size_t rows() const;          ///< of all of them
  };
  std::string library = "ideal";
  std::string statistic = "mean";
  std::string part;  ///< "1/2": which of the sizes; empty: all
  std::vector<Machine> machines;
  std::vector<UnscoredTable> unused;
  std::vector<std::string> not_reached;  ///< machines with tables that there was no time to fit
  std::vector<std::string> warnings;
  std::vector<std::string> said;  ///< warnings that people had on the error stream
};

/// A sentence per machine with no more rows than parameters, or with a network far from its description, and per
/// machine and band that is worse than without its fit or far off with it.
std::vector<std::string> fit_warnings(const CalibrateReport&);

/// That the fit has the network carry under a fifth of what it is described with, by machine; empty: it does not.
std::string far_network_text(const CalibrateReport::Machine&, bool is_nccl);

/// Row by row, what the fit leaves, as CSV.
void write_residuals(std::ostream&, const CalibrateReport&);

std::string json(const CalibrateReport&);
Table csv(const CalibrateReport&);
Page page(const CalibrateReport&);

}  // namespace collcast
