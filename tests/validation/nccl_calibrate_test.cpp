// Calibrations of library nccl: of times that the model made itself, whose factors are known.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <tuple>

#include "collcast/report/documents.hpp"
#include "collcast/validation/calibrate.hpp"
#include "shipped.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

TopologySpec machine_named(const std::string& name, const std::vector<Override>& set = {}) {
  Result<TopologySpec> spec = load_topology(name, machine_files, set);
  REQUIRE(spec.ok());
  return std::move(spec).value();
}
TopologySpec dgx_h100() { return machine_named("dgx-h100"); }

Calibration of_factors(const NcclFactors& factors, const std::string& name = "dgx-h100") {
  Calibration out;
  out.machine = name;
  out.library = Library::nccl;
  out.nccl = factors;
  return out;
}

/// A table of what the model says of a machine with these factors.
MeasuredTable table_of(const NcclFactors& truth, const std::string& id, const std::string& collective, int nodes,
                       double times = 1, int gpus = 8, const std::string& name = "dgx-h100",
                       std::int64_t first_size = 1024, int sizes = 22) {
  MeasuredTable out;
  out.facts.id = id;
  out.facts.system = "made-up";
  out.facts.collective = collective;
  out.facts.nodes = nodes;
  out.facts.ranks = gpus * nodes;
  for (int i = 0; i < sizes; ++i) out.points.push_back({Bytes(first_size << i), Seconds(1), false, {}});
  Machines machines = Machines::only(machine_named(name));
  machines.calibrate({"", "", {of_factors(truth, name)}}, Library::nccl);
  const auto place = machines.place(out);
  REQUIRE(place.ok());
  for (MeasuredPoint& point : out.points)
    point.time = nccl_prediction()(*place, place->request(point.size)).value().time * times;
  return out;
}

}  // namespace

TEST_CASE("factors that made the times are found again") {
  NcclFactors truth;
  truth.launch = 1.6;
  truth.hop = 0.6;
  truth.network_hop = 2.2;
  truth.simple = 0.8;
  truth.network = 0.7;
  std::vector<MeasuredTable> tables;
  for (const char* collective : {"all_reduce", "all_gather", "alltoall"})
    for (const int nodes : {1, 4})
      tables.push_back(table_of(truth, std::string(collective) + std::to_string(nodes), collective, nodes));
  Machines machines = Machines::only(dgx_h100());
  const auto fitted = calibrate(tables, machines, Statistic::mean, Library::nccl);
  REQUIRE(fitted.ok());
  const Calibration& found = fitted->overlay.machines.at(0);
  CHECK(found.library == Library::nccl);
  // The prior draws to 1, factors that are alike share the rest: no more than a tenth of a factor of two.
  for (const NcclFactor& factor : {nccl_factors[0], nccl_factors[2], nccl_factors[3], nccl_factors[7]}) {
    CAPTURE(factor.name);
    CHECK(found.nccl.*factor.value == Approx(truth.*factor.value).epsilon(0.1));
  }
  const auto& machine = fitted->report.machines.at(0);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(machine.before[i].median_ape > 0.05);
    CHECK(machine.after[i].median_ape < 0.03);
    CHECK(machine.interval[i].low > 0.8);
    CHECK(machine.interval[i].low <= machine.interval[i].high);
    CHECK(machine.interval[i].high < 1.25);
  }
  CHECK(machine.unseen);
  REQUIRE(found.range.has_value());
  CHECK(found.range->least_size == Bytes(1024));
  CHECK(found.range->most_size == Bytes(std::int64_t{1024} << 21));
  CHECK(found.range->least_ranks == 8);
  CHECK(found.range->most_ranks == 32);
  CHECK(found.range->least_nodes == 1);  // of 8 GPUs each
  CHECK(found.range->most_nodes == 4);
  CHECK(found.range->collectives == std::vector<std::string>{"all_gather", "all_reduce", "alltoall"});
}

