// A typed reading of a tree: which keys a map has, what each holds, and every error at once.
//
// A file format is said by the calls that read it. What was asked for is remembered, so that a misspelt path
// finds its nearest right one and tests can walk through every key of a format.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collcast/base/origins.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/topology/spec.hpp"
#include "scenario/tree.hpp"

namespace collcast::input {

/// No count of a file is larger: products of two still fit 64 bits, sums of a few fit an int.
inline constexpr int max_count = 10'000'000;

enum class Holds {
  text,
  name,
  word,
  truth,
  count,
  number,
  bytes,
  bandwidth,
  time,
  flop_rate,
  percent,
  token_rate,
  list,
  map
};

/// A key that a format has, as it was asked for while reading.
struct KnownKey {
  std::string path;
  Holds holds;
  bool required;
};

class Reader {
 public:
  /// `prefix` stands before every path as users write it in settings ("topology.").
  explicit Reader(std::string prefix = {}) : prefix_(std::move(prefix)) {}

  void error(const Place& at, std::string message, std::string hint = {});
  /// What nothing beside it can make right.
  void wrong(const Place& at, std::string message, std::string hint = {});
  void error(Diagnostic diagnostic);
  void error(const Diagnostics& diagnostics);
  bool ok() const { return errors_.empty(); }
  /// What is probably a slip, though it may be meant.
  void warn(Diagnostic diagnostic) { warnings_.push_back(std::move(diagnostic)); }
  const Diagnostics& warnings() const { return warnings_; }
  /// By place; a hundred at most.
  Diagnostics take();

  /// The file and what it builds on.
  void reads(std::vector<SourceFile> files) { files_ = std::move(files); }
  const std::vector<SourceFile>& files() const { return files_; }
  /// What the file builds on cannot be had: a missing key says nothing.
  void expect_parts_only() { parts_only_ = true; }
  bool parts_only() const { return parts_only_; }

  /// Where the value of a path stands; the last word counts.
  void found(const std::string& path, const Location& where) { origins_.set(prefix_ + path, where); }
  void found(const Origins& more) { origins_.add(more); }
  /// The value of a path is missing or wrong, which has been said.
  void spoil(const std::string& path) { origins_.spoil(prefix_ + path); }
  bool good(const std::string& path) const { return origins_.good(prefix_ + path); }
  const Origins& origins() const { return origins_; }

  void ask(std::string path, Holds holds, bool required) { known_.push_back({std::move(path), holds, required}); }
  const std::vector<KnownKey>& known() const { return known_; }
  bool is_required(const std::string& path) const;
  /// An entry that nothing asked for. `siblings` are the keys that its map may have.
  void unknown(const Entry&, const std::string& path, const std::vector<std::string>& siblings);
  /// Settings whose path leads nowhere; once everything has been read, so that all paths are known.
  void finish();

