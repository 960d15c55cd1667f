// Measured tables in, whatever tool wrote them: CSV with a YAML sidecar (published tables, `collcast measure`), the
// text that nccl-tests prints (all layouts since 2016), and the JSON that its -J option writes.
//
// The format is told by the content. Everything is read as a stream, so that a log of a night takes no more memory than
// its rows. What is wrong is said with file, line and column; where a log only ends too early, its finished rows are
// kept and a warning says so, and a row whose time is 0 or nan is listed by its line.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/scenario/measured_facts.hpp"

namespace collcast {

/// One size, in place or not: the time that the tool printed. A log of a night has millions of them: nothing here is
/// on the heap.
struct MeasuredPoint {
  Bytes size{};
  Seconds time{};
  bool in_place = false;
  std::optional<std::uint16_t> spread;  ///< which of the `facts.spread` of its table is of this row
};

struct MeasuredTable {
  MeasuredFacts facts;
  std::string file;  ///< as the user named it
  std::vector<MeasuredPoint> points;

  /// Over the repetitions of one of `points`; none where its sidecar has not.
  const MeasuredFacts::Spread* spread_of(const MeasuredPoint& point) const {
    return point.spread ? &facts.spread[*point.spread] : nullptr;
  }
};

/// Which of the points comes when, from small sizes to large, as they came within a size.
std::vector<std::uint32_t> by_size(const MeasuredTable&);

/// Where what a table says or lacks stands: as the diagnostic has it, else the beginning of the table's file.
Location place_of(const Diagnostic&, const MeasuredTable&);

struct Readings {
  std::vector<MeasuredTable> tables;
  Diagnostics warnings;  ///< what was left out, and where
  Diagnostics untimed;   ///< rows without a time (0, nan), or with one that contradicts their algbw, which are left out
  std::map<std::string, std::size_t> more_untimed;  ///< by file, those beyond `most_left_out`
  Diagnostics wrong;   ///< rows whose results were wrong, of `warnings`: the first few of a file, and how many more
  Diagnostics unread;  ///< of each file of a folder that cannot be read, the first reason
};

enum class MeasuredFormat { csv, text, json };

/// The format that the first characters of a file show; nothing for other text.
std::optional<MeasuredFormat> measured_format(std::string_view beginning);

/// No file has more rows (a line of a log is two), no line more characters, no JSON more bytes.
inline constexpr std::size_t most_measured_rows = 8'000'000;
/// Of rows that are left out, so many of a file are kept with their places; the rest is a number.
inline constexpr std::size_t most_left_out = 100;
inline constexpr std::size_t longest_line = std::size_t{1} << 20;
inline constexpr std::size_t most_json_bytes = std::size_t{64} << 20;

/// The rows of a table file. The sidecar gives the facts; without one only kind and rows are known.
Result<Readings> read_table_csv(std::istream&, const std::string& file, const std::optional<MeasuredFacts>& sidecar);
/// What nccl-tests printed: one table per test in it, none where no line is a row.
Result<Readings> read_nccl_tests_text(std::istream&, const std::string& file);
/// What nccl-tests -J wrote.
Result<Readings> read_nccl_tests_json(std::istream&, const std::string& file);

/// What comes in order and once, such as a pipe; `name` is for messages.
Result<Readings> load_measured_stream(std::istream&, const std::string& name);
/// A file, or a folder with every table and log in it, by name; sidecars are found beside their tables. What is in
/// a folder and no measurement is a warning.
Result<Readings> load_measured(const std::string& path, const Location& asked_by);
/// The files that it reads, with the sidecars that there are: of tables, as logs have none.
std::vector<std::string> files_of_measured(const std::string& path);

/// Gives each table an id of its own, as documents, fits and pages know tables by it: "x", then "x-2". Says which got
/// another than they came with.
Diagnostics name_apart(std::vector<MeasuredTable>&);

}  // namespace collcast
