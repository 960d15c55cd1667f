// Overlays as files, and fits: of times that the model made itself, whose parameters are known.
#include "collcast/validation/calibrate.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "shipped.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

TopologySpec spec_of(const std::string& name) {
  Result<TopologySpec> spec = load_topology(name, machine_files);
  REQUIRE(spec.ok());
  return std::move(spec).value();
}

/// A table of what the model says of a calibrated machine.
MeasuredTable made_up(const TopologySpec& spec, const Calibration& truth, const std::string& collective) {
  MeasuredTable out;
  out.facts.id = "made-up-" + collective;
  out.facts.collective = collective;
  out.facts.nodes = 2;
  out.facts.ranks = 16;
  for (int i = 0; i < 20; ++i) out.points.push_back({Bytes(std::int64_t{1024} << i), Seconds(1), false, {}});
  Machines machines = Machines::only(spec);
  machines.calibrate({"", "", {truth}});
  const auto place = machines.place(out);
  REQUIRE(place.ok());
  for (MeasuredPoint& point : out.points)
    point.time = ideal_prediction(Method::estimate)(*place, place->request(point.size)).value().time;
  return out;
}

const std::string good =
    "schema: collcast.overlay.v1\nfitted_by: \"collcast 0.1.0\"\nmachines:\n  - machine: star\n    base_latency: 12us\n"
    "    latency_scale: 2\n    efficiency: {nvlink: 0.8, pcie: 1, network: 0.5}\n";

}  // namespace

TEST_CASE("an overlay is written and read back the same") {
  Overlay overlay{
      "o.yaml",
      "collcast x",
      {{"star", Seconds(12e-6), 2, {0.8, 1, 0.5}, {{"small", 7, 0.5, 0.25}}, {"a-1"}, "fnv1a64:1", {"a.b='c'"}}}};
  const auto read = parse_overlay(overlay_text(overlay), "o.yaml");
  REQUIRE(read.ok());
  CHECK(overlay_text(*read) == overlay_text(overlay));
  CHECK(read->machines[0].base_latency.count() == Approx(12e-6));
  CHECK(read->machines[0].tables == std::vector<std::string>{"a-1"});
  CHECK(read->machines[0].description == "fnv1a64:1");
  CHECK(read->machines[0].set == std::vector<std::string>{"a.b='c'"});
}

TEST_CASE("an overlay's mistakes are errors at their places, all at once") {
  const auto errors_of = [](const std::string& text) {
    const auto read = parse_overlay(text, "o.yaml");
    REQUIRE_FALSE(read.ok());
    return to_text(read.errors());
  };
  std::string bad = good;
  bad.replace(bad.find("12us"), 4, "12");
  bad.replace(bad.find("latency_scale: 2"), 16, "latency_scale: 0");
  bad.replace(bad.find("network: 0.5"), 12, "netwrk: 1.5");
  const std::string errors = errors_of(bad);
  CHECK(errors.find("o.yaml:5:19: error: machines.0.base_latency is '12'") != std::string::npos);
  CHECK(errors.find("o.yaml:6:20: error: machines.0.latency_scale is '0'") != std::string::npos);
  CHECK(errors.find("unknown key 'netwrk'") != std::string::npos);
  CHECK(errors.find("did you mean 'network'?") != std::string::npos);
  // A version of its own hides nothing else; a file of another kind is said once.
  std::string version = bad;
  version.replace(version.find("overlay.v1"), 10, "overlay.v2");
  const std::string all = errors_of(version);
  CHECK(all.find("o.yaml:1:9: error: schema is 'collcast.overlay.v2'") != std::string::npos);
  CHECK(all.find("unknown key 'netwrk'") != std::string::npos);
  CHECK(all.find("base_latency is '12'") != std::string::npos);
  CHECK(errors_of(good + good.substr(good.find("  - machine"))).find("calibrated twice") != std::string::npos);
  CHECK(errors_of("schema: collcast.overlay.v1\nfitted_by: x\nmachines: []\n").find("machines is empty") !=
        std::string::npos);
  // Which keys there should be depends on the library: of one that is not known that alone is said.
  const std::string foreign = errors_of(
      "schema: collcast.overlay.v1\nfitted_by: x\nmachines:\n"
      "  - machine: dgx-h100\n    library: foo\n    factors: {links: 1}\n");
  CHECK(foreign.starts_with("o.yaml:5:14: error: machines.0.library is 'foo'"));
  CHECK(foreign.find("base_latency") == std::string::npos);
  CHECK(foreign.find("factors") == std::string::npos);
  CHECK(errors_of("schema: collcast.topology.v1\nname: x\n").find("collcast.overlay.v1") != std::string::npos);
  CHECK(errors_of("schema: collcast.overlay.v1\n").find("required key 'machines' is missing") != std::string::npos);
}

