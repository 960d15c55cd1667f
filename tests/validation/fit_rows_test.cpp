// What a fit sums over: the same as row by row, in steps that do not grow with how often a size was measured.
#include "fit_rows.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "collcast/validation/calibrate.hpp"
#include "shipped.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Lognormal about 50 us, a hundredth of them ten times as long, as printed: hundredths of a microsecond.
std::vector<double> printed_times(std::size_t count, double spread, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i) {
    const double unit = static_cast<double>(random()) / static_cast<double>(std::mt19937::max()) +
                        static_cast<double>(random()) / static_cast<double>(std::mt19937::max()) - 1;
    const double time = 5000 * std::exp(spread * unit) * (random() % 100 == 0 ? 10 : 1);
    out.push_back(std::round(time) * 1e-8);
  }
  return out;
}

/// So many rows of each of six sizes, from below 64 KiB to above 4 MiB.
MeasuredTable table_of(const std::string& id, std::size_t repeats, unsigned seed) {
  MeasuredTable out;
  out.facts.id = id;
  out.facts.collective = "all_reduce";
  out.facts.nodes = 1;
  out.facts.ranks = 8;
  for (const double time : printed_times(6 * repeats, 0.1, seed)) {
    const int power = static_cast<int>(out.points.size() % 6);
    out.points.push_back({Bytes(std::int64_t{2048} << (3 * power)), Seconds(time * (1 + power)), false, {}});
  }
  return out;
}

struct Placed {
  std::vector<MeasuredTable> tables;
  std::vector<PlacedTable> places;
  std::vector<FitTable> fit;
};

Placed placed(std::vector<MeasuredTable> tables) {
  Placed out{std::move(tables), {}, {}};
  Result<TopologySpec> spec = load_topology("dgx-h100", machine_files);
  REQUIRE(spec.ok());
  Machines machines = Machines::only(std::move(spec).value());
  for (const MeasuredTable& table : out.tables) {
    Result<PlacedTable> place = machines.place(table);
    REQUIRE(place.ok());
    out.places.push_back(std::move(place).value());
  }
  for (std::size_t i = 0; i < out.places.size(); ++i) out.fit.push_back({&out.places[i], i % 2 == 0 ? 1 : 0.2});
  return out;
}

}  // namespace

TEST_CASE("the sum over many times is that of one after the other") {
  const unsigned seed = 20261127;
  CAPTURE(seed);
  for (const std::size_t count : {1U, 2U, 16U, 17U, 33U, 1000U, 20000U})
    for (const double spread : {0.0, 0.001, 0.2, 3.0}) {
      const std::vector<double> times = printed_times(count, spread, seed);
      LogTimes sums;
      double weights = 0;
      for (std::size_t i = 0; i < count; ++i) {
        sums.add(Seconds(times[i]), 1.0 / static_cast<double>(1 + i % 3));
        weights += 1.0 / static_cast<double>(1 + i % 3);
      }
      sums.build();
      for (const double predicted : {times[0], times[count / 2], 1e-6, 4.9e-5, 5.01e-5, 6e-4, 1.0})
        for (const double full : {0.3, 1e6, infinite}) {
          double one_by_one = 0;
          for (std::size_t i = 0; i < count; ++i)
            one_by_one += weighed(std::log(predicted / times[i]), full) / static_cast<double>(1 + i % 3);
          CAPTURE(count, spread, predicted, full);
          // Weights, and beyond them the sum itself: one by one it is off by its length x 1e-16 of it.
          CHECK(std::abs(sums.sum(Seconds(predicted), full) - one_by_one) <= 1e-12 * (weights + one_by_one));
        }
    }
}

TEST_CASE("the steps of a sum grow with the logarithm of how many times there are") {
  for (const double predicted : {1e-6, 5e-5, 5.5e-5, 1e-3}) {
    const auto steps = [&](std::size_t count) {
      LogTimes sums;
      for (std::size_t i = 0; i < count; ++i)
        sums.add(Seconds(5e-5 * (0.9 + 0.2 * static_cast<double>(i) / static_cast<double>(count))), 1);
      sums.build();
      return sums.counted_sum(Seconds(predicted), 0.3).steps;
    };
    CAPTURE(predicted);
    // 64 times as many are 6 halves more on the way down, each with one beside it, and one leaf at the end.
    CHECK(steps(64'000) <= steps(1'000) + 2 * 6 + 16);
  }
}

TEST_CASE("equal times are one") {
  LogTimes sums;
  for (int i = 0; i < 100'000; ++i) sums.add(Seconds(i % 2 == 0 ? 50e-6 : 51e-6), 1);
  sums.build();
  const LogTimes::Counted counted = sums.counted_sum(Seconds(40e-6), infinite);
  CHECK(counted.steps <= 2);
  CHECK(counted.sum == Approx(50'000 * (std::log(50.0 / 40) + std::log(51.0 / 40))).epsilon(1e-12));
}

TEST_CASE("what has the same forecast is priced once, however many rows and tables there are") {
  for (const std::size_t repeats : {1U, 50U}) {
    const Placed one = placed({table_of("a", repeats, 1), table_of("b", repeats, 2), table_of("c", repeats, 3)});
    const FitRows rows(one.fit, Statistic::mean, 512);
    CHECK(rows.runs().size() == 1);
    CHECK(rows.forecasts().size() == 6);
    CHECK(rows.count() == 3 * 6 * repeats);
  }
  // Not so where the collective, the algorithm that ran or the variables are others.
  std::vector<MeasuredTable> tables{table_of("a", 1, 1), table_of("b", 1, 1), table_of("c", 1, 1)};
  tables[1].facts.collective = "all_gather";
  tables[2].facts.environment = {{"NCCL_MAX_NCHANNELS", "4"}};
  const Placed apart = placed(std::move(tables));
  CHECK(FitRows(apart.fit, Statistic::mean, 512).forecasts().size() == 18);
  // Of more sizes than are asked for some, evenly, with both ends.
  const FitRows few(apart.fit, Statistic::mean, 2);
  CHECK(few.forecasts().size() == 6);
  CHECK(few.forecasts().at(0).size == Bytes(2048));
  CHECK(few.forecasts().at(1).size == Bytes(2048 << 15));
}

TEST_CASE("rows that are gathered have the loss of rows one by one, whatever a row counts") {
  const Placed some = placed({table_of("a", 40, 1), table_of("b", 7, 2), table_of("c", 1, 3)});
  const FitRows rows(some.fit, Statistic::mean, 512);
  for (const RowWeight weight : {RowWeight::whole, RowWeight::root_of_band}) {
    const FitLoss one_by_one(rows, weight, rows.count()), gathered(rows, weight, 0);
    for (const double scale : {0.1, 0.97, 1.0, 1.2, 7.0})
      for (const double full : {0.3, 1e6, infinite}) {
        std::vector<Seconds> predicted;
        for (std::size_t i = 0; i < rows.forecasts().size(); ++i)
          predicted.push_back(Seconds(5e-5 * scale * static_cast<double>(1 + i)));
        CAPTURE(scale, full);
        const double expected = one_by_one.of(predicted, full);
        CHECK(expected > 0);
        CHECK(gathered.of(predicted, full) == Approx(expected).epsilon(1e-12));
      }
  }
}