TEST_CASE("a fit of no more rows than parameters does not say between what measurements are") {
  for (const bool few : {false, true}) {
    MeasuredTable table = table_of({}, "own", "all_reduce", 1, 1.3);
    if (few) table.points.resize(2);
    Machines machines = Machines::only(dgx_h100());
    const auto fitted = calibrate({table}, machines, Statistic::mean, Library::nccl);
    REQUIRE(fitted.ok());
    const auto& machine = fitted->report.machines.at(0);
    CHECK((machine.rows() <= machine.fitted.size()) == few);
    CHECK((machine.interval[0].high > 0) == !few);
    CHECK((fitted->overlay.machines.at(0).residuals.at(0).high > 0) == !few);
    CHECK((overlay_text(fitted->overlay).find("high:") == std::string::npos) == few);
    CHECK((json(fitted->report).find("\"measured_to_predicted_p90\": null") != std::string::npos) == few);
  }
}

TEST_CASE("at least 8 of 10 measurements are where an overlay says that 8 of 10 were") {
  const MeasuredTable all = table_of({}, "own", "all_reduce", 1, 1.3);
  for (std::size_t count = 6; count <= all.points.size(); ++count) {
    MeasuredTable table = all;
    table.points.resize(count);
    // Every third row 20 % slower, every fifth 10 % quicker.
    for (std::size_t i = 0; i < count; ++i)
      table.points[i].time = table.points[i].time * ((i % 3 == 0 ? 1.2 : 1) * (i % 5 == 0 ? 0.9 : 1));
    Machines machines = Machines::only(dgx_h100());
    const auto fitted = calibrate({table}, machines, Statistic::mean, Library::nccl);
    REQUIRE(fitted.ok());
    const auto read = parse_overlay(overlay_text(fitted->overlay), "o.yaml");
    REQUIRE(read.ok());
    for (const auto& band : read->machines.at(0).residuals) {
      if (band.high <= 0) continue;
      int rows = 0, within = 0;
      const auto& of_table = fitted->report.machines.at(0).residuals.at(0);
      for (const auto& row : of_table.rows) {
        if (to_string(band_of(of_table.of(row).size)) != band.band) continue;
        ++rows;
        const double times = row.measured / of_table.of(row).fitted;
        within += band.low <= times && times <= band.high ? 1 : 0;
      }
      CAPTURE(count, band.band, rows);
      CHECK(rows == band.rows);
      CHECK(10 * within >= 8 * rows);
    }
  }
}

TEST_CASE("of several tables, too, 8 of 10 of the fitted rows are where an overlay says, by its own fit") {
  // Two GPUs of one node, and two nodes: the fit to either foresees the other far too quick, the fit to both does not.
  std::vector<MeasuredTable> tables;
  for (const char* name : {"dranet-b200-1x2-all_gather", "dranet-b200-2x8-all_gather"})
    tables.push_back(
        load_measured(fmt::format("{}/{}.csv", source_tree.measured.front(), name), {"test"}).value().tables.at(0));
  Machines machines = Machines::shipped(source_tree).value();
  const auto fitted = calibrate(tables, machines, Statistic::mean, Library::nccl);
  REQUIRE(fitted.ok());
  REQUIRE(fitted->report.machines.size() == 1);
  const auto& machine = fitted->report.machines.at(0);
  REQUIRE(machine.unseen);
  for (const auto& band : fitted->overlay.machines.at(0).residuals) {
    int rows = 0, within = 0;
    for (const auto& table : machine.residuals)
      for (const auto& row : table.rows) {
        if (to_string(band_of(table.of(row).size)) != band.band) continue;
        ++rows;
        const double times = row.measured / table.of(row).fitted;
        within += band.low <= times && times <= band.high ? 1 : 0;
      }
    CAPTURE(band.band, rows, within, band.low, band.high);
    CHECK(rows == band.rows);
    CHECK(10 * within >= 8 * rows);
  }
}

