// collcast.explain.v1: formulas with their numbers, and honesty where hops differ or links are shared.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <sstream>

#include "collcast/collective/collective.hpp"
#include "collcast/report/documents.hpp"
#include "report/wording.hpp"

using namespace collcast;
using Json = nlohmann::json;

namespace {

/// `nodes` hosts on a one-way-equal ring: 10 GB/s, 2 us.
TopologySpec ring_spec() {
  TopologySpec spec;
  spec.name = "ring";
  spec.teaching = true;
  spec.devices = {{"host", DeviceKind::host, 1, {}}};
  spec.network_devices = "host";
  spec.network = TorusNetwork{{}, true, Bandwidth(10e9), Seconds(2e-6)};
  return spec;
}

std::string page_text(const Page& page) {
  std::ostringstream out;
  write_text(out, page);
  return out.str();
}

/// One ring all-gather-like phase whose closed form is 3 rounds of 100 us + 2 us.
Choice ring_choice() {
  Choice choice;
  choice.options.algorithm = "ring";
  choice.pattern.algorithm = "ring";
  choice.pattern.group = Group::strided(Rank(0), 1, 4);
  PhaseEstimate phase;
  phase.shape = "ring";
  phase.flow = Flow::circulating;
  phase.rounds = 3;
  phase.chunk = Volume(1e6);
  phase.latency = Seconds(2e-6);
  phase.rate = Bandwidth(10e9);
  phase.by_rounds = phase.time = Seconds(3 * 102e-6);
  choice.estimate.phases = {phase};
  choice.estimate.total = phase.time;
  return choice;
}

const Json& term(const Json& doc, const std::string& name) {
  for (const Json& t : doc.at("terms")) {
    if (t.at("name") == name) return t;
  }
  FAIL("no term " << name);
  return doc;
}

}  // namespace

TEST_CASE("of several layers of a kind the layer is the plural") {
  CHECK(plural("layer") == "layers");
  CHECK(plural("bf16 windowed expert layer without recomputation") ==
        "bf16 windowed expert layers without recomputation");
  CHECK(plural("head") == "heads");
}

TEST_CASE("a phase's formula gives the closed form's own figure when its numbers are put in") {
  const Result<Fabric> fabric = Fabric::build(ring_spec(), 4);
  REQUIRE(fabric.ok());
  const CollectiveRequest request{CollectiveKind::all_gather, Group::strided(Rank(0), 1, 4), Bytes(4'000'000), 0, {}};
  const ExplainReport report = explain(*fabric, request, {ring_choice()}, Seconds(3 * 102e-6), {});
  const Json doc = Json::parse(json(report));
  CHECK(doc.at("schema") == "collcast.explain.v1");
  // tau = 1 MB / 10 GB/s = 100 us; (3-1) max(100, 102) + 100 + 2 = 306 us.
  CHECK(term(doc, "tau").at("value").get<double>() == Approx(100e-6));
  CHECK(term(doc, "by rounds").at("value").get<double>() == Approx(306e-6));
  CHECK(term(doc, "by rounds").at("source") == "");
  CHECK(term(doc, "by rounds").at("numbers") == "(3 - 1) max(1 x 100 us, 100 us + 2 us) + 1 x 100 us + 2 us");
  // 3/4 of 4 MB per rank: algbw = 4 MB / 306 us, busbw = 3/4 of it.
  CHECK(term(doc, "busbw").at("value").get<double>() == Approx(0.75 * 4e6 / 306e-6));
}

TEST_CASE("an explanation says whose collective it is") {
  const Result<Fabric> fabric = Fabric::build(ring_spec(), 4);
  REQUIRE(fabric.ok());
  CollectiveRequest request{CollectiveKind::all_gather, Group::strided(Rank(0), 1, 4), Bytes(4'000'000), 0, {}};
  request.alongside = {Group::strided(Rank(0), 1, 4)};
  const Json doc = Json::parse(json(explain(*fabric, request, {ring_choice()}, std::nullopt, {})));
  CHECK(doc.at("library") == "ideal");
  CHECK(doc.at("title").get<std::string>().ends_with("beside 1 other group at once, library ideal"));
}

