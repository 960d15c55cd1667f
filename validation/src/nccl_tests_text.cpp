// What nccl-tests prints.
//
// A test is: "# nThread ...", a "#  Rank ... Pid ... on HOST device ..." line per GPU, a heading, rows, and "# Out of
// bounds values" at the end. A row is size, count, type, then operation and root where the version has them, then the
// same columns once for out-of-place and once for in-place. Which columns these are is in the heading, as it changed
// over the years (error, #wrong, per-iteration columns, a time stamp at the end); without a heading they are time,
// algbw, busbw and errors. Before 2.0, under "bytes N type", times are milliseconds and the end has no '#'. What else
// stands in a log (NCCL's own lines, the batch system's) is passed over.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "collcast/validation/measured_table.hpp"
#include "line_prefix.hpp"
#include "lines.hpp"
#include "printed_rate.hpp"
#include "rank_count.hpp"
#include "run_variables.hpp"
#include "values.hpp"

namespace collcast {

namespace {

/// Of a row: date and time of day.
constexpr std::size_t stamp_words = 2;
constexpr const char* size_expected = "expected a whole number of bytes, from 0 to 2^62";

/// The line with blanks in the place of what tells a terminal colours ("ESC[32m"), so that columns stay where they are.
std::string without_colours(std::string_view line) {
  std::string out(line);
  for (std::size_t at = out.find('\x1b'); at != std::string::npos; at = out.find('\x1b', at)) {
    std::size_t end = at + 1;
    if (end < out.size() && out[end] == '[') end = out.find_first_not_of("0123456789;:?", end + 1);
    end = std::min(end, out.size() - 1);
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(at), out.begin() + static_cast<std::ptrdiff_t>(end) + 1, ' ');
  }
  return out;
}

/// The columns of one placement.
struct TableHead {
  std::size_t width = 4;
  std::size_t placements = 2;
  bool root = false;  ///< is printed
  bool counts_wrong = false;
  bool time_stamp = false;
  bool milliseconds = false;
  bool known = false;
  std::optional<Location> cpu_time;  ///< where it says so: times are the host's
};

class LogReader {
 public:
  explicit LogReader(std::string file) : file_(std::move(file)) {}

  void line(const Lines& lines) {
    const std::string plain = without_colours(lines.text());
    std::string_view text = plain;
    const std::size_t skipped = prefix_.length(text);
    skipped_ = static_cast<int>(skipped);
    text.remove_prefix(skipped);
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return;
    if (text[first] == '#') {
      comment(lines, text.substr(first + 1), static_cast<int>(first + 1));
      return says_wrong(lines, text);
    }
    const std::vector<Word> row = words(text);
    if (row.empty()) return;  // carriage returns and form feeds are blanks too
    if (row.size() >= 3 && is_type(row[2].text)) {
      if (has_words_of_nccl(row)) return mixed(lines, row);
      if (all_digits(row[0].text) && all_digits(row[1].text)) return measured(lines, row);
      if (is_row_but_for_its_size(row)) return wrong_size(lines, row);
    }
    if (has_row_behind(row)) return left_out(lines, row);
    if (is_row_but_for_its_type(row)) return of_unknown_type(lines, row);
    if (is_row_but_for_a_number(row)) return without_a_number(lines, row);
    // The end as it was before 2.0.
    if (is_end(text)) {
      complete_ = true;
      return says_wrong(lines, text);
    }
    // A log that breaks off within a row.
    if (!lines.ended() && in_rows_ && all_digits(row[0].text)) return cut_off(lines);
    remark(lines, text);
  }

  Result<Readings> finish(const Lines& lines) {
    end_of_odd_row();
    end_of_cpu_times();
    finish_test(lines);
    wrong_results_.finish(out_, file_);
    if (complaints_.empty() && lines.number() == 0) complaints_.add({file_, 1, 1}, "the file is empty", "");
    if (complaints_.empty() && out_.tables.empty() && !out_.untimed.empty()) complaints_.add(out_.untimed);
    if (complaints_.empty() && out_.tables.empty() && !out_.wrong.empty()) complaints_.add(out_.wrong);
    if (!complaints_.empty()) return complaints_.take();
    return std::move(out_);
  }

  std::size_t rows() const { return rows_; }
  Complaints& complaints() { return complaints_; }

 private:
  static bool is_end(std::string_view text) {
    return text.find("Out of bounds") != std::string_view::npos || text.find("Avg bus") != std::string_view::npos;
  }

