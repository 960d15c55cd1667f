// A line of CSV as RFC 4180 quotes it; a quoted cell ends within its line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace collcast {

struct Cell {
  std::string text;  ///< without its quotes
  int column = 1;    ///< of its first byte in the line, from 1
};
struct CsvLine {
  std::vector<Cell> cells;
  std::optional<int> open_quote;  ///< column of a quote that nothing closes, or that text follows
};
CsvLine read_csv_line(std::string_view line);

}  // namespace collcast