TEST_CASE("what PCIe carries through bridge and sockets is found by tables that go further, and not by one way alone") {
  NcclFactors truth;
  truth.simple = 1.2;
  truth.ll = 1.2;
  truth.host_bridge = 0.25;
  truth.sockets = 0.4;
  const auto fitted_to = [&](std::initializer_list<int> gpus) {
    std::vector<MeasuredTable> tables;
    for (const char* collective : {"all_reduce", "all_gather", "alltoall"})
      for (const int n : gpus)
        tables.push_back(
            table_of(truth, std::string(collective) + std::to_string(n), collective, 1, 1, n, "l40s-pcie"));
    Machines machines = Machines::only(machine_named("l40s-pcie"));
    const auto fitted = calibrate(tables, machines, Statistic::mean, Library::nccl);
    REQUIRE(fitted.ok());
    return *fitted;
  };
  const auto all = fitted_to({2, 4, 8});
  const NcclFactors found = all.overlay.machines.at(0).nccl;
  CHECK(found.host_bridge == Approx(0.25).epsilon(0.1));
  CHECK(found.sockets == Approx(0.4).epsilon(0.1));
  CHECK(found.simple == Approx(1.2).epsilon(0.1));
  // Four cards alone: by which part of their way data are slow is not to be seen.
  const auto alone = fitted_to({4});
  const auto& names = alone.report.machines.at(0).fitted;
  for (const char* name : {"host_bridge", "sockets"}) CHECK(std::ranges::find(names, name) == names.end());
  CHECK(alone.overlay.machines.at(0).nccl.simple == Approx(0.3).epsilon(0.1));
  CHECK(alone.report.machines.at(0).after[2].median_ape < 0.1);
}

TEST_CASE("NICs that are far slower are found though twice as slow would not show") {
  // Two channels of a pair of ranks carry less than a NIC, so that the sum of errors is flat around the data sheet.
  NcclFactors truth;
  truth.network = 0.3;
  std::vector<MeasuredTable> tables{table_of(truth, "pairs", "sendrecv", 2)};
  Machines machines = Machines::only(dgx_h100());
  const auto fitted = calibrate(tables, machines, Statistic::mean, Library::nccl);
  REQUIRE(fitted.ok());
  CHECK(fitted->overlay.machines.at(0).nccl.network == Approx(0.3).epsilon(0.1));
}

TEST_CASE("a network that carries a third of what it is described with is found in one table of two nodes") {
  // Of 400 Gb/s: the wide scan steps over these, and links inside the nodes had stood for them until their bounds.
  for (const int rate : {80, 120, 133, 150}) {
    CAPTURE(rate);
    const Override slow{"network.link.bandwidth", fmt::format("{}Gb/s", rate), {}, {}};
    MeasuredTable log = table_of({}, "log", "all_reduce", 2, 1, 8, "dgx-h200", 1024, 23);
    // Heads of NVLS have no more inside than NICs do, by which NCCL leaves them: what no factor says above a quarter.
    if (rate > 100) log.facts.environment = {{"NCCL_ALGO", "NVLSTree"}};
    Machines truth = Machines::only(machine_named("dgx-h200", {slow}));
    const auto place = truth.place(log);
    REQUIRE(place.ok());
    for (MeasuredPoint& point : log.points)
      point.time = nccl_prediction()(*place, place->request(point.size)).value().time;
    Machines machines = Machines::only(machine_named("dgx-h200"));
    const auto fitted = calibrate({log}, machines, Statistic::mean, Library::nccl);
    REQUIRE(fitted.ok());
    const auto& machine = fitted->report.machines.at(0);
    const Calibration& found = fitted->overlay.machines.at(0);
    CHECK(found.nccl.network * found.nccl.nic_rate < 0.4);
    CHECK(machine.before[2].median_ape > 0.4);
    // At 80 Gb/s NCCL takes other channels, which the NICs' rate says and no factor does.
    CHECK(machine.after[2].median_ape < 0.01);
    CHECK(machine.far_off.empty());
    CHECK((found.nccl.nic_rate < 1) == (rate == 80));
    CHECK(fit_warnings(fitted->report).empty());
    CHECK(overlay_text(fitted->overlay).find("# still far off") == std::string::npos);
  }
}

