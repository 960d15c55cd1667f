// A pipeline schedule that a user brings: a file of this program, or the compute-only CSV of PyTorch
// (torch.distributed.pipelining, _dump_csv and _load_csv): a row for each rank, cells such as 0F0, 3I1, 3W1, 3B1 with
// the stage of the model, what is done and the micro-batch, empty ones for idle, (0F4;7B0)OVERLAP_F_B for two together.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "collcast/base/csv.hpp"
#include "collcast/base/text.hpp"
#include "collcast/base/words.hpp"
#include "scenario/files.hpp"
#include "scenario/parse.hpp"

namespace collcast::input {

namespace {

constexpr int most_stages = 10'000;
constexpr std::size_t most_complaints = 100;

/// Digits at the front of `text`, which goes on behind them.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || text.front() == '-' || value > max_count) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return value;
}

/// A forward and a backward that go together, the forward first.
std::optional<std::vector<Turn>> pair_of(std::optional<Turn> one, std::optional<Turn> other) {
  if (!one || !other || one->weights || other->weights || one->backward == other->backward) return std::nullopt;
  if (one->backward) std::swap(one, other);
  one->with_next = true;
  return std::vector<Turn>{*one, *other};
}

/// "F3", "B3", "W3", "BW3", "F3.1".
std::optional<Turn> parse_turn(std::string_view text) {
  Turn turn;
  if (text.starts_with("BW")) {
    turn.backward = turn.whole = true;
    text.remove_prefix(2);
  } else if (!text.empty() && (text[0] == 'F' || text[0] == 'B' || text[0] == 'W')) {
    turn.backward = text[0] != 'F';
    turn.weights = text[0] == 'W';
    text.remove_prefix(1);
  } else {
    return std::nullopt;
  }
  const std::optional<int> micro_batch = take_number(text);
  if (!micro_batch) return std::nullopt;
  turn.micro_batch = *micro_batch;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const std::optional<int> chunk = take_number(text);
    if (!chunk) return std::nullopt;
    turn.chunk = *chunk;
  }
  return text.empty() ? std::optional(turn) : std::nullopt;
}

/// One turn, or two that go together: "F4+B2".
std::optional<std::vector<Turn>> parse_turns(std::string_view text) {
  const std::size_t plus = text.find('+');
  if (plus != std::string_view::npos)
    return pair_of(parse_turn(trimmed(text.substr(0, plus))), parse_turn(trimmed(text.substr(plus + 1))));
  const std::optional<Turn> turn = parse_turn(text);
  return turn ? std::optional(std::vector<Turn>{*turn}) : std::nullopt;
}

/// Turns with their places.
class Written {
 public:
  explicit Written(std::string file) : file_(std::move(file)) {}

  void add_stage(int line, int column) {
    own.orders.emplace_back();
    lists_.push_back({line, column});
    turns_.emplace_back();
    unread_.push_back(false);
  }
  /// Of the last stage some turn could not be read, which has been said.
  void add_unread() { unread_.back() = true; }
  void add(const std::vector<Turn>& turns, int line, int column) {
    for (const Turn& turn : turns) {
      own.orders.back().push_back(turn);
      turns_.back().push_back({line, column});
    }
  }
  /// Where no backward is without its weight gradients, all are whole: that is not said of each.
  Diagnostics check() {
    own.call_whole_plain();
    return check_order(
        own,
        [this](std::size_t stage, std::optional<std::size_t> turn) {
          const Spot& at = turn ? turns_[stage][*turn] : lists_[stage];
          return Location{file_, at.line, at.column};
        },
        unread_);
  }

  OwnSchedule own;

 private:
  struct Spot {
    int line = 0, column = 0;
  };
  std::string file_;
  std::vector<Spot> lists_;
  std::vector<std::vector<Spot>> turns_;
  std::vector<bool> unread_;
};

void read_stage(Reader& reader, const Node& node, const std::string& path, Written& written) {
  written.add_stage(node.at.line, node.at.column);
  if (!expect_list(reader, node, path, max_count)) return written.add_unread();
  for (std::size_t n = 0; n < node.items.size(); ++n) {
    const Node& item = node.items[n];
    const std::string name = fmt::format("{}.{}", path, n);
    const char* expected = "a turn: F0, B0 or W0 (micro-batch 0), in chunk 1 F0.1, F4+B2 together, or BW0";
    if (item.kind != Node::Kind::scalar) {
      mismatch(reader, item, name, expected);
      written.add_unread();
    } else if (const auto turns = parse_turns(item.text)) {
      written.add(*turns, item.at.line, item.at.column);
    } else {
      reader.error(item.at, fmt::format("{} is '{}'", name, shown(item.text)), fmt::format("expected {}", expected));
      written.add_unread();
    }
  }
}

}  // namespace

