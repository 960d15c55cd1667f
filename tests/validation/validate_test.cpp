// Errors, bands, medians and budgets, on predictions that the test makes up.
#include "collcast/validation/validate.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <oneapi/tbb/global_control.h>

#include "src/large_groups.hpp"

using namespace collcast;

namespace {

MeasuredTable table(const std::string& id, const std::string& collective, Health health,
                    const std::vector<std::pair<std::int64_t, double>>& rows) {
  MeasuredTable out;
  out.facts.id = id;
  out.facts.collective = collective;
  out.facts.nodes = 1;
  out.facts.ranks = 4;
  out.facts.health = health;
  for (const auto& [bytes, microseconds] : rows)
    out.points.push_back({Bytes(bytes), Seconds(microseconds * 1e-6), false, std::nullopt});
  return out;
}

Machines star() {
  const auto spec = load_topology("star", {{std::string(COLLCAST_SOURCE_DIR) + "/topologies"}, {}, {}});
  REQUIRE(spec.ok());
  return Machines::only(*spec);
}

/// Ten microseconds whatever is asked.
const Prediction ten = [](const PlacedTable&, const CollectiveRequest&) -> Result<Predicted> {
  return Predicted{Seconds(10e-6), "ring"};
};

}  // namespace

TEST_CASE("bands end below 64 KiB and at 4 MiB") {
  CHECK(band_of(Bytes(65535)) == Band::small);
  CHECK(band_of(Bytes(65536)) == Band::medium);
  CHECK(band_of(Bytes(4 << 20)) == Band::medium);
  CHECK(band_of(Bytes((4 << 20) + 1)) == Band::large);
}

TEST_CASE("a table's error is |predicted - measured| / measured per row, its mean and median per band") {
  Machines machines = star();
  // 10 us predicted against 20, 5 and 8: errors 0.5, 1 and 0.25; mean 1.75/3, median 0.5; ratios 0.5, 2, 1.25.
  const auto report = validate({table("a", "all_reduce", Health::yes, {{8, 20}, {16, 5}, {32, 8}, {1 << 20, 10}})},
                               machines, ten, Statistic::mean);
  REQUIRE(report.tables.size() == 1);
  const auto& errors = report.tables[0].errors;
  CHECK(errors[0].n == 3);
  CHECK(errors[0].mean_ape == Approx(1.75 / 3));
  CHECK(errors[0].median_ape == Approx(0.5));
  CHECK(errors[0].median_ratio == Approx(1.25));
  CHECK(errors[1].n == 1);
  CHECK(errors[1].median_ape == Approx(0).margin(1e-12));
  CHECK(errors[2].n == 0);
  CHECK(report.tables[0].algorithms == std::vector<std::string>{"ring"});
}

TEST_CASE("the median of an even number of rows is the mean of the two in the middle") {
  ErrorPool pool;
  pool.add({Bytes(8), Seconds(2), Seconds(1), {}});
  pool.add({Bytes(8), Seconds(4), Seconds(1), {}});
  CHECK(pool.take().median_ape == Approx((0.5 + 0.75) / 2));
  CHECK(pool.take().n == 0);  // it has been taken
}

TEST_CASE("set-ups that are called broken are summed up apart and do not count for budgets") {
  Machines machines = star();
  const auto report = validate(
      {table("good", "all_reduce", Health::yes, {{8, 10}}), table("unknown", "all_gather", Health::unknown, {{8, 20}}),
       table("bad", "all_reduce", Health::no, {{8, 100}})},
      machines, ten, Statistic::mean);
  const auto rows = summary(report);
  // Healthy: all_reduce, all_gather, all. Broken: all_reduce, all.
  REQUIRE(rows.size() == 5);
  CHECK(rows[2].collective.empty());
  CHECK(rows[2].healthy);
  CHECK(rows[2].tables == 2);
  CHECK(rows[2].error.median_ape == Approx(0.25));
  CHECK_FALSE(rows[4].healthy);
  CHECK(rows[4].error.median_ape == Approx(0.9));
  const auto budgets =
      outcomes(report, {{"", Band::small, 0.3}, {"all_gather", Band::small, 0.3}, {"", Band::large, 1}});
  CHECK(budgets[0].met());
  CHECK_FALSE(budgets[1].met());
  CHECK(budget_text(budgets[1]) == "budget all_gather.small: missed, 50.0% instead of 30.0%: 20.0 points too far");
  CHECK_FALSE(budgets[2].met());  // nothing was measured there
}