TEST_CASE("sizes that no factor stands for are said to be far off, wherever the fit is read") {
  MeasuredTable log = table_of({}, "log", "all_reduce", 2, 1, 8, "dgx-h200", 1024, 23);
  constexpr std::array<double, 3> longer{1.5, 4, 10};
  for (std::size_t i = 0; i < log.points.size(); ++i)
    if (log.points[i].size > Bytes(4 << 20)) log.points[i].time *= longer[i % longer.size()];
  Machines machines = Machines::only(machine_named("dgx-h200"));
  const auto fitted = calibrate({log}, machines, Statistic::mean, Library::nccl);
  REQUIRE(fitted.ok());
  CHECK(fitted->report.machines.at(0).far_off == std::vector<Band>{Band::large});
  const std::vector<std::string> said = fit_warnings(fitted->report);
  const auto far = std::ranges::find_if(said, [](const std::string& text) {
    return text.starts_with("dgx-h200: sizes above 4 MiB are still far off with the fit: median error ");
  });
  REQUIRE(far != said.end());
  CHECK(far->ends_with(
      "; the fit found none better: errors beyond a fifth count less in it, and factors are held near 1"));
  CHECK(overlay_text(fitted->overlay)
            .find("# still far off: the fit found none better; errors beyond a fifth count less in it, and factors "
                  "are held near 1\n") != std::string::npos);
  CHECK(json(fitted->report).find(*far) != std::string::npos);
  CHECK(parse_overlay(overlay_text(fitted->overlay), "o.yaml").ok());
}

namespace {

/// What NCCL takes on two nodes of that machine with NICs of a part of their rate, by which it chooses, too.
MeasuredTable table_of_slow_nics(double part, const std::string& collective) {
  const Override slow{"network.link.bandwidth", fmt::format("{}Gb/s", 400 * part), {}, {}};
  MeasuredTable out = table_of({}, collective, collective, 2, 1, 8, "dgx-h200", 1024, 21);
  Machines truth = Machines::only(machine_named("dgx-h200", {slow}));
  const auto place = truth.place(out);
  REQUIRE(place.ok());
  for (MeasuredPoint& point : out.points)
    point.time = nccl_prediction()(*place, place->request(point.size)).value().time;
  return out;
}

}  // namespace

TEST_CASE("a network that is ten to fifty times slower than described is found, and the overlay says so") {
  for (const double times : {10, 20, 50})
    for (const bool alone : {true, false}) {
      CAPTURE(times, alone);
      std::vector<MeasuredTable> tables{table_of_slow_nics(1 / times, "all_reduce")};
      if (!alone)
        for (const char* other : {"all_gather", "alltoall"}) tables.push_back(table_of_slow_nics(1 / times, other));
      Machines machines = Machines::only(machine_named("dgx-h200"));
      const auto fitted = calibrate(tables, machines, Statistic::mean, Library::nccl);
      REQUIRE(fitted.ok());
      const auto& machine = fitted->report.machines.at(0);
      CHECK(machine.before[2].median_ape > 0.5);
      CHECK(machine.after[2].median_ape < 0.05);
      const NcclFactors& found = fitted->overlay.machines.at(0).nccl;
      CHECK(found.network * found.nic_rate == Approx(1 / times).epsilon(0.15));
      const std::vector<std::string> said = fit_warnings(fitted->report);
      REQUIRE_FALSE(said.empty());
      CHECK(said[0].starts_with("dgx-h200: the network carries "));
      const std::string text = overlay_text(fitted->overlay);
      CHECK(text.find("# the network carries ") != std::string::npos);
      // Read back it makes the same forecast.
      const auto overlay = parse_overlay(text, "o.yaml");
      REQUIRE(overlay.ok());
      CHECK(overlay->machines.at(0).nccl.nic_rate == Approx(found.nic_rate).epsilon(1e-5));
      Machines again = Machines::only(machine_named("dgx-h200"));
      again.calibrate(*overlay, Library::nccl);
      const auto place = again.place(tables[0]);
      REQUIRE(place.ok());
      const MeasuredPoint& last = tables[0].points.back();
      CHECK(nccl_prediction()(*place, place->request(last.size)).value().time / last.time == Approx(1).epsilon(0.05));
    }
}

