// What nccl-tests writes with -J FILE: {args[], nccl_version, config{nthreads, ngpus, devices[]}, results[]}, one
// result per size with out_of_place{time, nwrong} and in_place{...}.
//
// Read by nlohmann's SAX interface straight from the stream: only the result at hand is kept. `devices` names every
// process, with its first GPU alone, so ranks follow from the highest rank and the GPUs of a process.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <istream>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "collcast/base/words.hpp"
#include "collcast/validation/measured_table.hpp"
#include "csv_file.hpp"
#include "lines.hpp"
#include "printed_rate.hpp"
#include "rank_count.hpp"
#include "run_variables.hpp"
#include "values.hpp"

namespace collcast {

namespace {

using nlohmann::json;

/// A stream with the place that it has been read to.
struct Source {
  explicit Source(std::istream& in) : buffer(in.rdbuf()), current(buffer->sgetc()) {}
  void step() {
    if (current == '\n') {
      ++line;
      column = 0;
    }
    ++column;
    ++bytes;
    current = bytes < most_json_bytes ? buffer->snextc() : std::char_traits<char>::eof();
  }
  bool at_end() const { return current == std::char_traits<char>::eof(); }

  std::streambuf* buffer;
  int current;
  int line = 1, column = 1;
  std::size_t bytes = 0;
};

/// What nlohmann's parser takes for input.
class SourceIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit SourceIterator(Source* source = nullptr) : source_(source) {}
  /// To the parser a zero byte is the end, and what stands behind one would go unread.
  char operator*() const { return source_->current == 0 ? '\x01' : static_cast<char>(source_->current); }
  SourceIterator& operator++() {
    source_->step();
    return *this;
  }
  bool operator==(const SourceIterator& other) const { return ended() == other.ended(); }
  bool operator!=(const SourceIterator& other) const { return !(*this == other); }

 private:
  bool ended() const { return source_ == nullptr || source_->at_end(); }
  Source* source_;
};

/// Keys that nccl-tests writes, by the map that they are in (its src/util.cu).
struct KnownKeys {
  std::vector<std::string_view> path;  ///< of the map; lists are "[]"
  std::vector<std::string_view> keys;
};
const std::vector<KnownKeys>& known_keys() {
  static const std::vector<KnownKeys> all{
      {{},
       {"version", "start_time", "end_time", "args", "env", "nccl_version", "config", "results", "errors",
        "out_of_bounds", "bitwise_mismatches", "average_bus_bandwidth"}},
      {{"config"},
       {"nthreads", "ngpus", "minimum_bytes", "maximum_bytes", "step_factor", "step_bytes", "warmup_iters",
        "iterations", "aggregated_iterations", "validation", "bitwise_repeats", "graph", "blocking_collectives",
        "per_iter_timing", "per_iter_skip", "parallel_init", "devices"}},
      {{"config", "devices", "[]"}, {"rank", "group", "pid", "hostname", "device", "device_hex", "device_info"}},
      {{"results", "[]"},
       {"size", "count", "type", "redop", "root", "out_of_place", "in_place", "out_of_place_per_iter",
        "in_place_per_iter", "actual_iterations", "experiment_name"}},
      {{"results", "[]", "out_of_place"}, {"time", "cpu_time", "alg_bw", "bus_bw", "nwrong", "bitwise"}},
      {{"results", "[]", "in_place"}, {"time", "cpu_time", "alg_bw", "bus_bw", "nwrong", "bitwise"}}};
  return all;
}

/// What stands at the places that a reader goes by; elsewhere anything may stand.
struct KnownShape {
  std::vector<std::string_view> path;
  const char* is;        ///< "a map", "a list", "a text"
  const char* expected;  ///< for people
};
const std::vector<KnownShape>& known_shapes() {
  static const std::vector<KnownShape> all{
      {{"env"}, "a list", "expected a list of variables: [\"NCCL_ALGO=Ring\"]"},
      {{"env", "[]"}, "a text", "expected a variable: \"NCCL_ALGO=Ring\""},
      {{"config"}, "a map", "expected a map, as nccl-tests -J writes it"},
      {{"config", "devices"}, "a list", "expected a list of the ranks' devices"},
      {{"config", "devices", "[]"}, "a map", "expected a map with rank, hostname and device_info"},
      {{"results"}, "a list", "expected a list with a map for each size"},
      {{"results", "[]", "out_of_place"}, "a map", "expected a map with time, alg_bw and bus_bw"},
      {{"results", "[]", "in_place"}, "a map", "expected a map with time, alg_bw and bus_bw"}};
  return all;
}

/// One element of results[].
struct ResultRow {
  bool wrong = false;  ///< an error in it was said
  std::optional<Bytes> size;
  std::string count, type, operation;
  Location counted{};
  struct Placement {
    std::optional<Seconds> time;
    std::string time_text, algbw, busbw;
    bool wrong = false, is_there = false, has_time = false;
    bool has_cpu_time = false;  ///< which is none of the collective's
  } out_of_place, in_place;
};

class JsonReader : public nlohmann::json_sax<json> {
 public:
  JsonReader(Source& source, std::string file) : source_(source), file_(std::move(file)) {}