  /// "# Out of bounds values : 5 FAILED".
  void says_wrong(const Lines& lines, std::string_view text) {
    if (text.find("Out of bounds") == std::string_view::npos || text.find("FAILED") == std::string_view::npos) return;
    if (wrong_results_.any()) return;  // said at its rows
    out_.warnings.push_back(
        {lines.at(1 + skipped_), "the test says that its results were wrong", "the run itself is broken"});
  }

  /// `before`: characters of the line in front of `text`, beside what is skipped.
  void comment(const Lines& lines, std::string_view text, int before) {
    const std::vector<Word> w = words(text);
    if (w.empty()) return;
    if (w[0].text == "nThread" || w[0].text == "nThreads" || (w[0].text == "Using" && w.size() > 1 && !devices_seen_)) {
      begin_test(lines, w[0].text != "Using");
      return threads_and_gpus(w);
    }
    if (w[0].text == "nccl-tests") return versions(lines, w, before);
    if (w[0].text == "Rank" && w.size() > 6) return device(lines, w);
    if (w[0].text == "size" || w[0].text == "bytes") return heading(lines, w, before);
    if (is_end(text)) {
      complete_ = true;
      return;
    }
    remark(lines, text);
  }

  /// A new test, where one has rows already.
  void begin_test(const Lines& lines, bool surely) {
    if (surely || !test_.points.empty()) {
      // Of a test that did not finish; before "Using devices" alone older versions have no end.
      if (!test_.points.empty() && surely && !complete_)
        out_.warnings.push_back({lines.at(1), "another test begins before the end of the one before: it did not finish",
                                 "the rows that are there are used"});
      if (!test_.points.empty()) {
        keep(!surely || complete_);
        variables_ = std::exchange(variables_of_next_, {});
        said_unlike_.clear();
      }
      hosts_.clear();
      ranks_.clear();
      processes_.clear();
      repeated_.reset();
      groups_.clear();
      gpu_.clear();
      said_mixed_ = false;
    }
    devices_seen_ = complete_ = in_rows_ = lacking_ = false;
  }

  /// "nccl-tests version 2.17.8 nccl-headers=22902 nccl-library=22902": what it runs, not what it was built with.
  void versions(const Lines& lines, const std::vector<Word>& w, int before) {
    constexpr std::string_view key = "nccl-library=";
    const auto library = std::ranges::find_if(w, [&](const Word& word) { return word.text.starts_with(key); });
    if (library == w.end()) return;
    const std::string_view code = library->text.substr(key.size());
    nccl_version_.clear();
    if (const auto version = read_whole(code); version && *version > 0)
      nccl_version_ = nccl_version_text(*version);
    else
      out_.warnings.push_back({lines.at(library->column + before + skipped_),
                               fmt::format("nccl-library is '{}': it is as if it were not there", printable(code)),
                               "expected a number above 0, such as 22703 of 2.27.3"});
  }

  /// "nThread 1 nGpus 8 minBytes ...": the GPUs of each process.
  void threads_and_gpus(const std::vector<Word>& w) {
    if (w[0].text == "Using" || w.size() < 4 || w[2].text != "nGpus") return;
    const auto threads = read_whole(w[1].text), gpus = read_whole(w[3].text);
    constexpr int most = 1024;
    const bool sane = threads && gpus && *threads > 0 && *gpus > 0 && *threads <= most && *gpus <= most;
    gpus_of_process_ = sane ? *threads * *gpus : 0;
  }