TEST_CASE("NICs that carry a twentieth of what NCCL takes them for are found, too") {
  NcclFactors truth;
  truth.network = 0.05;
  std::vector<MeasuredTable> tables;
  for (const char* collective : {"all_reduce", "all_gather"})
    tables.push_back(table_of(truth, collective, collective, 2));
  Machines machines = Machines::only(dgx_h100());
  const auto fitted = calibrate(tables, machines, Statistic::mean, Library::nccl);
  REQUIRE(fitted.ok());
  CHECK(fitted->report.machines.at(0).after[2].median_ape < 0.05);
  CHECK_FALSE(far_network_text(fitted->report.machines.at(0), true).empty());
}

TEST_CASE("a fit of several systems on one named machine says that it is between them") {
  std::vector<MeasuredTable> tables{table_of({}, "a", "all_reduce", 1), table_of({}, "b", "all_gather", 1)};
  const auto said = [&] {
    Machines machines = Machines::only(dgx_h100());
    const auto fitted = calibrate(tables, machines, Statistic::mean, Library::nccl);
    REQUIRE(fitted.ok());
    return std::ranges::any_of(fitted->report.warnings, [](const std::string& text) {
      return text.starts_with("'dgx-h100': its tables are of 2 systems (made-up, other)");
    });
  };
  CHECK_FALSE(said());
  tables[1].facts.system = "other";
  CHECK(said());
}

TEST_CASE("a fit stops where NICs and links would carry more than their line rate, and says so") {
  NcclFactors truth;
  truth.network = 1.25;  // of NICs that reach 0.975 as they are
  truth.simple = 1.5;    // of NVLinks that reach 0.83
  std::vector<MeasuredTable> tables;
  for (const char* collective : {"all_gather", "reduce_scatter", "alltoall"})
    for (const int nodes : {1, 2})
      tables.push_back(table_of(truth, std::string(collective) + std::to_string(nodes), collective, nodes));
  Machines machines = Machines::only(dgx_h100());
  const auto fitted = calibrate(tables, machines, Statistic::mean, Library::nccl);
  REQUIRE(fitted.ok());
  const Calibration& found = fitted->overlay.machines.at(0);
  CHECK(found.nccl.network == Approx(1 / 0.975).epsilon(1e-3));
  CHECK(found.nccl.simple == Approx(1 / 0.83).epsilon(1e-3));
  const auto& machine = fitted->report.machines.at(0);
  CHECK(std::ranges::count(machine.at_bounds, "network") == 1);
  CHECK(std::ranges::count(machine.at_bounds, "simple") == 1);
  std::ostringstream page;
  write(page, fitted->report, Format::markdown);
  CHECK(page.str().find("network ended at its bound of 1.03 (") != std::string::npos);
  CHECK(overlay_text(fitted->overlay).find("\n    # network ended at its bound of 1.03 (") != std::string::npos);
}

TEST_CASE("of several nodes alone a fit leaves what is inside nodes near what one node tells") {
  NcclFactors truth;
  truth.network = 0.25;
  truth.simple = 0.3;  // which no table on one node says
  truth.hop = 5;
  std::vector<std::string> notes;
  const auto fitted = [&](const std::vector<int>& nodes) {
    std::vector<MeasuredTable> tables;
    for (const char* collective : {"all_gather", "reduce_scatter"})
      for (const int n : nodes)
        tables.push_back(table_of(truth, std::string(collective) + std::to_string(n), collective, n));
    Machines machines = Machines::only(dgx_h100());
    const auto out = calibrate(tables, machines, Statistic::mean, Library::nccl);
    REQUIRE(out.ok());
    notes = out->report.machines.at(0).bounds;
    return out->overlay.machines.at(0).nccl;
  };
  const NcclFactors with = fitted({1, 2}), without = fitted({2, 4});
  CHECK(with.simple == Approx(0.3).epsilon(0.1));
  CHECK(with.hop > 1.6);
  CHECK(without.simple >= 0.8 - 1e-9);
  CHECK(without.hop <= 1.6 + 1e-9);
  CHECK(without.network < 0.5);
  REQUIRE_FALSE(notes.empty());
  for (const std::string& note : notes)
    if (note.find("simple ended") == 0 || note.find("hop ended") == 0)
      CHECK(note.find("no table is on one node") != std::string::npos);
}

