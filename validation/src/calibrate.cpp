#include "collcast/validation/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlopt.hpp>
#include <set>

namespace collcast {

namespace {

/// Turns of choosing algorithms and fitting to them; the choice has settled by then.
constexpr int turns = 3;
constexpr int most_evaluations = 400;

/// A row that is fitted to, with the options that its collective runs by.
struct Target {
  const PlacedTable* place = nullptr;
  Bytes size{};
  Seconds measured{};
  CollectivePolicy policy;
};

/// Parameters as the optimiser sees them: logarithms, as all of them scale.
enum Parameter { base, scale, nvlink, pcie, network, parameters };
constexpr std::array<const char*, parameters> parameter_names{"base_latency", "latency_scale", "efficiency.nvlink",
                                                              "efficiency.pcie", "efficiency.network"};
using Point = std::vector<double>;

Point least_point() {
  const double efficiency = std::log(least_efficiency);
  return {std::log(1e-8), std::log(least_latency_scale), efficiency, efficiency, efficiency};
}
Point most_point() {
  const double efficiency = std::log(most_efficiency);
  return {std::log(most_base_latency.count()), std::log(most_latency_scale), efficiency, efficiency, efficiency};
}

Calibration calibration_at(const std::string& machine, const Point& x) {
  Calibration out;
  out.machine = machine;
  out.base_latency = std::min(Seconds(std::exp(x[base])), most_base_latency);
  out.latency_scale = std::clamp(std::exp(x[scale]), least_latency_scale, most_latency_scale);
  for (std::size_t i = 0; i < out.efficiency.size(); ++i)
    out.efficiency[i] = std::clamp(std::exp(x[nvlink + i]), least_efficiency, most_efficiency);
  return out;
}

/// One machine's fit.
class Fit {
 public:
  Fit(const TopologySpec& spec, std::vector<Target> targets) : spec_(spec), targets_(std::move(targets)) {}

  /// The best calibration; `report` receives what it took and which parameters it found.
  Calibration run(CalibrateReport::Machine& report) {
    // Where a fit begins: ten microseconds, the order of a kernel's launch and of a loopback socket; links as they are.
    Point best{std::log(10e-6), 0, std::log(0.9), std::log(0.9), std::log(0.9)};
    std::vector<std::size_t> free_at_best;
    double least = 1e300;
    Point x = best;
    for (int turn = 0; turn < turns; ++turn) {
      choose(x);
      freeze_what_has_no_effect(x);
      x = optimised(x);
      choose(x);
      const double now = loss(x);
      if (now < least) {
        least = now;
        best = x;
        free_at_best = free_;
      }
    }
    report.evaluations = evaluations_;
    for (const std::size_t i : free_at_best) {
      report.fitted.emplace_back(parameter_names[i]);
      constexpr double near = 1e-3;  // a thousandth of the parameter
      if (best[i] <= least_point()[i] + near || best[i] >= most_point()[i] - near)
        report.at_bounds.emplace_back(parameter_names[i]);
    }
    return calibration_at(spec_.name, best);
  }

 private:
  /// Machines of the sizes that targets need, with parameters put in.
  class Built {
   public:
    Built(const TopologySpec& spec, const Calibration& by) : spec_(calibrated(spec, by)) {}
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

  void choose(const Point& x) {
    Built built(spec_, calibration_at(spec_.name, x));
    for (Target& target : targets_) {
      const Result<Choice> choice = fastest(built.of(target.place->fabric->nodes()), target.place->request(target.size),
                                            {target.place->algorithm});
      check(choice.ok(), "a request that was priced is priced again");
      target.policy = {choice->options.algorithm, choice->options.chunks, choice->options.channels};
    }
  }

  Seconds predicted(Built& built, const Target& target, Seconds base_latency) {
    const Fabric& fabric = built.of(target.place->fabric->nodes());
    const Result<Choice> choice = fastest(fabric, target.place->request(target.size), target.policy);
    check(choice.ok(), "a request that was priced is priced again");
    return choice->estimate.total + base_latency;
  }

  double loss(const Point& x) {
    ++evaluations_;
    const Calibration by = calibration_at(spec_.name, x);
    Built built(spec_, by);
    double sum = 0;
    for (const Target& target : targets_)
      sum += std::abs(std::log(predicted(built, target, by.base_latency) / target.measured));
    return sum / static_cast<double>(targets_.size());
  }