  /// "Rank 0 [Group 0] Pid 4711 on host device 0 [0x07] Tesla V100".
  void device(const Lines& lines, const std::vector<Word>& w) {
    if (!test_.points.empty()) begin_test(lines, true);
    devices_seen_ = true;
    const auto rank = read_whole(w[1].text);
    if (rank && *rank >= 0 && !ranks_.insert(*rank).second && !repeated_)
      repeated_ = {lines.at(1 + skipped_), fmt::format("rank {} is listed twice", *rank),
                   "are lines of another test among these?"};
    std::string process;
    for (std::size_t i = 2; i + 1 < w.size(); ++i) {
      if (w[i].text == "Pid" || w[i].text == "on") process += " " + std::string(w[i + 1].text);
      if (w[i].text == "on") hosts_.insert(std::string(w[i + 1].text));
      if (w[i].text == "Group") groups_.insert(std::string(w[i + 1].text));
      if (w[i].text == "device" && i + 2 < w.size()) gpu(lines, w[1].text, device_name(w, i + 2));
    }
    processes_.insert(process);
  }
  void gpu(const Lines& lines, std::string_view rank, const std::string& name) {
    if (gpu_.empty()) gpu_ = name;
    if (name.empty() || name == gpu_ || std::exchange(said_mixed_, true)) return;
    out_.warnings.push_back(unlike_gpus(lines.at(1 + skipped_), rank, name, gpu_));
  }
  /// As many as are listed; 0 where the list cannot be whole, or is of several groups.
  int sure_ranks() const {
    const auto listed = static_cast<int>(ranks_.size());
    const bool doubtful = groups_.size() > 1 || static_cast<int>(processes_.size()) * gpus_of_process_ > listed ||
                          (!ranks_.empty() && *ranks_.rbegin() >= listed);
    return doubtful ? 0 : listed;
  }
  static std::string device_name(const std::vector<Word>& w, std::size_t from) {
    std::string out;
    // "[0x07]", or "[0000:07:00]", or "[ 0x7]" in two words.
    while (from < w.size() && (w[from].text.starts_with('[') || w[from].text.ends_with(']'))) ++from;
    for (std::size_t i = from; i < w.size(); ++i) out += (out.empty() ? "" : " ") + std::string(w[i].text);
    return out;
  }

  void heading(const Lines& lines, const std::vector<Word>& w, int before) {
    end_of_cpu_times();
    TableHead h;
    std::vector<std::size_t> times;
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (w[i].text == "time" || w[i].text == "cputime") times.push_back(i);
      if (w[i].text == "cputime" && !h.cpu_time) h.cpu_time = lines.at(w[i].column + before + skipped_);
      if (w[i].text == "root") h.root = true;
      if (w[i].text == "#wrong") h.counts_wrong = true;
      if (w[i].text == "timestamp") h.time_stamp = true;
    }
    if (times.empty()) return;
    h.placements = std::min<std::size_t>(times.size(), 2);
    h.width = (times.size() > 1 ? times[1] : w.size() - (h.time_stamp ? 1 : 0)) - times[0];
    h.known = true;
    h.milliseconds = w[0].text == "bytes" && w.size() > 1 && w[1].text == "N";
    heading_ = h;
    // Two headings without devices between them: a second test.
    if (!test_.points.empty()) keep(true);
    complete_ = false;
    in_rows_ = true;
  }

  /// "-1024 256 float sum ...": nothing else in a log is long, of a type and begins with a number or a number behind
  /// it.
  bool is_row_but_for_its_size(const std::vector<Word>& row) const {
    return heading_.known && row.size() >= 3 + heading_.width && (is_number(row[0].text) || is_number(row[1].text));
  }
  /// Whether so many words and a heading's columns of numbers are in it, the latter at its end.
  bool ends_with_figures(const std::vector<Word>& row, std::size_t before) const {
    const std::size_t behind = heading_.time_stamp ? stamp_words : 0;
    if (!heading_.known || row.size() < before + heading_.width + behind) return false;
    const auto end = row.end() - static_cast<std::ptrdiff_t>(behind);
    return std::all_of(end - static_cast<std::ptrdiff_t>(heading_.width), end,
                       [](const Word& word) { return is_number(word.text) || word.text == "N/A"; });
  }
  /// "8 2 bfloat99 sum -1 12.50 0.00 0.00 0 ...": two whole numbers, a word, and a heading's columns of numbers.
  bool is_row_but_for_its_type(const std::vector<Word>& row) const {
    return ends_with_figures(row, 3) && all_digits(row[0].text) && all_digits(row[1].text) && !is_number(row[2].text);
  }
  /// "8 float sum -1 12.50 0.00 0.00 0 ...": one whole number in front of the type.
  bool is_row_but_for_a_number(const std::vector<Word>& row) const {
    return ends_with_figures(row, 2) && all_digits(row[0].text) && is_type(row[1].text);
  }
  void without_a_number(const Lines& lines, const std::vector<Word>& row) {
    lacking_ = true;
    leave_out(out_, {lines.at(row[1].column + skipped_),
                     fmt::format("the size or the count in front of '{}' is missing: this row is left out",
                                 printable(row[1].text)),
                     "expected size, count and type"});
  }
  void of_unknown_type(const Lines& lines, const std::vector<Word>& row) {
    lacking_ = true;
    leave_out(out_, unknown_type(lines.at(row[2].column + skipped_), row[2].text, "this row is left out"));
  }
  void wrong_size(const Lines& lines, const std::vector<Word>& row) {
    complain_of_odd_row();
    const bool of_size = !all_digits(row[0].text);
    const Word& word = row[of_size ? 0 : 1];
    complaints_.add(lines.at(word.column + skipped_),
                    fmt::format("the {} is '{}'", of_size ? "size" : "count", printable(word.text)),
                    of_size ? size_expected : "expected a whole number of elements");
  }

