// Rows of many tables as figures with their counts, and as a picture.
#include <catch2/catch.hpp>

#include <pugixml.hpp>
#include <string>

#include "collcast/report/validate_document.hpp"

using namespace collcast;

namespace {

ScoredTable scored_table(const std::string& collective, const std::string& healthy, int nodes,
                         std::vector<Deviation> rows) {
  ScoredTable out;
  out.id = collective;
  out.collective = collective;
  out.healthy = healthy;
  out.nodes = nodes;
  out.ranks = 8 * nodes;
  out.rows = std::move(rows);
  return out;
}

Deviation row_of(Bytes size, double measured, double predicted) {
  return {size, Seconds(measured), Seconds(predicted), std::nullopt};
}

/// Two collectives, one and two nodes, one broken set-up.
ValidateReport report_of_four() {
  const Bytes small(1024), large(64 << 20);
  ValidateReport out;
  out.library = "nccl";
  out.tables = {
      scored_table("all_reduce", "yes", 1, {row_of(small, 1e-5, 1e-5), row_of(large, 1e-3, 2e-3)}),
      scored_table("all_reduce", "unknown", 2, {row_of(small, 1e-4, 1.1e-4), row_of(small, 1e-4, 1.1e-4)}),
      scored_table("all_gather", "yes", 1, {row_of(small, 1e-5, 9e-6)}),
      scored_table("all_gather", "no", 2, {row_of(large, 1e-2, 1e-3)}),
  };
  return out;
}

pugi::xml_document picture(const ValidateReport& report) {
  pugi::xml_document out;
  REQUIRE(out.load_string(plot(report).c_str()));
  return out;
}

}  // namespace

TEST_CASE("figures by collective, nodes and band each have their tables and rows") {
  const auto rows = summary_by_collective_and_nodes(report_of_four());
  REQUIRE(rows.size() == 5);
  CHECK(rows[0].collective == "all_reduce");
  CHECK(rows[0].nodes == NodeCount::one);
  CHECK(rows[0].band == Band::small);
  CHECK(rows[0].tables == 1);
  CHECK(rows[0].error.n == 1);
  CHECK(rows[2].nodes == NodeCount::several);
  CHECK(rows[2].error.n == 2);
  CHECK(rows[2].error.median_ape == Approx(0.1));
  CHECK(rows[3].collective == "all_gather");
  CHECK_FALSE(rows[4].healthy);
  const auto sound = summary_of_sound(report_of_four());
  REQUIRE(sound.size() == 2);  // the one of two nodes that is not broken is called nothing
  CHECK(sound[0].nodes == NodeCount::one);
  CHECK(sound[0].tables == 2);
  CHECK(sound[0].error.n == 2);
  CHECK(sound[1].band == Band::large);
  const Page shown = page(report_of_four());
  const Table* first = nullptr;
  for (const auto& block : shown.blocks)
    if (first == nullptr) first = std::get_if<Table>(&block);
  REQUIRE(first != nullptr);
  // All, one node, several nodes, then each collective: small and large of all, and so on.
  using Cells = std::vector<std::string>;
  CHECK(first->rows.front() == Cells{"all", "any", "below 64 KiB", "3", "4", "10.0%", "7.5%", "10.0%", "1.05"});
  CHECK(first->rows.back() == Cells{"all_gather", "one", "below 64 KiB", "1", "1", "10.0%", "10.0%", "10.0%", "0.90"});
}

TEST_CASE("set-ups that are called sound are summed up by nodes, whatever the number of collectives") {
  const Bytes small(1024);
  ValidateReport report;
  report.library = "nccl";
  report.tables = {scored_table("all_reduce", "yes", 1, {row_of(small, 1e-5, 1.1e-5)}),
                   scored_table("all_reduce", "yes", 2, {row_of(small, 1e-5, 1.2e-5)}),
                   scored_table("all_reduce", "unknown", 2, {row_of(small, 1e-5, 2e-5)})};
  std::vector<Table> tables;
  const Page shown = page(report);
  for (const auto& block : shown.blocks)
    if (const Table* table = std::get_if<Table>(&block)) tables.push_back(*table);
  const auto sound = std::find_if(tables.begin(), tables.end(), [](const Table& table) {
    return table.title == "of these the set-ups that their own source calls sound";
  });
  REQUIRE(sound != tables.end());
  std::vector<std::string> nodes;
  for (const auto& row : sound->rows) nodes.push_back(row[1] + " " + row[5]);
  CHECK(nodes == std::vector<std::string>{"any 15.0%", "one 10.0%", "several 20.0%"});
}

TEST_CASE("a mark stands where measured and predicted say, equal ones once") {
  const pugi::xml_document document = picture(report_of_four());
  const auto panels = document.child("svg").children("g");
  REQUIRE(std::distance(panels.begin(), panels.end()) == 2);
  const pugi::xml_node one = *panels.begin(), several = *std::next(panels.begin());
  const auto marks = [](pugi::xml_node panel, const char* name) {
    return std::string(
        panel.find_child_by_attribute("path", "class", ("mark " + std::string(name)).c_str()).attribute("d").value());
  };
  // 1 us to 10 ms on 820 half pixels, 205 a decade: 10 us at 205 from the left and, exactly foreseen, 615 from the top;
  // 1 ms at 615, and 2 ms at 820 - (3 + log10 2) x 205 = 143.
  CHECK(marks(one, "all_reduce") == "M205 615h0m410-472h0");
  // 9 us at 820 - log10 9 x 205 = 624.
  CHECK(marks(one, "all_gather") == "M205 624h0");
  // 100 us at 410; 110 us at 820 - (2 + log10 1.1) x 205 = 402.
  CHECK(marks(several, "all_reduce") == "M410 402h0");
  CHECK(marks(several, "broken") == "M820 205h0");
  CHECK(std::string(one.children("text").begin()->next_sibling().text().get()) ==
        "3 rows of 2 tables, 66.7% within 20 %");
  CHECK(std::string(several.children("text").begin()->next_sibling().text().get()) ==
        "2 rows of 1 table, 100.0% within 20 %");
  const std::string text = plot(report_of_four());
  CHECK(text.find("all_reduce: 4 rows of 2 tables") != std::string::npos);
  CHECK(text.find("called broken by their source, not counted above: 1 row of 1 table") != std::string::npos);
  CHECK(text.find("prefers-color-scheme:dark") != std::string::npos);
}

TEST_CASE("a picture has the panels that have rows") {
  ValidateReport report = report_of_four();
  report.tables.resize(1);
  const pugi::xml_document document = picture(report);
  const auto panels = document.child("svg").children("g");
  CHECK(std::distance(panels.begin(), panels.end()) == 1);
  report.tables.clear();
  CHECK(picture(report).child("svg").child("g").empty());
}