  /// A class of links that no target crosses keeps what the data sheet says.
  void freeze_what_has_no_effect(Point& x) {
    const double here = loss(x);
    free_.clear();
    for (std::size_t i = 0; i < parameters; ++i) {
      Point other = x;
      other[i] += other[i] > most_point()[i] - 0.7 ? -0.7 : 0.7;
      if (std::abs(loss(other) - here) > 1e-9)
        free_.push_back(i);
      else
        x[i] = i == base ? least_point()[i] : 0;
    }
  }

  Point optimised(const Point& from) {
    if (free_.empty()) return from;
    Point whole = from, start;
    std::vector<double> lower, upper;
    for (const std::size_t i : free_) {
      lower.push_back(least_point()[i]);
      upper.push_back(most_point()[i]);
      start.push_back(std::clamp(from[i], lower.back(), upper.back()));
    }
    struct Call {
      Fit* fit;
      Point whole;
    } call{this, from};
    nlopt::opt method(nlopt::LN_SBPLX, static_cast<unsigned>(free_.size()));
    method.set_lower_bounds(lower);
    method.set_upper_bounds(upper);
    method.set_min_objective(
        [](unsigned n, const double* values, double*, void* data) {
          auto& c = *static_cast<Call*>(data);
          for (unsigned i = 0; i < n; ++i) c.whole[c.fit->free_[i]] = values[i];
          return c.fit->loss(c.whole);
        },
        &call);
    method.set_initial_step(std::vector<double>(free_.size(), 0.5));
    method.set_xtol_abs(1e-4);
    method.set_ftol_abs(1e-6);
    method.set_maxeval(most_evaluations);
    double reached = 0;
    try {
      method.optimize(start, reached);
    } catch (const nlopt::roundoff_limited&) {
      // Its last point is as good as doubles allow.
    }
    for (std::size_t i = 0; i < free_.size(); ++i) whole[free_[i]] = start[i];
    return whole;
  }

