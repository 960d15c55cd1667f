#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "collcast/evaluate/evaluate.hpp"
#include "collcast/validation/calibrate.hpp"
#include "fit.hpp"
#include "fit_machine.hpp"

namespace collcast {

namespace {

/// Turns of choosing algorithms and fitting to them; the choice has settled by then.
constexpr int turns = 3;
constexpr int most_evaluations_of_ideal = 400;

enum IdealParameter { base, scale, nvlink };

/// A fit begins at ten microseconds, the order of a kernel's launch and of a loopback socket, and links as they are.
std::vector<Parameter> ideal_parameters() {
  const double least = std::log(least_efficiency), most = std::log(most_efficiency), near = std::log(0.9);
  const double smallest = std::log(1e-8);
  return {{"base_latency", smallest, std::log(most_base_latency.count()), std::log(10e-6), smallest},
          {"latency_scale", std::log(least_latency_scale), std::log(most_latency_scale), 0, 0},
          {"efficiency.nvlink", least, most, near, 0},
          {"efficiency.pcie", least, most, near, 0},
          {"efficiency.network", least, most, near, 0}};
}

Calibration ideal_at(const std::string& machine, const Point& x) {
  Calibration out;
  out.machine = machine;
  out.base_latency = std::min(Seconds(std::exp(x[base])), most_base_latency);
  out.latency_scale = std::clamp(std::exp(x[scale]), least_latency_scale, most_latency_scale);
  for (std::size_t i = 0; i < out.efficiency.size(); ++i)
    out.efficiency[i] = std::clamp(std::exp(x[nvlink + i]), least_efficiency, most_efficiency);
  return out;
}

/// Machines of the sizes that rows need, with parameters put in.
class BuiltMachines {
 public:
  BuiltMachines(const TopologySpec& spec, const Calibration& by) : spec_(calibrated(spec, by)) {}
  const Fabric& of(int nodes) {
    auto found = fabrics_.find(nodes);
    if (found == fabrics_.end()) {
      Result<Fabric> fabric = Fabric::build(spec_, nodes);
      check(fabric.ok(), "a machine that was built is built again with other rates");
      found = fabrics_.emplace(nodes, std::move(fabric).value()).first;
    }
    return found->second;
  }

 private:
  TopologySpec spec_;
  std::map<int, Fabric> fabrics_;
};

/// Rows with the options that their collectives run by.
class IdealModel {
 public:
  IdealModel(const TopologySpec& spec, FitRows rows) : spec_(spec), loss_(std::move(rows), RowWeight::whole) {
    for (const FitRows::Forecast& one : loss_.forecasts()) policies_.push_back({place_of(one).algorithm});
  }

  /// What is fastest at that point.
  void choose(const Point& x) {
    BuiltMachines built(spec_, ideal_at(spec_.name, x));
    for (std::size_t i = 0; i < policies_.size(); ++i) {
      const FitRows::Forecast& one = loss_.forecasts()[i];
      const Choice choice = priced(built, one, {place_of(one).algorithm});
      policies_[i] = {choice.options.algorithm, choice.options.chunks, choice.options.channels};
    }
  }

  double loss(const Point& x) const {
    const Calibration by = ideal_at(spec_.name, x);
    BuiltMachines built(spec_, by);
    std::vector<Seconds> predicted;
    for (std::size_t i = 0; i < policies_.size(); ++i)
      predicted.push_back(priced(built, loss_.forecasts()[i], policies_[i]).estimate.total + by.base_latency);
    return loss_.of(predicted, std::numeric_limits<double>::infinity());
  }

 private:
  const PlacedTable& place_of(const FitRows::Forecast& one) const { return *loss_.runs()[one.run]; }

  Choice priced(BuiltMachines& built, const FitRows::Forecast& one, const CollectivePolicy& policy) const {
    const PlacedTable& place = place_of(one);
    Result<Choice> choice = fastest(built.of(place.fabric->nodes()), place.request(one.size), policy);
    check(choice.ok(), "a request that was priced is priced again");
    return std::move(choice).value();
  }

  const TopologySpec& spec_;
  FitLoss loss_;
  std::vector<CollectivePolicy> policies_;
};

}  // namespace

Calibration fit_ideal(const TopologySpec& spec, const std::vector<FitTable>& tables, Statistic statistic,
                      CalibrateReport::Machine& report, const GoesOn& goes_on) {
  IdealModel model(spec, FitRows(tables, statistic, most_sizes_of_a_fit));
  Fit fit(
      ideal_parameters(), [&](const Point& x) { return model.loss(x); }, most_evaluations_of_ideal, 0, goes_on);
  Point best = fit.start(), x = best;
  std::vector<std::size_t> free_at_best;
  double least = 1e300;
  for (int turn = 0; turn < turns && !(goes_on && !goes_on()); ++turn) {
    model.choose(x);
    fit.leave_out_what_has_no_effect(x);
    x = fit.minimise(x);
    model.choose(x);
    const double now = fit.loss(x);
    if (now < least) {
      least = now;
      best = x;
      free_at_best = fit.free();
    }
  }
  report.evaluations = fit.evaluations();
  report.fitted = fit.names(free_at_best);
  report.at_bounds = fit.at_bounds(free_at_best, best);
  for (const std::string& name : report.at_bounds) report.bounds.push_back(name + " ended at a bound");
  return ideal_at(spec.name, best);
}

}  // namespace collcast