TEST_CASE("where hops differ the formula says that the closed form summed them one by one") {
  const Result<Fabric> fabric = Fabric::build(ring_spec(), 4);
  REQUIRE(fabric.ok());
  Choice choice = ring_choice();
  choice.estimate.phases[0].by_rounds = Seconds(250e-6);
  const CollectiveRequest request{CollectiveKind::all_gather, Group::strided(Rank(0), 1, 4), Bytes(4'000'000), 0, {}};
  const Json doc = Json::parse(json(explain(*fabric, request, {choice}, std::nullopt, {})));
  CHECK(term(doc, "by rounds").at("value").get<double>() == 250e-6);
  CHECK(term(doc, "by rounds").at("source").get<std::string>().find("hops differ") == 0);
}

TEST_CASE("the busiest links of a simulation come first, with their utilisation") {
  // 10 s in which the second link carried 5 s worth of bytes while busy for 6 s, the first 1 s in 2 s.
  const Result<Fabric> fabric = Fabric::build(ring_spec(), 4);
  REQUIRE(fabric.ok());
  const double rate = fabric->links()[0].bandwidth.value();
  Timeline timeline;
  timeline.links.resize(fabric->links().size());
  timeline.links[0] = {Volume(rate), Picoseconds(2'000'000'000'000)};
  timeline.links[1] = {Volume(5 * rate), Picoseconds(6'000'000'000'000)};
  timeline.finish = SimTime(Picoseconds(10'000'000'000'000));
  const Section section = link_use(*fabric, timeline);
  REQUIRE(section.tables.size() == 1);
  const auto& rows = section.tables[0].rows;
  REQUIRE(rows.size() == 2);
  CHECK(rows[0][0] == fabric->link_name(LinkId(1)));
  CHECK(rows[0][2] == "6 s");
  CHECK(rows[0][3] == "50.0%");
  CHECK(rows[1][3] == "10.0%");
}

TEST_CASE("a simulation that moved nothing names no busiest link") {
  const Result<Fabric> fabric = Fabric::build(ring_spec(), 4);
  REQUIRE(fabric.ok());
  Timeline timeline;
  timeline.links.resize(fabric->links().size());
  timeline.finish = SimTime(Picoseconds(2'000'000));
  CHECK(link_use(*fabric, timeline).tables.empty());
  Choice choice = ring_choice();
  choice.estimate.phases[0].busiest = LinkId(0);
  const CollectiveRequest request{CollectiveKind::all_gather, Group::strided(Rank(0), 1, 4), Bytes(0), 0, {}};
  CHECK(page_text(page(explain(*fabric, request, {choice}, std::nullopt, {}))).find("by load = ") == std::string::npos);
}

TEST_CASE("links that several groups use are listed with their number and each one's share") {
  // A one-way message over link 0 of 10 GB/s in each of two groups; a third pair is elsewhere.
  const Result<Fabric> fabric = Fabric::build(ring_spec(), 6);
  REQUIRE(fabric.ok());
  const auto pattern = [](std::uint32_t from, std::uint32_t to) {
    const Group group = Group::listed({Rank(from), Rank(to)});
    return make_pattern({CollectiveKind::broadcast, group, Bytes(5'000'000), 0, {}}, {"direct", 1, 1, {}}).value();
  };
  // 0 -> 1 and 0 -> 2 share the first link; 3 -> 4 shares none.
  const std::vector<Pattern> patterns{pattern(0, 1), pattern(0, 2), pattern(3, 4)};
  const Section section = shared_links(*fabric, patterns);
  REQUIRE(section.tables.size() == 1);
  REQUIRE(section.tables[0].rows.size() == 1);
  const auto& row = section.tables[0].rows[0];
  CHECK(row[2] == "2");
  CHECK(row[3] == "5 GB/s");
  // 2 x 5 MB over 10 GB/s.
  CHECK(row[5] == "1 ms");
  CHECK(shared_links(*fabric, std::span<const Pattern>(patterns).subspan(1)).tables.empty());
}