  Readings out;
  Complaints complaints;
  bool cut_off = false;
  WrongResults wrong_results;
  PassedOver unknown_keys;

  bool null() override { return value("null", {}, {}); }
  bool boolean(bool) override { return value("a truth", {}, {}); }
  bool number_integer(std::int64_t v) override { return value("a number", std::to_string(v), static_cast<double>(v)); }
  bool number_unsigned(std::uint64_t v) override {
    return value("a number", std::to_string(v), static_cast<double>(v));
  }
  bool number_float(double v, const std::string& spelled) override { return value("a number", spelled, v); }
  bool string(std::string& text) override { return value("a text", text, {}); }
  bool binary(json::binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    if (is("results", "[]")) {
      row_ = {};
      untimed_.clear();
      ++rows_;
    }
    if (is("results", "[]", "out_of_place")) row_.out_of_place.is_there = true;
    if (is("results", "[]", "in_place")) row_.in_place.is_there = true;
    check_shape("a map");
    not_a_value("a map");
    return open({});
  }
  bool start_array(std::size_t) override {
    if (is("results")) {
      if (has_results_) twice("'results'");
      has_results_ = true;
    } else if (is("results", "[]")) {
      no_result("a list");
    }
    check_shape("a list");
    not_a_value("a list");
    return open("[]");
  }
  bool end_object() override {
    path_.pop_back();
    if (is("results", "[]")) finish_row();
    if (is("config", "devices", "[]") && !device_.second.empty()) ++devices_of_[std::exchange(device_, {})];
    close();
    return !complaints.too_many();
  }
  bool end_array() override {
    path_.pop_back();
    close();
    return true;
  }
  bool key(std::string& name) override {
    const auto inside = std::span(path_).first(path_.size() - 1);
    for (const KnownKeys& known : known_keys())
      if (std::equal(inside.begin(), inside.end(), known.path.begin(), known.path.end()) &&
          std::find(known.keys.begin(), known.keys.end(), name) == known.keys.end())
        unknown_keys.add(name);
    path_.back() = name;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    const std::string what = e.what();
    const Location where = here();
    const bool is_whole = path_.empty() && has_results_;
    if (source_.bytes >= most_json_bytes) {
      complaints.add(where, fmt::format("more than {} MiB of JSON", most_json_bytes >> 20), "is this one test's?");
    } else if (!is_whole && source_.at_end() && ends_early(what)) {
      cut_off = true;
    } else if ((is_whole || !table_.points.empty()) && !more_results_follow()) {
      // As a job dies, others write behind what it left; a list that goes on is broken in its middle.
      if (is_whole) {
        out.warnings.push_back({where, "what stands behind the JSON is not read", ""});
      } else {
        cut_off = true;
        cut_at_ = where;
      }
    } else {
      const std::size_t tail = what.find("syntax error");
      complaints.add(where, "this is not JSON: " + printable(tail == std::string::npos ? what : what.substr(tail)),
                     "check quotes, commas and brackets here and just above");
    }
    return false;
  }

