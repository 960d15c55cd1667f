// A stream line by line, with numbers for messages, in bounded memory.
#pragma once

#include <array>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"

namespace collcast {

struct Readings;

/// A word of a line and the column that it begins at (from 1).
struct Word {
  std::string_view text;
  int column = 1;
};

class Lines {
 public:
  Lines(std::istream& in, std::string file) : in_(in), file_(std::move(file)) {}
  /// The next line without its end; false at the end of the stream, and behind a line that is too long: what has one
  /// may have no other end.
  bool next();
  std::string_view text() const { return line_; }
  int number() const { return number_; }
  bool ended() const { return ended_; }  ///< by a line end, not by the end of the file
  const std::string& file() const { return file_; }
  Location at(int column) const { return {file_, number_, column}; }
  /// What keeps this line from being text: bytes that are none, or too many of them.
  Diagnostics wrong() const;

 private:
  std::istream& in_;
  std::string file_, line_;
  std::array<char, 65536> buffer_{};
  std::size_t begin_ = 0, end_ = 0;
  int number_ = 0;
  bool ended_ = false, too_long_ = false, first_ = true;
};

/// The words between blanks.
std::vector<Word> words(std::string_view line);

/// The .csv files of a folder, sorted.
std::vector<std::string> csv_files(const std::string& folder);

/// At most a hundred errors; more are counted.
class Complaints {
 public:
  void add(Location where, std::string message, std::string hint = {});
  void add(const Diagnostics&);
  bool empty() const { return kept_.empty(); }
  /// Nothing that is worth reading on comes behind so many.
  bool too_many() const { return more_ > most_counted; }
  Diagnostics take();

 private:
  static constexpr std::size_t most_counted = 10'000;
  Diagnostics kept_;
  std::size_t more_ = 0;
};

/// Of a row that is left out because its time is none.
Diagnostic untimed(Location where, std::string_view time);

/// Of rows that are left out because their times are the host's, not the collective's [nccl-tests, README.md,
/// -C,--report_cputime: "Report CPU time instead of latency"].
Diagnostic of_cpu(Location where, std::size_t rows);

/// What nccl-tests reduces by, and what stands there where nothing is.
bool is_operation(std::string_view word);
Diagnostic unknown_operation(Location where, std::string_view word);
/// What nccl-tests calls types, over the years.
bool is_type(std::string_view word);
/// Bytes of an element; 0 of what is no type.
int width_of(std::string_view type);
Diagnostic unknown_type(Location where, std::string_view word, const char* then);

/// That a test ran on unlike GPUs: `first` is that of its first rank, which counts.
Diagnostic unlike_gpus(Location where, std::string_view rank, std::string_view gpu, std::string_view first);

/// Takes `row` among those that are left out.
void leave_out(Readings& from, Diagnostic row);

/// Rows whose results were wrong: of the first few the places, then how many more.
class WrongResults {
 public:
  /// `how_many`: "3 ", or empty where nobody counts.
  void add(Readings& to, Location where, std::string_view how_many, bool in_place);
  void finish(Readings& to, const std::string& file) const;
  bool any() const { return count_ > 0; }

 private:
  static constexpr std::size_t most_said_ = 10;
  std::size_t count_ = 0;
};

/// Names that a file has and that are passed over: one warning says how many there are, and the first few.
class PassedOver {
 public:
  void add(std::string_view name);
  void finish(Readings& to, const Location& where, const char* what) const;

 private:
  static constexpr std::size_t most_named_ = 4, most_kept_ = 1000;
  std::vector<std::string> names_;  ///< each once
  bool more_ = false;               ///< there are others, which are not kept
};

/// For messages: cut, and without what is not printable.
std::string printable(std::string_view);

}  // namespace collcast