TEST_CASE("each flow has its formula") {
  const Result<Fabric> fabric = Fabric::build(ring_spec(), 4);
  REQUIRE(fabric.ok());
  const CollectiveRequest request{CollectiveKind::broadcast, Group::strided(Rank(0), 1, 4), Bytes(4'000'000), 0, {}};
  // tau = 100 us, alpha = 2 us, R = 3, c = 2.
  const std::vector<std::pair<Flow, double>> cases{{Flow::circulating, 2 * 200e-6 + 200e-6 + 2e-6},
                                                   {Flow::forwarding, 3 * 102e-6 + 100e-6},
                                                   {Flow::sequential, 3 * 2 * 100e-6 + 2e-6},
                                                   {Flow::concurrent, 2 * 100e-6 + 2e-6}};
  for (const auto& [flow, expected] : cases) {
    Choice choice = ring_choice();
    choice.pattern.chunks = 2;
    choice.estimate.phases[0].flow = flow;
    choice.estimate.phases[0].by_rounds = Seconds(expected);
    const Json doc = Json::parse(json(explain(*fabric, request, {choice}, std::nullopt, {})));
    CHECK(term(doc, "by rounds").at("source") == "");  // equal to what the closed form has
  }
}

TEST_CASE("the link that ends last is named with its bytes, and the larger term counts") {
  const Result<Fabric> fabric = Fabric::build(ring_spec(), 4);
  REQUIRE(fabric.ok());
  Choice choice = ring_choice();
  PhaseEstimate& phase = choice.estimate.phases[0];
  phase.busiest = LinkId(0);
  phase.busiest_bytes = Volume(8e6);
  phase.by_load = phase.time = Seconds(802e-6);
  choice.estimate.shared = true;
  const CollectiveRequest request{CollectiveKind::all_gather, Group::strided(Rank(0), 1, 4), Bytes(4'000'000), 0, {}};
  const std::string shown = page_text(page(explain(*fabric, request, {choice}, std::nullopt, {})));
  CHECK(shown.find(fabric->link_name(LinkId(0))) != std::string::npos);
  CHECK(shown.find("the load of the link that ends last counts") != std::string::npos);
  CHECK(shown.find("approximate: transfers share links") != std::string::npos);
  // A tie is a tie whichever way its last bit falls.
  for (const double bit : {-1e-15, 0., 1e-15}) {
    choice.estimate.phases[0].by_load = choice.estimate.phases[0].by_rounds * (1 + bit);
    choice.estimate.phases[0].time = choice.estimate.phases[0].by_rounds;
    const std::string tied = page_text(page(explain(*fabric, request, {choice}, std::nullopt, {})));
    CHECK(tied.find("rounds and load come to the same") != std::string::npos);
  }
}

