#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
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
/// Of it, how much each factor is held: what a data sheet states for NICs twice, as one table that is off on them says
/// little of others; what is of plug-in and proxy, which no source states, hardly.
constexpr double held_tightly = 2, held_loosely = 0.3;
/// Of an error's logarithm: up to here it counts in full, beyond it less and less, as a row that is twice off is of
/// what this model does not know and should not draw the others along.
constexpr double full_weight = 0.3;
/// By so much the fit has to be better without LL128 before it is believed that NCCL does not take it.
constexpr double weight_of_ll128 = 0.005;

double held(double NcclFactors::*factor) {
  if (factor == &NcclFactors::network) return held_tightly;
  const std::initializer_list<double NcclFactors::*> of_software{&NcclFactors::simple_network_hop,
                                                                 &NcclFactors::ll128_network_hop,
                                                                 &NcclFactors::message_gap, &NcclFactors::ll_proxy};
  return std::ranges::find(of_software, factor) != of_software.end() ? held_loosely : 1;
}

/// On its way a fit may pass values that no machine has: within the bounds from the start it stays in valleys that are
/// worse, as of ABCI's A100 with a table left out.
constexpr double least_on_the_way = 0.05, most_on_the_way = 20;

std::vector<Parameter> wide_parameters() {
  std::vector<Parameter> out;
  for (const NcclFactor& factor : nccl_factors)
    out.push_back({factor.name, std::log(least_on_the_way), std::log(most_on_the_way), 0, 0, held(factor.value)});
  return out;
}

NcclFactors factors_at(const Point& x) {
  NcclFactors out;
  for (std::size_t i = 0; i < x.size(); ++i) out.*nccl_factors[i].value = std::exp(x[i]);
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
  double weight = 1;
};

std::vector<NcclTable> nccl_tables(const std::vector<FitRow>& rows, bool takes_ll128) {
  std::vector<NcclTable> out;
  const PlacedTable* last = nullptr;
  for (const FitRow& row : rows) {
    const PlacedTable& place = *row.place;
    if (&place != last) {
      Result<nccl::Communicator> c = connect(*place.fabric, place.group, place.environment);
      check(c.ok(), "a table that was priced is priced again");
      out.push_back({place.kind, std::move(c).value(), {}, row.weight});
      out.back().communicator.factors.takes_ll128 = takes_ll128;
      last = &place;
    }
    Result<nccl::Plan> plan = nccl_plan(out.back().communicator, place, place.request(row.size));
    check(plan.ok(), "a request that was priced is priced again");
    out.back().rows.push_back({row.size, row.measured, std::move(plan).value()});
  }
  return out;
}

/// Of the bounds of a factor the machine's line rate is one: of its tables, as not all have rings over the same links.
std::vector<Parameter> nccl_parameters(const std::vector<NcclTable>& tables) {
  std::vector<Parameter> out;
  for (const NcclFactor& factor : nccl_factors) {
    double most = factor.most;
    for (const NcclTable& table : tables) {
      const nccl::FactorsOfLineRate line = nccl::factors_of_line_rate(table.communicator);
      if (factor.by_links && table.communicator.ranks_per_node > 1) most = std::min(most, line.links);
      if (factor.by_nics && table.communicator.nodes > 1) most = std::min(most, line.network);
    }
    out.push_back({factor.name, std::log(factor.least), std::log(most), 0, 0, held(factor.value)});
  }
  return out;
}

double weighed(double error, double full) { return full * std::log1p(std::abs(error) / full); }

bool takes_ll128_anywhere(const std::vector<NcclTable>& tables) {
  return std::ranges::any_of(tables, [](const NcclTable& table) {
    return std::ranges::any_of(table.rows, [](const NcclTable::Row& row) {
      return !row.plan.point_to_point && row.plan.protocol == nccl::Protocol::ll128;
    });
  });
}

