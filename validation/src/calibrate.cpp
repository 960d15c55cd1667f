#include "collcast/validation/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "collcast/base/check.hpp"
#include "collcast/base/units.hpp"
#include "collcast/evaluate/nodes.hpp"
#include "fit_machine.hpp"
#include "left_out.hpp"
#include "lines.hpp"

namespace collcast {

namespace {

/// A table whose network was set up otherwise counts that much for the one that is left out: matching messages in
/// software (FI_CXI_RX_MATCH_MODE) takes Polaris' small sizes twice as long. Anything from 0.05 to 0.5 does as well.
constexpr double weight_of_another_network = 0.2;

/// Of the variables that were set those of the network's software, whose effect no forecast follows.
Variables of_network(const Variables& all) {
  constexpr std::array<std::string_view, 6> prefixes{"FI_",      "OFI_NCCL_", "UCX_",
                                                     "NCCL_NET", "NCCL_IB_",  "NCCL_SOCKET_"};
  Variables out;
  std::ranges::copy_if(all, std::back_inserter(out), [&](const auto& variable) {
    return std::ranges::any_of(prefixes, [&](std::string_view p) { return variable.first.starts_with(p); });
  });
  std::ranges::sort(out);
  return out;
}

bool is_same_network(const PlacedTable& a, const PlacedTable& b) {
  return of_network(a.table->facts.environment) == of_network(b.table->facts.environment);
}

using Residuals = CalibrateReport::Residuals;

std::size_t band_index(Bytes size) { return static_cast<std::size_t>(band_of(size)); }

/// Of the rows by the forecasts without the fit, or with it; a band after the other, as each has a list of all its
/// rows.
std::array<BandError, 3> errors_of(const std::vector<Residuals>& tables, Seconds Residuals::Forecast::*forecast) {
  std::array<BandError, 3> out;
  for (std::size_t i = 0; i < bands.size(); ++i) {
    ErrorPool pool;
    for (const Residuals& table : tables)
      for (const Residuals::Row& row : table.rows) {
        const Residuals::Forecast& of = table.of(row);
        if (band_index(of.size) == i) pool.add({of.size, row.measured, of.*forecast, {}, row.in_place, 0});
      }
    out[i] = pool.take();
  }
  return out;
}

void add_residuals(Calibration& calibration, CalibrateReport::Machine& machine) {
  for (const Band band : bands) {
    const auto i = static_cast<std::size_t>(band);
    if (machine.before[i].n == 0) continue;
    calibration.residuals.push_back({std::string(to_string(band)), machine.before[i].n, machine.before[i].median_ape,
                                     machine.after[i].median_ape, machine.interval[i].low, machine.interval[i].high});
    const Calibration::Residual& residual = calibration.residuals.back();
    if (residual.is_worse())
      machine.worse.push_back(band);
    else if (residual.is_far_off())
      machine.far_off.push_back(band);
  }
}

/// Measured over predicted, by band.
using Ratios = std::array<std::vector<double>, bands.size()>;

void add_ratios(const std::vector<Residuals>& tables, Ratios& to) {
  for (const Residuals& table : tables)
    for (const Residuals::Row& row : table.rows)
      to[band_index(table.of(row).size)].push_back(row.measured / table.of(row).fitted);
}

/// Where at least 8 of 10 measurements were, as multiples of the forecast: a tenth of them, or less, is left out at
/// either end. Rounded outwards to what an overlay writes, so that those at the ends stay within.
std::array<CalibrateReport::Interval, 3> intervals_of(Ratios ratios) {
  constexpr double written = 1e4;
  std::array<CalibrateReport::Interval, 3> out;
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    if (ratios[i].empty()) continue;
    std::sort(ratios[i].begin(), ratios[i].end());
    const std::size_t tenth = ratios[i].size() / 10;
    out[i] = {std::floor(ratios[i][tenth] * written) / written,
              std::ceil(ratios[i][ratios[i].size() - 1 - tenth] * written) / written};
  }
  return out;
}

void widen(std::array<CalibrateReport::Interval, 3>& to, const std::array<CalibrateReport::Interval, 3>& by) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i].low = std::min(to[i].low, by[i].low);
    to[i].high = std::max(to[i].high, by[i].high);
  }
}

