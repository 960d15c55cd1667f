// collcast.collective.v1: its keys, its nulls, its bandwidths, and what the page says about differences.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <sstream>

#include "collcast/report/documents.hpp"

using namespace collcast;
using Json = nlohmann::json;

namespace {

CollectiveReport all_reduce_report() {
  CollectiveReport report;
  report.machine.topology = "ring";
  report.machine.nodes = 4;
  report.machine.ranks = 4;
  report.kind = CollectiveKind::all_reduce;
  report.groups = {Group::strided(Rank(0), 1, 4)};
  CollectiveRow row;
  row.algorithm = "ring";
  row.nodes = 4;
  row.size = Bytes(1'000'000);
  row.chunks = 2;
  row.estimate = Seconds(1e-3);
  row.simulate = Seconds(1e-3);
  report.rows = {row};
  return report;
}

std::string text(const Page& page) {
  std::ostringstream out;
  write_text(out, page);
  return out.str();
}

}  // namespace

TEST_CASE("a collective document has its schema, its tool and every key that other programs rely on") {
  const Json doc = Json::parse(json(all_reduce_report()));
  CHECK(doc.at("schema") == "collcast.collective.v1");
  CHECK(doc.at("tool").at("name") == "collcast");
  CHECK(doc.at("tool").at("version").get<std::string>() == std::string(tool_version()));
  const Json& row = doc.at("rows").at(0);
  for (const char* key : {"collective", "algorithm", "library"}) CHECK(row.at(key).is_string());
  for (const char* key : {"ranks", "nodes", "size_bytes", "chunks", "channels"}) CHECK(row.at(key).is_number_integer());
  for (const char* key : {"estimate_s", "simulate_s", "algbw_bytes_per_s", "busbw_bytes_per_s"})
    CHECK(row.at(key).is_number());
  CHECK(row.at("protocol").is_null());  // the ideal library has none
  CHECK(row.at("library") == "ideal");
}

TEST_CASE("rows of two protocols that take the same time are two rows of the page") {
  CollectiveReport report = all_reduce_report();
  report.rows.push_back(report.rows[0]);
  report.rows[0].protocol = "LL128";
  report.rows[1].protocol = "Simple";
  const std::string said = text(page(report));
  CHECK(said.find("LL128") != std::string::npos);
  CHECK(said.find("Simple") != std::string::npos);
}

TEST_CASE("schema and tool come first, so that a reader knows what follows") {
  CHECK(json(all_reduce_report()).find("{\n  \"schema\": \"collcast.collective.v1\",\n  \"tool\"") == 0);
}

TEST_CASE("bus bandwidth is algorithm bandwidth times the factor of nccl-tests") {
  const Json row = Json::parse(json(all_reduce_report())).at("rows").at(0);
  // 1 MB in 1 ms is 1 GB/s; an all-reduce among 4 moves 2 * 3/4 of that over a bus.
  CHECK(row.at("algbw_bytes_per_s").get<double>() == Approx(1e9).epsilon(1e-12));
  CHECK(row.at("busbw_bytes_per_s").get<double>() == Approx(1.5e9).epsilon(1e-12));
}

TEST_CASE("a method that was not run is null, and the bandwidth comes from the other one") {
  CollectiveReport report = all_reduce_report();
  report.rows[0].simulate.reset();
  report.rows[0].estimate = Seconds(2e-3);
  const Json row = Json::parse(json(report)).at("rows").at(0);
  CHECK(row.at("simulate_s").is_null());
  CHECK(row.at("algbw_bytes_per_s").get<double>() == Approx(0.5e9).epsilon(1e-12));
  CHECK(text(page(report)).find("simulate") == std::string::npos);
}

TEST_CASE("the simulated time counts where both methods were run") {
  CollectiveReport report = all_reduce_report();
  report.rows[0].simulate = Seconds(4e-3);
  const Json row = Json::parse(json(report)).at("rows").at(0);
  CHECK(row.at("algbw_bytes_per_s").get<double>() == Approx(0.25e9).epsilon(1e-12));
}