TEST_CASE("a calibration scales links and leaves the description as it is") {
  const TopologySpec spec = spec_of("dgx-h100");
  const Calibration by{"dgx-h100", Seconds(1e-6), 3, {0.5, 0.25, 0.125}, {}, {}};
  const auto plain = Fabric::build(spec, 2), scaled = Fabric::build(calibrated(spec, by), 2);
  REQUIRE((plain.ok() && scaled.ok()));
  for (std::size_t i = 0; i < plain->links().size(); ++i) {
    const Link& a = plain->links()[i];
    const Link& b = scaled->links()[i];
    CHECK(b.latency.count() == Approx(3 * a.latency.count()));
    CHECK(b.bandwidth.value() ==
          Approx(by.efficiency[static_cast<std::size_t>(class_of(a.kind))] * a.bandwidth.value()));
  }
}

TEST_CASE("an overlay for another machine says which it is for") {
  const auto overlay = parse_overlay(good, "o.yaml");
  REQUIRE(overlay.ok());
  const auto none = calibration_of(*overlay, "ring", Library::ideal, {"command line"});
  REQUIRE_FALSE(none.ok());
  CHECK(none.errors().front().message == "'o.yaml' does not calibrate 'ring'");
  CHECK(none.errors().front().hint == "it is for: star");
}

TEST_CASE("parameters that made the times are found again") {
  const TopologySpec spec = spec_of("dgx-h100");
  const Calibration truth{"dgx-h100", Seconds(20e-6), 2.5, {0.7, 1, 0.6}, {}, {}};
  const std::vector<MeasuredTable> tables{made_up(spec, truth, "all_reduce"), made_up(spec, truth, "all_gather")};
  Machines machines = Machines::only(spec);
  const auto fitted = calibrate(tables, machines, Statistic::mean);
  REQUIRE(fitted.ok());
  const Calibration& found = fitted->overlay.machines.at(0);
  // The times follow from the parameters alone, so the fit must come back to them; 3 % is the optimiser's tolerance.
  CHECK(found.base_latency.count() == Approx(20e-6).epsilon(0.03));
  CHECK(found.latency_scale == Approx(2.5).epsilon(0.03));
  CHECK(found.efficiency[2] == Approx(0.6).epsilon(0.03));
  const auto& machine = fitted->report.machines.at(0);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(machine.before[i].median_ape > 0.2);
    CHECK(machine.after[i].median_ape < 0.02);
  }
}

TEST_CASE("a band that the fit makes worse is named: in the report, as a warning, and beside its residual") {
  const TopologySpec spec = spec_of("star");
  // Three small rows are what the data sheet says; twenty others want a hundred times the latency.
  MeasuredTable exact = made_up(spec, {"star", Seconds(0), 1, {1, 1, 1}, {}, {}}, "all_gather");
  exact.points.resize(3);
  MeasuredTable slow = made_up(spec, {"star", Seconds(5e-3), 100, {1, 1, 1}, {}, {}}, "all_reduce");
  std::erase_if(slow.points, [](const MeasuredPoint& point) { return band_of(point.size) == Band::small; });
  Machines machines = Machines::only(spec);
  const auto fitted = calibrate({exact, slow}, machines, Statistic::mean);
  REQUIRE(fitted.ok());
  const auto& machine = fitted->report.machines.at(0);
  CHECK(machine.before[0].median_ape < 1e-9);
  CHECK(machine.after[0].median_ape > 1);
  for (const Band band : bands) {
    const auto i = static_cast<std::size_t>(band);
    const bool worse = machine.after[i].median_ape > machine.before[i].median_ape + 0.001;
    CHECK((std::count(machine.worse.begin(), machine.worse.end(), band) == 1) == worse);
  }
  REQUIRE(machine.worse.front() == Band::small);
  CHECK(machine.worse.size() < 3);
  const std::vector<std::string> said = fit_warnings(fitted->report);
  REQUIRE(said.size() == machine.worse.size() + machine.far_off.size());
  CHECK(said[0].find("star: sizes below 64 KiB are further off with the fit than without it: median error 0.0% -> ") ==
        0);
  CHECK(said[0].find("over 3 rows") != std::string::npos);
  CHECK(json(fitted->report).find(said[0]) != std::string::npos);
  const std::string text = overlay_text(fitted->overlay);
  for (const Band band : bands) {
    const std::size_t at = text.find(std::string(to_string(band)) + ": {rows: ");
    REQUIRE(at != std::string::npos);
    const bool worse = std::count(machine.worse.begin(), machine.worse.end(), band) > 0;
    const bool far_off = machine.after[static_cast<std::size_t>(band)].median_ape >= 0.2;
    const std::string line = text.substr(at, text.find('\n', at) - at);
    CHECK((line.find("}   # worse than without the fit") != std::string::npos) == worse);
    // In a fit of library ideal all errors count in full.
    CHECK(line.ends_with("}   # still far off: the fit found none better") == (far_off && !worse));
    CHECK(line.ends_with('}') == !(worse || far_off));
  }
  CHECK(parse_overlay(text, "o.yaml").ok());
}