Calibration::Range range_of(const std::vector<const PlacedTable*>& places) {
  Calibration::Range out;
  std::set<std::string> collectives;
  for (const PlacedTable* place : places) {
    collectives.insert(place->table->facts.collective);
    const int ranks = place->table->facts.ranks;
    out.least_ranks = out.least_ranks == 0 ? ranks : std::min(out.least_ranks, ranks);
    out.most_ranks = std::max(out.most_ranks, ranks);
    const int nodes = node_count(*place->fabric, place->group);
    out.least_nodes = out.least_nodes == 0 ? nodes : std::min(out.least_nodes, nodes);
    out.most_nodes = std::max(out.most_nodes, nodes);
    for (const MeasuredPoint& point : place->table->points) {
      if (out.most_size == Bytes() || point.size < out.least_size) out.least_size = point.size;
      out.most_size = std::max(out.most_size, point.size);
    }
  }
  out.collectives.assign(collectives.begin(), collectives.end());
  return out;
}

std::vector<CalibrateReport::Machine::Parameter> parameters_of(const Calibration& c) {
  std::vector<CalibrateReport::Machine::Parameter> out;
  if (c.library == Library::nccl) {
    for (const NcclFactor& factor : nccl_factors)
      out.push_back({factor.name, c.nccl.*factor.value, factor.least, factor.most});
    if (c.nccl.nic_rate != 1) out.push_back({"nic_rate", c.nccl.nic_rate, least_nic_rate, 1});
    return out;
  }
  out.push_back({"base_latency", c.base_latency.count(), 0, most_base_latency.count()});
  out.push_back({"latency_scale", c.latency_scale, least_latency_scale, most_latency_scale});
  for (const LinkClass one : link_classes)
    out.push_back({fmt::format("efficiency.{}", to_string(one)), c.efficiency[static_cast<std::size_t>(one)],
                   least_efficiency, most_efficiency});
  return out;
}

/// What a report says of a calibration.
void describe(const Calibration& calibration, CalibrateReport::Machine& machine) {
  machine.base_latency = calibration.base_latency;
  machine.latency_scale = calibration.latency_scale;
  machine.efficiency = calibration.efficiency;
  machine.nccl = calibration.nccl;
  machine.parameters = parameters_of(calibration);
  machine.least_size = calibration.range->least_size;
  machine.most_size = calibration.range->most_size;
  machine.least_ranks = calibration.range->least_ranks;
  machine.most_ranks = calibration.range->most_ranks;
  machine.least_nodes = calibration.range->least_nodes;
  machine.most_nodes = calibration.range->most_nodes;
  machine.collectives = calibration.range->collectives;
}

std::string why_unused(const MeasuredFacts& facts, Library library) {
  if (facts.health == Health::no) return "its source calls the set-up broken";
  if (library == Library::ideal && facts.ranks > most_ranks_of_a_fit)
    return fmt::format("more than {} ranks", most_ranks_of_a_fit);
  return {};
}

Prediction prediction_of(Library library) {
  return library == Library::nccl ? nccl_prediction() : ideal_prediction(Method::estimate);
}

/// One machine's calibration by some of its tables; if it is for one table, those of another network count less.
Calibration fitted(const std::vector<const PlacedTable*>& places, Library library, Statistic statistic,
                   CalibrateReport::Machine& machine, const GoesOn& goes_on, const PlacedTable* wanted = nullptr) {
  std::vector<FitTable> tables;
  for (const PlacedTable* place : places) {
    const bool other = wanted != nullptr && !is_same_network(*wanted, *place);
    tables.push_back({place, other ? weight_of_another_network : 1});
  }
  const TopologySpec& spec = places.front()->fabric->spec();
  return library == Library::nccl ? fit_nccl(spec, tables, statistic, machine, goes_on)
                                  : fit_ideal(spec, tables, statistic, machine, goes_on);
}

/// Tables of one machine held against it as it is calibrated, or as it is described.
ValidateReport scored(const std::vector<MeasuredTable>& tables, const TopologySpec& spec, const Calibration* by,
                      Library library, Statistic statistic) {
  Machines machines = Machines::only(spec);
  if (by != nullptr) machines.calibrate({"", "", {*by}}, library);
  return validate(tables, machines, prediction_of(library), statistic);
}

