// Tables scored against library nccl: with their own variables, and others.
#include <catch2/catch.hpp>

#include "collcast/validation/validate.hpp"
#include "shipped.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

MeasuredTable table(std::vector<std::pair<std::string, std::string>> environment,
                    const std::string& collective = "all_reduce") {
  MeasuredTable out;
  out.facts.id = "t";
  out.facts.system = "aic-h100-sxm";
  out.facts.collective = collective;
  out.facts.nodes = 1;
  out.facts.ranks = 8;
  out.facts.environment = std::move(environment);
  out.points = {{Bytes(std::int64_t{1} << 30), Seconds(4e-3), false, std::nullopt}};
  return out;
}

Machines nccl_machines() {
  Result<Machines> out = Machines::shipped(machine_files);
  REQUIRE(out.ok());
  return std::move(out).value();
}

std::string algorithm(const MeasuredTable& one, std::vector<nccl::Setting> given = {}) {
  Machines all = nccl_machines();
  const ValidateReport report = validate({one}, all, memoized(nccl_prediction(std::move(given))), Statistic::mean);
  if (report.tables.empty()) return report.unscored.front().why;
  return report.tables.front().algorithms.front();
}

}  // namespace

TEST_CASE("a table is scored with the variables that it was measured with") {
  CHECK(algorithm(table({})) == "nvls Simple");
  CHECK(algorithm(table({{"NCCL_ALGO", "RING"}})) == "ring Simple");
  CHECK(algorithm(table({{"NCCL_ALGO", "RING"}}), {{"NCCL_ALGO", "tree", {}}}) == "tree Simple");
  CHECK(algorithm(table({}, "alltoall")) == "p2p Simple");
}

TEST_CASE("a version of NCCL has no algorithm that came later") {
  const auto of = [](const char* version, int nodes, const char* wanted) {
    MeasuredTable one = table({{"NCCL_ALGO", wanted}});
    one.facts.nccl_version = version;
    one.facts.nodes = nodes;
    one.facts.ranks = 8 * nodes;
    return algorithm(one);
  };
  CHECK(of("2.16.5", 1, "nvls,ring") == "ring Simple");
  CHECK(of("2.17.1", 1, "nvls,ring") == "nvls Simple");
  CHECK(of("2.16.5", 1, "nvls").ends_with(": NCCL has it since 2.17"));
  CHECK(of("2.17.1", 2, "nvlstree").ends_with(": NCCL has it since 2.18"));
  CHECK(of("2.18", 2, "nvlstree") == "nvls_tree Simple");
}

TEST_CASE("NVSwitches take part only where they can reduce what the table did") {
  const auto of = [](const char* type, const char* operation, const char* collective = "all_reduce") {
    MeasuredTable one = table({}, collective);
    one.facts.datatype = type;
    one.facts.rows.operation = operation;
    return algorithm(one);
  };
  for (const char* type : {"float", "double", "half", "bfloat16", "int32", "uint64", ""})
    CHECK(of(type, "sum") == "nvls Simple");
  for (const char* type : {"half", "bfloat16", "int32", "uint64"}) CHECK(of(type, "max") == "nvls Simple");
  for (const char* type : {"int8", "uint8", "f8e4m3", "fp8_e5m2"}) CHECK(of(type, "sum") == "ring Simple");
  for (const char* type : {"float", "double"}) CHECK(of(type, "min") == "ring Simple");
  for (const char* operation : {"prod", "avg", "mulsum"}) CHECK(of("half", operation) == "ring Simple");
  CHECK(of("int8", "sum", "reduce_scatter") == "ring Simple");
  // What is gathered is not reduced; of several types or operations nobody knows which row is of which.
  CHECK(of("int8", "none", "all_gather") == of("half", "none", "all_gather"));
  CHECK(of("several types", "several operations") == "nvls Simple");
  Machines all = nccl_machines();
  std::vector<MeasuredTable> both{table({}), table({})};
  both[1].facts.rows.operation = "prod";
  const ValidateReport report = validate(both, all, memoized(nccl_prediction()), Statistic::mean);
  CHECK(report.tables[0].algorithms.front() == "nvls Simple");
  CHECK(report.tables[1].algorithms.front() == "ring Simple");
}

TEST_CASE("tables of one machine with other variables are not mixed up") {
  Machines all = nccl_machines();
  const std::vector<MeasuredTable> both{table({}), table({{"NCCL_PROTO", "LL128"}})};
  const ValidateReport report = validate(both, all, memoized(nccl_prediction()), Statistic::mean);
  REQUIRE(report.tables.size() == 2);
  CHECK(report.tables[0].algorithms.front() == "nvls Simple");
  CHECK(report.tables[1].algorithms.front() == "ring LL128");
}