  Location here() const { return {file_, source_.line, std::max(1, source_.column - 1)}; }
  Location where_cut() const { return cut_at_.value_or(here()); }
  bool has_results() const { return has_results_; }

  MeasuredTable take_table() {
    MeasuredFacts& f = table_.facts;
    if (cpu_times_ > 0) leave_out(out, of_cpu(*first_cpu_time_, cpu_times_));
    lacking_ = lacking_ || cpu_times_ > 0;
    table_.file = file_;
    f.nodes = static_cast<int>(hosts_.size());
    f.ranks = listed_ranks();
    if (!ranks_.empty()) evidence_.highest = *ranks_.rbegin();
    evidence_.groups = groups_.size();
    f.rows = evidence_.rows;
    f.complete = !cut_off && !lacking_;
    f.doubt = !repeated_.empty() ? repeated_ : doubt_of_devices();
    if (f.doubt.empty()) f.doubt = doubt_of_ranks(f, evidence_);
    return std::move(table_);
  }

 private:
  int gpus_of_process() const { return std::max(1, threads_) * std::max(1, gpus_); }
  /// As many as are named, not as the highest of them says: between the two a device may have been lost.
  int listed_ranks() const {
    const int each = gpus_of_process();
    const bool first_ones = std::all_of(ranks_.begin(), ranks_.end(), [&](int r) { return r % each == 0; });
    return static_cast<int>(ranks_.size()) * (first_ones ? each : 1);
  }
  /// As many as are listed; 0 where the list cannot be whole, or is of several groups.
  int sure_ranks() const {
    const int listed = listed_ranks();
    const bool doubtful = groups_.size() > 1 || !repeated_.empty() || (!ranks_.empty() && *ranks_.rbegin() >= listed);
    return doubtful ? 0 : listed;
  }
  /// A rank's stands before its GPU.
  void gpu(const std::string& name) {
    std::string& first = table_.facts.gpu;
    if (first.empty()) first = name;
    if (!name.empty() && name != first) once(said_mixed_, unlike_gpus(here(), rank_text_, name, first));
  }
  /// Of a process that has more devices than its configuration gives it; nothing where none has.
  std::string doubt_of_devices() const {
    for (const auto& [process, count] : devices_of_)
      if (gpus_ > 0 && count > gpus_of_process())
        return fmt::format("its config gives a process {} GPU{}, but process {} on '{}' has {} devices",
                           gpus_of_process(), gpus_of_process() == 1 ? "" : "s", printable(process.second),
                           printable(process.first), count);
    return {};
  }
  /// What the parser says of a file that ends between tokens, and of one that ends within one.
  static bool ends_early(const std::string& what) {
    constexpr std::array<std::string_view, 4> remarks{"unexpected end of input", "missing closing quote",
                                                      "invalid number", "invalid literal"};
    return std::any_of(remarks.begin(), remarks.end(),
                       [&](std::string_view remark) { return what.find(remark) != std::string::npos; });
  }
  /// Whether the key of a row's size comes once more; reads on to the end.
  bool more_results_follow() {
    constexpr std::string_view key = "\"size\"";
    std::size_t matched = 0;
    for (; !source_.at_end() && matched < key.size(); source_.step()) {
      const char c = static_cast<char>(source_.current);
      matched = c == key[matched] ? matched + 1 : c == key[0] ? 1 : 0;
    }
    return matched == key.size() || source_.bytes >= most_json_bytes;
  }
  /// Whether the value at hand is at this path; lists are "[]".
  template <class... Keys>
  bool is(Keys... keys) const {
    const std::initializer_list<std::string_view> wanted{std::string_view(keys)...};
    return path_.size() == wanted.size() && std::equal(wanted.begin(), wanted.end(), path_.begin());
  }
  bool open(std::string inside) {
    constexpr std::size_t deepest = 64;
    if (path_.size() >= deepest) {
      complaints.add(here(), "too deeply nested", fmt::format("up to {} levels are read", deepest));
      return false;
    }
    path_.push_back(std::move(inside));
    return true;
  }
  void close() {
    // A list goes on with its next element, a map with its next key.
    if (!path_.empty() && path_.back() != "[]") path_.back().clear();
  }