/// A table with the first row of each of its sizes.
MeasuredTable sizes_of(const MeasuredTable& table) {
  MeasuredTable out{table.facts, table.file, {}};
  for (const std::uint32_t i : by_size(table))
    if (out.points.empty() || out.points.back().size < table.points[i].size) out.points.push_back(table.points[i]);
  return out;
}

/// Of tables with one row of each size: `forecast` of every size. The tables are those of the residuals.
void add_forecasts(const std::vector<MeasuredTable>& sizes, const TopologySpec& spec, const Calibration* by,
                   Library library, Statistic statistic, Seconds Residuals::Forecast::*forecast,
                   std::vector<Residuals>& to) {
  const ValidateReport report = scored(sizes, spec, by, library, statistic);
  for (std::size_t t = 0; t < to.size(); ++t) {
    to[t].forecasts.resize(report.tables[t].rows.size());
    for (std::size_t i = 0; i < to[t].forecasts.size(); ++i) {
      to[t].forecasts[i].size = report.tables[t].rows[i].size;
      to[t].forecasts[i].*forecast = report.tables[t].rows[i].predicted;
    }
  }
}

/// Row by row; of the forecasts of sizes there are none yet.
Residuals rows_of(const MeasuredTable& table, Statistic statistic) {
  Residuals out{table.facts.id, table.facts.collective, table.facts.ranks, table.facts.nodes, {}, {}};
  out.rows.reserve(table.points.size());
  std::uint32_t forecast = 0;
  Bytes size{};
  for (const std::uint32_t i : by_size(table)) {
    const MeasuredPoint& point = table.points[i];
    if (!out.rows.empty() && size != point.size) ++forecast;
    size = point.size;
    out.rows.push_back({time_of(table, point, statistic), forecast, point.in_place});
  }
  return out;
}

/// Row by row, with the fit and, where it `describes`, without it. Each size of a table is forecast once.
std::vector<Residuals> residuals_of(const std::vector<const PlacedTable*>& places, const Calibration& by,
                                    Statistic statistic, bool describes) {
  const TopologySpec& spec = places.front()->fabric->spec();
  std::vector<MeasuredTable> sizes;
  std::vector<Residuals> out;
  for (const PlacedTable* place : places) {
    sizes.push_back(sizes_of(*place->table));
    out.push_back(rows_of(*place->table, statistic));
  }
  if (describes) add_forecasts(sizes, spec, nullptr, by.library, statistic, &Residuals::Forecast::described, out);
  add_forecasts(sizes, spec, &by, by.library, statistic, &Residuals::Forecast::fitted, out);
  return out;
}

bool is_over(const GoesOn& goes_on) { return goes_on && !goes_on(); }

/// Tables that a fit leaves out at once (left_out.hpp).
std::vector<std::vector<const PlacedTable*>> left_out_together(const std::vector<const PlacedTable*>& places) {
  std::vector<Variables> settings;
  for (const PlacedTable* place : places) settings.push_back(of_network(place->table->facts.environment));
  std::vector<std::vector<const PlacedTable*>> out;
  for (const std::vector<std::size_t>& group : collcast::left_out_together(settings))
    for (auto& tables = out.emplace_back(); const std::size_t i : group) tables.push_back(places[i]);
  return out;
}

/// What others of another setting of the network count in a fit without a table: as in an overlay, which is of no
/// setting in particular, or less.
enum class OtherNetworks { alike, less };

/// Calls with tables that are left out and a fit to the others, until every table was, as far as there is time.
void leave_out(const std::vector<const PlacedTable*>& places, Library library, Statistic statistic,
               OtherNetworks other_networks, const GoesOn& goes_on,
               const std::function<void(const std::vector<const PlacedTable*>&, const Calibration&)>& take) {
  for (const std::vector<const PlacedTable*>& out : left_out_together(places)) {
    const std::set<const PlacedTable*> without(out.begin(), out.end());
    std::vector<const PlacedTable*> others;
    for (const PlacedTable* place : places)
      if (without.count(place) == 0) others.push_back(place);
    CalibrateReport::Machine unread;
    const PlacedTable* wanted = other_networks == OtherNetworks::less ? out.front() : nullptr;
    const Calibration by = fitted(others, library, statistic, unread, goes_on, wanted);
    if (is_over(goes_on)) return;
    take(out, by);
  }
}

