// collcast.explain.v1: figures with their formulas, numbers and sources, in every format.
#include <fmt/format.h>

#include <cmath>

#include "collcast/base/units.hpp"
#include "collcast/report/documents.hpp"
#include "report/document.hpp"

namespace collcast {

namespace {

std::string value_text(const Term& term) {
  if (term.unit == "s") return format_seconds(Seconds(term.value));
  if (term.unit == "B") return format_bytes(Volume(term.value));
  if (term.unit == "B/s") return format_bandwidth(Bandwidth(term.value));
  if (term.unit == "FLOP") return format_count(term.value) + "FLOP";
  if (term.unit == "FLOP/s") return format_flop_rate(FlopRate(term.value));
  const bool whole = std::abs(term.value) < 1e15 && term.value == std::floor(term.value);
  return whole ? fmt::format("{:.0f}", term.value) : fmt::format("{:.6g}", term.value);
}

Json term_json(const Section& section, const Term& term) {
  return {{"section", section.title}, {"name", term.name}, {"formula", term.formula}, {"numbers", term.numbers},
          {"value", term.value},      {"unit", term.unit}, {"source", term.source}};
}

Json terms_json(const ExplainReport& report) {
  Json out = Json::array();
  for (const Section& section : report.sections) {
    for (const Term& term : section.terms) out.push_back(term_json(section, term));
  }
  return out;
}

Json table_json(const Section& section, const Table& table) {
  Json columns = Json::array();
  for (const Column& column : table.columns) columns.push_back(column.title);
  return {{"section", section.title}, {"title", table.title}, {"columns", columns}, {"rows", table.rows}};
}

/// name = formula, the numbers below it, the value below those, and where they came from at the end.
void append_term(Listing& out, const Term& term) {
  const std::string indent(term.name.size(), ' ');
  std::string name = term.name;
  for (const std::string& step : {term.formula, term.numbers}) {
    if (step.empty()) continue;
    out.lines.push_back(fmt::format("{} = {}", name, step));
    name = indent;
  }
  out.lines.push_back(fmt::format("{} = {}", name, value_text(term)));
  if (term.source.empty()) return;
  if (term.formula.empty() && term.numbers.empty())
    out.lines.back() += fmt::format("   ({})", term.source);
  else
    out.lines.push_back(fmt::format("{}   ({})", indent, term.source));
}

}  // namespace

std::string json(const ExplainReport& report) {
  Json out = document("collcast.explain.v1");
  out["title"] = report.title;
  out["library"] = report.library.empty() ? Json() : Json(report.library);
  out["partial"] = !report.partial.empty();
  out["warnings"] = report.said;
  if (!report.partial.empty()) out["warnings"].push_back(report.partial);
  out["terms"] = terms_json(report);
  out["tables"] = Json::array();
  out["text"] = Json::array();
  out["commands"] = Json::array();
  for (const Section& section : report.sections) {
    for (const Table& table : section.tables) out["tables"].push_back(table_json(section, table));
    for (const Paragraph& paragraph : section.text)
      out["text"].push_back({{"section", section.title}, {"text", paragraph.text}});
    for (const std::string& command : section.commands)
      out["commands"].push_back({{"section", section.title}, {"command", command}});
  }
  return text(out);
}

Table csv(const ExplainReport& report) { return csv_rows(terms_json(report)); }

Page page(const ExplainReport& report) {
  Page out;
  out.title = report.title;
  if (!report.partial.empty()) out.blocks.push_back(Paragraph{report.partial, Paragraph::Tone::warning});
  for (const Section& section : report.sections) {
    out.blocks.push_back(Heading{section.title});
    for (const Paragraph& paragraph : section.text) out.blocks.push_back(paragraph);
    Listing listing;
    for (const Term& term : section.terms) append_term(listing, term);
    if (!listing.lines.empty()) out.blocks.push_back(std::move(listing));
    for (const Table& table : section.tables) out.blocks.push_back(table);
    if (section.commands.empty()) continue;
    out.blocks.push_back(Paragraph{"each in full:", Paragraph::Tone::plain});
    out.blocks.push_back(Listing{section.commands});
  }
  return out;
}

}  // namespace collcast