  /// "8388608 2097152 float sum -1 node1:4711:4800 [0] NCCL INFO ...": a row is printed bit by bit, as it is measured.
  static bool has_words_of_nccl(const std::vector<Word>& row) {
    return std::ranges::any_of(row, [](const Word& word) { return word.text == "NCCL"; });
  }
  void mixed(const Lines& lines, const std::vector<Word>& row) {
    lacking_ = in_rows_ = true;
    leave_out(out_, {lines.at(row[0].column + skipped_), "a line of NCCL's stands in this row: it is left out",
                     "NCCL_DEBUG_FILE=nccl.%h.%p.log keeps them apart"});
  }

  /// A row with words before it that nobody knows ("> 8388608 2097152 float sum ..."), or with a line of NCCL's.
  bool has_row_behind(const std::vector<Word>& row) const {
    if (!heading_.known) return false;
    for (std::size_t i = 1; i + 3 + heading_.width <= row.size(); ++i)
      if (all_digits(row[i].text) && all_digits(row[i + 1].text) && is_type(row[i + 2].text)) return true;
    return false;
  }
  void left_out(const Lines& lines, const std::vector<Word>& row) {
    lacking_ = true;
    leave_out(
        out_,
        {lines.at(row[0].column + skipped_),
         fmt::format("'{}' stands before the size: this row is left out", printable(row[0].text)),
         "expected size, count and type; what a launcher writes before lines is known where it also stands before "
         "the test's first, '# nThread ...'"});
  }

  void measured(const Lines& lines, std::vector<Word> row) {
    in_rows_ = true;
    const auto at = [&](const Word& word) { return lines.at(word.column + skipped_); };
    if (heading_.time_stamp && row.size() > 3 + stamp_words) row.resize(row.size() - stamp_words);
    std::size_t first = 3;
    if (first < row.size() && !is_number(row[first].text) && row[first].text != "N/A") {  // sum, prod, none
      if (!is_operation(row[first].text) && !said_operation_)
        out_.warnings.push_back(unknown_operation(at(row[first]), row[first].text));
      said_operation_ = said_operation_ || !is_operation(row[first].text);
      ++first;
    }
    const bool has_operation = first > 3;
    const std::size_t rest = row.size() - first;
    const std::size_t width = heading_.width;
    // The root stands in front where the version prints it; without a heading either may be.
    const std::size_t lead = heading_.known ? (heading_.root ? 1 : 0) : rest % width;
    const bool divides = width >= 3 && lead <= 1 && rest >= lead && (rest - lead) % width == 0;
    const std::size_t placements = divides ? (rest - lead) / width : 0;
    if (placements < 1 || placements > 2) {
      if (!lines.ended()) return cut_off(lines);
      complain_of_odd_row();
      odd_row_ = {lines.at(1 + skipped_), fmt::format("a row of {} columns", row.size()),
                  fmt::format("expected size, count, type, operation and root where they are printed, and {} "
                              "columns once or twice",
                              width)};
      return;
    }
    complain_of_odd_row();
    first += rest - placements * width;
    const auto size = read_size(row[0].text);
    if (!size) {
      complaints_.add(at(row[0]), fmt::format("the size is '{}'", printable(row[0].text)), size_expected);
      return;
    }
    const auto rates = width >= 3 ? read_rates(row[first + 1].text, row[first + 2].text) : std::nullopt;
    if (auto wrong = count_contradiction(at(row[1]), *size, row[1].text, row[2].text, sure_ranks(), rates)) {
      lacking_ = true;
      return leave_out(out_, std::move(*wrong));
    }
    if (heading_.cpu_time) {
      ++cpu_times_;
      return;
    }
    if (has_operation) evidence_.add_operation(row[3].text, at(row[3]));
    if (placements == 1 && heading_.known && heading_.placements == 2)
      return one_placement(lines, row, first, *size, true);
    one_placement(lines, row, first, *size, false);
    if (placements == 2) one_placement(lines, row, first + width, *size, true);
    if (test_.facts.collective.empty()) test_.facts.collective = kind_;
    if (test_.facts.nccl_version.empty()) test_.facts.nccl_version = nccl_version_;
    add_type(test_.facts, row[2].text);
  }