  const TopologySpec& spec_;
  std::vector<Target> targets_;
  std::vector<std::size_t> free_;
  int evaluations_ = 0;
};

/// At most so many sizes of a table, evenly over all of them.
std::vector<Target> targets_of(const PlacedTable& place, Statistic statistic) {
  std::vector<MeasuredPoint> points = place.table->points;
  std::stable_sort(points.begin(), points.end(),
                   [](const MeasuredPoint& a, const MeasuredPoint& b) { return a.size < b.size; });
  std::vector<Bytes> sizes;
  for (const MeasuredPoint& point : points)
    if (sizes.empty() || sizes.back() < point.size) sizes.push_back(point.size);
  std::set<Bytes> taken;
  const std::size_t count = std::min(sizes.size(), most_sizes_of_a_fit);
  for (std::size_t i = 0; i < count; ++i) taken.insert(sizes[count == 1 ? 0 : i * (sizes.size() - 1) / (count - 1)]);
  std::vector<Target> out;
  for (const MeasuredPoint& point : points)
    if (taken.count(point.size) > 0) out.push_back({&place, point.size, time_of(point, statistic), {}});
  return out;
}

std::array<BandError, 3> errors_of(const ValidateReport& report) {
  std::array<std::vector<Deviation>, 3> rows;
  for (const ScoredTable& table : report.tables)
    for (const Deviation& row : table.rows) rows[static_cast<std::size_t>(band_of(row.size))].push_back(row);
  return {band_error(rows[0]), band_error(rows[1]), band_error(rows[2])};
}

void add_residuals(Calibration& calibration, CalibrateReport::Machine& machine) {
  for (const Band band : bands) {
    const auto i = static_cast<std::size_t>(band);
    if (machine.before[i].n == 0) continue;
    calibration.residuals.push_back(
        {std::string(to_string(band)), machine.before[i].n, machine.before[i].median_ape, machine.after[i].median_ape});
    if (calibration.residuals.back().is_worse()) machine.worse.push_back(band);
  }
}

std::string why_unused(const MeasuredFacts& facts) {
  if (facts.health == Health::no) return "its source calls the set-up broken";
  if (facts.ranks > most_ranks_of_a_fit) return fmt::format("more than {} ranks", most_ranks_of_a_fit);
  return {};
}

}  // namespace

Result<CalibrateResult> calibrate(const std::vector<MeasuredTable>& tables, Machines& machines, Statistic statistic) {
  CalibrateResult out;
  out.report.statistic = to_string(statistic);
  std::map<std::string, std::vector<PlacedTable>> by_machine;
  for (const MeasuredTable& table : tables) {
    const auto unused = [&](const std::string& why, const std::string& hint) {
      out.report.unused.push_back({table.facts.id, why, hint});
    };
    if (const std::string why = why_unused(table.facts); !why.empty()) {
      unused(why, {});
      continue;
    }
    Result<PlacedTable> place = machines.place(table);
    if (!place)
      unused(place.errors().front().message, place.errors().front().hint);
    else if (const auto priced = fastest(*place->fabric, place->request(table.points.front().size), {place->algorithm});
             !priced)
      unused(priced.errors().front().message, priced.errors().front().hint);
    else
      by_machine[place->topology].push_back(std::move(place).value());
  }
  if (by_machine.empty()) {
    Diagnostics errors;
    for (const UnscoredTable& table : out.report.unused)
      errors.push_back({{}, fmt::format("table '{}' cannot be used: {}", table.id, table.why), table.hint});
    if (errors.empty()) errors.push_back({{}, "there is no table to fit to", "expected a table with rows"});
    return errors;
  }
  Remarks remarks;
  for (const auto& [name, places] : by_machine) {
    const TopologySpec spec = places.front().fabric->spec();
    std::vector<Target> targets;
    std::vector<MeasuredTable> used;
    CalibrateReport::Machine machine;
    std::set<std::string> matched_by;
    for (const PlacedTable& place : places) {
      matched_by.insert(place.matched_by);
      remarks.add(place.table->facts.id, place.remark);
      const std::vector<Target> more = targets_of(place, statistic);
      targets.insert(targets.end(), more.begin(), more.end());
      used.push_back(*place.table);
      machine.tables.push_back(place.table->facts.id);
    }
    Fit fit(spec, std::move(targets));
    Calibration calibration = fit.run(machine);
    Machines plain = Machines::only(spec), fitted = Machines::only(spec);
    fitted.calibrate({"", "", {calibration}});
    const Prediction predict = ideal_prediction(false);
    machine.before = errors_of(validate(used, plain, predict, statistic));
    machine.after = errors_of(validate(used, fitted, predict, statistic));
    machine.topology = name;
    machine.matched_by.assign(matched_by.begin(), matched_by.end());
    machine.base_latency = calibration.base_latency;
    machine.latency_scale = calibration.latency_scale;
    machine.efficiency = calibration.efficiency;
    calibration.tables = machine.tables;
    calibration.description = digest(spec);
    calibration.set = machines.set();
    add_residuals(calibration, machine);
    out.overlay.machines.push_back(std::move(calibration));
    out.report.machines.push_back(std::move(machine));
  }
  out.report.warnings = remarks.texts();
  out.overlay.fitted_by = fmt::format("collcast {}", tool_version());
  return out;
}

std::vector<UnscoredTable> keep_part(std::vector<MeasuredTable>& tables, SizePart part) {
  std::vector<UnscoredTable> emptied;
  for (MeasuredTable& table : tables) {
    std::set<Bytes> sizes;
    for (const MeasuredPoint& point : table.points) sizes.insert(point.size);
    const auto kept = [&](const MeasuredPoint& point) {
      return std::distance(sizes.begin(), sizes.find(point.size)) % part.of == part.index - 1;
    };
    std::vector<MeasuredPoint> points;
    std::copy_if(table.points.begin(), table.points.end(), std::back_inserter(points), kept);
    table.points = std::move(points);
    if (table.points.empty())
      emptied.push_back({table.facts.id,
                         fmt::format("no row is in part {}/{}: it has {} size{}", part.index, part.of, sizes.size(),
                                     sizes.size() == 1 ? "" : "s"),
                         "expected --part I/N with I no more than its sizes"});
  }
  std::erase_if(tables, [](const MeasuredTable& table) { return table.points.empty(); });
  return emptied;
}

}  // namespace collcast