/// Each table scored by a fit to others, as far as there is time.
std::vector<ScoredTable> scored_by_others(const std::vector<const PlacedTable*>& places, Library library,
                                          Statistic statistic, const GoesOn& goes_on) {
  std::vector<ScoredTable> out;
  leave_out(places, library, statistic, OtherNetworks::less, goes_on, [&](const auto& left_out, const Calibration& by) {
    for (const PlacedTable* place : left_out) {
      ValidateReport one = scored({*place->table}, place->fabric->spec(), &by, library, statistic);
      out.push_back(std::move(one.tables.front()));
      check(out.back().calibrated, "a table is scored on the machine that the others were fitted on");
      out.back().matched_by = place->matched_by;
    }
  });
  return out;
}

/// The rows that are furthest off, one of each table, and where all are.
std::vector<std::string> furthest_off(const CalibrateReport& report) {
  constexpr std::size_t most = 8;
  struct Worst {
    const Residuals* table = nullptr;
    const Residuals::Row* row = nullptr;
    double off = -1;
  };
  std::map<std::string, Worst> worst;
  std::size_t count = 0;
  for (const auto& machine : report.machines)
    for (const Residuals& table : machine.residuals) {
      count += table.rows.size();
      Worst& of_table = worst[table.table];
      for (const Residuals::Row& row : table.rows)
        if (const double off = std::abs(std::log(table.of(row).fitted / row.measured)); off > of_table.off)
          of_table = {&table, &row, off};
    }
  std::vector<Worst> rows;
  for (const auto& [table, row] : worst)
    if (row.row != nullptr) rows.push_back(row);
  std::ranges::stable_sort(rows, [](const Worst& a, const Worst& b) { return a.off > b.off; });
  if (rows.size() > most) rows.resize(most);
  std::vector<std::string> out;
  if (rows.empty()) return out;
  out.push_back(
      fmt::format("Furthest off of {} rows, one of a table (--residuals FILE.csv writes all of them):", count));
  for (const Worst& one : rows) {
    const Residuals::Forecast& forecast = one.table->of(*one.row);
    out.push_back(fmt::format("  {}, {} {}: measured {}, forecast {} ({:+.0f} %)", one.table->table,
                              one.table->collective, format_bytes(forecast.size), format_seconds(one.row->measured),
                              format_seconds(forecast.fitted), 100 * one.table->error(*one.row)));
  }
  return out;
}

/// How many forecasts the rows have: some have one in common, such as those in place and out of place.
std::size_t forecasts_of(const std::vector<Residuals>& residuals) {
  std::size_t out = 0;
  for (const Residuals& table : residuals) out += table.forecasts.size();
  return out;
}

/// Where measurements lie is asked of the rows that were fitted to, about the forecasts of the very fit that an overlay
/// has, and of library nccl, whose fits are quick, of tables that a fit has not seen, too, about the forecasts of fits
/// like it to the others. An interval has 8 of 10 of both: of what is known by the forecast that it stands beside,
/// which the fits without a table need not be near (two tables that only one another are like), and of what is not.
void measure(const std::vector<const PlacedTable*>& places, const Calibration& by, Statistic statistic,
             CalibrateReport::Machine& machine, const GoesOn& goes_on) {
  machine.residuals = residuals_of(places, by, statistic, true);
  machine.before = errors_of(machine.residuals, &Residuals::Forecast::described);
  machine.after = errors_of(machine.residuals, &Residuals::Forecast::fitted);
  machine.unseen = by.library == Library::nccl && places.size() > 1;
  // What a fit has as many parameters for as forecasts is how the fit was made, and no measurement's distance from it.
  if (!machine.unseen && forecasts_of(machine.residuals) <= machine.fitted.size()) return;
  Ratios seen, unseen;
  add_ratios(machine.residuals, seen);
  machine.interval = intervals_of(std::move(seen));
  if (!machine.unseen) return;
  leave_out(places, by.library, statistic, OtherNetworks::alike, goes_on,
            [&](const auto& left_out, const Calibration& by_others) {
              add_ratios(residuals_of(left_out, by_others, statistic, false), unseen);
            });
  if (!is_over(goes_on)) widen(machine.interval, intervals_of(std::move(unseen)));
}

