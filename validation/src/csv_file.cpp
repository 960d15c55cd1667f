#include "csv_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <utility>

#include "collcast/base/numbers.hpp"
#include "collcast/base/words.hpp"

namespace collcast {

std::optional<double> read_number(std::string_view text) {
  const auto value = to_number<double>(text);
  return value && std::isfinite(*value) && *value >= 0 ? value : std::nullopt;
}

namespace {

/// Behind what was expected of a line: the last one has no end of its own.
const char* cut_off(const Lines& lines) { return lines.ended() ? "" : "; is the file cut off?"; }

}  // namespace

Diagnostics open_quote(const Lines& lines, int column) {
  return {{lines.at(column), "a quoted cell that does not end before the next comma",
           fmt::format("expected \"...\", with quotes in it doubled, on one line{}", cut_off(lines))}};
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
                   cells.size() < heading_.size() && !lines_.ended()
                       ? "expected a value for each column of the heading; is the file cut off?"
                       : "a cell with a comma in it is quoted: \"a,b\"");
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
      complaints.add(open_quote(lines_, *line.open_quote));
      continue;
    }
    cells = std::move(line.cells);
    return true;
  }
  return false;
}

namespace {

bool is_known(std::istream& in, const std::string& file, const CsvKind& kind, Complaints& complaints) {
  CsvFile csv(in, file);
  return csv.read_heading(complaints) && kind.read(csv, complaints);
}

void read_file_of(const std::string& path, bool named, const Location& asked_by, const CsvKind& kind,
                  Complaints& complaints, Diagnostics& warnings) {
  const Result<std::string> text = read_file(path, asked_by);
  if (!text) return complaints.add(text.errors());
  std::istringstream in(*text);
  Complaints own;
  const bool known = is_known(in, path, kind, own);
  if (!own.empty())
    complaints.add(own.take());
  else if (!known && named)
    complaints.add({path, 1, 1}, fmt::format("this is no table of {}", kind.rows), kind.expected);
  else if (!known)
    warnings.push_back({{path, 1, 1}, fmt::format("no table of {}: the file is passed over", kind.rows), ""});
}

}  // namespace

void read_tables(const std::string& path, const Location& asked_by, const CsvKind& kind, Complaints& complaints,
                 Diagnostics& warnings) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored))
    return read_file_of(path, true, asked_by, kind, complaints, warnings);
  const std::vector<std::string> tables = csv_files(path);
  if (tables.empty()) complaints.add(asked_by, fmt::format("'{}' has no .csv file", path), kind.expected);
  for (const std::string& table : tables) read_file_of(table, false, asked_by, kind, complaints, warnings);
}

void read_table(std::istream& in, const std::string& file, const CsvKind& kind, Complaints& complaints) {
  const bool known = is_known(in, file, kind, complaints);
  if (complaints.empty() && !known)
    complaints.add({file, 1, 1}, fmt::format("this is no table of {}", kind.rows), kind.expected);
}

}  // namespace collcast
