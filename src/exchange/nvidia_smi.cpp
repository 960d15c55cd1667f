// The table of `nvidia-smi topo -m` -> ForeignNode.
//
// A cell says how far two devices are apart, so the PCIe tree is what explains the cells: devices at PIX share a
// switch, those at PXB a switch above their own, those at PHB or NODE a socket. Between GPUs joined by NVLink the table
// has the NVLinks instead; what they share follows from their distance to NICs and from the affinity columns. NODE has
// no twin in NCCL and counts as PHB [nvidia-smi's own legend; NCCL, src/graph/topo.h].
//
// Left out: rates, models, which the table has nothing of; affinities to single cores.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <numeric>

#include "collcast/base/text.hpp"
#include "collcast/exchange/machine.hpp"

namespace collcast::exchange {

namespace {

constexpr std::size_t most_devices = 1024;
constexpr int most_nvlinks = 18;  // of any GPU so far: more between its peers go through NVSwitches

enum class Distance { self, pix, pxb, phb, node, sys, nvlink };

struct Cell {
  Distance distance = Distance::sys;
  int links = 0;
  bool there = false;
  Location where;
};

struct Word {
  std::string_view text;
  int column = 1;
};

/// Escape sequences (ESC [ ... letter) as blanks, so that columns stay.
std::string without_escapes(std::string_view text) {
  std::string out(text);
  for (std::size_t i = 0; i + 1 < out.size(); ++i) {
    if (out[i] != '\x1b' || out[i + 1] != '[') continue;
    std::size_t end = i + 2;
    while (end < out.size() && !(out[end] >= '@' && out[end] <= '~') && out[end] != '\n') ++end;
    for (; i <= end && i < out.size() && out[i] != '\n'; ++i) out[i] = ' ';
  }
  return out;
}

std::vector<Word> words_of(std::string_view line) {
  std::vector<Word> out;
  for (std::size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    out.push_back({line.substr(at, end - at), static_cast<int>(at) + 1});
    at = end;
  }
  return out;
}

/// The number behind "GPU", "NV"; nothing where no number is.
std::optional<int> numbered(std::string_view word, std::string_view prefix) {
  if (!word.starts_with(prefix) || word.size() == prefix.size()) return std::nullopt;
  int value = 0;
  const auto [end, failed] = std::from_chars(word.data() + prefix.size(), word.data() + word.size(), value);
  return failed == std::errc{} && end == word.data() + word.size() && value >= 0 ? std::optional(value) : std::nullopt;
}

const std::vector<std::string>& cell_words() {
  static const std::vector<std::string> words{"X", "NV1", "PIX", "PXB", "PHB", "NODE", "SYS"};
  return words;
}

std::optional<Cell> cell_of(std::string_view word) {
  if (const auto links = numbered(word, "NV"); links && *links > 0 && *links <= 1000)
    return Cell{Distance::nvlink, *links, true, {}};
  constexpr std::array known{std::pair{"X", Distance::self},    std::pair{"PIX", Distance::pix},
                             std::pair{"PXB", Distance::pxb},   std::pair{"PHB", Distance::phb},
                             std::pair{"NODE", Distance::node}, std::pair{"SYS", Distance::sys},
                             std::pair{"SOC", Distance::sys}};  // its name before 2017
  for (const auto& [text, distance] : known)
    if (word == text) return Cell{distance, 0, true, {}};
  return std::nullopt;
}

struct Row {
  bool there = false;
  std::string affinity;  ///< NUMA node, else the cores; empty: none
  Location where;
};

struct Table {
  std::vector<std::string> names;  ///< GPUs first
  std::size_t gpus = 0;
  std::vector<Row> rows;
  std::vector<std::vector<Cell>> cells;
  Location where;
  std::optional<Location> second;  ///< of a table behind the first, which is not read
};

class Reading {
 public:
  Reading(const std::string& text, const std::string& file, Diagnostics& errors)
      : text_(text), file_(file), errors_(errors) {}