/// "'polaris': its tables were measured with 2 settings of ..."; empty: all with the same.
std::string settings_remark(const std::string& machine, const std::vector<const PlacedTable*>& places) {
  std::set<Variables> settings;
  for (const PlacedTable* place : places) settings.insert(of_network(place->table->facts.environment));
  if (settings.size() < 2) return {};
  std::set<std::string> names;
  for (const Variables& one : settings)
    for (const auto& variable : one)
      if (std::ranges::any_of(
              settings, [&](const Variables& other) { return std::ranges::find(other, variable) == other.end(); }))
        names.insert(variable.first);
  return fmt::format(
      "'{}': its tables were measured with {} settings of the network ({}), and the calibration is between them; fit "
      "the "
      "tables of one apart for a closer one",
      machine, settings.size(), fmt::join(names, ", "));
}

/// "'dgx-h200': its tables are of 2 systems ...", where the user named the machine of all; empty: of one.
std::string systems_remark(const std::string& machine, const std::vector<const PlacedTable*>& places) {
  std::set<std::string> systems;
  for (const PlacedTable* place : places)
    if (place->matched_by == "option" && !place->table->facts.system.empty())
      systems.insert(printable(place->table->facts.system));
  if (systems.size() < 2) return {};
  return fmt::format(
      "'{}': its tables are of {} systems ({}), and the calibration is between them; fit the tables of one apart for a "
      "closer one",
      machine, systems.size(), fmt::join(systems, ", "));
}

/// The table on its machine, or why a fit cannot use it.
Result<PlacedTable> usable(const MeasuredTable& table, Machines& machines, Library library) {
  if (std::string why = why_unused(table.facts, library); !why.empty()) return Diagnostic{{}, std::move(why), {}};
  Result<PlacedTable> place = machines.place(table);
  if (!place) return place;
  const auto priced = prediction_of(library)(*place, place->request(table.points.front().size));
  if (!priced) return priced.errors();
  return place;
}

}  // namespace

Result<CalibrateResult> calibrate(const std::vector<MeasuredTable>& tables, Machines& machines, Statistic statistic,
                                  Library library, const Telling& tell, const GoesOn& goes_on) {
  const Diagnostic ended{{}, "the fit was ended from outside before a machine was fitted", "let it run longer"};
  CalibrateResult out;
  out.report.library = to_string(library);
  out.report.statistic = to_string(statistic);
  std::vector<PlacedTable> placed;
  for (const MeasuredTable& table : tables) {
    if (is_over(goes_on)) return ended;
    if (tell) tell("placing tables", placed.size() + out.report.unused.size(), tables.size());
    Result<PlacedTable> place = usable(table, machines, library);
    if (place)
      placed.push_back(std::move(place).value());
    else
      out.report.unused.push_back({table.facts.id, place.errors().front().message, place.errors().front().hint,
                                   place_of(place.errors().front(), table)});
  }
  if (placed.empty()) {
    Diagnostics errors;
    for (const UnscoredTable& table : out.report.unused)
      errors.push_back({table.where, fmt::format("table '{}' cannot be used: {}", table.id, table.why), table.hint});
    if (errors.empty()) errors.push_back({{}, "there is no table to fit to", "expected a table with rows"});
    return errors;
  }
  std::map<std::string, std::vector<const PlacedTable*>> by_machine;
  for (const PlacedTable& place : placed) by_machine[place.topology].push_back(&place);
  Remarks remarks;
  for (const auto& [name, places] : by_machine) {
    if (tell) tell("fitting " + name, out.report.machines.size(), by_machine.size());
    CalibrateReport::Machine machine;
    std::set<std::string> matched_by;
    for (const PlacedTable* place : places) {
      matched_by.insert(place->matched_by);
      remarks.add(place->table->facts.id, place->remark);
      remarks.add(place->table->facts.id, statistic_remark(*place->table, statistic));
      machine.tables.push_back(place->table->facts.id);
    }
    Calibration calibration = fitted(places, library, statistic, machine, goes_on);
    if (!is_over(goes_on)) measure(places, calibration, statistic, machine, goes_on);
    if (is_over(goes_on)) {
      out.report.not_reached.push_back(name);
      continue;
    }
    calibration.range = range_of(places);
    calibration.interval_of_unseen_tables = machine.unseen;
    machine.topology = name;
    describe(calibration, machine);
    machine.matched_by.assign(matched_by.begin(), matched_by.end());
    for (std::string& remark : std::array{settings_remark(name, places), systems_remark(name, places)})
      if (!remark.empty()) out.report.warnings.push_back(std::move(remark));
    calibration.tables = machine.tables;
    calibration.description = digest(places.front()->fabric->spec());
    machine.digest = calibration.description;
    calibration.set = machines.set();
    add_residuals(calibration, machine);
    calibration.remarks = machine.bounds;
    if (std::string far = far_network_text(machine, library == Library::nccl); !far.empty())
      calibration.remarks.push_back(std::move(far));
    out.overlay.machines.push_back(std::move(calibration));
    out.report.machines.push_back(std::move(machine));
  }
  if (out.report.machines.empty()) return ended;
  const std::vector<std::string> more = remarks.texts();
  out.report.warnings.insert(out.report.warnings.begin(), more.begin(), more.end());
  out.overlay.remarks = furthest_off(out.report);
  out.overlay.fitted_by = fmt::format("collcast {}", tool_version());
  return out;
}

