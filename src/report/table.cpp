// Pages as aligned text, Markdown and CSV.
//
// Widths count code points, which is what a terminal shows for everything collcast prints; wide and
// combining characters in a user's own names would shift a column, and nothing else.
#include "collcast/report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string_view>

#include "collcast/base/check.hpp"

namespace collcast {

namespace {

constexpr std::string_view bold = "\033[1m", yellow = "\033[33m", dim = "\033[2m", reset = "\033[0m";

std::size_t shown_width(std::string_view text) {
  // UTF-8 continuation bytes are 10xxxxxx.
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string heading(const Column& column) {
  return column.unit.empty() ? column.title : fmt::format("{} [{}]", column.title, column.unit);
}

bool has_headings(const Table& table) {
  return std::any_of(table.columns.begin(), table.columns.end(), [](const Column& c) { return !c.title.empty(); });
}

std::string padded(std::string_view text, std::size_t width, Align align) {
  const std::string blanks(width - std::min(width, shown_width(text)), ' ');
  return align == Align::right ? blanks + std::string(text) : std::string(text) + blanks;
}

std::string coloured(std::string text, std::string_view colour, TextStyle style) {
  return style.colour ? fmt::format("{}{}{}", colour, text, reset) : text;
}

std::string aligned_row(const std::vector<std::string>& cells, const std::vector<Column>& columns,
                        const std::vector<std::size_t>& widths) {
  std::string line = " ";
  for (std::size_t c = 0; c < cells.size(); ++c)
    line += fmt::format(" {} ", padded(cells[c], widths[c], columns[c].align));
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

void write_text(std::ostream& out, const Table& table, TextStyle style) {
  std::vector<std::string> headings;
  std::vector<std::size_t> widths;
  for (const Column& column : table.columns) {
    headings.push_back(heading(column));
    widths.push_back(shown_width(headings.back()));
  }
  for (const auto& row : table.rows) {
    check(row.size() == table.columns.size(), "a table row has one cell per column");
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], shown_width(row[c]));
  }
  if (!table.title.empty()) out << coloured(table.title, bold, style) << '\n';
  if (has_headings(table)) out << coloured(aligned_row(headings, table.columns, widths), dim, style) << '\n';
  for (const auto& row : table.rows) out << aligned_row(row, table.columns, widths) << '\n';
}

void write_text(std::ostream& out, const Paragraph& paragraph, TextStyle style) {
  switch (paragraph.tone) {
    case Paragraph::Tone::plain:
      out << paragraph.text << '\n';
      return;
    case Paragraph::Tone::note:
      out << "note: " << paragraph.text << '\n';
      return;
    case Paragraph::Tone::warning:
      out << coloured("warning: " + paragraph.text, yellow, style) << '\n';
      return;
  }
}

void write_text(std::ostream& out, const Heading& heading, TextStyle style) {
  out << coloured(heading.text, bold, style) << '\n';
}

void write_text(std::ostream& out, const Listing& listing, TextStyle) {
  for (const std::string& line : listing.lines) out << "  " << line << '\n';
}

/// Text that stays text: no HTML, no link or image, no code, whatever a user's own names hold.
std::string markdown_text(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '<':
        out += "&lt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '\\':
      case '`':
        out += '\\';
        out += text[i];
        break;
      case '(':
        out += i > 0 && text[i - 1] == ']' ? "\\(" : "(";
        break;
      case '\r':
        break;
      default:
        out += text[i];
    }
  }
  return out;
}

std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : markdown_text(text)) {
    if (c == '|') out += '\\';
    if (c == '\n')
      out += "<br>";
    else
      out += c;
  }
  return out;
}

void write_markdown(std::ostream& out, const Table& table) {
  if (!table.title.empty()) out << "**" << markdown_text(table.title) << "**\n\n";
  out << '|';
  for (const Column& column : table.columns) out << ' ' << markdown_cell(heading(column)) << " |";
  out << "\n|";
  for (const Column& column : table.columns) out << (column.align == Align::right ? " ---: |" : " --- |");
  out << '\n';
  for (const auto& row : table.rows) {
    out << '|';
    for (const std::string& cell : row) out << ' ' << markdown_cell(cell) << " |";
    out << '\n';
  }
}

void write_markdown(std::ostream& out, const Paragraph& paragraph) {
  if (paragraph.tone == Paragraph::Tone::note) out << "> **Note:** ";
  if (paragraph.tone == Paragraph::Tone::warning) out << "> **Warning:** ";
  out << markdown_text(paragraph.text) << '\n';
}

void write_markdown(std::ostream& out, const Heading& heading) { out << "### " << markdown_text(heading.text) << '\n'; }

void write_markdown(std::ostream& out, const Listing& listing) {
  // A fence that no line can close.
  std::string fence = "```";
  for (const std::string& line : listing.lines) {
    while (line.find(fence) != std::string::npos) fence += '`';
  }
  out << fence << "text\n";
  for (const std::string& line : listing.lines) out << line << '\n';
  out << fence << '\n';
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

void write_text(std::ostream& out, const Page& page, TextStyle style) {
  out << coloured(page.title, bold, style) << '\n';
  // Paragraphs stand together, and directly under a heading; a blank line sets everything else apart.
  bool after_table = false;
  bool after_heading = false;
  for (const auto& block : page.blocks) {
    const bool is_paragraph = std::holds_alternative<Paragraph>(block);
    if (!after_heading && (!is_paragraph || after_table)) out << '\n';
    std::visit([&](const auto& b) { write_text(out, b, style); }, block);
    after_heading = std::holds_alternative<Heading>(block);
    after_table = !is_paragraph && !after_heading;
  }
}

void write_markdown(std::ostream& out, const Page& page) {
  out << "## " << markdown_text(page.title) << '\n';
  for (const auto& block : page.blocks) {
    out << '\n';
    std::visit([&](const auto& b) { write_markdown(out, b); }, block);
  }
}

void write_csv_line(std::ostream& out, const std::vector<std::string>& cells) {
  const char* separator = "";
  for (const std::string& text : cells) {
    out << separator << csv_cell(text);
    separator = ",";
  }
  out << '\n';
}

void write_csv(std::ostream& out, const Table& table) {
  std::vector<std::string> headings;
  for (const Column& column : table.columns) headings.push_back(heading(column));
  write_csv_line(out, headings);
  for (const auto& row : table.rows) write_csv_line(out, row);
}

}  // namespace collcast
