#include "csv_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace collcast {

std::optional<double> read_number(std::string_view text) {
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size() || !std::isfinite(value) || value < 0) return {};
  return value;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool CsvFile::has(const char* column) const { return std::count(heading_.begin(), heading_.end(), column) > 0; }

bool CsvFile::read_heading(Complaints& complaints) {
  std::vector<Cell> cells;
  if (!next_cells(cells, complaints)) return false;
  heading_line_ = lines_.number();
  for (const Cell& cell : cells) {
    heading_.emplace_back(trimmed(cell.text));
    heading_columns_.push_back(cell.column);
    if (std::count(heading_.begin(), heading_.end(), heading_.back()) > 1)
      complaints.add(lines_.at(cell.column), fmt::format("the column '{}' is there twice", printable(heading_.back())),
                     "remove one of the two");
  }
  return true;
}

bool CsvFile::next_row(std::vector<Cell>& cells, Complaints& complaints) {
  while (next_cells(cells, complaints)) {
    if (cells.size() == heading_.size()) return true;
    complaints.add(lines_.at(1), fmt::format("{} cells in a table of {} columns", cells.size(), heading_.size()),
                   "a cell with a comma in it is quoted: \"a,b\"");
  }
  return false;
}

bool CsvFile::next_cells(std::vector<Cell>& cells, Complaints& complaints) {
  while (!complaints.too_many() && lines_.next()) {
    if (const Diagnostics wrong = lines_.wrong(); !wrong.empty()) {
      complaints.add(wrong);
      continue;
    }
    if (trimmed(lines_.text()).empty()) continue;
    CsvLine line = read_csv_line(lines_.text());
    if (line.open_quote) {
      complaints.add(lines_.at(*line.open_quote), "a quoted cell that does not end before the next comma",
                     "expected \"...\", with quotes in it doubled, on one line");
      continue;
    }
    cells = std::move(line.cells);
    return true;
  }
  return false;
}

}  // namespace collcast
