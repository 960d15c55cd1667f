// Texts read as tables and logs, and the lines that a log of nccl-tests begins and ends with.
#pragma once

#include <catch2/catch.hpp>

#include <optional>
#include <sstream>
#include <string>

#include "collcast/validation/measured_table.hpp"

namespace collcast::test {

/// Of a table as CSV.
inline const std::string heading = "collective,size_bytes,time_us,algbw_gbps,busbw_gbps,inplace\n";

inline Result<Readings> csv_of(const std::string& text, const std::optional<MeasuredFacts>& sidecar = std::nullopt) {
  std::istringstream in(text);
  return read_table_csv(in, "t.csv", sidecar);
}
inline Result<Readings> log_of(const std::string& text) {
  std::istringstream in(text);
  return read_nccl_tests_text(in, "t.log");
}
inline Result<Readings> json_of(const std::string& text) {
  std::istringstream in(text);
  return read_nccl_tests_json(in, "t.json");
}

/// The first error: "file:line:column: message".
inline std::string first_error(const Result<Readings>& result) {
  REQUIRE_FALSE(result.ok());
  return to_text(result.errors().front().where) + ": " + result.errors().front().message;
}

inline const std::string devices =
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid   4711 on      node1 device  0 [0000:07:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid   4712 on      node2 device  0 [0000:07:00] NVIDIA H100 80GB HBM3\n";
inline const std::string new_heading =
    "#                                                              out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)\n";
inline const std::string ending = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.04\n";

/// What nccl-tests -J writes, and a row of it.
inline std::string json_log(const std::string& results,
                            const std::string& device_list = R"({"rank":0,"hostname":"n1"})") {
  return R"({"version":2,"args":["/x/all_gather_perf_mpi","-g","4"],"nccl_version":22703,)"
         R"("config":{"nthreads":1,"ngpus":4,"devices":[)" +
         device_list + "]},\n\"results\":[" + results + "]}";
}
inline const std::string json_row = R"({"size":1024,"count":256,"type":"float","redop":"none","root":"    -1",)"
                                    R"("out_of_place":{"time":10.500000,"alg_bw":0.1,"bus_bw":0.1,"nwrong":0.0},)"
                                    R"("in_place":{"time":11.5,"alg_bw":0.1,"bus_bw":0.1,"nwrong":null}})";

}  // namespace collcast::test