TEST_CASE("a size that comes again is asked for once, and each of its rows is scored with its own time") {
  Machines machines = star();
  std::map<Bytes, int> asked;
  const Prediction counting = [&](const PlacedTable&, const CollectiveRequest& request) -> Result<Predicted> {
    ++asked[request.size];
    return Predicted{Seconds(10e-6), request.size == Bytes(8) ? "tree" : "ring"};
  };
  const auto report =
      validate({table("a", "all_reduce", Health::yes, {{128, 10}, {8, 10}, {128, 20}, {8, 40}, {128, 5}})}, machines,
               counting, Statistic::mean);
  CHECK(asked == std::map<Bytes, int>{{Bytes(8), 1}, {Bytes(128), 1}});
  const ScoredTable& scored = report.tables.at(0);
  CHECK(scored.algorithms == std::vector<std::string>{"tree", "ring"});
  std::vector<double> us;
  for (const Deviation& row : scored.rows) us.push_back(std::round(row.measured.count() * 1e6));
  CHECK(us == std::vector<double>{10, 40, 10, 20, 5});  // by size, then as they came
  CHECK(scored.algorithms[scored.rows[1].algorithm] == "tree");
  CHECK(scored.algorithms[scored.rows[4].algorithm] == "ring");
  // 0, 3/4, 0, 1/2, 1
  CHECK(scored.errors[0].mean_ape == Approx(2.25 / 5));
}

TEST_CASE("a table that cannot be predicted is listed with the reason, the others are scored") {
  Machines machines = star();
  const Prediction only_small = [](const PlacedTable&, const CollectiveRequest& request) -> Result<Predicted> {
    if (request.size > Bytes(100)) return Diagnostic{{}, "too large for this test", ""};
    return Predicted{Seconds(10e-6), "ring"};
  };
  const auto report = validate(
      {table("a", "all_reduce", Health::yes, {{8, 10}}), table("b", "all_reduce", Health::yes, {{8, 10}, {128, 10}}),
       table("c", "hypercube", Health::yes, {{8, 10}})},
      machines, only_small, Statistic::mean);
  REQUIRE(report.tables.size() == 1);
  REQUIRE(report.unscored.size() == 2);
  CHECK(report.unscored[0].id == "b");
  CHECK(report.unscored[0].why == "too large for this test");
  CHECK(report.unscored[1].id == "c");
}

TEST_CASE("the statistic of a row is its mean where nothing else was written") {
  MeasuredTable table;
  MeasuredPoint point{Bytes(8), Seconds(3), false, std::nullopt};
  CHECK(time_of(table, point, Statistic::median) == Seconds(3));
  table.facts.spread = {{Bytes(8), false, Seconds(1), Seconds(2), Seconds(4), Seconds(5)}};
  point.spread = 0;
  CHECK(time_of(table, point, Statistic::mean) == Seconds(3));
  CHECK(time_of(table, point, Statistic::median) == Seconds(2));
  CHECK(time_of(table, point, Statistic::least) == Seconds(1));
}

TEST_CASE("a statistic that rows have not is said, and their mean counts") {
  MeasuredTable some = table("some", "all_reduce", Health::yes, {{8, 20}, {16, 20}});
  some.facts.spread = {{Bytes(8), false, Seconds(5e-6), Seconds(10e-6), {}, Seconds(50e-6)}};
  some.points[0].spread = 0;
  MeasuredTable all = some;
  all.facts.id = "all";
  all.points.pop_back();
  const MeasuredTable none = table("none", "all_reduce", Health::yes, {{8, 20}});
  Machines machines = star();
  const auto median = validate({some, all, none}, machines, ten, Statistic::median);
  CHECK(median.tables.at(0).rows.at(0).measured == Seconds(10e-6));
  CHECK(median.tables.at(0).rows.at(1).measured.count() == Approx(20e-6));
  const auto said = [](const ValidateReport& report, const std::string& text) {
    return std::count(report.warnings.begin(), report.warnings.end(), text);
  };
  CHECK(said(median, "some: some of its rows have no median of their repetitions: the mean that was printed counts"));
  CHECK(said(median, "none: its rows have no median of their repetitions: the mean that was printed counts"));
  for (const std::string& warning : median.warnings) CHECK_FALSE(warning.starts_with("all"));
  CHECK(said(validate({none}, machines, ten, Statistic::least),
             "none: its rows have no min of their repetitions: the mean that was printed counts"));
  for (const std::string& warning : validate({none}, machines, ten, Statistic::mean).warnings)
    CHECK(warning.find("repetitions") == std::string::npos);
}