TEST_CASE("a table's version of NCCL counts, where it is one") {
  Machines all = nccl_machines();
  const auto version = [&](const std::string& text) {
    MeasuredTable one = table({});
    one.facts.nccl_version = text;
    return all.place(one)->environment.launch.version;
  };
  CHECK(version("2.8.4") == 20804);
  CHECK(version("2.18") == 21800);
  CHECK(version("2.22.3-tuner") == 22203);
  for (const char* none : {"", "unknown", "unknown (2019-2020)", "2"}) CHECK(version(none) == 0);
  // Tables of one machine and other versions are not mixed up, also with --env.
  MeasuredTable old = table({}), current = table({});
  old.facts.nccl_version = "2.8.4";
  old.points.front().size = current.points.front().size = Bytes(256 << 10);
  for (const std::vector<nccl::Setting>& given : {std::vector<nccl::Setting>{}, {{"NCCL_ALGO", "ring", {}}}}) {
    const ValidateReport report = validate({current, old}, all, memoized(nccl_prediction(given)), Statistic::mean);
    CHECK(report.tables[0].rows[0].predicted < report.tables[1].rows[0].predicted);
  }
}

TEST_CASE("what NCCL would not understand in a sidecar is passed over and said, other programs' variables are not") {
  Machines all = nccl_machines();
  const MeasuredTable one = table({{"NCCL_PROTO", "LLL"}, {"OMP_NUM_THREADS", "4"}, {"NCCL_DEBUG", "INFO"}});
  const auto place = all.place(one);
  REQUIRE(place.ok());
  CHECK(place->remark == "NCCL_PROTO=LLL is not understood and passed over");
  CHECK(place->environment.given.size() == 1);
}

TEST_CASE("a table that was measured over sockets is warned of where the machine's network is none") {
  Machines all = nccl_machines();
  const auto remark = [&](const char* name, const char* value, int nodes) {
    MeasuredTable one = table({{name, value}});
    one.facts.nodes = nodes;
    one.facts.ranks = 8 * nodes;
    return all.place(one)->remark;
  };
  CHECK(remark("NCCL_NET", "Socket", 2) ==
        "NCCL_NET=Socket: NCCL would take other ways between nodes; the forecast is of the NICs as the machine's file "
        "describes them");
  CHECK(remark("NCCL_IB_DISABLE", "1", 2).starts_with("NCCL_IB_DISABLE=1: "));
  CHECK(remark("NCCL_NET", "Socket", 1).empty());
  CHECK(remark("NCCL_NET", "IB", 2).empty());
  const auto ethernet = load_topology("v100-pcie-ethernet", machine_files);
  REQUIRE(ethernet.ok());
  Machines sockets = Machines::only(*ethernet);
  MeasuredTable one = table({{"NCCL_NET", "Socket"}});
  one.facts.nodes = one.facts.ranks = 2;
  CHECK(sockets.place(one)->remark.empty());
}

TEST_CASE("variables that leave nothing to run are a table's reason") {
  CHECK(algorithm(table({{"NCCL_ALGO", "NVLSTree"}})) ==
        "NCCL_ALGO and NCCL_PROTO leave nothing that can be run for all_reduce of 8 ranks on 1 node: needs several "
        "nodes");
}

TEST_CASE("a sidecar's variables are read") {
  const auto facts = parse_measured_facts(
      "id: a\ncollective: all_reduce\nnodes: 1\nnranks: 8\nenv:\n  NCCL_ALGO: RING\n  NCCL_NET_GDR_LEVEL: '2'\n",
      "a.yaml");
  REQUIRE(facts.ok());
  CHECK(facts->environment ==
        std::vector<std::pair<std::string, std::string>>{{"NCCL_ALGO", "RING"}, {"NCCL_NET_GDR_LEVEL", "2"}});
  CHECK(parse_measured_facts("id: a\ncollective: b\nnodes: 1\nnranks: 8\nenv: [1]\n", "a.yaml").errors().size() == 1);
}

TEST_CASE("one node and several are summed up apart") {
  Machines all = nccl_machines();
  MeasuredTable two = table({});
  two.facts.nodes = 2;
  two.facts.ranks = 16;
  const ValidateReport report = validate({table({}), two}, all, nccl_prediction(), Statistic::mean);
  const auto rows = summary_by_nodes(report);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].nodes == NodeCount::one);
  CHECK(rows[1].nodes == NodeCount::several);
  CHECK(rows[0].tables == 1);
  CHECK(rows[0].error.n == 1);
  CHECK(rows[0].error.median_ape == report.tables[0].errors[2].median_ape);
}
