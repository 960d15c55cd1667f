#include "collcast/base/csv.hpp"

#include <algorithm>

namespace collcast {

CsvLine read_csv_line(std::string_view line) {
  CsvLine out;
  std::size_t at = 0;
  while (true) {
    Cell cell{{}, static_cast<int>(at) + 1};
    if (at < line.size() && line[at] == '"') {
      ++at;
      while (at < line.size() && (line[at] != '"' || (at + 1 < line.size() && line[at + 1] == '"'))) {
        if (line[at] == '"') ++at;
        cell.text += line[at++];
      }
      const bool closed = at < line.size();
      if (closed) ++at;
      if (!closed || (at < line.size() && line[at] != ',')) {
        out.open_quote = cell.column;
        return out;
      }
    } else {
      const std::size_t end = std::min(line.find(',', at), line.size());
      cell.text = line.substr(at, end - at);
      at = end;
    }
    out.cells.push_back(std::move(cell));
    if (at >= line.size()) return out;
    ++at;
  }
}

}  // namespace collcast