TEST_CASE("the ideal prediction is the textbook's: a ring all-reduce of N bytes among k takes 2(k-1)/k N/B") {
  Machines machines = star();
  const MeasuredTable one = table("a", "all_reduce", Health::yes, {{1 << 30, 1}});
  const auto place = machines.place(one);
  REQUIRE(place.ok());
  for (const Method method : {Method::estimate, Method::simulate, Method::both}) {
    const auto predicted = memoized(ideal_prediction(method))(*place, place->request(Bytes(1 << 30)));
    REQUIRE(predicted.ok());
    CHECK(predicted->time.count() == Approx(2.0 * 3 / 4 * (1 << 30) / 10e9).epsilon(1e-6));
  }
}

TEST_CASE("large groups are priced at a few sizes and are right at all of them") {
  const auto spec = load_topology("dgx-h100", {{std::string(COLLCAST_SOURCE_DIR) + "/topologies"}, {}, {}});
  REQUIRE(spec.ok());
  Machines machines = Machines::only(*spec);
  MeasuredTable large = table("a", "all_gather", Health::yes, {});
  large.facts.nodes = 18;
  large.facts.ranks = 144;
  for (int i = 3; i < 32; ++i) large.points.push_back({Bytes(std::int64_t{1} << i), Seconds(1), false, std::nullopt});
  const auto place = machines.place(large);
  REQUIRE(place.ok());
  const Prediction predict = ideal_prediction(Method::estimate);
  for (const MeasuredPoint& point : large.points) {
    const auto predicted = predict(*place, place->request(point.size));
    const auto exact = fastest(*place->fabric, place->request(point.size), {});
    REQUIRE((predicted.ok() && exact.ok()));
    CAPTURE(point.size.value(), predicted->algorithm, exact->options.algorithm);
    CHECK(predicted->time.count() == Approx(exact->estimate.total.count()).epsilon(0.02));
  }
}

TEST_CASE("a closed form of the textbook's fails soon after it is ended, and is known again later") {
  const auto spec = load_topology("dgx-h100", {{std::string(COLLCAST_SOURCE_DIR) + "/topologies"}, {}, {}});
  REQUIRE(spec.ok());
  for (const int nodes : {4, 18}) {  // one by one, and all sizes at once
    Machines machines = Machines::only(*spec);
    MeasuredTable one = table("a", "all_reduce", Health::yes, {{1 << 20, 1}, {1 << 24, 1}});
    one.facts.nodes = nodes;
    one.facts.ranks = 8 * nodes;
    const auto place = machines.place(one);
    REQUIRE(place.ok());
    const auto full = ideal_prediction(Method::estimate)(*place, place->request(Bytes(1 << 20)));
    REQUIRE(full.ok());
    int asked = 0, most = 0;
    bool ended = false;
    const GoesOn goes_on([&] { return ++asked <= most || !(ended = true); });
    const Prediction predict = ideal_prediction(Method::estimate, {}, goes_on);
    for (most = 0; most < 1000; most += 7) {
      asked = 0;
      ended = false;
      const auto predicted = predict(*place, place->request(Bytes(1 << 20)));
      CAPTURE(nodes, most, asked);
      REQUIRE(predicted.ok() == !ended);
      if (!ended) break;
    }
    most = 1 << 30;
    const auto again = predict(*place, place->request(Bytes(1 << 20)));
    REQUIRE(again.ok());
    CHECK(again->time == full->time);
    CHECK(again->algorithm == full->algorithm);
  }
}

TEST_CASE("passing over what cannot be the fastest changes no answer for large groups") {
  for (const std::string machine : {"dgx-h100", "polaris"})
    for (const std::string collective : {"all_reduce", "all_gather", "broadcast"}) {
      const auto spec = load_topology(machine, {{std::string(COLLCAST_SOURCE_DIR) + "/topologies"}, {}, {}});
      REQUIRE(spec.ok());
      Machines machines = Machines::only(*spec);
      MeasuredTable large = table("a", collective, Health::yes, {});
      large.facts.nodes = machine == "polaris" ? 33 : 17;
      large.facts.ranks = machine == "polaris" ? 132 : 136;
      for (int i = 3; i < 34; i += 2)
        large.points.push_back({Bytes(std::int64_t{1} << i), Seconds(1), false, std::nullopt});
      const auto place = machines.place(large);
      REQUIRE(place.ok());
      LargeGroups some, all(true);
      for (const MeasuredPoint& point : large.points) {
        const auto a = some.fastest(*place, point.size), b = all.fastest(*place, point.size);
        REQUIRE((a.ok() && b.ok()));
        CAPTURE(machine, collective, point.size.value());
        CHECK(a->time == b->time);
        CHECK(a->algorithm == b->algorithm);
      }
    }
}