  void one_placement(const Lines& lines, const std::vector<Word>& row, std::size_t first, Bytes size, bool in_place) {
    const Word& word = row[first];
    if (word.text == "N/A") return;  // this placement does not exist
    const Location where = lines.at(word.column + skipped_);
    const char* const unit = heading_.milliseconds ? "ms" : "us";
    auto time = read_microseconds(word.text);
    if (time && heading_.milliseconds) time = *time * 1000.0;
    if (!time && is_no_time(word.text)) {
      if (size == Bytes(0)) return;
      lacking_ = true;
      leave_out(out_, untimed(where, word.text));
      return;
    }
    if (!time) {
      complain_of_odd_row();
      odd_row_ = {where, fmt::format("the time is '{}'", printable(word.text)),
                  fmt::format("expected {}seconds above 0, to 10^12", heading_.milliseconds ? "milli" : "micro")};
      if (is_number(word.text)) complain_of_odd_row();  // out of range, not broken off
      return;
    }
    const Word& errors = row[first + 3 < row.size() ? first + 3 : row.size() - 1];
    if (heading_.counts_wrong && errors.text != "N/A" && errors.text != "0") {
      lacking_ = true;
      wrong_results_.add(out_, lines.at(errors.column + skipped_), printable(errors.text) + " ", in_place);
      return;
    }
    if (size == Bytes(0)) return;
    if (first + 1 < row.size()) {
      if (auto contradiction = rate_contradiction(where, size, word.text, unit, row[first + 1].text)) {
        lacking_ = true;
        leave_out(out_, std::move(*contradiction));
        return;
      }
    }
    ++rows_;
    if (first + 2 < row.size()) evidence_.add(read_rates(row[first + 1].text, row[first + 2].text), where);
    test_.points.push_back({size, *time, in_place, std::nullopt});
  }

  /// Of the heading at hand: said once, with its rows counted.
  void end_of_cpu_times() {
    if (cpu_times_ > 0) leave_out(out_, of_cpu(*heading_.cpu_time, cpu_times_));
    cpu_times_ = 0;
  }

  /// A row that others follow is wrong; the last one may be what a dying job left.
  void complain_of_odd_row() {
    if (odd_row_) complaints_.add(odd_row_->where, odd_row_->message, odd_row_->hint);
    odd_row_.reset();
  }

  void end_of_odd_row() {
    if (!odd_row_ || complete_ || test_.points.empty() || !complaints_.empty()) return complain_of_odd_row();
    out_.warnings.push_back({odd_row_->where, "the log breaks off within this row", "the rows before it are used"});
    warned_ = true;
    odd_row_.reset();
  }

  void cut_off(const Lines& lines) {
    out_.warnings.push_back({lines.at(1), "the log ends within this row", "the rows before it are used"});
    warned_ = true;
  }

  /// A command line or a line of NCCL's.
  void remark(const Lines& lines, std::string_view text) {
    if (const std::string_view test = test_named_in(text); !test.empty()) kind_ = std::string(test);
    constexpr std::string_view version = "NCCL version ";
    if (const std::size_t at = text.find(version); at != std::string_view::npos) {
      const std::string_view rest = text.substr(at + version.size());
      nccl_version_ = std::string(rest.substr(0, rest.find_first_not_of("0123456789.")));
    }
    variable(lines, text);
  }

  /// Of a job; NCCL has some two hundred.
  static constexpr std::size_t most_variables = 1000;

