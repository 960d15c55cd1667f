// Where to look first: tables that are slow for a known reason name it, sound ones name nothing.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "collcast/validation/validate.hpp"
#include "shipped.hpp"
#include "src/derive_machine.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

TopologySpec machine(const std::string& name) { return load_topology(name, source_tree).value(); }

MeasuredFacts facts(const std::string& collective, int nodes, int ranks) {
  MeasuredFacts out;
  out.id = "t";
  out.collective = collective;
  out.nodes = nodes;
  out.ranks = ranks;
  return out;
}

/// What a machine would measure if forecasts were exact, times what a fault adds at a size.
template <class Factor>
MeasuredTable measured(const TopologySpec& spec, const MeasuredFacts& of, const Factor& factor,
                       std::vector<nccl::Setting> given = {}, std::int64_t least = 64) {
  MeasuredTable out;
  out.facts = of;
  for (std::int64_t size = least; size <= std::int64_t{1} << 30; size *= 4)
    out.points.push_back({Bytes(size), Seconds(1), false, std::nullopt});
  Machines only = Machines::only(spec);
  const ValidateReport report = validate({out}, only, nccl_prediction(std::move(given)), Statistic::mean);
  REQUIRE(report.tables.size() == 1);
  for (std::size_t i = 0; i < out.points.size(); ++i)
    out.points[i].time = report.tables.front().rows[i].predicted * factor(out.points[i].size);
  return out;
}
double as_forecast(Bytes) { return 1; }

std::vector<std::vector<std::string>> causes(const std::vector<MeasuredTable>& tables, const TopologySpec& on) {
  Machines only = Machines::only(on);
  ValidateReport report = validate(tables, only, nccl_prediction(), Statistic::mean);
  REQUIRE(report.tables.size() == tables.size());
  find_faults(report, tables, only);
  std::vector<std::vector<std::string>> out;
  for (const ScoredTable& table : report.tables) {
    out.emplace_back();
    for (const Fault& fault : table.faults) {
      CHECK_FALSE(fault.evidence.empty());
      CHECK_FALSE(fault.look.empty());
      out.back().push_back(fault.cause);
    }
  }
  return out;
}
std::string first_cause(const MeasuredTable& table, const TopologySpec& on) {
  const auto all = causes({table}, on).front();
  return all.empty() ? "none" : all.front();
}

TopologySpec with_nics(const std::string& name, const std::string& nics) {
  MeasuredFacts of = facts("all_reduce", 2, 16);
  const TopologySpec base = machine(name);
  of.gpu = base.gpu.model;
  of.gpus_per_node = 8;
  of.nics = nics;
  return derive_machine({base}, of, 8)->spec;
}

}  // namespace

TEST_CASE("a table that is as forecast has no fault, on one node and on several, whatever the collective") {
  const TopologySpec dgx = machine("dgx-h100");
  for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv", "broadcast", "reduce"})
    for (const int nodes : {1, 2, 4}) {
      INFO(kind << " on " << nodes);
      CHECK(first_cause(measured(dgx, facts(kind, nodes, 8 * nodes), as_forecast), dgx) == "none");
      const auto half_off = [](Bytes) { return 1.4; };
      CHECK(first_cause(measured(dgx, facts(kind, nodes, 8 * nodes), half_off), dgx) == "none");
    }
}

TEST_CASE("slow at every size is sockets, slow at large sizes alone is not") {
  const TopologySpec dgx = machine("dgx-h100");
  const auto everywhere = [](Bytes) { return 5.0; };
  const auto at_large = [](Bytes size) { return size > Bytes(1 << 20) ? 5.0 : 1.0; };
  for (const char* kind : {"all_reduce", "all_gather", "alltoall"}) {
    INFO(kind);
    CHECK(first_cause(measured(dgx, facts(kind, 2, 16), everywhere), dgx) == "sockets");
    // Without sizes below 64 KiB nothing is known of latency.
    for (const MeasuredTable& table :
         {measured(dgx, facts(kind, 2, 16), at_large), measured(dgx, facts(kind, 2, 16), everywhere, {}, 1 << 20)}) {
      const auto all = causes({table}, dgx).front();
      CHECK(std::count(all.begin(), all.end(), "gdr") == 1);
      CHECK(std::count(all.begin(), all.end(), "sockets") == 0);
    }
  }
  // A slow start alone is none of these.
  const auto at_small = [](Bytes size) { return size < Bytes(64 << 10) ? 5.0 : 1.0; };
  CHECK(first_cause(measured(dgx, facts("all_reduce", 2, 16), at_small), dgx) == "none");
}