  Table table() {
    std::size_t start = 0;
    while (start < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', start), text_.size());
      ++line_;
      const std::vector<Word> words = words_of(std::string_view(text_).substr(start, end - start));
      if (ended_ && is_header(words) && !out_.second) out_.second = {file_, line_, words[0].column};
      ended_ = ended_ || !take(words);
      start = end + 1;
    }
    if (out_.names.empty())
      error(1, 1, "there is no table of 'nvidia-smi topo -m' in this file", "expected a line of names: GPU0 GPU1 ...");
    for (std::size_t i = 0; i < out_.gpus && errors_.empty(); ++i)
      if (!out_.rows[i].there)
        errors_.push_back({out_.where, fmt::format("there is no row of {}", out_.names[i]), "is the file cut off?"});
    return std::move(out_);
  }

 private:
  void error(int line, int column, std::string message, std::string hint) {
    if (errors_.size() < 100) errors_.push_back({{file_, line, column}, std::move(message), std::move(hint)});
  }

  static bool is_header(const std::vector<Word>& words) {
    return !words.empty() && words[0].text == "GPU0" && (words.size() == 1 || !cell_of(words[1].text));
  }

  /// False at the end of the table.
  bool take(const std::vector<Word>& words) {
    if (words.empty()) return true;
    if (out_.names.empty()) {
      if (is_header(words)) header(words);
      return true;
    }
    if (words[0].text == "Legend:") return false;
    const auto found = std::find(out_.names.begin(), out_.names.end(), words[0].text);
    if (found != out_.names.end())
      row(static_cast<std::size_t>(found - out_.names.begin()), words);
    else if (words.size() > 1 && cell_of(words[1].text))
      error(line_, words[0].column,
            fmt::format("a row of '{}', which the first line does not name", shown(words[0].text)),
            "expected a row for each of its names");
    return true;
  }

  void header(const std::vector<Word>& words) {
    out_.where = {file_, line_, words[0].column};
    const auto ends = std::ranges::find_if(words, [](const Word& word) {  // affinities
      return word.text == "CPU" || word.text == "NUMA" || word.text == "GPU";
    });
    const auto devices = static_cast<std::size_t>(ends - words.begin());
    if (devices > most_devices)
      error(line_, 1, fmt::format("{} devices", devices), fmt::format("up to {} are read", most_devices));
    for (std::size_t i = 0; i < std::min(devices, most_devices); ++i) {
      const Word& word = words[i];
      const bool gpu = numbered(word.text, "GPU").has_value();
      if (gpu && out_.gpus < out_.names.size())
        error(line_, word.column, fmt::format("'{}' behind a NIC", shown(word.text)), "expected the GPUs first");
      if (std::find(out_.names.begin(), out_.names.end(), word.text) != out_.names.end())
        error(line_, word.column, fmt::format("'{}' is there twice", shown(word.text)), "each device once");
      out_.names.emplace_back(word.text);
      if (gpu) ++out_.gpus;
    }
    const std::size_t n = out_.names.size();
    out_.rows.resize(n);
    out_.cells.assign(n, std::vector<Cell>(n));
  }