  /// "node1:4711:4800 [0] NCCL INFO NCCL_ALGO set by environment to Ring", with a full stop of those that are numbers.
  void variable(const Lines& lines, std::string_view text) {
    constexpr std::string_view set = " set by environment to ";
    const std::size_t at = text.find(set);
    if (at == std::string_view::npos || at == 0) return;
    const std::size_t blank = text.find_last_of(" \t", at - 1);
    const std::string_view name =
        text.substr(blank == std::string_view::npos ? 0 : blank + 1).substr(0, at - blank - 1);
    std::string_view value = text.substr(at + set.size());
    value = value.substr(0, value.find_last_not_of(" \t\r") + 1);
    if (value.ends_with('.')) value.remove_suffix(1);
    if (!is_of_nccl(name)) return;
    // What ranks of the next test say may be there before its first line, which is another rank's.
    auto& all = complete_ ? variables_of_next_ : variables_;
    if (all.size() >= most_variables &&
        std::ranges::find(all, name, &std::pair<std::string, std::string>::first) == all.end()) {
      if (!std::exchange(said_many_, true))
        out_.warnings.push_back({lines.at(1 + skipped_), fmt::format("more than {} variables of NCCL", most_variables),
                                 "further ones are not read; is the log damaged?"});
      return;
    }
    if (add_variable(all, std::string(name), std::string(value))) return;
    if (said_unlike_.insert(std::string(name)).second)
      out_.warnings.push_back({lines.at(1 + skipped_),
                               fmt::format("{} is '{}' here and another value before", name, printable(value)),
                               "the first counts; do all ranks have the same variables?"});
  }

  void keep(bool complete) {
    MeasuredFacts& f = test_.facts;
    if (f.collective.empty()) f.collective = kind_;
    f.gpu = gpu_;
    f.environment = variables_;
    if (f.nccl_version.empty()) f.nccl_version = nccl_version_;
    f.ranks = static_cast<int>(ranks_.size());
    f.nodes = static_cast<int>(hosts_.size());
    f.one_process = processes_.size() == hosts_.size() && ranks_.size() > hosts_.size();
    f.complete = complete && !lacking_;
    lacking_ = false;
    evidence_.highest = ranks_.empty() ? -1 : *ranks_.rbegin();
    evidence_.gpus_of_processes = static_cast<int>(processes_.size()) * gpus_of_process_;
    evidence_.groups = groups_.size();
    f.rows = evidence_.rows;
    f.doubt = doubt_of_ranks(f, evidence_);
    if (repeated_ && !f.doubt.empty())
      f.doubt += fmt::format("; {} ({})", repeated_->message, to_text(repeated_->where));
    if (repeated_) out_.warnings.push_back(*repeated_);
    repeated_.reset();
    evidence_ = {};
    test_.file = file_;
    out_.tables.push_back(std::move(test_));
    test_ = {};
  }

  void finish_test(const Lines& lines) {
    if (test_.points.empty()) return;
    if (!complete_ && !warned_)
      out_.warnings.push_back({{file_, lines.number(), 1},
                               "the log ends without 'Out of bounds values': the test did not finish",
                               "the rows that are there are used"});
    keep(complete_);
  }

  std::string file_;
  Readings out_;
  Complaints complaints_;
  std::optional<Diagnostic> odd_row_;
  MeasuredTable test_;
  TableHead heading_;
  LinePrefix prefix_;
  std::set<int> ranks_;
  std::optional<Diagnostic> repeated_;  ///< the first rank that the test at hand lists twice
  std::set<std::string> hosts_, processes_, groups_;
  int gpus_of_process_ = 0;  ///< 0: not said
  RankEvidence evidence_;
  WrongResults wrong_results_;
  std::string gpu_, kind_, nccl_version_;
  std::vector<std::pair<std::string, std::string>> variables_, variables_of_next_;
  std::set<std::string> said_unlike_;
  bool said_many_ = false;
  bool devices_seen_ = false, complete_ = false, in_rows_ = false, warned_ = false;
  bool lacking_ = false;  ///< a row of the test was left out
  bool said_operation_ = false, said_mixed_ = false;
  int skipped_ = 0;
  std::size_t rows_ = 0;
  std::size_t cpu_times_ = 0;  ///< rows under the heading at hand, where it is of these
};

}  // namespace

Result<Readings> read_nccl_tests_text(std::istream& in, const std::string& file) {
  Lines lines(in, file);
  LogReader reader(file);
  while (!reader.complaints().too_many() && lines.next()) {
    if (const Diagnostics wrong = lines.wrong(); !wrong.empty()) {
      reader.complaints().add(wrong);
      continue;
    }
    reader.line(lines);
    if (reader.rows() > most_measured_rows) {
      reader.complaints().add(lines.at(1), fmt::format("more than {} rows", most_measured_rows), "is this one log?");
      break;
    }
  }
  return reader.finish(lines);
}

}  // namespace collcast
