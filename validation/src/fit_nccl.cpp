#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "collcast/nccl/run.hpp"
#include "fit.hpp"
#include "fit_machine.hpp"
#include "nccl_prediction.hpp"

namespace collcast {

namespace {

constexpr int most_evaluations_of_nccl = 1500;
/// Of a table's sizes; a sweep by factors has up to 60, and each is priced some thousand times.
constexpr std::size_t most_sizes_of_an_nccl_fit = 512;
/// A subplex that has shrunk along one valley of a sum of absolute values is set up anew at its end.
constexpr int turns_of_nccl = 4;
/// Weight of a factor's squared logarithm beside the mean of |log(predicted / measured)|, over the root of the number
/// of tables: what one table says twice off is believed, what two rows say 5 % off is not. Of 0.005 to 0.1 the one
/// whose error on tables left out is least, though not by much (docs/validation.md).
constexpr double prior_of_a_table = 0.02;
/// Of it, how much a factor is held that no source states: of plug-in and proxy, of a host's bridges.
constexpr double held_loosely = 0.3;
/// Of an error's logarithm: up to here it counts in full, beyond it less and less, as a row that is twice off is of
/// what this model does not know and should not draw the others along.
constexpr double full_weight = 0.2;
/// By so much the fit has to be better before it is believed that NCCL does not take LL128, or has other NICs.
constexpr double weight_of_a_premise = 0.01;

double held(double NcclFactors::*factor) {
  const std::initializer_list<double NcclFactors::*> unstated{
      &NcclFactors::simple_network_hop, &NcclFactors::ll128_network_hop, &NcclFactors::message_gap,
      &NcclFactors::ll_proxy,           &NcclFactors::host_bridge,       &NcclFactors::sockets};
  return std::ranges::find(unstated, factor) != unstated.end() ? held_loosely : 1;
}

/// On its way a fit may pass values that no machine has: within the bounds from the start it stays in valleys that are
/// worse, as of ABCI's A100 with a table left out.
constexpr double least_on_the_way = 0.05, most_on_the_way = 20;

NcclFactors factors_at(const Point& x) {
  NcclFactors out;
  for (std::size_t i = 0; i < x.size(); ++i) out.*nccl_factors[i].value = std::exp(x[i]);
  return out;
}

/// What NCCL chooses by, and no factor says.
struct Premise {
  bool takes_ll128 = true;
  double nic_rate = 1;
};

/// The rows' forecasts, with what NCCL takes at each size, which does not depend on the factors.
class NcclModel {
 public:
  NcclModel(const FitLoss& loss, Premise premise);

  const Premise& premise() const { return premise_; }
  double table_weight() const { return loss_.weight(); }
  bool takes_ll128_anywhere() const;
  const std::vector<nccl::Communicator>& communicators() const { return communicators_; }
  double loss(const NcclFactors&, double full);