 private:
  std::string prefix_;
  bool parts_only_ = false;
  std::vector<SourceFile> files_;
  Diagnostics errors_, warnings_;
  Origins origins_;
  std::vector<KnownKey> known_;
  struct Lost {
    std::string path;
    Location where;
  };
  std::vector<Lost> lost_;
};

/// What may stand at a key: each `As...` reads one node into `out`, or says what was expected instead.
struct AsText {
  static constexpr Holds holds = Holds::text;
  bool operator()(Reader&, const Node&, const std::string& path, std::string& out) const;
  std::string expected() const { return "a line of text"; }
};
/// Letters, digits, '-', '_' and '.': what can be a file, a device or a task.
struct AsName {
  static constexpr Holds holds = Holds::name;
  bool operator()(Reader&, const Node&, const std::string& path, std::string& out) const;
  std::string expected() const { return "a name of letters, digits, '-', '_' and '.'"; }
};
struct AsTruth {
  static constexpr Holds holds = Holds::truth;
  bool operator()(Reader&, const Node&, const std::string& path, bool& out) const;
  std::string expected() const { return "true or false"; }
};
struct AsCount {
  static constexpr Holds holds = Holds::count;
  int least = 1;
  int most = max_count;
  bool operator()(Reader&, const Node&, const std::string& path, int& out) const;
  std::string expected() const;
};
/// A plain number in [least, most], or in (least, most] where `above`, or below most where `below`.
struct AsNumber {
  static constexpr Holds holds = Holds::number;
  double least = 0;
  double most = 1;
  bool above = false;
  bool below = false;
  bool operator()(Reader&, const Node&, const std::string& path, double& out) const;
  std::string expected() const;
};
struct AsBytes {
  static constexpr Holds holds = Holds::bytes;
  bool operator()(Reader&, const Node&, const std::string& path, Bytes& out) const;
  std::string expected() const;
};
struct AsBandwidth {
  static constexpr Holds holds = Holds::bandwidth;
  bool operator()(Reader&, const Node&, const std::string& path, Bandwidth& out) const;
  std::string expected() const;
};
struct AsTime {
  static constexpr Holds holds = Holds::time;
  bool operator()(Reader&, const Node&, const std::string& path, Seconds& out) const;
  std::string expected() const;
};
struct AsFlopRate {
  static constexpr Holds holds = Holds::flop_rate;
  bool operator()(Reader&, const Node&, const std::string& path, FlopRate& out) const;
  std::string expected() const;
};

/// "40%": 0.4.
struct AsPercent {
  double least = 1e-8;
  static constexpr Holds holds = Holds::percent;
  bool operator()(Reader&, const Node&, const std::string& path, double& out) const;
  std::string expected() const;
};
struct AsTokenRate {
  static constexpr Holds holds = Holds::token_rate;
  bool operator()(Reader&, const Node&, const std::string& path, double& out) const;
  std::string expected() const;
};

std::string word_expected(const std::vector<std::string>& words);
/// Index among `words`; -1 after saying what was expected.
int read_word(Reader&, const Node&, const std::string& path, const std::vector<std::string>& words);

/// One of some words, each standing for a value.
template <class T>
struct AsWord {
  static constexpr Holds holds = Holds::word;
  std::vector<std::string> words;
  std::vector<T> values;
  bool operator()(Reader& reader, const Node& node, const std::string& path, T& out) const {
    const int index = read_word(reader, node, path, words);
    if (index >= 0) out = values[static_cast<std::size_t>(index)];
    return index >= 0;
  }
  std::string expected() const { return word_expected(words); }
};
/// The words are those that the values print as.
template <class T>
AsWord<T> as_word(std::vector<T> values) {
  AsWord<T> as;
  for (const T value : values) as.words.emplace_back(to_string(value));
  as.values = std::move(values);
  return as;
}

/// Any of two forms told apart by a word: `auto`, standing for `out = value`, or what `As` reads.
template <class As, class T>
struct OrWord {
  static constexpr Holds holds = As::holds;
  As as;
  std::string word;
  T value;
  bool operator()(Reader& reader, const Node& node, const std::string& path, T& out) const {
    if (node.kind == Node::Kind::scalar && node.text == word) {
      out = value;
      return true;
    }
    return as(reader, node, path, out);
  }
  std::string expected() const { return "'" + word + "' or " + as.expected(); }
};

/// `of_values`: not of lists or maps; where elements stand without a list, it is shown around them.
bool expect_list(Reader&, const Node&, const std::string& path, int longest, bool of_values = false);

/// A list of what `As` reads.
template <class As, class T>
struct AsList {
  static constexpr Holds holds = Holds::list;
  As as;
  int longest = 10'000;
  bool operator()(Reader& reader, const Node& node, const std::string& path, std::vector<T>& out) const {
    if (!expect_list(reader, node, path, longest, As::holds != Holds::list && As::holds != Holds::map)) return false;
    out.clear();
    bool good = true;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      T value{};
      good = as(reader, node.items[i], path + "." + std::to_string(i), value) && good;
      out.push_back(std::move(value));
    }
    return good;
  }
  std::string expected() const { return "a list [...], each " + as.expected(); }
};

/// Where a null counts as a missing key (JSON) and where it is an empty value (YAML).
enum class Null { is_empty, is_missing };