TEST_CASE("a group of one takes no time and has no bandwidth") {
  CollectiveReport report = all_reduce_report();
  report.groups = {Group::strided(Rank(0), 1, 1)};
  report.rows[0].estimate = report.rows[0].simulate = Seconds(0);
  const Json row = Json::parse(json(report)).at("rows").at(0);
  CHECK(row.at("estimate_s") == 0.0);
  CHECK(row.at("algbw_bytes_per_s").is_null());
}

TEST_CASE("a difference within the clock's rounding is called exact, a larger one is explained") {
  CollectiveReport report = all_reduce_report();
  report.rows[0].rounding = Seconds(12e-12);
  report.rows[0].simulate = Seconds(1e-3 + 12e-12);
  CHECK(text(page(report)).find("exact") != std::string::npos);
  // A nanosecond of a millisecond is more than 12 ps of round-ups, and not exact however small.
  report.rows[0].simulate = Seconds(1e-3 + 1e-9);
  CHECK(text(page(report)).find("exact") == std::string::npos);
  report.rows[0].simulate = Seconds(1e-3 + 1e-10);
  CHECK(text(page(report)).find("<0.0001%") != std::string::npos);
  report.rows[0].simulate = Seconds(1.1e-3);
  report.rows[0].approximate = report.rows[0].shared = true;
  CHECK(text(page(report)).find("+10%") != std::string::npos);
  CHECK(text(page(report)).find("differ by up to +10%") != std::string::npos);
  CHECK(text(page(report)).find("transfers share links") != std::string::npos);
}

TEST_CASE("of NCCL's channels contention is named where a shared link has most of the difference, and only there") {
  CollectiveReport report = all_reduce_report();
  CollectiveRow& row = report.rows[0];
  row.protocol = "Simple";
  row.chunks = 64;
  row.simulate = Seconds(2e-3);
  const auto said = [&](bool shared, double load) {
    row.busiest = {"pcie node0.pcie1 -> node0.cpu0", shared, Seconds(load), Seconds(0.9e-3), "NIC"};
    return text(page(report));
  };
  const auto has = [](const std::string& page, const std::string& words) {
    return page.find(words) != std::string::npos;
  };
  // 1.9 ms of 2 ms on a link where the closed form's busiest has 0.9: all of the difference.
  const std::string contended = said(true, 1.9e-3);
  CHECK(has(contended, "contention on pcie node0.pcie1 -> node0.cpu0, which is full 95 % of the time"));
  CHECK(has(contended, "less on its busiest resource (NIC)"));
  // 0.1 ms more than the closed form has there are a tenth of it; and a GPU's own port is nobody else's.
  for (const std::string& other : {said(true, 1e-3), said(false, 1.9e-3)}) {
    CHECK(has(other, "no contention: messages wait for those before them"));
    CHECK_FALSE(has(other, "contention on"));
  }
  row.chunks = 2;
  CHECK(has(said(true, 1e-3), "no contention: 2 chunks of a channel hide little of what fills the pipe"));
  row.chunks = 64;
  row.simulate = Seconds(0.95e-3);
  CHECK(has(said(true, 0.9e-3), "no contention: hops overlap"));
}

TEST_CASE("a difference under fifo is laid to the closed form's fair shares") {
  CollectiveReport report = all_reduce_report();
  report.rows[0].simulate = Seconds(1.5e-3);
  report.rows[0].approximate = report.rows[0].shared = true;
  report.inputs.sharing = Sharing::fifo;
  const std::string shown = text(page(report));
  CHECK(shown.find("it does not model fifo") != std::string::npos);
  CHECK(shown.find("critical path") == std::string::npos);
}

