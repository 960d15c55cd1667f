// What tests of `collcast measure` look at: tables, sidecars, and a measurement that is under way.
#pragma once

#include <catch2/catch.hpp>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "collcast/collective/collective.hpp"

namespace collcast::test {

inline const std::string quick = " --warmup 1 --repetitions 3 --date 2026-01-02 ";

inline std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

inline std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) out.push_back(cell);
  return out;
}

/// "key: value" lines of a sidecar's top level.
inline std::map<std::string, std::string> keys(const std::string& sidecar) {
  std::map<std::string, std::string> out;
  for (const std::string& line : lines(sidecar)) {
    const std::size_t colon = line.find(':');
    if (line.front() == ' ' || colon == std::string::npos) continue;
    out[line.substr(0, colon)] = line.size() > colon + 2 ? line.substr(colon + 2) : "";
  }
  return out;
}

inline void check_table(const std::string& csv, int ranks) {
  const auto rows = lines(csv);
  REQUIRE(rows.size() > 1);
  CHECK(rows.front() == "collective,size_bytes,time_us,algbw_gbps,busbw_gbps,inplace");
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto row = cells(rows[i]);
    REQUIRE(row.size() == 6);
    const auto kind = parse_collective(row[0]);
    REQUIRE(kind);
    const double bytes = std::stod(row[1]), time_us = std::stod(row[2]), algbw = std::stod(row[3]);
    CAPTURE(rows[i]);
    CHECK(time_us > 0);
    // GB/s = bytes / (us * 1000); the time has three decimals, half of the last one off at most, the rate six digits.
    CHECK(algbw == Approx(bytes / time_us / 1000).epsilon(0.0005 / time_us + 1e-5));
    CHECK(std::stod(row[4]) == Approx(algbw * bus_factor(*kind, ranks)).epsilon(1e-5));
    CHECK((row[5] == "0" || row[5] == "1"));
  }
}

/// Waits in the shell until the table has rows, then does `what` to the processes of this measurement.
inline std::string once_rows_come(const std::string& table, const std::string& what) {
  return "i=0; while [ ! -s " + table + " ] && [ $i -lt 200 ]; do sleep 0.05; i=$((i+1)); done; " + what;
}

/// Of the ranks that `set --` named kills the second: says how many there are, then the exit and after how many
/// seconds.
inline const std::string kill_second =
    "echo $#; start=$(date +%s); kill -9 $2; wait $main; echo $? $(( $(date +%s) - start ))\n";

/// Of a measurement of three ranks into t.csv that lost one by that: it ended soon, with exit 1, and what was finished
/// is kept, marked as partial. `said` is of the shell; gives what the measurement said, which it wrote to err.
inline std::string check_lost_rank(const std::string& said, const Folder& folder) {
  const auto all = lines(said);
  REQUIRE(all.size() == 2);
  CHECK(all[0] == "3");
  CHECK(all[1].substr(0, 2) == "1 ");
  CHECK(std::stoi(all[1].substr(2)) <= 5);
  check_table(folder.read("t.csv"), 3);
  CHECK(keys(folder.read("t.yaml")).at("complete") == "false");
  const std::string err = folder.read("err");
  CHECK(err.find("finished: ") != std::string::npos);
  return err;
}

}  // namespace collcast::test