TEST_CASE("what each factor may be is one table, which files and the page on them follow") {
  std::ifstream file(COLLCAST_SOURCE_DIR "/docs/formats.md");
  std::stringstream formats;
  formats << file.rdbuf();
  for (const NcclFactor& factor : nccl_factors) {
    CAPTURE(factor.name);
    CHECK(factor.least < 1);
    CHECK(factor.most > 1);
    const std::string row = fmt::format("| `{}` | {} to {} | {} |", factor.name, factor.least, factor.most, factor.why);
    CHECK(formats.str().find(row) != std::string::npos);
    const auto read = [&](double value) {
      return parse_overlay(fmt::format("schema: collcast.overlay.v1\nfitted_by: x\nmachines:\n  - machine: a\n"
                                       "    library: nccl\n    factors: {{{}: {}}}\n",
                                       factor.name, value),
                           "o.yaml");
    };
    CHECK(read(factor.least).ok());
    CHECK(read(factor.most).ok());
    CHECK_FALSE(read(factor.least * 0.99).ok());
    CHECK_FALSE(read(factor.most * 1.01).ok());
  }
}

TEST_CASE("an overlay names the rows that its fit leaves furthest off, and the residuals are all rows") {
  const NcclFactors as_they_are;
  std::vector<MeasuredTable> tables{table_of(as_they_are, "a", "all_reduce", 1),
                                    table_of(as_they_are, "b", "all_gather", 1)};
  tables[1].points[3].time = tables[1].points[3].time * 5;
  Machines machines = Machines::only(dgx_h100());
  const auto fitted = calibrate(tables, machines, Statistic::mean, Library::nccl);
  REQUIRE(fitted.ok());
  const auto& remarks = fitted->overlay.remarks;
  REQUIRE(remarks.size() == 3);
  CHECK(remarks[0] == "Furthest off of 44 rows, one of a table (--residuals FILE.csv writes all of them):");
  CHECK(remarks[1].starts_with("  b, all_gather 8 KiB: measured "));
  CHECK(remarks[2].starts_with("  a, all_reduce "));
  CHECK(overlay_text(fitted->overlay).find("\n# " + remarks[1] + "\n") != std::string::npos);
  REQUIRE(fitted->report.machines.at(0).rows() == 44);
  const auto& table = fitted->report.machines.at(0).residuals.at(1);
  CHECK(table.table == "b");
  const auto& off = table.rows.at(3);
  CHECK(table.of(off).size == Bytes(8192));
  CHECK(off.measured == tables[1].points[3].time);
  CHECK(table.of(off).described / off.measured == Approx(0.2));
  CHECK(table.error(off) == Approx(-0.8).margin(0.05));
  std::ostringstream csv;
  write_residuals(csv, fitted->report);
  std::istringstream lines(csv.str());
  std::vector<std::string> read;
  for (std::string line; std::getline(lines, line);) read.push_back(line);
  REQUIRE(read.size() == 1 + 44);
  CHECK(read.front().starts_with("topology,"));
  CHECK(read.front().ends_with(",error"));
  CHECK(read[1 + 25].starts_with("dgx-h100,b,"));
}

TEST_CASE("where NCCL took LL and Simple only, the fit says so; where it took LL128, it does not") {
  for (const bool takes : {true, false}) {
    NcclFactors truth;
    truth.hop = 1.3;
    truth.takes_ll128 = takes;
    std::vector<MeasuredTable> tables;
    for (const char* collective : {"all_gather", "reduce_scatter"})
      for (const int nodes : {1, 2})
        tables.push_back(table_of(truth, std::string(collective) + std::to_string(nodes), collective, nodes));
    Machines machines = Machines::only(dgx_h100());
    const auto fitted = calibrate(tables, machines, Statistic::mean, Library::nccl);
    REQUIRE(fitted.ok());
    const NcclFactors& found = fitted->overlay.machines.at(0).nccl;
    CHECK(found.takes_ll128 == takes);
    CHECK(found.hop == Approx(1.3).epsilon(0.1));
  }
}