TEST_CASE("the document has the notes that the page has") {
  CollectiveReport report = all_reduce_report();
  report.rows[0].simulate = Seconds(3e-3);
  report.rows[0].approximate = report.rows[0].shared = true;
  report.rows[0].runner_up = {"direct", 1, Seconds(2e-3), {}};
  report.notes = {"left out"};
  std::vector<std::string> shown;
  for (const auto& block : page(report).blocks) {
    const auto* paragraph = std::get_if<Paragraph>(&block);
    if (paragraph != nullptr && paragraph->tone == Paragraph::Tone::note) shown.push_back(paragraph->text);
  }
  CHECK(shown.size() == 4);
  CHECK(Json::parse(json(report)).at("notes").get<std::vector<std::string>>() == shown);
}

TEST_CASE("an approximate closed form names the link that ends last") {
  CollectiveReport report = all_reduce_report();
  report.rows[0].approximate = report.rows[0].shared = true;
  PhaseRow phase;
  phase.estimate.time = Seconds(1e-3);
  phase.estimate.busiest_bytes = Volume(2'097'152);
  phase.busiest_link = "leaf0 -> spine1";
  report.rows[0].phases = {phase};
  CHECK(text(page(report)).find("leaf0 -> spine1 with 2 MiB") != std::string::npos);
  CHECK(Json::parse(json(report)).at("rows").at(0).at("phases").at(0).at("busiest_link") == "leaf0 -> spine1");
}

TEST_CASE("what auto picked is said for a run of sizes, and again where it changes") {
  CollectiveReport report = all_reduce_report();
  CollectiveRow row = report.rows[0];
  report.rows.clear();
  for (const auto& [bytes, algorithm] : {std::pair{1024, "tree"}, {2048, "tree"}, {4096, "ring"}}) {
    row.size = Bytes(bytes);
    row.algorithm = algorithm;
    row.estimate.reset();  // --method simulate
    row.runner_up = {"direct", 1, Seconds(2e-3), {}};
    report.rows.push_back(row);
  }
  report.rows.back().runner_up->simulate = Seconds(3e-3);
  const std::string shown = text(page(report));
  CHECK(shown.find("auto picked tree at 1 KiB to 2 KiB; the runner-up at 2 KiB is direct with 1 chunk: 2 ms by closed "
                   "form.") != std::string::npos);
  CHECK(shown.find("auto picked ring at 4 KiB; the runner-up is direct with 1 chunk: 3 ms by simulation.") !=
        std::string::npos);
}

TEST_CASE("what auto picked is said of each group, once for those that fare alike") {
  CollectiveReport report = all_reduce_report();
  report.groups = {Group::strided(Rank(0), 1, 1), Group::strided(Rank(0), 1, 4), Group::strided(Rank(8), 1, 2),
                   Group::strided(Rank(4), 1, 4)};
  CollectiveRow row = report.rows[0];
  report.rows = {row};
  for (const int group : {1, 2, 3}) {
    row.group = group;
    row.algorithm = group == 2 ? "ring" : "tree";
    row.runner_up = {"direct", 1, Seconds(2e-3), {}};
    report.rows.push_back(row);
  }
  const std::string said = text(page(report));
  INFO(said);
  CHECK(said.find("ranks 0-3 (and 1 like it): auto picked tree at 1 MB") != std::string::npos);
  CHECK(said.find("ranks 8, 9: auto picked ring at 1 MB") != std::string::npos);
  // A first group with nothing to choose hides nothing, and where all fare alike nobody is named.
  report.rows.erase(report.rows.begin() + 2);
  CHECK(text(page(report)).find("note: auto picked tree at 1 MB") != std::string::npos);
}

TEST_CASE("CSV has the keys of the JSON rows, full precision, and nothing where there is null") {
  CollectiveReport report = all_reduce_report();
  report.rows[0].estimate = Seconds(1.0 / 3);
  report.rows[0].simulate.reset();
  const Table table = csv(report);
  std::vector<std::string> titles;
  for (const Column& column : table.columns) titles.push_back(column.title);
  const std::vector<std::string> first{"collective", "algorithm",         "protocol",         "library",  "ranks",
                                       "nodes",      "size_bytes",        "chunks",           "channels", "estimate_s",
                                       "simulate_s", "algbw_bytes_per_s", "busbw_bytes_per_s"};
  REQUIRE(titles.size() >= first.size());
  CHECK(std::vector<std::string>(titles.begin(), titles.begin() + static_cast<long>(first.size())) == first);
  CHECK(table.rows.at(0).at(9) == "0.3333333333333333");
  CHECK(table.rows.at(0).at(10).empty());
}