OwnSchedule read_schedule(Reader& reader, const Node& tree, const std::string& file) {
  Written written(file);
  OwnSchedule& own = written.own;
  Object o(reader, tree, "");
  if (tree.kind != Node::Kind::map || !read_schema(reader, o, "collcast.schedule.v1")) return own;
  std::string title;
  o.required("name", own.name, AsName{});
  o.optional("title", title, AsText{});
  bool sized = o.required("micro_batches", own.micro_batches, AsCount{1, most_own_micro_batches});
  o.optional("placement", own.in_v, AsWord<bool>{{"loop", "v"}, {false, true}});
  own.chunks = own.in_v ? 2 : 1;
  if (!o.optional("chunks", own.chunks, AsCount{1, most_own_chunks}) && o.has("chunks")) sized = false;
  if (own.in_v && own.chunks != 2) {
    reader.error(o.node().find("chunks")->at, fmt::format("chunks is {}, and placement v has two a stage", own.chunks),
                 "leave it out, or use placement: loop");
    own.chunks = 2;
  }
  const Node* stages = o.required_list("stages");
  o.finish();
  if (stages == nullptr || !expect_list(reader, *stages, "stages", most_stages)) return own;
  if (stages->items.empty()) reader.error(stages->at, "stages is empty", "expected a list of turns for each stage");
  for (std::size_t i = 0; i < stages->items.size(); ++i)
    read_stage(reader, stages->items[i], fmt::format("stages.{}", i), written);
  // What is wrong with the turns that can be read; what a number is held to has to be read, too.
  if (sized && reader.origins().good("placement")) reader.error(written.check());
  return own;
}

namespace {

/// A row for each rank.
class Csv {
 public:
  Csv(std::string_view text, const std::string& file) : rest_(text), file_(file), written_(file) {}

  Result<OwnSchedule> read() {
    while (!rest_.empty() && errors_.size() < most_complaints) row();
    if (errors_.empty() && rows_.empty())
      errors_.push_back({{file_, 1, 1}, "the file is empty", "expected a row for each rank, such as 0F0,0F1,0B0,0B1"});
    // What is wrong with the turns that can be read.
    if (!rows_.empty() && rows_known_ && rest_.empty() && place())
      for (Diagnostic& wrong : written_.check()) errors_.push_back(std::move(wrong));
    if (!errors_.empty()) return std::move(errors_);
    return std::move(written_.own);
  }

 private:
  /// One or two turns; the chunk of each is still the stage of the model.
  struct Action {
    std::vector<Turn> turns;
    int line = 0, column = 0;
  };

  void row() {
    ++line_;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() && rest_.empty()) return;
    CsvLine cells = read_csv_line(line);
    if (cells.open_quote) {
      rows_known_ = false;
      return complain(*cells.open_quote, "a quoted cell that does not end before the next comma",
                      "expected \"...\", with quotes in it doubled, on one line");
    }
    rows_.emplace_back();
    unread_.push_back(false);
    for (const Cell& cell : cells.cells) {
      const std::string_view text = trimmed(cell.text);
      if (text.empty()) continue;
      if (std::optional<std::vector<Turn>> turns = parse(text)) {
        rows_.back().push_back({std::move(*turns), line_, cell.column});
        continue;
      }
      unread_.back() = true;
      if (errors_.size() < most_complaints)
        complain(cell.column, fmt::format("'{}' is no action", shown(text)),
                 is_exchange(text) ? "messages and gathers are the forecast's own: expected the compute_only form"
                                   : "expected stage, F, I, W or B, and micro-batch, such as 2F0; two together as "
                                     "(0F4;7B0)OVERLAP_F_B");
    }
  }

  static bool is_exchange(std::string_view text) {
    if (!take_number(text)) return false;
    const char* const known[] = {"SEND_", "RECV_", "UNSHARD", "RESHARD", "REDUCE_GRAD"};
    return std::any_of(std::begin(known), std::end(known), [&](const char* word) { return text.starts_with(word); });
  }

  /// "2F0"; a whole backward is B, one without weight gradients I.
  static std::optional<Turn> parse_one(std::string_view text) {
    const std::optional<int> stage = take_number(text);
    if (!stage || text.empty()) return std::nullopt;
    const char what = text.front();
    if (what != 'F' && what != 'I' && what != 'W' && what != 'B') return std::nullopt;
    text.remove_prefix(1);
    const std::optional<int> micro_batch = text.empty() ? std::nullopt : take_number(text);
    if (!micro_batch || !text.empty()) return std::nullopt;
    return Turn{what != 'F', *micro_batch, *stage, what == 'W', what == 'B'};
  }

