// The table format: collective, size_bytes, time_us and inplace in any order of columns; bandwidths follow from these:
// where there is algbw_gbps, it is held against size and time. Other columns are passed over, with a warning. Cells may
// be quoted, and have blanks around them, as spreadsheets and statistics programs write them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "collcast/base/words.hpp"
#include "collcast/validation/measured_table.hpp"
#include "csv_file.hpp"
#include "lines.hpp"
#include "printed_rate.hpp"
#include "rank_count.hpp"
#include "sidecar.hpp"
#include "values.hpp"

namespace collcast {

namespace {

constexpr std::array<std::string_view, 4> needed{"collective", "size_bytes", "time_us", "inplace"};
enum Needed { collective, size_bytes, time_us, inplace };

/// Cells without blanks around them.
CsvLine cells_of(std::string_view line) {
  CsvLine out = read_csv_line(line);
  for (Cell& cell : out.cells) cell.text = trimmed(cell.text);
  return out;
}

struct Columns {
  std::array<std::size_t, needed.size()> at{};
  std::optional<std::size_t> algbw, busbw;
  std::size_t count = 0;
};

std::optional<Columns> read_columns(const Lines& lines, Complaints& complaints, Readings& to) {
  Columns out;
  const CsvLine heading = cells_of(lines.text());
  if (heading.open_quote) {
    complaints.add(open_quote(lines, *heading.open_quote));
    return std::nullopt;
  }
  const std::vector<Cell>& titles = heading.cells;
  out.count = titles.size();
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    const auto found =
        std::find_if(titles.begin(), titles.end(), [&](const Cell& title) { return title.text == needed[i]; });
    if (found == titles.end()) missing.emplace_back(needed[i]);
    out.at[i] = static_cast<std::size_t>(found - titles.begin());
  }
  const auto column = [&](std::string_view name) -> std::optional<std::size_t> {
    const auto found =
        std::find_if(titles.begin(), titles.end(), [&](const Cell& title) { return title.text == name; });
    if (found == titles.end()) return std::nullopt;
    return static_cast<std::size_t>(found - titles.begin());
  };
  PassedOver unknown;
  for (auto title = titles.begin(); title != titles.end(); ++title) {
    const bool read = title->text == "algbw_gbps" || title->text == "busbw_gbps" ||
                      std::find(needed.begin(), needed.end(), title->text) != needed.end();
    if (!read) unknown.add(title->text);
    const auto same = [&](const Cell& other) { return other.text == title->text; };
    if (read && std::any_of(titles.begin(), title, same))
      complaints.add(lines.at(title->column), fmt::format("the column {} is there twice", title->text),
                     "leave out one");
  }
  out.algbw = column("algbw_gbps");
  out.busbw = column("busbw_gbps");
  if (missing.empty()) {
    unknown.finish(to, lines.at(1), "column");
    return out;
  }
  complaints.add(lines.at(1),
                 fmt::format("the column{} {} {} missing", missing.size() > 1 ? "s" : "", fmt::join(missing, ", "),
                             missing.size() > 1 ? "are" : "is"),
                 "expected collective,size_bytes,time_us,algbw_gbps,busbw_gbps,inplace");
  return std::nullopt;
}

/// Of the last line of a file: it lacks cells, or its last one has nothing in it yet.
bool is_cut_off(const CsvLine& line, const Columns& columns) {
  if (line.open_quote || line.cells.size() < columns.count) return true;
  return line.cells.back().text.empty() && std::ranges::find(columns.at, columns.count - 1) != columns.at.end();
}

class Rows {
 public:
  Rows(std::string file, const std::optional<MeasuredFacts>& sidecar) : file_(std::move(file)), sidecar_(sidecar) {}