TEST_CASE("a step's explanation lists kernels with their roofline terms and sums its parts") {
  StepReport report;
  report.scenario = "s";
  report.inputs = StepInputs();
  StepInputs& in = *report.inputs;
  in.model.layers = 4;
  in.layout.pp = 2;
  in.batch = {128, 1, 4};
  in.gpu.model = "X";
  in.gpu.memory_bandwidth = Bandwidth(1e12);
  in.gpu.peak["bf16"] = FlopRate(100e12);
  in.kernels.gemm["bf16"] = {Seconds(5e-6), 0.5, 0.8, "measured"};
  StepResult& r = report.result;
  r.micro_batches = 4;
  r.step = r.estimate = Seconds(1e-2);
  r.breakdown.compute = Seconds(8e-3);
  r.breakdown.bubble = Seconds(2e-3);
  r.operations.forward = {{"qkv", OperationKind::gemm, Flops(1e9), Volume(1e6), Seconds(25e-6), "compute", "bf16"}};
  r.layer.forward = Seconds(25e-6);
  report.machine.nodes = 1;
  report.machine.ranks = 8;
  r.memory.activations = Bytes(940);
  add_runtime(r.memory, in.layout, in.nccl_buffers, 8);
  const ExplainReport explained = explain(report);
  const Json doc = Json::parse(json(explained));
  // 10 ms of step without the 8 ms of compute.
  CHECK(term(doc, "bubble").at("numbers") == "0.01 s - 0.008 s");
  CHECK(term(doc, "bubble").at("value").get<double>() == Approx(2e-3));
  CHECK(term(doc, "step").at("value").get<double>() == Approx(1e-2));
  // 1 GFLOP at half of 100 TFLOP/s is 20 us; 1 MB at 0.8 TB/s is 1.25 us; 5 us of overhead makes 25 us.
  CHECK(page_text(page(explained)).find("20 us      1.25 us  25 us  compute") != std::string::npos);
  // All ranks, the stages and both ends, within the node: 9.1875 MiB x 3 x 72.
  CHECK(term(doc, "NCCL's buffers").at("numbers") == "9.188 MiB x (3 x 72 + 0 x 32)");
  CHECK(term(doc, "NCCL's buffers").at("value").get<double>() == 9.1875 * 0x1p20 * 3 * 72);
  CHECK(term(doc, "fragments").at("value").get<double>() == 60);
  CHECK(term(doc, "peak").at("value").get<double>() == static_cast<double>(r.memory.peak().value()));
}

TEST_CASE("the slowest hop is the one that sets the rate once links are shared") {
  // Two nodes of four hosts: 10 GB/s from host to host, and one NIC of 20 GB/s. Of the ring 0 -> 1 -> 4 the hop inside
  // the node has the slower route; with three groups over the NIC the one across has 20/3 GB/s of it.
  TopologySpec spec;
  spec.name = "pair";
  spec.devices = {{"host", DeviceKind::host, 4, {}}, {"nic", DeviceKind::nic, 1, {}}};
  const auto link = [](const char* from, const char* to, LinkKind kind, double rate) {
    return LinkGroup{from, to, Wiring::all, {}, kind, Bandwidth(rate), Seconds(1e-6), "s", {}};
  };
  spec.links = {link("host", "host", LinkKind::direct, 10e9), link("host", "nic", LinkKind::pcie, 20e9)};
  spec.network_devices = "nic";
  spec.network = StarNetwork{Bandwidth(20e9), Seconds(1e-6)};
  const Result<Fabric> fabric = Fabric::build(spec, 2);
  REQUIRE(fabric.ok());
  const auto explained = [&](std::vector<Group> others) {
    const CollectiveRequest request{CollectiveKind::all_reduce, Group::listed({Rank(0), Rank(1), Rank(4)}),
                                    Bytes(30'000'000), 0, std::move(others)};
    const auto choices = choose(*fabric, request, {"ring", 1, 1});
    REQUIRE(choices.ok());
    return explain(*fabric, request, *choices, std::nullopt, {});
  };
  const ExplainReport alone = explained({});
  CHECK(page_text(page(alone)).find("slowest route, rank 0 -> rank 1") != std::string::npos);
  const ExplainReport shared = explained({Group::listed({Rank(2), Rank(5)}), Group::listed({Rank(3), Rank(6)})});
  CHECK(page_text(page(shared)).find("slowest route, rank 1 -> rank 4") != std::string::npos);
  const Json doc = Json::parse(json(shared));
  CHECK(term(doc, "beta").at("value").get<double>() == Approx(20e9 / 3));
  CHECK(term(doc, "beta").at("numbers") == "20 GB/s / 3");
}