  static std::optional<std::vector<Turn>> parse(std::string_view text) {
    constexpr std::string_view together = ")OVERLAP_F_B";
    if (text.starts_with('(') && text.ends_with(together)) {
      text = text.substr(1, text.size() - 1 - together.size());
      const std::size_t middle = text.find(';');
      if (middle == std::string_view::npos) return std::nullopt;
      return pair_of(parse_one(trimmed(text.substr(0, middle))), parse_one(trimmed(text.substr(middle + 1))));
    }
    const std::optional<Turn> turn = parse_one(text);
    return turn ? std::optional(std::vector<Turn>{*turn}) : std::nullopt;
  }

  /// Which stages of the model the ranks have: round and round, or down and up. False: they are no such, which is said.
  bool place() {
    const int p = static_cast<int>(rows_.size());
    int slices = 0, micro_batches = 0;
    const Action* last = nullptr;
    for (const std::vector<Action>& row : rows_)
      for (const Action& action : row)
        for (const Turn& turn : action.turns) {
          if (turn.chunk >= slices) last = &action;
          slices = std::max(slices, turn.chunk + 1);
          micro_batches = std::max(micro_batches, turn.micro_batch + 1);
        }
    if (micro_batches > most_own_micro_batches || slices > most_stages || p > most_stages ||
        slices > p * most_own_chunks) {
      errors_.push_back({{file_, 1, 1},
                         fmt::format("{} ranks, {} stages and {} micro-batches", p, slices, micro_batches),
                         fmt::format("expected up to {}, {} ({} a rank) and {}", most_stages, most_stages,
                                     most_own_chunks, most_own_micro_batches)});
      return false;
    }
    const bool all_read = std::find(unread_.begin(), unread_.end(), true) == unread_.end();
    if (slices % p != 0 && all_read) {
      const Location where = last == nullptr ? Location{file_, 1, 1} : Location{file_, last->line, last->column};
      errors_.push_back({where, fmt::format("{} stages of the model on {} ranks", slices, p),
                         "expected as many on each, numbered from 0"});
      return false;
    }
    OwnSchedule& own = written_.own;
    own.micro_batches = std::max(micro_batches, 1);
    own.chunks = std::max((slices + p - 1) / p, 1);
    own.in_v = own.chunks == 2 && (p == 1 || misplaced(false) != nullptr);
    if (const Action* wrong = misplaced(own.in_v)) {
      const Turn& turn = wrong->turns.front();
      errors_.push_back({{file_, wrong->line, wrong->column},
                         fmt::format("stage {} of the model on rank {}", turn.chunk, row_of(*wrong)),
                         own.in_v ? "expected stages r, p + r (round), or r and 2p - 1 - r (in a V) on rank r of p"
                                  : "expected stages r, p + r, 2p + r ... on rank r of p"});
      return false;
    }
    const bool splits = std::any_of(rows_.begin(), rows_.end(), [](const std::vector<Action>& row) {
      return std::any_of(row.begin(), row.end(), [](const Action& action) {
        return std::any_of(action.turns.begin(), action.turns.end(),
                           [](const Turn& t) { return t.weights || (t.backward && !t.whole); });
      });
    });
    for (int r = 0; r < p; ++r) {
      written_.add_stage(r + 1, 1);
      for (Action& action : rows_[static_cast<std::size_t>(r)]) {
        for (Turn& turn : action.turns) {
          turn.chunk = turn.chunk == r ? 0 : own.in_v ? 1 : turn.chunk / p;
          turn.whole = turn.whole && splits;
        }
        written_.add(action.turns, action.line, action.column);
      }
      if (unread_[static_cast<std::size_t>(r)]) written_.add_unread();
    }
    return true;
  }

  int row_of(const Action& of) const {
    for (std::size_t r = 0; r < rows_.size(); ++r)
      for (const Action& action : rows_[r])
        if (&action == &of) return static_cast<int>(r);
    return 0;
  }

  /// The first action of a stage that is not its rank's.
  const Action* misplaced(bool in_v) const {
    const int p = static_cast<int>(rows_.size());
    for (int r = 0; r < p; ++r)
      for (const Action& action : rows_[static_cast<std::size_t>(r)])
        for (const Turn& turn : action.turns)
          if (in_v ? turn.chunk != r && turn.chunk != 2 * p - 1 - r : turn.chunk % p != r) return &action;
    return nullptr;
  }