/// Rows of one table and band of sizes are off together, and count as the root of their number.
double loss_of(std::vector<NcclTable>& tables, const NcclFactors& factors, double full) {
  double sum = 0, weights = 0;
  for (NcclTable& table : tables) {
    table.communicator.factors = factors;
    std::array<double, bands.size()> of_band{}, rows{};
    for (const NcclTable::Row& row : table.rows) {
      const auto i = static_cast<std::size_t>(band_of(row.size));
      of_band[i] +=
          weighed(std::log(run(table.communicator, table.kind, row.size, row.plan).time() / row.measured), full);
      rows[i] += 1;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == 0) continue;
      sum += table.weight * of_band[i] / std::sqrt(rows[i]);
      weights += table.weight * std::sqrt(rows[i]);
    }
  }
  return sum / weights;
}

/// The best factors with a given choice of protocols.
struct Fitted {
  NcclFactors factors;
  double loss = 0;  ///< with the prior
  bool uses_ll128 = false;
  int evaluations = 0;
  std::vector<std::string> names, at_bounds, bounds;
};

/// Of factors that ended at a bound: which it is, and why it is there.
std::vector<std::string> bound_texts(const std::vector<std::string>& names, const NcclFactors& factors) {
  std::vector<std::string> out;
  for (const NcclFactor& factor : nccl_factors)
    if (std::ranges::find(names, factor.name) != names.end())
      out.push_back(
          fmt::format("{} ended at its bound of {:.3g} ({})", factor.name, factors.*factor.value, factor.why));
  return out;
}

Fitted fitted_to(std::vector<NcclTable> tables, const GoesOn& goes_on) {
  const bool takes_ll128 = tables.empty() || tables.front().communicator.factors.takes_ll128;
  double counted = 0;
  for (const NcclTable& table : tables) counted += table.weight;
  const double prior = prior_of_a_table / std::sqrt(counted);
  double full = 1e6;  // for now every error counts in full
  const auto factors = [&](const Point& x) {
    NcclFactors out = factors_at(x);
    out.takes_ll128 = takes_ll128;
    return out;
  };
  Fit fit(
      wide_parameters(), [&](const Point& x) { return loss_of(tables, factors(x), full); }, most_evaluations_of_nccl,
      prior, goes_on);
  Point x = fit.start();
  fit.leave_out_what_has_no_effect(x);
  x = fit.scan(x);
  // First as if all rows were sound: from there the way to the best point has no other valleys.
  for (int turn = 0; turn < turns_of_nccl; ++turn) x = fit.minimise(x);
  full = full_weight;
  fit.narrow(nccl_parameters(tables));
  for (int turn = 0; turn < turns_of_nccl; ++turn) x = fit.minimise(x);
  Fitted out;
  out.loss = fit.priced(x);
  out.factors = factors(x);
  out.uses_ll128 = takes_ll128_anywhere(tables);
  out.evaluations = fit.evaluations();
  out.names = fit.names(fit.free());
  out.at_bounds = fit.at_bounds(fit.free(), x);
  out.bounds = bound_texts(out.at_bounds, out.factors);
  return out;
}

}  // namespace

Calibration fit_nccl(const TopologySpec& spec, const std::vector<FitRow>& rows, CalibrateReport::Machine& report,
                     const GoesOn& goes_on) {
  const Fitted with = fitted_to(nccl_tables(rows, true), goes_on);
  Fitted best = with;
  if (with.uses_ll128) {
    const Fitted without = fitted_to(nccl_tables(rows, false), goes_on);
    if (without.loss + weight_of_ll128 < with.loss) best = without;
    best.evaluations = with.evaluations + without.evaluations;
  }
  report.evaluations = best.evaluations;
  report.fitted = best.names;
  report.at_bounds = best.at_bounds;
  report.bounds = best.bounds;
  Calibration out;
  out.machine = spec.name;
  out.library = Library::nccl;
  out.nccl = best.factors;
  return out;
}

}  // namespace collcast