ValidateReport leave_one_out(const std::vector<MeasuredTable>& tables, Machines& machines, Library library,
                             Statistic statistic, const Telling& tell, const GoesOn& goes_on) {
  ValidateReport out = validate(tables, machines, prediction_of(library), statistic, tell, goes_on);
  // A system that is called "unknown", or anything else, may be of several machines.
  std::map<std::pair<std::string, std::string>, std::vector<const PlacedTable*>> by_machine;
  std::vector<PlacedTable> placed;
  placed.reserve(tables.size());
  for (const MeasuredTable& table : tables) {
    if (is_over(goes_on)) break;
    Result<PlacedTable> place = usable(table, machines, library);
    if (!place) continue;
    placed.push_back(std::move(place).value());
    by_machine[{placed.back().topology, table.facts.system}].push_back(&placed.back());
  }
  std::map<std::string, ScoredTable> scored_tables;
  std::size_t done = 0;
  for (const auto& [machine, places] : by_machine) {
    const auto& [topology, system] = machine;
    if (tell) tell("fitting to the others of " + (system.empty() ? topology : system), done++, by_machine.size());
    if (places.size() < 2) continue;
    for (ScoredTable& table : scored_by_others(places, library, statistic, goes_on)) {
      std::string id = table.id;
      scored_tables[std::move(id)] = std::move(table);
    }
  }
  std::vector<ScoredTable> kept;
  for (ScoredTable& table : out.tables) {
    const auto found = scored_tables.find(table.id);
    if (found != scored_tables.end())
      kept.push_back(std::move(found->second));
    else if (is_over(goes_on))
      ++out.not_reached;
    else
      out.unscored.push_back({table.id,
                              table.healthy == "no" ? "its source calls the set-up broken, and no fit uses such"
                                                    : "no other table of its system to fit to",
                              {}});
  }
  out.tables = std::move(kept);
  out.left_out = true;
  return out;
}

std::vector<UnscoredTable> keep_part(std::vector<MeasuredTable>& tables, SizePart part) {
  std::vector<UnscoredTable> emptied;
  for (MeasuredTable& table : tables) {
    // One walk over the rows by size: a table may have as many sizes as rows.
    std::vector<bool> kept(table.points.size());
    std::size_t sizes = 0;
    Bytes last(-1);
    for (const std::uint32_t i : by_size(table)) {
      if (table.points[i].size != last) ++sizes;
      last = table.points[i].size;
      kept[i] = (sizes - 1) % static_cast<std::size_t>(part.of) == static_cast<std::size_t>(part.index - 1);
    }
    std::size_t i = 0;
    std::erase_if(table.points, [&](const MeasuredPoint&) { return !kept[i++]; });
    if (table.points.empty())
      emptied.push_back(
          {table.facts.id,
           fmt::format("no row is in part {}/{}: it has {} size{}", part.index, part.of, sizes, sizes == 1 ? "" : "s"),
           "expected --part I/N with I no more than its sizes"});
  }
  std::erase_if(tables, [](const MeasuredTable& table) { return table.points.empty(); });
  return emptied;
}

}  // namespace collcast
