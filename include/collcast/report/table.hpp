// What people read: pages of paragraphs and tables, printed as aligned text, Markdown or CSV.
//
// A Table holds texts, already scaled and rounded; numbers for programs are in the JSON and CSV documents
// (documents.hpp). Nothing here reads a clock, a host name or a path, so equal input gives equal bytes.
#pragma once

#include <iosfwd>
#include <string>
#include <variant>
#include <vector>

namespace collcast {

enum class Align { left, right };

struct Column {
  std::string title;  ///< empty in every column: a table without a heading, for name-value lists
  std::string unit;   ///< printed as "title [unit]"; empty where each cell carries its own
  Align align = Align::left;
};

struct Table {
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  ///< each as long as `columns`
};

/// A line of text; warnings and notes are marked as such.
struct Paragraph {
  enum class Tone { plain, note, warning };
  std::string text;
  Tone tone = Tone::plain;
};

struct Heading {
  std::string text;
};

/// Lines whose blanks matter, such as a formula under its numbers.
struct Listing {
  std::vector<std::string> lines;
};

struct Page {
  std::string title;
  std::vector<std::variant<Paragraph, Heading, Listing, Table>> blocks;
};

struct TextStyle {
  bool colour = false;  ///< ANSI: bold headings, yellow warnings
};

void write_text(std::ostream&, const Page&, TextStyle = {});
void write_markdown(std::ostream&, const Page&);
/// RFC 4180 quoting; lines end in LF, as other Unix tools expect.
void write_csv(std::ostream&, const Table&);
void write_csv_line(std::ostream&, const std::vector<std::string>& cells);

}  // namespace collcast