  /// What stands in another's place, with its place; `text` is what it reads.
  void check_shape(std::string_view shape, const std::string& text = {}) {
    const bool element = !path_.empty() && path_.back() == "[]";
    if (is("env", "[]")) ++variables_;
    if (is("config", "devices", "[]")) ++devices_;
    for (const KnownShape& known : known_shapes()) {
      if (!std::equal(path_.begin(), path_.end(), known.path.begin(), known.path.end()) || known.is == shape) continue;
      if (shape == "null" && !element) continue;  // as if it were not there
      if (path_.front() == "results") row_.wrong = true;
      complaints.add(
          here(),
          fmt::format("{} is {}{}", path_text(), shape, text.empty() ? "" : fmt::format(" ('{}')", printable(text))),
          known.expected);
    }
  }
  /// "config.devices[1]": of what is at hand, elements counted from 0.
  std::string path_text() const {
    std::string path;
    for (const std::string& part : path_) {
      if (part != "[]")
        path += (path.empty() ? "" : ".") + printable(part);
      else
        path += fmt::format("[{}]", (path_.front() == "env"      ? variables_
                                     : path_.front() == "config" ? devices_
                                                                 : rows_) -
                                        1);
    }
    return path;
  }

  bool value(std::string_view shape, const std::string& text, std::optional<double> number) {
    check_shape(shape, text);
    if (is("results", "[]")) {
      no_result(number ? "a number" : text.empty() ? "no map" : fmt::format("'{}'", printable(text)));
    } else if (is("env", "[]")) {
      variable(text);
    } else if (is("args", "[]")) {
      if (const std::string_view test = test_named_in(text); !test.empty()) table_.facts.collective = std::string(test);
    } else if (is("nccl_version")) {
      if (const auto code = read_whole(text); code && *code > 0)
        table_.facts.nccl_version = nccl_version_text(*code);
      else if (!text.empty())
        out.warnings.push_back({here(),
                                fmt::format("nccl_version is '{}': it is as if it were not there", printable(text)),
                                "expected a number above 0, such as 22703 of 2.27.3"});
    } else if (is("out_of_bounds", "okay")) {
      if (text == "false" && !wrong_results.any())
        out.warnings.push_back({here(), "the test says that its results were wrong", "the run itself is broken"});
    } else if (is("config", "nthreads")) {
      threads_ = read_whole(text).value_or(0);
    } else if (is("config", "ngpus")) {
      gpus_ = read_whole(text).value_or(0);
    } else if (is("config", "devices", "[]", "rank")) {
      rank_text_ = text;
      if (const auto rank = read_whole(text); rank && *rank >= 0 && !ranks_.insert(*rank).second && repeated_.empty())
        repeated_ = fmt::format("it lists rank {} twice, again as config.devices[{}] ({})", *rank, devices_ - 1,
                                to_text(here()));
    } else if (is("config", "devices", "[]", "hostname")) {
      hosts_.insert(text);
      device_.first = text;
    } else if (is("config", "devices", "[]", "pid")) {
      device_.second = text;
    } else if (is("config", "devices", "[]", "device_info")) {
      gpu(std::string(trimmed(text)));
    } else if (is("config", "devices", "[]", "group")) {
      groups_.insert(text);
    } else if (is("results", "[]", "size")) {
      if (row_.size) twice("the size of a result");
      row_.size = read_size(text);
      if (!row_.size) wrong("size", text, "expected a whole number of bytes, from 0 to 2^62");
    } else if (is("results", "[]", "count")) {
      row_.count = text;
      row_.counted = here();
    } else if (is("results", "[]", "type")) {
      row_.type = text;
      if (!text.empty() && !is_type(trimmed(text)))
        once(said_type_, unknown_type(here(), trimmed(text), "such rows count as others do"));
    } else if (is("results", "[]", "redop")) {
      row_.operation = trimmed(text);
      if (!text.empty() && !is_operation(trimmed(text)))
        once(said_operation_, unknown_operation(here(), trimmed(text)));
    } else if (is("errors", "[]")) {
      out.warnings.push_back({here(), fmt::format("the test says '{}'", printable(text)), "the run itself is broken"});
    } else if (is("version")) {
      constexpr double newest = 3;
      if (!number || *number > newest)
        out.warnings.push_back({here(), fmt::format("version is {}", text.empty() ? "no number" : printable(text)),
                                "those up to 3 are known; what is new in it is not"});
    } else {
      placement(row_.out_of_place, "out_of_place", text, number);
      placement(row_.in_place, "in_place", text, number);
    }
    close();
    return !complaints.too_many();
  }

