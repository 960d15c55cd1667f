// A CSV file with a heading, line by line: what tables of training steps and of servers are read with.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/csv.hpp"
#include "lines.hpp"

namespace collcast {

/// A finite number from 0.
std::optional<double> read_number(std::string_view text);
std::string_view trimmed(std::string_view text);

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

}  // namespace collcast
