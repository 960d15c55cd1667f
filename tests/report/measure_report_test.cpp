// collcast.measure.v1: units of what was measured.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "collcast/report/measured.hpp"

using namespace collcast;

TEST_CASE("measured rates are bytes per second in JSON and GB/s in tables") {
  MeasureReport report;
  report.ranks = 8;
  MeasuredRow row;
  row.size = Bytes(3'000'000'000);
  row.mean = row.least = row.median = row.p95 = row.most = Seconds(0.25);
  report.rows = {row, {}};
  CHECK(algbw(row) == Bandwidth(12e9));
  CHECK(busbw(row, 8) == Bandwidth(21e9));
  CHECK(algbw({}) == Bandwidth(0));
  CHECK(csv(report).rows.front() ==
        std::vector<std::string>{"all_reduce", "3000000000", "250000.000", "12", "21", "0"});
  CHECK(csv(report).rows.back() == std::vector<std::string>{"all_reduce", "0", "0.000", "0", "0", "0"});
  const auto rows = nlohmann::json::parse(json(report)).at("rows");
  CHECK(rows.at(0).at("algbw_bytes_per_s") == 12e9);
  CHECK(rows.at(0).at("busbw_bytes_per_s") == 21e9);
}