  void once(bool& said, Diagnostic warning) {
    if (!std::exchange(said, true)) out.warnings.push_back(std::move(warning));
  }
  /// "NCCL_ALGO=Ring"; of one that is there twice the first counts, as in C.
  void variable(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || !is_of_nccl(text.substr(0, equals))) return;
    add_variable(table_.facts.environment, text.substr(0, equals), text.substr(equals + 1));
  }
  /// What stands among the results and is no map.
  void no_result(const std::string& what) {
    complaints.add(here(), fmt::format("results[{}] is {}", rows_++, what),
                   "expected a map, as nccl-tests -J writes it");
  }

  void placement(ResultRow::Placement& p, std::string_view name, const std::string& text,
                 std::optional<double> number) {
    if (is("results", "[]", name, "cpu_time")) {
      p.has_cpu_time = true;
      if (!first_cpu_time_) first_cpu_time_ = here();
    } else if (is("results", "[]", name, "time")) {
      if (std::exchange(p.has_time, true)) {
        twice("the time of a result");
        return;
      }
      p.time = read_microseconds(text);
      p.time_text = text;
      if (!p.time && (text.empty() || is_no_time(text)))
        untimed_.push_back(untimed(here(), text.empty() ? "null" : text));
      else if (!p.time)
        wrong("time", text, "expected microseconds above 0, to 10^12");
    } else if (is("results", "[]", name, "alg_bw")) {
      p.algbw = text;
    } else if (is("results", "[]", name, "bus_bw")) {
      p.busbw = text;
    } else if (is("results", "[]", name, "nwrong")) {
      p.wrong = number && *number > 0;
    }
  }

  void twice(const char* what) {
    row_.wrong = true;
    complaints.add(here(), fmt::format("{} is there twice", what), "leave out one");
  }
  /// A list or a map in the place of a number.
  void not_a_value(const char* what) {
    const bool time = path_.size() == 4 && path_[0] == "results" && (path_[3] == "time" || path_[3] == "cpu_time") &&
                      (path_[2] == "out_of_place" || path_[2] == "in_place");
    if (!time && !is("results", "[]", "size")) return;
    row_.wrong = true;
    complaints.add(here(), fmt::format("the {} is {}", path_.back(), what), "expected a number");
  }

  void wrong(const char* what, const std::string& text, const char* expected) {
    row_.wrong = true;
    complaints.add(here(), fmt::format("the {} is '{}'", what, printable(text)), expected);
  }

  /// A result, or one half of it, of which no time is said.
  void leave_out_without_time() {
    const auto one = [&](const char* what) {
      lacking_ = true;
      leave_out(out, {here(), fmt::format("results[{}]{} has no time: this row is left out", rows_ - 1, what),
                      "expected out_of_place.time and in_place.time, as nccl-tests -J writes them"});
    };
    if (!row_.out_of_place.is_there && !row_.in_place.is_there) one("");
    const auto lacks = [](const ResultRow::Placement& p) { return p.is_there && !p.has_time && !p.has_cpu_time; };
    if (lacks(row_.out_of_place)) one(".out_of_place");
    if (lacks(row_.in_place)) one(".in_place");
  }