  void row(std::size_t i, const std::vector<Word>& words) {
    const std::size_t n = out_.names.size();
    Row& row = out_.rows[i];
    const Location where{file_, line_, words[0].column};
    if (row.there)
      return error(line_, words[0].column, fmt::format("a second row of {}", out_.names[i]),
                   fmt::format("the first is at {}", to_text(row.where)));
    row.there = true;
    row.where = where;
    if (words.size() < n + 1)
      return error(line_, words.back().column,
                   fmt::format("the row of {} has {} of {} cells", out_.names[i], words.size() - 1, n),
                   "is it cut off?");
    for (std::size_t j = 0; j < n; ++j) {
      const Word& word = words[j + 1];
      auto cell = cell_of(word.text);
      if (!cell) {
        error(line_, word.column, fmt::format("'{}' between {} and {}", shown(word.text), out_.names[i], out_.names[j]),
              expected_one_of(word.text, cell_words()));
        continue;
      }
      if ((cell->distance == Distance::self) != (i == j))
        error(line_, word.column, fmt::format("'{}' between {} and {}", shown(word.text), out_.names[i], out_.names[j]),
              i == j ? "expected X" : "expected a distance such as PIX or SYS");
      if (cell->distance == Distance::nvlink && (i >= out_.gpus || j >= out_.gpus))
        error(line_, word.column, fmt::format("'{}' between {} and {}", shown(word.text), out_.names[i], out_.names[j]),
              "NVLinks join GPUs");
      cell->where = {file_, line_, word.column};
      out_.cells[i][j] = *cell;
    }
    // Cores, then the NUMA node; either may be missing or N/A.
    if (i < out_.gpus && words.size() > n + 1)
      row.affinity = words[words.size() > n + 2 && words[n + 2].text != "N/A" ? n + 2 : n + 1].text;
    if (row.affinity == "N/A") row.affinity.clear();
  }