  void complain(int column, std::string message, std::string hint) {
    errors_.push_back({{file_, line_, column}, std::move(message), std::move(hint)});
  }

  std::string_view rest_;
  std::string file_;
  int line_ = 0;
  std::vector<std::vector<Action>> rows_;
  std::vector<bool> unread_;  ///< by row: some of it is no action
  bool rows_known_ = true;    ///< each line is a row
  Written written_;
  Diagnostics errors_;
};

/// Of a file's name what may be a name.
std::string name_of_file(const std::string& file) {
  std::string stem = file.substr(file.rfind('/') == std::string::npos ? 0 : file.rfind('/') + 1);
  if (const std::size_t dot = stem.rfind('.'); dot != std::string::npos && dot > 0) stem.resize(dot);
  for (char& c : stem)
    if (std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.").find(c) ==
        std::string_view::npos)
      c = '-';
  if (stem.empty() || stem.front() == '.') stem.insert(0, "schedule");
  constexpr std::size_t longest_name = 64;
  if (stem.size() > longest_name) stem.resize(longest_name);
  return stem;
}

}  // namespace

bool is_schedule_file(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".yaml") || text.ends_with(".yml") ||
         text.ends_with(".csv");
}

}  // namespace collcast::input

namespace collcast {

Result<OwnSchedule> parse_schedule(std::string_view text, std::string_view file_name) {
  const std::string file(file_name);
  if (file.ends_with(".csv")) {
    if (Diagnostics wrong = check_encoding(text, file); !wrong.empty()) return wrong;
    Result<OwnSchedule> read = input::Csv(text, file).read();
    if (!read) return read;
    OwnSchedule own = std::move(read).value();
    own.name = input::name_of_file(file);
    return own;
  }
  const Result<input::Node> tree = input::parse_yaml(text, file);
  if (!tree) return tree.errors();
  input::Reader reader;
  reader.error(repeated_keys(*tree));
  OwnSchedule own = input::read_schedule(reader, *tree, file);
  if (!reader.ok()) return reader.take();
  return own;
}

namespace {

std::string line_of_turns(const std::vector<Turn>& order, int chunks) {
  constexpr std::size_t width = 110;
  std::string out, line;
  for (std::size_t n = 0; n < order.size(); ++n) {
    std::string turn = to_text(order[n], chunks);
    if (order[n].with_next && n + 1 < order.size()) turn += "+" + to_text(order[++n], chunks);
    if (n + 1 < order.size()) turn += ",";
    if (line.size() + turn.size() > width) {
      out += line + "\n    ";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + turn;
  }
  return out + line;
}

/// As PyTorch has it: `splits`, so that a backward without weight gradients has a letter of its own.
std::string action(const OwnSchedule& own, std::size_t stage, const Turn& turn, bool splits) {
  const std::size_t p = own.orders.size(), chunk = static_cast<std::size_t>(turn.chunk);
  const std::size_t slice = own.in_v && chunk == 1 ? 2 * p - 1 - stage : chunk * p + stage;
  const char* what = turn.weights ? "W" : !turn.backward ? "F" : splits && !turn.whole ? "I" : "B";
  return fmt::format("{}{}{}", slice, what, turn.micro_batch);
}

}  // namespace

std::string schedule_text(const OwnSchedule& own, const std::vector<std::string>& remarks) {
  std::string out;
  for (const std::string& remark : remarks) out += "# " + remark + "\n";
  out += fmt::format("schema: collcast.schedule.v1\nname: {}\nmicro_batches: {}\n", own.name, own.micro_batches);
  if (own.in_v)
    out += "placement: v\n";
  else if (own.chunks > 1)
    out += fmt::format("chunks: {}\n", own.chunks);
  out += "stages:\n";
  for (const std::vector<Turn>& order : own.orders) out += "  - [" + line_of_turns(order, own.chunks) + "]\n";
  return out;
}

std::string schedule_csv(const OwnSchedule& own) {
  const bool splits = own.splits();
  std::string out;
  for (std::size_t i = 0; i < own.orders.size(); ++i) {
    const std::vector<Turn>& order = own.orders[i];
    for (std::size_t n = 0; n < order.size(); ++n) {
      if (n > 0) out += ",";
      if (order[n].with_next && n + 1 < order.size()) {
        out +=
            fmt::format("({};{})OVERLAP_F_B", action(own, i, order[n], splits), action(own, i, order[n + 1], splits));
        ++n;
      } else {
        out += action(own, i, order[n], splits);
      }
    }
    out += "\n";
  }
  return out;
}

}  // namespace collcast