 private:
  const FitLoss& loss_;
  Premise premise_;
  std::map<const Fabric*, std::shared_ptr<const Fabric>> fabrics_;  ///< with other NICs
  std::vector<nccl::Communicator> communicators_;                   ///< by run
  std::vector<nccl::Plan> plans_;                                   ///< by forecast
  std::vector<Seconds> predicted_;                                  ///< at the last factors, by forecast
};

/// The same machine with NICs of that part of their rate.
std::shared_ptr<const Fabric> with_nic_rate(const std::shared_ptr<const Fabric>& fabric, double nic_rate) {
  if (nic_rate == 1) return fabric;
  Calibration by;
  by.library = Library::nccl;
  by.nccl.nic_rate = nic_rate;
  Result<Fabric> built = Fabric::build(calibrated(fabric->spec(), by), fabric->nodes());
  check(built.ok(), "a machine that was built is built again with other rates");
  return std::make_shared<const Fabric>(std::move(built).value());
}

NcclModel::NcclModel(const FitLoss& loss, Premise premise) : loss_(loss), premise_(premise) {
  for (const PlacedTable* place : loss_.runs()) {
    std::shared_ptr<const Fabric>& fabric = fabrics_[place->fabric.get()];
    if (fabric == nullptr) fabric = with_nic_rate(place->fabric, premise.nic_rate);
    Result<nccl::Communicator> c = connect(*fabric, place->group, place->environment);
    check(c.ok(), "a table that was priced is priced again");
    communicators_.push_back(std::move(c).value());
    communicators_.back().factors.takes_ll128 = premise.takes_ll128;
  }
  for (const FitRows::Forecast& one : loss_.forecasts()) {
    const PlacedTable& place = *loss_.runs()[one.run];
    Result<nccl::Plan> plan = nccl_plan(communicators_[one.run], place, place.request(one.size));
    check(plan.ok(), "a request that was priced is priced again");
    plans_.push_back(std::move(plan).value());
  }
  predicted_.resize(plans_.size());
}

bool NcclModel::takes_ll128_anywhere() const {
  return std::ranges::any_of(
      plans_, [](const nccl::Plan& plan) { return !plan.point_to_point && plan.protocol == nccl::Protocol::ll128; });
}

/// Rows of one table and band of sizes are off together, and count as the root of their number.
double NcclModel::loss(const NcclFactors& factors, double full) {
  for (nccl::Communicator& one : communicators_) one.factors = factors;
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    const FitRows::Forecast& one = loss_.forecasts()[i];
    predicted_[i] = run(communicators_[one.run], loss_.runs()[one.run]->kind, one.size, plans_[i]).time();
  }
  return loss_.of(predicted_, full);
}

/// Of further ways over PCIe as much is known as nearer ones tell: where all tables' rings go equally far, what links
/// carry under each protocol says the same.
bool is_told_apart(double NcclFactors::*factor, const NcclModel& model) {
  const bool bridge = factor == &NcclFactors::host_bridge, sockets = factor == &NcclFactors::sockets;
  if (!bridge && !sockets) return true;
  return std::ranges::any_of(model.communicators(), [&](const nccl::Communicator& one) {
    return !one.nvlink && one.most_on_a_node > 1 &&
           one.ring.type_inside < (bridge ? nccl::PathType::phb : nccl::PathType::sys);
  });
}

/// What a node's links carry and a hop inside it takes, of groups on several nodes alone: these tell it from the
/// network badly, so that it stays near what one node's tables say of other machines (factors of 0.8 to 1.15 and 0.7
/// to 1.6 in most shipped fits).
struct Few {
  double NcclFactors::*factor;
  double least, most;
};
constexpr std::array<Few, 4> without_a_node{{{&NcclFactors::ll, 0.8, 1.15},
                                             {&NcclFactors::ll128, 0.8, 1.15},
                                             {&NcclFactors::simple, 0.8, 1.15},
                                             {&NcclFactors::hop, 0.6, 1.6}}};
bool has_one_node(const NcclModel& model) {
  return std::ranges::any_of(model.communicators(), [](const nccl::Communicator& one) { return one.nodes == 1; });
}
const Few* few_of(double NcclFactors::*factor, const NcclModel& model) {
  const auto* const few = std::ranges::find(without_a_node, factor, &Few::factor);
  return has_one_node(model) || few == without_a_node.end() ? nullptr : few;
}

/// Within bounds of logarithms. What NICs carry is drawn to what is described, whatever part of it is in their rate,
/// and with ever less beyond a factor of 3: another network than is described is off by tens.
Parameter parameter_of(const NcclFactor& factor, double least, double most, const NcclModel& model) {
  Parameter out{factor.name, least, most, 0, 0, held(factor.value)};
  if (factor.value != &NcclFactors::network) return out;
  out.drawn_to = -std::log(model.premise().nic_rate);
  out.in_full = std::log(3.0);
  return out;
}

std::vector<Parameter> wide_parameters(const NcclModel& model) {
  std::vector<Parameter> out;
  for (const NcclFactor& factor : nccl_factors) {
    const bool free = is_told_apart(factor.value, model);
    const double least = factor.value == &NcclFactors::network ? factor.least : least_on_the_way;
    out.push_back(parameter_of(factor, free ? std::log(least) : 0, free ? std::log(most_on_the_way) : 0, model));
  }
  return out;
}

/// Of the bounds of a factor the machine's line rate is one: of its tables, as not all have rings over the same links.
std::vector<Parameter> nccl_parameters(const NcclModel& model) {
  std::vector<Parameter> out;
  for (const NcclFactor& factor : nccl_factors) {
    double most = factor.most;
    for (const nccl::Communicator& one : model.communicators()) {
      const nccl::FactorsOfLineRate line = nccl::factors_of_line_rate(one);
      if (factor.by_links && one.ranks_per_node > 1) most = std::min(most, line.links);
      if (factor.by_nics && one.nodes > 1) most = std::min(most, line.network);
    }
    const Few* const few = few_of(factor.value, model);
    const double least = few != nullptr ? few->least : factor.least;
    if (few != nullptr) most = std::min(most, few->most);
    out.push_back(parameter_of(factor, std::log(least), std::log(most), model));
  }
  return out;
}

/// The best factors with a given choice of protocols.
struct Fitted {
  Point at;
  NcclFactors factors;
  double loss = 0;  ///< with the prior
  bool uses_ll128 = false;
  int evaluations = 0;
  std::vector<std::string> names, at_bounds, bounds;
};

/// Of factors that ended at a bound: which it is, and why it is there.
std::vector<std::string> bound_texts(const std::vector<std::string>& names, const NcclFactors& factors,
                                     const NcclModel& model) {
  std::vector<std::string> out;
  for (const NcclFactor& factor : nccl_factors) {
    if (std::ranges::find(names, factor.name) == names.end()) continue;
    const char* const why = few_of(factor.value, model) != nullptr
                                ? "no table is on one node: kept near what other machines have"
                                : factor.why;
    out.push_back(fmt::format("{} ended at its bound of {:.3g} ({})", factor.name, factors.*factor.value, why));
  }
  return out;
}

/// Its place among them.
const auto network_index = static_cast<std::size_t>(
    std::ranges::find(nccl_factors, &NcclFactors::network, &NcclFactor::value) - nccl_factors.begin());
/// Of a walk along what NICs carry, on logarithms: a fifth of the wide scan's, which steps over the valley of a network
/// that carries a third of its line rate.
constexpr double fine_step = 0.15;
/// By so much of the mean error another valley has to be lower: the tenth of a point that people are shown.
constexpr double told_apart = 0.001;

/// The least near `from` within the bounds; from there on that of another valley, where a walk along what NICs carry
/// comes upon a lower one.
Point least_near(Fit& fit, const Point& from) {
  const auto settled = [&](Point x) {
    for (int turn = 0; turn < turns_of_nccl; ++turn) x = fit.minimise(x);
    return x;
  };
  const Point here = settled(from);
  const Point there = fit.walk(here, network_index, fine_step);
  return fit.priced(there) < fit.priced(here) - told_apart ? settled(there) : here;
}

/// `from`: the best point of another choice of protocols, in whose valley this fit begins; nothing: it looks for one.
Fitted fitted_to(NcclModel model, const GoesOn& goes_on, const Point* from = nullptr) {
  const double prior = prior_of_a_table / std::sqrt(model.table_weight());
  double full = 1e6;  // for now every error counts in full
  const auto factors = [&](const Point& x) {
    NcclFactors out = factors_at(x);
    out.takes_ll128 = model.premise().takes_ll128;
    out.nic_rate = model.premise().nic_rate;
    return out;
  };
  Fit fit(
      wide_parameters(model), [&](const Point& x) { return model.loss(factors(x), full); }, most_evaluations_of_nccl,
      prior, goes_on);
  Point x = from != nullptr ? *from : fit.start();
  fit.leave_out_what_has_no_effect(x);
  const Point start = x;
  if (from == nullptr) {
    x = fit.scan(x);
    // First as if all rows were sound: from there the way to the best point has no other valleys.
    for (int turn = 0; turn < turns_of_nccl; ++turn) x = fit.minimise(x);
  }
  full = full_weight;
  fit.narrow(nccl_parameters(model));
  x = least_near(fit, x);
  if (from == nullptr && !has_one_node(model)) {
    // On the wide way links inside nodes may have taken what the network should have, until the bounds stopped them.
    const Point other = least_near(fit, fit.walk(start, network_index, fine_step));
    if (fit.priced(other) < fit.priced(x) - told_apart) x = other;
  }
  Fitted out;
  out.at = x;
  out.loss = fit.priced(x);
  out.factors = factors(x);
  out.uses_ll128 = model.takes_ll128_anywhere();
  out.evaluations = fit.evaluations();
  out.names = fit.names(fit.free());
  out.at_bounds = fit.at_bounds(fit.free(), x);
  out.bounds = bound_texts(out.at_bounds, out.factors, model);
  return out;
}

/// With NICs of that part of their described rate; `evaluations` grows.
Fitted fitted_with(const FitLoss& loss, double nic_rate, const GoesOn& goes_on, int& evaluations) {
  const auto fitted = [&](bool takes_ll128, const Point* from) {
    Fitted out = fitted_to(NcclModel(loss, {takes_ll128, nic_rate}), goes_on, from);
    evaluations += out.evaluations;
    return out;
  };
  Fitted best = fitted(true, nullptr);
  if (!best.uses_ll128) return best;
  Fitted without = fitted(false, nullptr);
  // Either may be stuck in a valley that the other is not in.
  Fitted with_again = fitted(true, &without.at), without_again = fitted(false, &best.at);
  if (with_again.loss < best.loss) best = std::move(with_again);
  if (without_again.loss < without.loss) without = std::move(without_again);
  return without.loss + weight_of_a_premise < best.loss ? without : best;
}

/// What a quarter and more is of may as well be what NICs carry.
constexpr double slowest_told = 0.25;

/// The part of the NICs' described rate by which rows are forecast best, every error in full, of those in steps about
/// what the network carries by the best factors: with these, or with all factors 1. 1: the network carries a quarter
/// and more, and errors are less than a fifth in the mean.
double slower_nics(const FitLoss& loss, const Fitted& best, int& evaluations) {
  constexpr double every_error = 1e6;
  if (std::ranges::count(best.names, "network") == 0) return 1;
  const bool is_near =
      best.factors.network >= slowest_told &&
      NcclModel(loss, {best.factors.takes_ll128, 1}).loss(best.factors, every_error) < Calibration::Residual::far_off;
  if (is_near) return 1;
  NcclFactors fitted = best.factors;
  fitted.network = 1;
  double out = 1, least = std::numeric_limits<double>::infinity();
  constexpr int steps = 8;  // to 3.3 times: links inside the nodes may have taken so much from the network
  const auto try_rate = [&](double rate) {
    if (rate < least_nic_rate || rate > slowest_told) return;
    NcclModel model(loss, {true, rate});
    for (const NcclFactors& factors : {NcclFactors{}, fitted}) {
      ++evaluations;
      if (const double now = model.loss(factors, every_error); now < least) {
        least = now;
        out = rate;
      }
    }
  };
  for (int step = -steps; step <= steps; ++step) try_rate(best.factors.network * std::exp(step * fine_step));
  // NCCL chooses by that rate, which no factor makes up for: a fifth of a step to either side of the best one.
  if (const double coarse = out; coarse < 1)
    for (const int step : {-2, -1, 1, 2}) try_rate(coarse * std::exp(step * fine_step / 5));
  return out;
}

}  // namespace