TEST_CASE("that LL128 is taken is found however much slower than forecast a log is as a whole") {
  // From 8 B to 1 GiB, one table. At 1.3 the fit with LL128 had ended in a worse valley than the one without.
  for (const double times : {1.15, 1.2, 1.25, 1.3, 1.35, 1.4, 1.5}) {
    CAPTURE(times);
    const MeasuredTable log = table_of({}, "log", "all_reduce", 2, times, 8, "dgx-h100", 8, 28);
    Machines machines = Machines::only(dgx_h100());
    const auto fitted = calibrate({log}, machines, Statistic::mean, Library::nccl);
    REQUIRE(fitted.ok());
    CHECK(fitted->overlay.machines.at(0).nccl.takes_ll128);
  }
}

TEST_CASE("a calibration of library nccl is written and read back, beside one of library ideal") {
  Calibration nccl =
      of_factors({1.25, 1, 0.5, 2, 1.125, 1, 0.75, 0.875, 1, 1.5, 0.625, 3, 0.25, 1.75, 0.125, 1.5, false});
  nccl.residuals = {{"large", 12, 0.2, 0.05, 0.9375, 1.0625}};
  nccl.range = Calibration::Range{Bytes(8), Bytes(1 << 30), 2, 64, 1, 8, {"all_reduce", "alltoall"}};
  Calibration ideal;
  ideal.machine = "dgx-h100";
  ideal.base_latency = Seconds(12e-6);
  const Overlay overlay{"o.yaml", "collcast x", {nccl, ideal}};
  const auto read = parse_overlay(overlay_text(overlay), "o.yaml");
  INFO(to_text(read.errors()));
  REQUIRE(read.ok());
  CHECK(overlay_text(*read) == overlay_text(overlay));
  const Calibration* found = read->find("dgx-h100", Library::nccl);
  REQUIRE(found != nullptr);
  for (const NcclFactor& factor : nccl_factors) CHECK(found->nccl.*factor.value == nccl.nccl.*factor.value);
  CHECK_FALSE(found->nccl.takes_ll128);
  CHECK(found->residuals.at(0).high == 1.0625);
  CHECK(found->range->most_ranks == 64);
  CHECK(read->find("dgx-h100", Library::ideal)->base_latency.count() == Approx(12e-6));
  // Rates and latencies of links are library ideal's; factors leave them alone.
  CHECK(calibrated(dgx_h100(), *found).links.front().bandwidth == dgx_h100().links.front().bandwidth);
  CHECK(calibrated(dgx_h100(), *found).nccl.network_hop == 2);

  const auto wrong = parse_overlay(
      "schema: collcast.overlay.v1\nfitted_by: x\nmachines:\n  - machine: a\n    library: nccl\n"
      "    factors: {launch: 30, hpo: 1, takes_ll128: 2}\n    base_latency: 1us\n",
      "o.yaml");
  REQUIRE_FALSE(wrong.ok());
  const std::string errors = to_text(wrong.errors());
  CHECK(errors.find("o.yaml:6:23: error: machines.0.factors.launch is '30'") != std::string::npos);
  CHECK(errors.find("did you mean 'hop'?") != std::string::npos);
  CHECK(errors.find("machines.0.factors.takes_ll128 is '2'") != std::string::npos);
  CHECK(errors.find("unknown key 'base_latency'") != std::string::npos);
}

TEST_CASE("a table left out is scored by the others of its system, and by nothing of its own") {
  const NcclFactors as_they_are;
  std::vector<MeasuredTable> tables{table_of(as_they_are, "a", "all_reduce", 1),
                                    table_of(as_they_are, "b", "all_gather", 1),
                                    table_of(as_they_are, "slow", "reduce_scatter", 1, 2.0)};
  tables.push_back(table_of(as_they_are, "alone", "all_reduce", 1));
  tables.back().facts.system = "another";
  tables.push_back(table_of(as_they_are, "broken", "all_reduce", 1));
  tables.back().facts.health = Health::no;
  Machines machines = Machines::only(dgx_h100());
  const ValidateReport report = leave_one_out(tables, machines, Library::nccl, Statistic::mean);
  REQUIRE(report.tables.size() == 3);
  const auto& slow = report.tables.at(2);
  CHECK(slow.id == "slow");
  CHECK(slow.calibrated);
  // The others are as forecast, so the fit to them changes nothing: twice the time is half forecast.
  for (const BandError& error : slow.errors) CHECK(error.median_ape == Approx(0.5).margin(0.01));
  REQUIRE(report.unscored.size() == 2);
  CHECK(report.unscored[0].id == "alone");
  CHECK(report.unscored[0].why == "no other table of its system to fit to");
  CHECK(report.unscored[1].id == "broken");
}

