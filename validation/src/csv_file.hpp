// A CSV file with a heading, line by line: what tables of training steps and of servers are read with.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/csv.hpp"
#include "collcast/base/text.hpp"
#include "lines.hpp"

namespace collcast {

/// A finite number from 0.
std::optional<double> read_number(std::string_view text);
/// What is wrong with a line that has a quote at this column which nothing closes.
Diagnostics open_quote(const Lines&, int column);

/// Complaints about its form are made here.
class CsvFile {
 public:
  CsvFile(std::istream& in, const std::string& file) : lines_(in, file) {}

  const std::vector<std::string>& heading() const { return heading_; }
  bool has(const char* column) const;
  Location at(int column) const { return lines_.at(column); }
  Location heading_at(std::size_t index) const { return {lines_.file(), heading_line_, heading_columns_[index]}; }

  /// The first line that is not empty.
  bool read_heading(Complaints&);
  /// As many cells as the heading has; others are complained about and passed over.
  bool next_row(std::vector<Cell>&, Complaints&);

 private:
  bool next_cells(std::vector<Cell>&, Complaints&);

  Lines lines_;
  std::vector<std::string> heading_;
  std::vector<int> heading_columns_;
  int heading_line_ = 1;
};

/// Tables of one kind, in files of which some are of something else.
struct CsvKind {
  const char* rows;      ///< "training steps"
  std::string expected;  ///< of a table
  /// Of a file whose heading has been read; false: nothing that is known here.
  std::function<bool(CsvFile&, Complaints&)> read;
};
/// A file's table, or a folder's: of a folder what is not known is passed over, with a warning.
void read_tables(const std::string& path, const Location& asked_by, const CsvKind&, Complaints&, Diagnostics& warnings);
/// One that must be known.
void read_table(std::istream&, const std::string& file, const CsvKind&, Complaints&);

template <class Row>
void check_row_ids(const std::vector<Row>& rows, Complaints& complaints) {
  std::map<std::string, const Row*> seen;
  for (const Row& row : rows) {
    const auto [first, is_new] = seen.emplace(row.row_id, &row);
    if (!is_new && !row.row_id.empty())
      complaints.add(row.where, fmt::format("row_id '{}' is there twice", printable(row.row_id)),
                     fmt::format("the other is at {}", to_text(first->second->where)));
  }
}

}  // namespace collcast