TEST_CASE("what a fit found, what it could not see and what ended at a bound are told apart") {
  const TopologySpec spec = spec_of("star");
  // Twice as fast as the data sheet allows: the share of the bandwidth ends at all of it.
  MeasuredTable fast = made_up(spec, {"star", Seconds(0), 1, {1, 1, 1}, {}, {}}, "all_reduce");
  for (MeasuredPoint& point : fast.points) point.time = point.time / 2;
  Machines machines = Machines::only(spec);
  const auto fitted = calibrate({fast}, machines, Statistic::mean);
  REQUIRE(fitted.ok());
  const auto& machine = fitted->report.machines.at(0);
  const auto holds = [](const std::vector<std::string>& list, const char* name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  CHECK(holds(machine.fitted, "efficiency.network"));
  CHECK(holds(machine.at_bounds, "efficiency.network"));
  // There is no NVLink and no PCIe in a star: nothing was found of them, and 100 % would be a claim.
  CHECK_FALSE(holds(machine.fitted, "efficiency.nvlink"));
  CHECK_FALSE(holds(machine.at_bounds, "efficiency.pcie"));
  std::ostringstream shown;
  write_text(shown, page(fitted->report));
  const Table* table = nullptr;
  const Page whole = page(fitted->report);
  for (const auto& block : whole.blocks)
    if (table = std::get_if<Table>(&block); table != nullptr) {
      const std::vector<std::string>& cells = table->rows.at(0);
      for (std::size_t i = 0; i < cells.size(); ++i) {
        if (table->columns[i].title == "NVLink" || table->columns[i].title == "PCIe") CHECK(cells[i] == "-");
        if (table->columns[i].title == "network") CHECK(cells[i] == "100.0%");
      }
      break;
    }
  CHECK(table != nullptr);
  CHECK(shown.str().find("-: no row fitted to depends on it") != std::string::npos);
}

TEST_CASE("the same tables give the same overlay") {
  const TopologySpec spec = spec_of("star");
  const Calibration truth{"star", Seconds(30e-6), 1, {1, 1, 0.3}, {}, {}};
  const std::vector<MeasuredTable> tables{made_up(spec, truth, "all_reduce")};
  std::string texts[2];
  for (std::string& text : texts) {
    Machines machines = Machines::only(spec);
    const auto fitted = calibrate(tables, machines, Statistic::mean);
    REQUIRE(fitted.ok());
    text = overlay_text(fitted->overlay);
  }
  CHECK(texts[0] == texts[1]);
}

TEST_CASE("broken set-ups and very large groups are left out of a fit, and named") {
  const TopologySpec spec = spec_of("star");
  std::vector<MeasuredTable> tables{made_up(spec, {"star", Seconds(30e-6), 1, {1, 1, 0.3}, {}, {}}, "all_reduce")};
  tables.push_back(tables[0]);
  tables[1].facts.health = Health::no;
  tables.push_back(tables[0]);
  tables[2].facts.ranks = tables[2].facts.nodes = 1024;
  Machines machines = Machines::only(spec);
  const auto fitted = calibrate(tables, machines, Statistic::mean);
  REQUIRE(fitted.ok());
  REQUIRE(fitted->report.unused.size() == 2);
  CHECK(fitted->report.unused[0].why == "its source calls the set-up broken");
  CHECK(fitted->report.unused[1].why == "more than 512 ranks");
  tables.erase(tables.begin());
  CHECK_FALSE(calibrate(tables, machines, Statistic::mean).ok());
}

TEST_CASE("parts take every second size, both placements of it") {
  MeasuredTable table;
  for (const int size : {8, 16, 32})
    for (const bool in_place : {false, true}) table.points.push_back({Bytes(size), Seconds(1), in_place, {}});
  std::vector<MeasuredTable> first{table}, second{table};
  keep_part(first, {1, 2});
  keep_part(second, {2, 2});
  CHECK(first[0].points.size() == 4);
  REQUIRE(second[0].points.size() == 2);
  CHECK(second[0].points[0].size == Bytes(16));
}

TEST_CASE("parts of a table with as many sizes as rows take one walk over them") {
  // As a walk of its own for each row would be 10^10 steps and more.
  constexpr int rows = 1 << 18, parts = 3;
  MeasuredTable table;
  for (int i = rows; i > 0; --i) table.points.push_back({Bytes(8 * i), Seconds(1), false, {}});
  std::size_t all = 0;
  for (int part = 1; part <= parts; ++part) {
    std::vector<MeasuredTable> kept{table};
    CHECK(keep_part(kept, {part, parts}).empty());
    REQUIRE(kept.size() == 1);
    all += kept[0].points.size();
    // The i-th size, from 8 bytes on, is 8 * (i + 1): the order of rows stays.
    const auto is_of_part = [&](const MeasuredPoint& p) { return (p.size.value() / 8 - 1) % parts == part - 1; };
    CHECK(std::ranges::all_of(kept[0].points, is_of_part));
    CHECK(std::ranges::is_sorted(kept[0].points, std::greater(), &MeasuredPoint::size));
  }
  CHECK(all == rows);
}

TEST_CASE("an overlay's key is given once, and no end of a range is above the other") {
  const auto read = parse_overlay(
      "schema: collcast.overlay.v1\nfitted_by: x\nmachines:\n  - machine: a\n    library: nccl\n"
      "    factors: {launch: 2, launch: 3}\n"
      "    fitted_to: {least_size: 8MiB, most_size: 8B, least_ranks: 9, most_ranks: 2, least_nodes: 3, "
      "most_nodes: 1, collectives: [all_reduce]}\n"
      "    median_error:\n      small: {rows: 4, before: 0.1, after: 0.1, low: 2, high: 1}\n"
      "      medium: {rows: 4, before: 0.1, after: 0.1, low: 0.5}\n",
      "o.yaml");
  REQUIRE(read.errors().size() == 6);
  const std::string errors = to_text(read.errors());
  CHECK(errors.find("o.yaml:6:26: error: key 'launch' is given twice") != std::string::npos);
  CHECK(errors.find("machines.0.fitted_to.least_size is above its most_size") != std::string::npos);
  CHECK(errors.find("machines.0.fitted_to.least_ranks is above its most_ranks") != std::string::npos);
  CHECK(errors.find("machines.0.fitted_to.least_nodes is above its most_nodes") != std::string::npos);
  CHECK(errors.find("machines.0.median_error.small.low is above its high") != std::string::npos);
  CHECK(errors.find("machines.0.median_error.medium has low alone") != std::string::npos);
}

TEST_CASE("nodes of what an overlay was fitted to are read as they are written, and older files have none") {
  const auto read_with = [](const std::string& nodes) {
    return parse_overlay(
        "schema: collcast.overlay.v1\nfitted_by: x\nmachines:\n  - machine: a\n    library: nccl\n    factors: {}\n"
        "    fitted_to: {least_size: 8B, most_size: 8MiB, least_ranks: 2, most_ranks: 9, " +
            nodes + "collectives: [all_reduce]}\n",
        "o.yaml");
  };
  const Overlay old = read_with("").value();
  CHECK(old.machines[0].range->most_nodes == 0);
  CHECK(overlay_text(old).find("nodes") == std::string::npos);
  const Overlay one = read_with("least_nodes: 2, most_nodes: 4, ").value();
  CHECK(one.machines[0].range->least_nodes == 2);
  CHECK(one.machines[0].range->most_nodes == 4);
  CHECK(overlay_text(one).find("most_ranks: 9, least_nodes: 2, most_nodes: 4, collectives") != std::string::npos);
  const auto alone = read_with("most_nodes: 4, ");
  REQUIRE(alone.errors().size() == 1);
  CHECK(alone.errors()[0].message == "machines.0.fitted_to has most_nodes alone");
}

TEST_CASE("what an overlay was fitted to are collectives") {
  const auto read = parse_overlay(
      "schema: collcast.overlay.v1\nfitted_by: x\nmachines:\n  - machine: a\n    library: nccl\n    factors: {}\n"
      "    fitted_to: {least_size: 8B, most_size: 8MiB, least_ranks: 2, most_ranks: 9, collectives: [all_redcue]}\n",
      "o.yaml");
  REQUIRE(read.errors().size() == 1);
  CHECK(to_text(read.errors()[0].where) == "o.yaml:7:95");
  CHECK(read.errors()[0].message == "machines.0.fitted_to.collectives.0 is 'all_redcue'");
  CHECK(read.errors()[0].hint.starts_with("did you mean 'all_reduce'?"));
}
