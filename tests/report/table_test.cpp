// Pages and tables as text, Markdown and CSV.
#include "collcast/report/table.hpp"

#include <catch2/catch.hpp>

#include <sstream>

using namespace collcast;

namespace {

std::string csv(const Table& table) {
  std::ostringstream out;
  write_csv(out, table);
  return out.str();
}

std::string markdown(const Page& page) {
  std::ostringstream out;
  write_markdown(out, page);
  return out.str();
}

std::string plain(const Page& page, TextStyle style = {}) {
  std::ostringstream out;
  write_text(out, page, style);
  return out.str();
}

Table one_cell(const std::string& text) { return {{}, {{"a", {}, Align::left}}, {{text}}}; }

}  // namespace

TEST_CASE("a CSV cell is quoted when, and only when, RFC 4180 asks for it") {
  CHECK(csv(one_cell("plain text")) == "a\nplain text\n");
  CHECK(csv(one_cell("a,b")) == "a\n\"a,b\"\n");
  CHECK(csv(one_cell("say \"x\"")) == "a\n\"say \"\"x\"\"\"\n");
  CHECK(csv(one_cell("two\nlines")) == "a\n\"two\nlines\"\n");
  CHECK(csv(one_cell("carriage\rreturn")) == "a\n\"carriage\rreturn\"\n");
}

TEST_CASE("a CSV file has a heading even without rows") {
  CHECK(csv({{}, {{"x", {}, Align::left}, {"y", "GB/s", Align::right}}, {}}) == "x,y [GB/s]\n");
}

TEST_CASE("a bar in a Markdown cell does not end the cell") {
  const Page page{"t", {one_cell("a|b\nc")}};
  CHECK(markdown(page) == "## t\n\n| a |\n| --- |\n| a\\|b<br>c |\n");
}

TEST_CASE("Markdown that a name holds stays text") {
  const Page page{"<b>", {Paragraph{"![x](http://e) & `c`"}, one_cell("<script>\\|"), Listing{{"```", "x"}}}};
  CHECK(markdown(page) ==
        "## &lt;b>\n\n![x]\\(http://e) &amp; \\`c\\`\n\n| a |\n| --- |\n| &lt;script>\\\\\\| "
        "|\n\n````text\n```\nx\n````\n");
}

TEST_CASE("Markdown aligns numbers to the right") {
  const Page page{"t", {Table{{}, {{"n", {}, Align::right}}, {{"1"}}}}};
  CHECK(markdown(page) == "## t\n\n| n |\n| ---: |\n| 1 |\n");
}

TEST_CASE("Markdown marks notes and warnings and fences listings") {
  const Page page{"t",
                  {Paragraph{"p"}, Paragraph{"n", Paragraph::Tone::note}, Paragraph{"w", Paragraph::Tone::warning},
                   Heading{"h"}, Listing{{"x = 1"}}}};
  CHECK(markdown(page) == "## t\n\np\n\n> **Note:** n\n\n> **Warning:** w\n\n### h\n\n```text\nx = 1\n```\n");
}

TEST_CASE("columns are as wide as their widest cell, counted in characters and not in bytes") {
  const Table table{
      "", {{"name", {}, Align::left}, {"n", {}, Align::right}}, {{"0, 8 … 56", "1"}, {"0, 8 xx 56", "10"}}};
  CHECK(plain({"t", {table}}) ==
        "t\n"
        "\n"
        "  name         n\n"
        "  0, 8 … 56    1\n"
        "  0, 8 xx 56  10\n");
}

TEST_CASE("a table without titles has no heading line") {
  const Table table{"", {{"", {}, Align::left}, {"", {}, Align::right}}, {{"a", "1"}}};
  CHECK(plain({"t", {table}}) == "t\n\n  a  1\n");
}

TEST_CASE("no line ends in blanks") {
  const Table table{"", {{"a", {}, Align::left}, {"b", {}, Align::left}}, {{"long cell", ""}, {"x", "y"}}};
  CHECK(plain({"t", {table}}).find(" \n") == std::string::npos);
}

TEST_CASE("escape codes are there only when colour is on") {
  const Page page{"t", {Paragraph{"w", Paragraph::Tone::warning}, one_cell("c")}};
  CHECK(plain(page).find('\033') == std::string::npos);
  CHECK(plain(page, {true}).find("\033[33mwarning: w\033[0m") != std::string::npos);
}