Calibration fit_nccl(const TopologySpec& spec, const std::vector<FitTable>& tables, Statistic statistic,
                     CalibrateReport::Machine& report, const GoesOn& goes_on) {
  const FitLoss loss(FitRows(tables, statistic, most_sizes_of_an_nccl_fit), RowWeight::root_of_band);
  Fitted best = fitted_with(loss, 1, goes_on, report.evaluations);
  if (const double rate = slower_nics(loss, best, report.evaluations); rate < 1 && !(goes_on && !goes_on())) {
    Fitted slow = fitted_with(loss, rate, goes_on, report.evaluations);
    // What NICs carry of the rate tells the rate, by which NCCL chooses.
    const double closer = std::clamp(rate * slow.factors.network, least_nic_rate, slowest_told);
    Fitted again = fitted_with(loss, closer, goes_on, report.evaluations);
    if (again.loss < slow.loss + told_apart) slow = std::move(again);
    if (slow.loss + weight_of_a_premise < best.loss) best = std::move(slow);
  }
  report.fitted = best.names;
  if (best.factors.nic_rate != 1) report.fitted.emplace_back("nic_rate");
  report.at_bounds = best.at_bounds;
  report.bounds = best.bounds;
  Calibration out;
  out.machine = spec.name;
  out.library = Library::nccl;
  out.nccl = best.factors;
  return out;
}

}  // namespace collcast