/// One map being read. Call finish() after the last key.
class Object {
 public:
  /// Says so if `node` is no map; then every key reads as absent without further errors.
  Object(Reader& reader, const Node& node, std::string path, Null null = Null::is_empty);

  /// True if the key was there and good.
  template <class T, class As>
  bool required(std::string_view key, T& out, const As& as) {
    const Node* node = look(key, As::holds, true, as.expected());
    return node != nullptr && read(*node, path_of(key), out, as);
  }
  template <class T, class As>
  bool optional(std::string_view key, T& out, const As& as) {
    const Node* node = look(key, As::holds, false, as.expected());
    return node != nullptr && read(*node, path_of(key), out, as);
  }
  /// The node of a map or list below, for its own reader.
  const Node* required_map(std::string_view key) { return look(key, Holds::map, true, "a map of keys and values"); }
  const Node* optional_map(std::string_view key) { return look(key, Holds::map, false, {}); }
  /// A section whose keys are all optional: the one below, or an empty one, so that its keys are known to settings.
  const Node& section(std::string_view key);
  const Node* required_list(std::string_view key) { return look(key, Holds::list, true, "a list [...]"); }
  const Node* optional_list(std::string_view key) { return look(key, Holds::list, false, {}); }
  /// A key that the format allows but not here; `why` says so, `because` is the key beside it that has it so. Where
  /// that one is nearer to the user it is reported there, and the hint says what can be done about either.
  void refuse(std::string_view key, const std::string& why, std::string_view because = {});

  /// Other names that people and other tools have for a key: one of them where the key is absent is a slip.
  void also_called(std::string_view key, std::vector<std::string> names) {
    also_called_.emplace_back(std::string(key), std::move(names));
  }
  /// The value of a key that this map lacks: `node`, or none; a hint says that it may stand at `path` of another file.
  void may_come_from(std::string key, std::string path, const Node* node) {
    elsewhere_.push_back({std::move(key), std::move(path), node, false});
  }
  /// Nor has the other file a value of it that can be read, which is said where that is read.
  void is_wrong_elsewhere(std::string key, std::string path) {
    elsewhere_.push_back({std::move(key), std::move(path), nullptr, true});
  }
  /// Whether this map lacks the key and its value is that of the other file.
  bool is_elsewhere(std::string_view key) const;
  /// Keys that are right as they are, though unread so far or, because of another error, for good.
  void allow(const std::vector<std::string>& keys) { keys_.insert(keys_.end(), keys.begin(), keys.end()); }

  bool has(std::string_view key) const;
  std::string path_of(std::string_view key) const;
  const Node& node() const { return node_; }
  /// Every key that was not asked for is an error.
  void finish();

 private:
  template <class T, class As>
  bool read(const Node& node, const std::string& path, T& out, const As& as) {
    const bool good = as(reader_, node, path, out);
    if (!good) reader_.spoil(path);
    return good;
  }
  const Node* look(std::string_view key, Holds holds, bool required, const std::string& expected);
  void missing(std::string_view key, bool required, const std::string& expected);
  /// The keys that one which is unknown may stand for, those that are there already left out.
  std::vector<std::string> meant_by(std::string_view misspelling) const;

  Reader& reader_;
  const Node& node_;
  std::string path_;
  Null null_;
  bool valid_;
  const Entry* misnamed(std::string_view key) const;

  struct Elsewhere {
    std::string key, path;
    const Node* node;
    bool is_wrong;
  };
  /// What the other file has of a key that this map lacks; nullptr: this map has it, or the other may not.
  const Elsewhere* instead(std::string_view key) const;
  const Elsewhere* elsewhere(std::string_view key) const;
  std::string or_elsewhere(std::string_view key) const;

  std::vector<std::string> keys_;
  std::vector<std::pair<std::string, std::vector<std::string>>> also_called_;
  std::vector<Elsewhere> elsewhere_;
  Node empty_;
};

/// "'x' is no count" in one form for all: what stands at `path`, and what was expected.
void mismatch(Reader&, const Node&, const std::string& path, const std::string& expected);

}  // namespace collcast::input