  void finish_row() {
    const auto keep = [&](const ResultRow::Placement& p, bool in_place) {
      if (!p.time || *row_.size == Bytes(0)) return;
      if (auto contradiction = rate_contradiction(here(), *row_.size, p.time_text, "us", p.algbw)) {
        lacking_ = true;
        leave_out(out, std::move(*contradiction));
        return;
      }
      lacking_ = lacking_ || p.wrong;
      if (p.wrong)
        wrong_results.add(out, here(), "", in_place);
      else
        table_.points.push_back({*row_.size, *p.time, in_place, std::nullopt});
      evidence_.add(read_rates(p.algbw, p.busbw), here());
    };
    if (row_.wrong) return;
    if (!row_.size) {
      complaints.add(here(), "a result without size", "expected what nccl-tests -J writes");
      return;
    }
    const std::string_view type = trimmed(row_.type);
    const ResultRow::Placement& rated = row_.out_of_place.has_time ? row_.out_of_place : row_.in_place;
    if (auto wrong = count_contradiction(row_.counted, *row_.size, row_.count, type, sure_ranks(),
                                         read_rates(rated.algbw, rated.busbw))) {
      lacking_ = true;
      return leave_out(out, std::move(*wrong));
    }
    if (*row_.size > Bytes(0)) {
      lacking_ = lacking_ || !untimed_.empty();
      for (Diagnostic& row : untimed_) leave_out(out, std::move(row));
      leave_out_without_time();
      const auto is_of_cpu = [](const ResultRow::Placement& p) { return p.has_cpu_time && !p.has_time; };
      if (is_of_cpu(row_.out_of_place) || is_of_cpu(row_.in_place)) ++cpu_times_;
    }
    add_type(table_.facts, type);
    evidence_.add_operation(row_.operation, here());
    keep(row_.out_of_place, false);
    keep(row_.in_place, true);
  }

  Source& source_;
  std::string file_;
  std::vector<std::string> path_;  ///< the key at hand of every open map, "[]" for a list
  ResultRow row_;
  Diagnostics untimed_;  ///< of the row
  MeasuredTable table_;
  std::set<int> ranks_;
  std::string repeated_;  ///< which rank is listed twice, and where
  /// Elements of the lists, with the one at hand.
  std::size_t rows_ = 0, devices_ = 0, variables_ = 0;
  RankEvidence evidence_;
  std::optional<Location> cut_at_, first_cpu_time_;
  std::size_t cpu_times_ = 0;  ///< rows with such
  std::set<std::string> hosts_, groups_;
  std::string rank_text_;                                          ///< of the device at hand
  std::pair<std::string, std::string> device_;                     ///< host and process of the one at hand
  std::map<std::pair<std::string, std::string>, int> devices_of_;  ///< of each process that is named
  int threads_ = 0, gpus_ = 0;
  bool has_results_ = false;
  bool lacking_ = false;  ///< a row was left out
  bool said_type_ = false, said_operation_ = false, said_mixed_ = false;
};

}  // namespace

Result<Readings> read_nccl_tests_json(std::istream& in, const std::string& file) {
  Source source(in);
  if (source.at_end())
    return Diagnostic{{file, 1, 1}, "the file is empty", "expected what nccl-tests writes with -J FILE"};
  JsonReader reader(source, file);
  json::sax_parse(SourceIterator(&source), SourceIterator(), &reader);
  if (!reader.complaints.empty()) return reader.complaints.take();
  reader.wrong_results.finish(reader.out, file);
  reader.unknown_keys.finish(reader.out, {file}, "key");
  MeasuredTable table = reader.take_table();
  if (table.points.empty()) {
    if (!reader.out.untimed.empty()) return reader.out.untimed;
    if (!reader.out.wrong.empty()) return reader.out.wrong;
    if (reader.cut_off)
      return Diagnostic{reader.here(), "the JSON ends before its first result", "the test did not finish"};
    return Diagnostic{{file, 1, 1},
                      reader.has_results() ? "'results' has no row" : "there is no list 'results' in this JSON",
                      "expected what nccl-tests -J writes"};
  }
  if (reader.cut_off)
    reader.out.warnings.push_back(
        {reader.where_cut(), "the JSON ends here: the test did not finish", "the rows that are there are used"});
  reader.out.tables.push_back(std::move(table));
  return std::move(reader.out);
}

}  // namespace collcast