TEST_CASE("half of the NICs, and NICs of half the rate") {
  const TopologySpec dgx = machine("dgx-h100");
  CHECK(first_cause(measured(with_nics("dgx-h100", "4x IB NDR 400Gb/s"), facts("all_gather", 2, 16), as_forecast),
                    dgx) == "rails");
  CHECK(first_cause(measured(with_nics("dgx-h100", "8x IB HDR 200Gb/s"), facts("all_gather", 2, 2), as_forecast),
                    dgx) == "port");
}

TEST_CASE("missing NICs are found where NCCL takes another algorithm without them") {
  // All-reduce on two nodes is by NVLS trees with eight NICs, with one by trees.
  const TopologySpec dgx = machine("dgx-h100");
  for (const int nics : {1, 2, 4}) {
    INFO(nics);
    const TopologySpec fewer = with_nics("dgx-h100", fmt::format("{}x IB NDR 400Gb/s", nics));
    CHECK(first_cause(measured(fewer, facts("all_reduce", 2, 16), as_forecast), dgx) == "rails");
  }
}

TEST_CASE("NCCL held to LL, and NVLink that is not used") {
  const TopologySpec dgx = machine("dgx-h100");
  CHECK(first_cause(measured(dgx, facts("all_gather", 1, 8), as_forecast, {{"NCCL_PROTO", "LL", {}}}), dgx) ==
        "protocol");
  CHECK(first_cause(measured(dgx, facts("all_reduce", 1, 8), as_forecast, {{"NCCL_P2P_DISABLE", "1", {}}}), dgx) ==
        "peer_access");
  // What the table's variables ask for is no fault.
  MeasuredTable asked = measured(dgx, facts("all_gather", 1, 8), as_forecast, {{"NCCL_PROTO", "LL", {}}});
  asked.facts.environment = {{"NCCL_PROTO", "LL"}};
  CHECK(first_cause(asked, dgx) == "none");
}

TEST_CASE("all pairs slow beside rings that are sound is the fabric") {
  const TopologySpec dgx = machine("dgx-h100");
  const auto slow = [](Bytes) { return 4.0; };
  MeasuredTable pairs = measured(dgx, facts("alltoall", 8, 64), slow),
                rings = measured(dgx, facts("all_gather", 8, 64), as_forecast);
  rings.facts.id = "rings";
  CHECK(causes({rings, pairs}, dgx).back().front() == "fabric");
  rings.facts.environment = {{"NCCL_NET", "AWS Libfabric"}};  // another set-up says nothing
  CHECK(causes({rings, pairs}, dgx).back().front() == "sockets");
}

TEST_CASE("shipped set-ups that are broken are flagged with their cause, sound ones seldom") {
  const std::vector<MeasuredTable> tables = load_measured(source_tree.measured.front(), {"test"})->tables;
  Machines all = Machines::shipped(source_tree).value();
  ValidateReport report = validate(tables, all, memoized(nccl_prediction()), Statistic::mean);
  find_faults(report, tables, all);
  std::map<std::string, std::string> first;
  std::map<std::string, int> flagged;
  for (const ScoredTable& table : report.tables) {
    if (table.faults.empty()) continue;
    first[table.id] = table.faults.front().cause;
    ++flagged[table.healthy];
  }
  // As their sources say: no plug-in and TCP; no GPUDirect; no peer access.
  for (const char* id :
       {"polaris-2x4-nccl2.18-env1-all_gather", "polaris-2x4-nccl2.18-env1-alltoall",
        "polaris-8x4-nccl2.18-env1-all_reduce", "polaris-8x4-nccl2.18-env1-alltoall", "alps-gh200-2x4-tcp-all_reduce"})
    CHECK(first[id] == "sockets");
  for (const char* id : {"moc-roce-2x1-all_reduce", "moc-roce-2x4-sendrecv"}) CHECK(first[id] == "gdr");
  for (const char* id : {"2080ti-1x2-nop2p-all_gather", "2080ti-1x2-nop2p-all_reduce"}) CHECK(first[id] == "pcie");
  // The other three are on machines that are described as they are: without peer access, with TCP.
  CHECK(flagged["no"] == 9);
  CHECK(flagged["yes"] <= 8);  // of 140
}