TEST_CASE("tables of one system on two machines are left out by machine") {
  // Nobody's system: the machine is by GPU. Tables of one take 1.5 times their forecast, those of the other take it.
  const NcclFactors as_they_are;
  std::vector<MeasuredTable> tables;
  for (const auto& [name, gpu, times] :
       {std::tuple("dgx-h100", "H100-SXM5-80GB", 1.5), std::tuple("dgx1-v100", "V100-SXM2-32GB", 1.0)})
    for (const char* collective : {"all_reduce", "all_gather"}) {
      tables.push_back(table_of(as_they_are, fmt::format("{} {}", name, collective), collective, 1, times, 8, name));
      tables.back().facts.system = "unknown";
      tables.back().facts.gpu = gpu;
    }
  for (const Library library : {Library::nccl, Library::ideal}) {
    CAPTURE(to_string(library));
    Machines machines = Machines::among({dgx_h100(), machine_named("dgx1-v100")});
    const ValidateReport report = leave_one_out(tables, machines, library, Statistic::mean);
    REQUIRE(report.tables.size() == 4);
    for (const ScoredTable& table : report.tables) {
      CAPTURE(table.id, table.topology);
      CHECK(table.id.starts_with(table.topology + " "));
      CHECK(table.calibrated);
    }
    if (library == Library::ideal) continue;
    // As described large sizes of the first are off by 1 - 1/1.5 = 1/3; the other of the machine says so.
    for (const ScoredTable& table : report.tables) CHECK(table.errors[2].median_ape < 0.2);
  }
}

TEST_CASE("tables of another setting of the network say little of one left out, and a calibration warns of it") {
  const NcclFactors as_they_are;
  const MeasuredTable a = table_of(as_they_are, "a", "all_gather", 4),
                      b = table_of(as_they_are, "b", "reduce_scatter", 4);
  const auto slow_with = [&](const char* name, const char* value) {
    std::vector<MeasuredTable> out{a, b, table_of(as_they_are, "slow", "all_gather", 2, 2.0),
                                   table_of(as_they_are, "slow too", "reduce_scatter", 2, 2.0)};
    for (std::size_t i = 2; i < out.size(); ++i) out[i].facts.environment = {{name, value}};
    return out;
  };
  const auto small_error = [](const std::vector<MeasuredTable>& tables) {
    Machines machines = Machines::only(dgx_h100());
    return leave_one_out(tables, machines, Library::nccl, Statistic::mean).tables.at(0).errors.at(0).median_ape;
  };
  // What NCCL itself follows is no other setting of the network.
  const double alike = small_error(slow_with("NCCL_NVLS_ENABLE", "0"));
  CHECK(alike > 0.1);
  CHECK(small_error(slow_with("FI_CXI_RX_MATCH_MODE", "software")) < alike / 2);
  const auto warnings = [](const std::vector<MeasuredTable>& tables) {
    Machines machines = Machines::only(dgx_h100());
    return calibrate(tables, machines, Statistic::mean, Library::nccl)->report.warnings;
  };
  CHECK(warnings(slow_with("NCCL_NVLS_ENABLE", "0")).empty());
  REQUIRE(warnings(slow_with("FI_PROVIDER", "efa")).size() == 1);
  CHECK(warnings(slow_with("FI_PROVIDER", "efa"))[0] ==
        "'dgx-h100': its tables were measured with 2 settings of the network (FI_PROVIDER), and the calibration is "
        "between them; fit the tables of one apart for a closer one");
}
