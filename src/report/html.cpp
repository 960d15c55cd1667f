// The page that `collcast report` writes for a browser.
//
// Everything that can be read is HTML from here; the script draws charts from the documents, which stand in the page as
// JSON. A page asks nobody for anything: its policy allows this one script and no connection, so that a name which got
// past the escaping would still neither run nor load.
#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "collcast/report/overview.hpp"
#include "report/document.hpp"
#include "report/page_asset.hpp"

namespace collcast {

namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// JSON inside a script element: no "</script" and no "<!--" can come up.
std::string inside_script(const Json& json) {
  std::string out;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace))
    out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

void write_cell(std::ostream& out, const std::string& text, Align align) {
  const char* kind = text == "kept"          ? " class=\"kept\""
                     : text == "BROKEN"      ? " class=\"broken\""
                     : align == Align::right ? " class=\"right\""
                                             : "";
  out << "<td" << kind << '>' << escaped(text) << "</td>";
}

void write_block(std::ostream& out, const Table& table) {
  if (!table.title.empty()) out << "<h2>" << escaped(table.title) << "</h2>\n";
  out << "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>";
  for (const Column& column : table.columns)
    out << (column.align == Align::right ? "<th class=\"right\">" : "<th>") << escaped(column.title) << "</th>";
  out << "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    out << "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) write_cell(out, row[i], table.columns[i].align);
    out << "</tr>\n";
  }
  out << "</tbody></table></div>\n";
}

void write_block(std::ostream& out, const Paragraph& paragraph) {
  const char* kind = paragraph.tone == Paragraph::Tone::warning ? " class=\"warning\""
                     : paragraph.tone == Paragraph::Tone::note  ? " class=\"note\""
                                                                : "";
  out << "<p" << kind << '>' << escaped(paragraph.text) << "</p>\n";
}

void write_block(std::ostream& out, const Heading& heading) { out << "<h2>" << escaped(heading.text) << "</h2>\n"; }

void write_block(std::ostream& out, const Listing& listing) {
  out << "<pre>";
  for (const std::string& line : listing.lines) out << escaped(line) << '\n';
  out << "</pre>\n";
}

/// Numbers of a bar in the order that the script reads: track, start, end, category, name.
Json timeline_json(const TimelineChart& chart) {
  if (chart.bars.empty()) return {};
  Json bars = Json::array();
  const auto to_nanoseconds = [](double seconds) { return std::round(seconds * 1e9) / 1e9; };
  for (const TimelineChart::Bar& bar : chart.bars)
    bars.push_back(
        Json::array({bar.track, to_nanoseconds(bar.start_s), to_nanoseconds(bar.end_s), bar.category, bar.name}));
  return {{"tracks", chart.tracks}, {"bars", std::move(bars)}};
}

Json page_data(const Overview& overview) {
  Json out = Json::array();
  for (const OverviewItem& item : overview.items)
    out.push_back({{"name", item.result.name},
                   {"schema", item.result.result.schema},
                   {"document", Json::parse(item.result.result.document)},
                   {"timeline", timeline_json(item.timeline)}});
  return out;
}

/// The charts stand after the verdict and the gates, before the tables.
void write_blocks(std::ostream& out, const Page& page) {
  bool charts = false;
  for (const auto& block : page.blocks) {
    const Table* table = std::get_if<Table>(&block);
    if (!charts && table != nullptr && table->title != "gates") {
      out << "<section id=\"charts\" aria-label=\"Charts\"></section>\n";
      charts = true;
    }
    std::visit([&](const auto& b) { write_block(out, b); }, block);
  }
}

}  // namespace

std::string html_lacks() { return std::string(page_asset().lacks); }

std::string html(const Overview& overview) {
  const PageAsset asset = page_asset();
  const Page content = page(overview);
  std::ostringstream out;
  out << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      << "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      << "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      << "script-src '" << asset.script_hash << "'\">\n"
      << "<title>" << escaped(content.title) << " - collcast</title>\n<style>\n";
  for (const std::string_view piece : asset.style) out << piece;
  out << "</style>\n</head>\n<body>\n<header>\n<h1 class=\""
      << (overview.gates() == 0    ? "open"
          : overview.broken() == 0 ? "passed"
                                   : "failed")
      << "\">" << escaped(content.title) << "</h1>\n<p class=\"maker\">collcast " << escaped(tool_version())
      << ", a forecast of collective communication</p>\n</header>\n<main>\n";
  write_blocks(out, content);
  out << "</main>\n<footer>Written by collcast " << escaped(tool_version()) << "; charts by " << asset.charts
      << ". Times are forecasts; docs/models.md of collcast says what is left out.</footer>\n"
      << "<script type=\"application/json\" id=\"data\">" << inside_script(page_data(overview))
      << "</script>\n<script>";
  for (const std::string_view piece : asset.script) out << piece;
  out << "</script>\n</body>\n</html>\n";
  return out.str();
}

}  // namespace collcast