  void add(const Lines& lines, const Columns& columns, Complaints& complaints, Readings& out) {
    const CsvLine line = cells_of(lines.text());
    const std::vector<Cell>& row = line.cells;
    if (!lines.ended() && is_cut_off(line, columns)) {
      broken_off_ = true;
      out.warnings.push_back({lines.at(1), "the file ends within this row", "the rows before it are used"});
      return;
    }
    if (line.open_quote) return complaints.add(open_quote(lines, *line.open_quote));
    if (row.size() != columns.count)
      return complaints.add(lines.at(1), fmt::format("{} cells in a table of {} columns", row.size(), columns.count),
                            "is this line of another table? A cell with a comma in it is quoted: \"a,b\"");
    const Cell& size_word = row[columns.at[size_bytes]];
    const Cell& time_word = row[columns.at[time_us]];
    const Cell& place_word = row[columns.at[inplace]];
    const auto size = read_size(size_word.text);
    const auto time = read_microseconds(time_word.text);
    const bool good_place = place_word.text == "0" || place_word.text == "1";
    const auto wrong = [&](const Cell& word, const char* column, const char* expected) {
      complaints.add(lines.at(word.column), fmt::format("{} is '{}'", column, printable(word.text)), expected);
    };
    if (!size) wrong(size_word, "size_bytes", "expected a whole number of bytes, from 0 to 2^62");
    const bool no_time = !time && is_no_time(time_word.text);
    if (!time && !no_time) wrong(time_word, "time_us", "expected microseconds above 0, to 10^12");
    if (!good_place) wrong(place_word, "inplace", "expected 0 or 1");
    const std::string kind(row[columns.at[collective]].text);
    if (no_time && size && good_place && *size > Bytes(0)) {
      lacking_.insert(kind);
      leave_out(out, untimed(lines.at(time_word.column), time_word.text));
    }
    bool good_rates = true;
    const auto check_rate = [&](const std::optional<std::size_t>& at, const char* column) {
      if (!at || no_time || row[*at].text.empty() || read_number(row[*at].text)) return;
      good_rates = false;
      wrong(row[*at], column, "expected GB/s from 0, or nothing");
    };
    check_rate(columns.algbw, "algbw_gbps");
    check_rate(columns.busbw, "busbw_gbps");
    if (!size || !time || !good_place || !good_rates || *size == Bytes(0)) return;
    if (columns.algbw) {
      const Location where = lines.at(time_word.column);
      if (auto contradiction = rate_contradiction(where, *size, time_word.text, "us", row[*columns.algbw].text)) {
        lacking_.insert(kind);
        leave_out(out, std::move(*contradiction));
        return;
      }
    }
    if (++count_ > most_measured_rows) return;
    const std::size_t index = table_of(kind);
    MeasuredTable& table = tables_[index];
    if (columns.algbw && columns.busbw)
      evidence_[index].add(read_rates(row[*columns.algbw].text, row[*columns.busbw].text),
                           lines.at(row[*columns.busbw].column));
    MeasuredPoint point{*size, *time, place_word.text == "1", std::nullopt};
    const std::vector<MeasuredFacts::Spread>& spread = table.facts.spread;
    for (std::size_t i = 0; i < spread.size(); ++i)
      if (spread[i].size == point.size && spread[i].in_place == point.in_place)
        point.spread = static_cast<std::uint16_t>(i);
    table.points.push_back(point);
  }

  std::size_t count() const { return count_; }
  std::vector<MeasuredTable> take() {
    std::vector<std::string> kinds;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      kinds.push_back(tables_[i].facts.collective);
      tables_[i].facts.rows = evidence_[i].rows;
    }
    for (std::size_t i = 0; sidecar_ && i < tables_.size(); ++i) {
      const auto found = sidecar_contradiction(*sidecar_, tables_[i], kinds, evidence_[i]);
      if (!found) continue;
      tables_[i].facts.contradiction = found->message;
      tables_[i].facts.contradicting = found->where;
    }
    for (MeasuredTable& table : tables_)
      if (lacking_.count(table.facts.collective) > 0) table.facts.complete = false;
    if (broken_off_ && !tables_.empty()) tables_.back().facts.complete = false;
    return std::move(tables_);
  }

 private:
  /// A file may hold several collectives, as `collcast measure --format csv` writes them.
  std::size_t table_of(const std::string& kind) {
    for (std::size_t i = 0; i < tables_.size(); ++i)
      if (tables_[i].facts.collective == kind) return i;
    MeasuredTable table;
    table.file = file_;
    if (sidecar_) table.facts = *sidecar_;
    if (!table.facts.id.empty() && kind != table.facts.collective) table.facts.id += "-" + kind;
    table.facts.collective = kind;
    tables_.push_back(std::move(table));
    evidence_.emplace_back();
    return tables_.size() - 1;
  }

  std::string file_;
  const std::optional<MeasuredFacts>& sidecar_;
  std::vector<MeasuredTable> tables_;
  std::vector<RankEvidence> evidence_;  // of each
  std::set<std::string> lacking_;       // collectives of rows that were left out
  bool broken_off_ = false;
  std::size_t count_ = 0;
};

}  // namespace

Result<Readings> read_table_csv(std::istream& in, const std::string& file,
                                const std::optional<MeasuredFacts>& sidecar) {
  Lines lines(in, file);
  Complaints complaints;
  Readings out;
  std::optional<Columns> columns;
  Rows rows(file, sidecar);
  while (!complaints.too_many() && lines.next()) {
    if (const Diagnostics wrong = lines.wrong(); !wrong.empty()) {
      complaints.add(wrong);
      continue;
    }
    if (lines.text().empty()) continue;
    if (!columns) {
      columns = read_columns(lines, complaints, out);
      if (!columns) return complaints.take();
      continue;
    }
    rows.add(lines, *columns, complaints, out);
    if (rows.count() > most_measured_rows) {
      complaints.add(lines.at(1), fmt::format("more than {} rows", most_measured_rows), "is this a table of sizes?");
      break;
    }
  }
  out.tables = rows.take();
  if (complaints.empty() && !columns) complaints.add({file, 1, 1}, "the file is empty", "expected a table");
  if (complaints.empty() && out.tables.empty() && !out.untimed.empty()) complaints.add(out.untimed);
  if (complaints.empty() && out.tables.empty())
    complaints.add({file, lines.number(), 1}, "no row was measured", "the table has a heading and nothing below it");
  if (!complaints.empty()) return complaints.take();
  if (sidecar && !sidecar->complete)
    out.warnings.push_back({{file}, "its sidecar says that sizes are missing (complete: false)", ""});
  return out;
}

}  // namespace collcast
