#include "collcast/scenario/gemm_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "collcast/base/check.hpp"
#include "collcast/base/csv.hpp"
#include "collcast/base/edit_distance.hpp"
#include "collcast/base/numbers.hpp"
#include "collcast/base/text.hpp"
#include "collcast/workload/gemm_time.hpp"

namespace collcast {

namespace {

struct Type {
  std::string_view name, precision;
  double bytes;  ///< of an element of an operand
};
constexpr std::array<Type, 4> types{
    {{"bfloat16", "bf16", 2}, {"float16", "fp16", 2}, {"fp8", "fp8", 1}, {"nvfp4", "fp4", 0.5}}};
constexpr std::array passes{GemmPass::forward, GemmPass::input_gradient, GemmPass::weight_gradient};
constexpr std::array needed{"dtype", "m", "n", "k", "latency_ms"};
constexpr double most_elements = 1e9;  // of one dimension
constexpr double most_milliseconds = 1e6;
constexpr std::size_t most_complaints = 100;

std::vector<std::string> missing_of(const std::vector<std::string>& titles) {
  std::vector<std::string> out;
  for (const char* name : needed)
    if (std::find(titles.begin(), titles.end(), name) == titles.end()) out.emplace_back(name);
  return out;
}

std::vector<std::string> titles_of(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string> out;
  for (const Cell& cell : read_csv_line(line).cells) out.push_back(cell.text);
  return out;
}

std::vector<std::string> pass_words() {
  std::vector<std::string> out;
  for (const GemmPass pass : passes) out.emplace_back(to_string(pass));
  return out;
}

const Type& type_of(const GemmRow& row) {
  const auto found = std::find_if(types.begin(), types.end(), [&](const Type& type) { return type.name == row.dtype; });
  check(found != types.end(), "a row has a type that tables may have");
  return *found;
}

class Table {
 public:
  Table(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  Result<std::vector<GemmRow>> read() {
    if (!heading()) return std::move(errors_);
    std::vector<GemmRow> rows;
    for (std::vector<Cell> cells; errors_.size() < most_complaints && next(cells);) {
      if (cells.size() == 1 && cells[0].text.empty()) continue;
      if (cells.size() != titles_.size()) {
        complain(1, fmt::format("{} cells in a table of {} columns", cells.size(), titles_.size()),
                 "expected a value for each column of the heading; is the file cut off?");
        continue;
      }
      rows.push_back(row(cells));
    }
    if (errors_.empty() && rows.empty()) complain(1, "the table has no rows", "expected a measured product a line");
    if (!errors_.empty()) return std::move(errors_);
    return rows;
  }

 private:
  struct Column {
    const char* name;
    std::size_t at = 0;  ///< beyond the last: the table has none of it
  };

  bool heading() {
    std::vector<Cell> cells;
    if (!next(cells)) {
      if (errors_.empty())
        errors_.push_back({{file_, 1, 1}, "the file is empty", "expected a table of measured products"});
      return false;
    }
    for (const Cell& cell : cells) titles_.push_back(cell.text);
    for (Column* one : {&system_, &dtype_, &m_, &n_, &k_, &latency_, &pass_}) one->at = column(one->name);
    const std::vector<std::string> missing = missing_of(titles_);
    for (std::size_t i = 0; i < titles_.size(); ++i)
      if (std::count(titles_.begin(), titles_.end(), titles_[i]) > 1 && column(titles_[i]) != i)
        complain(cells[i].column, fmt::format("the column {} is there twice", shown(titles_[i])),
                 "expected each column once");
    if (!missing.empty())
      complain(1,
               fmt::format("the column{} {} {} missing", missing.size() > 1 ? "s" : "", fmt::join(missing, ", "),
                           missing.size() > 1 ? "are" : "is"),
               "expected dtype,m,n,k,latency_ms");
    return errors_.empty();
  }

  bool next(std::vector<Cell>& cells) {
    while (!rest_.empty()) {
      ++line_;
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      CsvLine read = read_csv_line(line);
      if (!read.open_quote) {
        cells = std::move(read.cells);
        return true;
      }
      complain(*read.open_quote, "a quoted cell that does not end before the next comma",
               "expected \"...\", with quotes in it doubled, on one line");
    }
    return false;
  }

  std::size_t column(std::string_view name) const {
    return static_cast<std::size_t>(std::find(titles_.begin(), titles_.end(), name) - titles_.begin());
  }

  GemmRow row(const std::vector<Cell>& cells) {
    GemmRow out;
    out.line = line_;
    out.column = cells[latency_.at].column;
    if (system_.at < cells.size()) out.system = cells[system_.at].text;
    out.dtype = cells[dtype_.at].text;
    one_of(cells, dtype_, dtype_words_);
    out.shape = {number(cells, m_, 1, most_elements), number(cells, n_, 1, most_elements),
                 number(cells, k_, 1, most_elements)};
    out.time = Seconds(number(cells, latency_, 1e-9, most_milliseconds) / 1e3);
    if (pass_.at < cells.size() && !cells[pass_.at].text.empty())
      if (const auto index = one_of(cells, pass_, pass_words_)) out.pass = passes[*index];
    return out;
  }

  std::optional<std::size_t> one_of(const std::vector<Cell>& cells, const Column& of,
                                    const std::vector<std::string>& words) {
    const Cell& cell = cells[of.at];
    const auto found = std::find(words.begin(), words.end(), cell.text);
    if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
    complain(cell.column, fmt::format("{} is '{}'", of.name, shown(cell.text)), expected_one_of(cell.text, words));
    return std::nullopt;
  }

  double number(const std::vector<Cell>& cells, const Column& of, double least, double most) {
    const Cell& cell = cells[of.at];
    const auto value = to_number<double>(cell.text);
    if (value && *value >= least && *value <= most) return *value;
    complain(cell.column, fmt::format("{} is '{}'", of.name, shown(cell.text)),
             fmt::format("expected a number from {:g} to {:g}", least, most));
    return least;
  }

  void complain(int column, std::string message, std::string hint) {
    errors_.push_back({{file_, line_, column}, std::move(message), std::move(hint)});
  }

  std::string_view rest_;
  const std::string& file_;
  std::vector<std::string> titles_;
  Column system_{"system"}, dtype_{"dtype"}, m_{"m"}, n_{"n"}, k_{"k"}, latency_{"latency_ms"}, pass_{"pass"};
  const std::vector<std::string> dtype_words_ = gemm_dtypes(), pass_words_ = pass_words();
  Diagnostics errors_;
  int line_ = 0;
};

}  // namespace

Result<std::vector<GemmRow>> parse_gemm_table(std::string_view text, const std::string& file) {
  if (Diagnostics wrong = check_encoding(text, file); !wrong.empty()) return wrong;
  return Table(text, file).read();
}

std::vector<std::string> missing_gemm_columns(std::string_view text) { return missing_of(titles_of(text)); }

bool has_gemm_column(std::string_view text, std::string_view column) {
  const std::vector<std::string> titles = titles_of(text);
  return std::find(titles.begin(), titles.end(), column) != titles.end();
}

std::vector<std::string> gemm_dtypes() {
  std::vector<std::string> out;
  for (const Type& type : types) out.emplace_back(type.name);
  return out;
}

std::string GemmRow::precision() const { return std::string(type_of(*this).precision); }

Volume GemmRow::bytes() const { return gemm_bytes(shape, pass, type_of(*this).bytes); }

}  // namespace collcast