TEST_CASE("a table whose time is over keeps the rows that were scored, wherever that is") {
  // Twenty sizes with two rows each; the watch is asked once per table and once per size.
  std::vector<std::pair<std::int64_t, double>> rows;
  for (int i = 0; i < 40; ++i) rows.emplace_back(8 * (20 - i / 2), 20);
  const std::vector<MeasuredTable> tables{table("long", "all_reduce", Health::yes, rows)};
  for (const std::size_t sizes : {0U, 1U, 7U, 19U, 20U}) {
    CAPTURE(sizes);
    std::size_t asked = 0, priced = 0;
    const GoesOn watch{[&] { return asked++ < sizes + 1; }, {}};
    const auto counted = [&](const PlacedTable& place, const CollectiveRequest& request) {
      ++priced;
      return ten(place, request);
    };
    Machines machines = star();
    const auto report = validate(tables, machines, counted, Statistic::mean, {}, watch);
    CHECK(priced == sizes);
    CHECK(report.is_partial() == (sizes < 20));
    CHECK(report.not_reached == (sizes == 0 ? 1 : 0));
    if (sizes == 0) continue;
    REQUIRE(report.tables.size() == 1);
    const ScoredTable& scored = report.tables[0];
    CHECK(scored.rows.size() == 2 * sizes);
    CHECK(scored.rows.back().size == Bytes(8 * static_cast<std::int64_t>(sizes)));
    CHECK(scored.rows_not_reached == 40 - 2 * sizes);
    CHECK(scored.errors[0].n == static_cast<int>(2 * sizes));
    CHECK(json(report).find(fmt::format("\"rows_not_reached\": {}", 40 - 2 * sizes)) != std::string::npos);
  }
}

TEST_CASE("a forecast that the end of the time cut off leaves the rows before it") {
  const std::vector<MeasuredTable> tables{table("cut", "all_reduce", Health::yes, {{8, 20}, {16, 20}, {32, 20}})};
  bool over = false;
  const auto cut_at_16 = [&](const PlacedTable& place, const CollectiveRequest& request) -> Result<Predicted> {
    if (request.size == Bytes(8)) return ten(place, request);
    over = true;
    return Diagnostic{{}, "the simulation was ended", {}};
  };
  Machines machines = star();
  const auto report = validate(tables, machines, cut_at_16, Statistic::mean, {}, {[&] { return !over; }, {}});
  REQUIRE(report.tables.size() == 1);
  CHECK(report.tables[0].rows_not_reached == 2);
  CHECK(report.unscored.empty());
}

TEST_CASE("tables come in their own order with their own rows, whatever the number of threads") {
  std::vector<MeasuredTable> tables;
  for (int i = 0; i < 60; ++i) {
    tables.push_back(table("t" + std::to_string(i), i % 2 ? "all_reduce" : "all_gather", Health::yes,
                           {{1 << (i % 20), 20}, {1 << 20, 30}}));
    if (i % 7 != 3) continue;
    tables.back().facts.nodes = 2;  // over which 5 ranks do not spread evenly
    tables.back().facts.ranks = 5;
  }
  const auto text = [&](std::size_t threads) {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    Machines machines = star();
    const auto report = validate(tables, machines, memoized(ideal_prediction(Method::estimate)), Statistic::mean);
    std::string out;
    for (const ScoredTable& t : report.tables) {
      out += t.id;
      for (const Deviation& row : t.rows) out += fmt::format(" {} {}", row.size.value(), row.predicted.count());
    }
    for (const UnscoredTable& t : report.unscored) out += t.id + t.why;
    return out;
  };
  const std::string serial = text(1);
  CHECK(serial.find("t0 1 ") == 0);
  CHECK(serial.find("t3 ") == std::string::npos);
  for (const std::size_t threads : {std::size_t{2}, std::size_t{8}}) CHECK(text(threads) == serial);
}
