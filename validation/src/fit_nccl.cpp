#include <algorithm>
#include <cmath>
#include <map>

#include "collcast/nccl/run.hpp"
#include "fit.hpp"
#include "fit_machine.hpp"
#include "nccl_prediction.hpp"

namespace collcast {

namespace {

constexpr int most_evaluations_of_nccl = 1500;
/// A subplex that has shrunk along one valley of a sum of absolute values is set up anew at its end.
constexpr int turns_of_nccl = 4;
/// Weight of a factor's squared logarithm beside the mean of |log(predicted / measured)|, over the root of the number
/// of tables: what one table says twice off is believed, what two rows say 5 % off is not. Of 0.005 to 0.1 the one
/// whose error on tables left out is least, though not by much (docs/validation.md).
constexpr double prior_of_a_table = 0.02;

std::vector<Parameter> nccl_parameters() {
  std::vector<Parameter> out;
  for (const NcclFactor& factor : nccl_factors)
    out.push_back({factor.name, std::log(least_nccl_factor), std::log(most_nccl_factor), 0, 0});
  return out;
}

NcclFactors factors_at(const Point& x) {
  NcclFactors out;
  for (std::size_t i = 0; i < x.size(); ++i)
    out.*nccl_factors[i].value = std::clamp(std::exp(x[i]), least_nccl_factor, most_nccl_factor);
  return out;
}

/// A table with what NCCL takes at each size, which does not depend on the factors.
struct NcclTable {
  CollectiveKind kind = CollectiveKind::all_reduce;
  nccl::Communicator communicator;
  struct Row {
    Bytes size{};
    Seconds measured{};
    nccl::Plan plan;
  };
  std::vector<Row> rows;
};

std::vector<NcclTable> nccl_tables(const std::vector<FitRow>& rows) {
  std::vector<NcclTable> out;
  const PlacedTable* last = nullptr;
  for (const FitRow& row : rows) {
    const PlacedTable& place = *row.place;
    if (&place != last) {
      Result<nccl::Communicator> c = connect(*place.fabric, place.group, place.environment);
      check(c.ok(), "a table that was priced is priced again");
      out.push_back({place.kind, std::move(c).value(), {}});
      last = &place;
    }
    Result<nccl::Plan> plan = nccl_plan(out.back().communicator, place, place.request(row.size));
    check(plan.ok(), "a request that was priced is priced again");
    out.back().rows.push_back({row.size, row.measured, std::move(plan).value()});
  }
  return out;
}

double loss_of(std::vector<NcclTable>& tables, const NcclFactors& factors) {
  double sum = 0;
  for (NcclTable& table : tables) {
    table.communicator.factors = factors;
    double of_table = 0;
    for (const NcclTable::Row& row : table.rows)
      of_table += std::abs(std::log(run(table.communicator, table.kind, row.size, row.plan).time() / row.measured));
    sum += of_table / static_cast<double>(table.rows.size());
  }
  return sum / static_cast<double>(tables.size());
}

}  // namespace

Calibration fit_nccl(const TopologySpec& spec, const std::vector<FitRow>& rows, CalibrateReport::Machine& report) {
  std::vector<NcclTable> tables = nccl_tables(rows);
  const double prior = prior_of_a_table / std::sqrt(static_cast<double>(tables.size()));
  Fit fit(
      nccl_parameters(), [&](const Point& x) { return loss_of(tables, factors_at(x)); }, most_evaluations_of_nccl,
      prior);
  Point x = fit.start();
  fit.leave_out_what_has_no_effect(x);
  for (int turn = 0; turn < turns_of_nccl; ++turn) x = fit.minimise(x);
  report.evaluations = fit.evaluations();
  report.fitted = fit.names(fit.free());
  report.at_bounds = fit.at_bounds(fit.free(), x);
  Calibration out;
  out.machine = spec.name;
  out.library = Library::nccl;
  out.nccl = factors_at(x);
  return out;
}

}  // namespace collcast