  const std::string& text_;
  const std::string& file_;
  Diagnostics& errors_;
  Table out_;
  int line_ = 0;
  bool ended_ = false;
};

/// Sets of devices that grow together.
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }
  /// The smallest of the set.
  std::size_t of(std::size_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  void join(std::size_t a, std::size_t b) {
    a = of(a);
    b = of(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

class Tree {
 public:
  Tree(const Table& table, ForeignNode& out)
      : table_(table), out_(out), n_(table.names.size()), switches_(n_), above_(n_), sockets_(n_) {}

  void build() {
    join_near();
    join_affinities();
    join_lonely();
    check_far();
    attach();
  }

 private:
  const Cell& cell(std::size_t i, std::size_t j) const {
    const Cell& one = table_.cells[i][j];
    return one.there ? one : table_.cells[j][i];  // rows of NICs may be missing
  }

  void join_near() {
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t j = i + 1; j < n_; ++j) {
        const Cell &one = table_.cells[i][j], &other = table_.cells[j][i];
        if (one.there && other.there && (one.distance != other.distance || one.links != other.links) && !unlike_) {
          unlike_ = true;
          out_.warnings.push_back(
              {other.where,
               fmt::format("{} and {} are apart otherwise than in the other's row", table_.names[i], table_.names[j]),
               "the upper right half of the table counts"});
        }
        if (!cell(i, j).there) continue;
        const Distance distance = cell(i, j).distance;
        if (distance == Distance::pix) switches_.join(i, j);
        if (distance <= Distance::pxb) above_.join(i, j);
        if (distance <= Distance::node) sockets_.join(i, j);
      }
  }

  void join_affinities() {
    std::map<std::string, std::size_t> first;
    for (std::size_t i = 0; i < table_.gpus; ++i)
      if (const std::string& affinity = table_.rows[i].affinity; !affinity.empty())
        sockets_.join(i, first.emplace(affinity, i).first->second);
  }

  /// GPUs of which nothing but NVLinks is said are put on the first socket.
  void join_lonely() {
    bool any = false;
    for (std::size_t i = 1; i < table_.gpus; ++i) {
      bool lonely = table_.rows[i].affinity.empty();
      for (std::size_t j = 0; j < n_ && lonely; ++j)
        lonely = j == i || !cell(i, j).there || cell(i, j).distance == Distance::nvlink;
      if (!lonely) continue;
      sockets_.join(0, i);
      any = true;
    }
    if (any)
      out_.warnings.push_back({table_.where, "the table does not say on which socket its GPUs are",
                               "they are put on one; affinity columns or NICs would tell"});
  }

  void check_far() {
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t j = i + 1; j < n_; ++j)
        if (const Cell& one = cell(i, j);
            one.there && one.distance == Distance::sys && sockets_.of(i) == sockets_.of(j)) {
          out_.warnings.push_back({one.where,
                                   fmt::format("{} and {} are SYS apart, though others put them on one socket",
                                               table_.names[i], table_.names[j]),
                                   "one socket is taken"});
          return;
        }
  }

  int number(std::map<std::size_t, int>& numbers, std::size_t set) {
    return numbers.emplace(set, static_cast<int>(numbers.size())).first->second;
  }
  int add_switch(Up up) {
    out_.switches.push_back({up, LinkKind::pcie, {}, {}, {}});
    return static_cast<int>(out_.switches.size()) - 1;
  }

  /// Members of each set.
  std::map<std::size_t, int> sizes(const Sets& sets) const {
    std::map<std::size_t, int> out;
    for (std::size_t i = 0; i < n_; ++i) ++out[sets.of(i)];
    return out;
  }

  void attach() {
    const std::map<std::size_t, int> near = sizes(switches_), wide = sizes(above_);
    std::map<std::size_t, int> sockets, tops, owns;
    for (std::size_t i = 0; i < n_; ++i) {
      Up up{false, number(sockets, sockets_.of(i))};
      const std::size_t own = switches_.of(i), top = above_.of(i);
      const bool several = wide.at(top) > near.at(own);  // switches below one
      if (several && tops.count(top) == 0) tops[top] = add_switch(up);
      if (several) up = {true, tops.at(top)};
      if (several || near.at(own) > 1) {
        if (owns.count(own) == 0) owns[own] = add_switch(up);
        up = {true, owns.at(own)};
      }
      (i < table_.gpus ? out_.gpus : out_.nics).push_back({up, LinkKind::pcie, {}, {}, {}});
    }
    out_.sockets = static_cast<int>(sockets.size());
  }

  const Table& table_;
  ForeignNode& out_;
  std::size_t n_;
  Sets switches_, above_, sockets_;
  bool unlike_ = false;
};

Nvlinks nvlinks_of(const Table& table) {
  Nvlinks out;
  out.counts.assign(table.gpus, std::vector<int>(table.gpus, 0));
  int least = 0, most = 0, sum = 0;
  for (std::size_t i = 0; i < table.gpus; ++i)
    for (std::size_t j = i + 1; j < table.gpus; ++j) {
      const int links = table.cells[i][j].links;
      out.counts[i][j] = out.counts[j][i] = links;
      least = i == 0 && j == 1 ? links : std::min(least, links);
      most = std::max(most, links);
      if (i == 0) sum += links;
    }
  out.shape = most == 0 ? Nvlinks::Shape::none : Nvlinks::Shape::straight;
  if (least == most && sum > most_nvlinks) {
    out.shape = Nvlinks::Shape::to_switch;
    out.links = most;
    out.said = fmt::format("NV{} between all, more than a GPU has NVLinks, so through NVSwitches", most);
  }
  return out;
}

}  // namespace

Result<ForeignNode> read_nvidia_smi(std::string_view text, const std::string& file) {
  if (text.size() > max_file_bytes)
    return Diagnostic{{file},
                      fmt::format("{} bytes are too many", text.size()),
                      fmt::format("files are read up to {} MiB", max_file_bytes >> 20)};
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark, as PowerShell writes it
  const std::string plain = without_escapes(text);
  if (Diagnostics wrong = check_encoding(plain, file); !wrong.empty()) return wrong;
  Diagnostics errors;
  ForeignNode out;
  const Table table = Reading(plain, file, errors).table();
  if (!errors.empty()) return errors;
  if (table.second)
    out.warnings.push_back({*table.second, "a second table is not read", "expected the output of one node"});
  out.file = shown(std::filesystem::path(file).filename().string());
  out.format = "nvidia-smi topo -m";
  out.where = out.gpu_where = table.where;
  Tree(table, out).build();
  out.nvlinks = nvlinks_of(table);
  return out;
}

}  // namespace collcast::exchange