TEST_CASE("the columns of CSV are those of the JSON's rows that fit a cell, and no value changes them") {
  CollectiveReport plain = all_reduce_report();
  CollectiveReport full = all_reduce_report();
  full.concurrent = full.links = true;
  full.rows[0].runner_up = CollectiveRow::RunnerUp{"tree", 1, Seconds(2e-3), std::nullopt, "LL"};
  full.rows[0].phases = {PhaseRow{}};
  full.rows[0].links = {LinkRow{}};
  full.rows[0].protocol = "LL128";
  full.rows.insert(full.rows.begin(), plain.rows[0]);
  std::vector<std::string> expected;
  const auto keys = nlohmann::ordered_json::parse(json(full)).at("rows").at(1);
  for (const auto& [key, value] : keys.items())
    if (!value.is_structured()) expected.push_back(key);
  expected.push_back("partial");  // of the document
  full.partial = true;
  CHECK(csv(full).rows.at(0).back() == "true");
  CHECK(csv(plain).rows.at(0).back() == "false");
  CollectiveReport none = all_reduce_report();
  none.rows.clear();
  for (const CollectiveReport& report : {plain, full, none}) {
    const Table table = csv(report);
    std::vector<std::string> titles;
    for (const Column& column : table.columns) titles.push_back(column.title);
    CHECK(titles == expected);
    for (const auto& row : table.rows)
      for (const std::string& cell : row) CHECK(cell.find('{') == std::string::npos);
  }
}

TEST_CASE("groups that fare alike are shown once, and all of them are in the JSON") {
  CollectiveReport report = all_reduce_report();
  report.groups = {Group::strided(Rank(0), 1, 2), Group::strided(Rank(2), 1, 2), Group::strided(Rank(4), 1, 2)};
  report.concurrent = true;
  report.rows.assign(3, report.rows[0]);
  for (int g = 0; g < 3; ++g) {
    CollectiveRow& row = report.rows[static_cast<std::size_t>(g)];
    row.group = g;
    row.simulate_alone = Seconds(0.5e-3);
    row.simulate = Seconds(g == 2 ? 2e-3 : 1e-3);
  }
  const std::string shown = text(page(report));
  CHECK(shown.find("0, 1 (and 1 like it)") != std::string::npos);
  CHECK(shown.find("2, 3") == std::string::npos);
  CHECK(shown.find("4, 5") != std::string::npos);
  CHECK(shown.find("4x") != std::string::npos);  // 2 ms together, 0.5 ms alone
  CHECK(Json::parse(json(report)).at("rows").size() == 3);
}

TEST_CASE("algorithms that do not apply are listed with the reason") {
  CollectiveReport report = all_reduce_report();
  report.skipped = {{"hierarchical", "the group is on one node"}};
  CHECK(text(page(report)).find("hierarchical  the group is on one node") != std::string::npos);
  CHECK(Json::parse(json(report)).at("not_applicable").at(0).at("algorithm") == "hierarchical");
}

TEST_CASE("a curve over chunks marks its best point") {
  CollectiveReport report = all_reduce_report();
  report.curves = {{"ring", Bytes(1024), 2, {{1, Seconds(3e-6)}, {2, Seconds(1e-6)}, {4, Seconds(2e-6)}}}};
  CHECK(text(page(report)).find("2      1 us  <- taken") != std::string::npos);
  CHECK(text(page(report)).find("a message has no cost of its own") != std::string::npos);
  CHECK(Json::parse(json(report)).at("chunk_curves").at(0).at("points").size() == 3);
}

TEST_CASE("the same report gives the same bytes") { CHECK(json(all_reduce_report()) == json(all_reduce_report())); }
