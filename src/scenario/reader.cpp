#include "scenario/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <tuple>

#include "collcast/base/edit_distance.hpp"
#include "collcast/base/numbers.hpp"
#include "collcast/base/units.hpp"
#include "scenario/parse.hpp"

namespace collcast::input {

void Reader::error(const Place& at, std::string message, std::string hint) {
  errors_.push_back({at.location(), std::move(message), std::move(hint)});
}

void Reader::wrong(const Place& at, std::string message, std::string hint) {
  errors_.push_back({at.location(), std::move(message), std::move(hint), true});
}

void Reader::error(Diagnostic diagnostic) { errors_.push_back(std::move(diagnostic)); }

void Reader::error(const Diagnostics& diagnostics) {
  errors_.insert(errors_.end(), diagnostics.begin(), diagnostics.end());
}

Diagnostics Reader::take() {
  constexpr std::size_t most = 100;
  std::stable_sort(errors_.begin(), errors_.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.where.file, a.where.line, a.where.column) < std::tie(b.where.file, b.where.line, b.where.column);
  });
  if (errors_.size() > most) {
    const std::size_t more = errors_.size() - most;
    const Location last = errors_[most].where;
    errors_.resize(most);
    errors_.push_back({last, fmt::format("{} more errors", more), "correct the first ones and try again"});
  }
  return with_extending_files(std::move(errors_), files_);
}

bool Reader::is_required(const std::string& path) const {
  return std::any_of(known_.begin(), known_.end(), [&](const KnownKey& k) { return k.required && k.path == path; });
}

namespace {

/// "{tp:4}" is one key without a value to YAML.
std::string hint_of_unknown(const Entry& entry, const std::vector<std::string>& siblings) {
  const std::size_t colon = entry.key.find(':');
  if (colon == std::string::npos || entry.value.kind != Node::Kind::null) return expected_one_of(entry.key, siblings);
  const std::string key = entry.key.substr(0, colon), value = entry.key.substr(colon + 1);
  if (std::find(siblings.begin(), siblings.end(), key) == siblings.end()) return expected_one_of(key, siblings);
  return fmt::format("did you mean '{}: {}'? a blank follows the colon", key, shown(value));
}

}  // namespace

void Reader::unknown(const Entry& entry, const std::string& path, const std::vector<std::string>& siblings) {
  // Of a map that was set, a key is one as in a file; else the path itself leads nowhere.
  if (entry.value.set_by && !path.starts_with(*entry.value.set_by + ".")) {
    lost_.push_back({prefix_ + *entry.value.set_by, entry.at.location()});
    return;
  }
  // A key may have dots of its own.
  const bool is_below = path.size() > entry.key.size();
  const std::string in =
      is_below ? fmt::format(" in {}", shown(path.substr(0, path.size() - entry.key.size() - 1))) : "";
  wrong(entry.at, fmt::format("unknown key '{}'{}", shown(entry.key), in), hint_of_unknown(entry, siblings));
}

namespace {

/// Whether what two paths do not share is near in itself: the sections around a key, being the same, say nothing.
bool alike(std::string_view path, std::string_view other) {
  for (;;) {
    const std::size_t dot = path.find('.'), end = other.find('.');
    if (dot == std::string_view::npos || end == std::string_view::npos || path.substr(0, dot) != other.substr(0, end))
      return nearest_word(path, {std::string(other)}).has_value();
    path.remove_prefix(dot + 1);
    other.remove_prefix(end + 1);
  }
}

/// What of a path is behind as many parts as another has; empty: nothing.
std::string_view deeper_than(std::string_view path, std::string_view other) {
  for (auto dots = std::count(other.begin(), other.end(), '.') + 1; dots > 0; --dots) {
    const std::size_t dot = path.find('.', 1);
    if (dot == std::string_view::npos) return {};
    path.remove_prefix(dot);
  }
  return path;
}

}  // namespace

void Reader::finish() {
  std::vector<std::string> paths;
  for (const KnownKey& known : known_) paths.push_back(prefix_ + known.path);
  for (const Lost& lost : lost_) {
    std::string hint;
    std::vector<std::string> near_paths;
    for (const std::string& path : paths)
      if (alike(lost.path, path)) near_paths.push_back(path);
    // A part is misspelt that has others below it, which are known only where something is set there.
    if (near_paths.empty())
      for (const KnownKey& known : known_) {
        const std::string path = prefix_ + known.path;
        const std::string_view rest = deeper_than(lost.path, path);
        const std::string upto = lost.path.substr(0, lost.path.size() - rest.size());
        if (known.holds == Holds::map && !rest.empty() && !std::ranges::count(paths, upto) && alike(upto, path))
          near_paths.push_back(path + std::string(rest));
      }
    if (const auto near = nearest_word(lost.path, near_paths)) {
      hint = fmt::format("did you mean '{}'?", *near);
    } else {
      for (const std::string& path : paths) {
        if (path.ends_with("." + lost.path) && hint.empty()) hint = fmt::format("did you mean '{}'?", path);
      }
    }
    if (hint.empty()) hint = "docs/formats.md lists the keys; a path joins them with dots";
    errors_.push_back({lost.where, fmt::format("unknown path '{}'", shown(lost.path)), hint, true});
  }
  lost_.clear();
}

namespace {

std::string what_stands(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::list:
      return "a list";
    case Node::Kind::map:
      return "a map";
    case Node::Kind::scalar:
      break;
  }
  return node.quoted ? fmt::format("the text \"{}\"", shown(node.text)) : fmt::format("'{}'", shown(node.text));
}

bool is_plain(const Node& node) { return node.kind == Node::Kind::scalar && !node.quoted; }

/// A quantity by one of base's parsers, within limits that keep every later product finite.
template <class T, class Parse, class Good>
bool read_quantity(Reader& reader, const Node& node, const std::string& path, T& out, Parse parse, Good good,
                   const std::string& expected) {
  std::string slip;  // after the ';' of what is expected: what is wrong with this one
  if (node.kind == Node::Kind::scalar) {
    const auto parsed = parse(node.text);
    if (parsed.ok && good(parsed.value)) {
      out = parsed.value;
      return true;
    }
    if (const std::size_t at = parsed.expected.find(';'); at != std::string::npos) slip = parsed.expected.substr(at);
  }
  mismatch(reader, node, path, expected + slip);
  return false;
}

}  // namespace

void mismatch(Reader& reader, const Node& node, const std::string& path, const std::string& expected) {
  reader.wrong(node.at, fmt::format("{} is {}", shown(path), what_stands(node)), "expected " + expected);
}

namespace {

/// Terminals act on these; a quoted \u001b brings one in. Bytes of UTF-8: 0xC2 0x80 to 0x9F are controls too.
bool has_controls(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F) return true;
    if (byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) return true;
  }
  return false;
}

}  // namespace

bool AsText::operator()(Reader& reader, const Node& node, const std::string& path, std::string& out) const {
  if (node.kind != Node::Kind::scalar || node.text.empty()) {
    mismatch(reader, node, path, expected());
    return false;
  }
  if (has_controls(node.text)) {
    mismatch(reader, node, path, expected() + " without control characters");
    return false;
  }
  out = node.text;
  return true;
}

bool AsName::operator()(Reader& reader, const Node& node, const std::string& path, std::string& out) const {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  const std::string& text = node.text;
  if (node.kind != Node::Kind::scalar || text.empty() || text.size() > 64 || text.front() == '.' ||
      !std::all_of(text.begin(), text.end(), allowed)) {
    mismatch(reader, node, path, expected());
    return false;
  }
  out = text;
  return true;
}

bool AsTruth::operator()(Reader& reader, const Node& node, const std::string& path, bool& out) const {
  if (is_plain(node) && (node.text == "true" || node.text == "false")) {
    out = node.text == "true";
    return true;
  }
  mismatch(reader, node, path, expected());
  return false;
}

std::string AsCount::expected() const { return fmt::format("a whole number from {} to {}, without unit", least, most); }

bool AsCount::operator()(Reader& reader, const Node& node, const std::string& path, int& out) const {
  const auto value = to_number<int>(node.text);
  if (is_plain(node) && value && *value >= least && *value <= most) {
    out = *value;
    return true;
  }
  mismatch(reader, node, path, expected());
  return false;
}

std::string AsNumber::expected() const {
  return fmt::format("a number {} {} {} {}, without unit", above ? "above" : "from", least,
                     above   ? below ? "and below" : "and up to"
                     : below ? "to below"
                             : "to",
                     most);
}

bool AsNumber::operator()(Reader& reader, const Node& node, const std::string& path, double& out) const {
  const auto value = to_number<double>(node.text);
  const bool in_range = value && (above ? *value > least : *value >= least) && (below ? *value < most : *value <= most);
  if (is_plain(node) && in_range) {
    out = *value;
    return true;
  }
  mismatch(reader, node, path, expected());
  return false;
}

std::string AsBytes::expected() const {
  return "a size from 1B to 4 EiB with its unit, such as 8B, 256KiB, 1GB (10^9) or 1GiB (2^30)";
}
bool AsBytes::operator()(Reader& reader, const Node& node, const std::string& path, Bytes& out) const {
  return read_quantity(
      reader, node, path, out, [](const std::string& t) { return parse_bytes(t); },
      [](Bytes b) { return b > Bytes(0); }, expected());
}

std::string AsBandwidth::expected() const { return parse_bandwidth("").expected; }
bool AsBandwidth::operator()(Reader& reader, const Node& node, const std::string& path, Bandwidth& out) const {
  return read_quantity(
      reader, node, path, out, [](const std::string& t) { return parse_bandwidth(t); },
      [](Bandwidth b) { return b >= Bandwidth(1) && b <= Bandwidth(1e18); }, expected() + ", from 1B/s to 1000000TB/s");
}

std::string AsTime::expected() const { return parse_seconds("").expected; }
bool AsTime::operator()(Reader& reader, const Node& node, const std::string& path, Seconds& out) const {
  return read_quantity(
      reader, node, path, out, [](const std::string& t) { return parse_seconds(t); },
      [](Seconds s) { return s <= Seconds(1e6); }, expected() + ", up to 1000000s");
}

std::string AsFlopRate::expected() const { return parse_flop_rate("").expected; }
bool AsFlopRate::operator()(Reader& reader, const Node& node, const std::string& path, FlopRate& out) const {
  return read_quantity(
      reader, node, path, out, [](const std::string& t) { return parse_flop_rate(t); },
      [](FlopRate f) { return f >= FlopRate(1) && f <= FlopRate(1e21); }, expected() + ", up to 1000000PFLOP/s");
}

std::string AsPercent::expected() const { return parse_percent("").expected; }
bool AsPercent::operator()(Reader& reader, const Node& node, const std::string& path, double& out) const {
  const std::string from = least > 1e-8 ? fmt::format("{:.4g}%", 100 * least) : "0.000001%";
  return read_quantity(
      reader, node, path, out, [](const std::string& t) { return parse_percent(t); },
      [this](double share) { return share >= least && share <= 1; }, expected() + ", from " + from + " to 100%");
}

std::string AsTokenRate::expected() const { return parse_token_rate("").expected; }
bool AsTokenRate::operator()(Reader& reader, const Node& node, const std::string& path, double& out) const {
  return read_quantity(
      reader, node, path, out, [](const std::string& t) { return parse_token_rate(t); },
      [](double rate) { return rate <= 1e12; }, expected() + ", up to 1000000000000tokens/s");
}

std::string word_expected(const std::vector<std::string>& words) {
  return words.size() == 1 ? fmt::format("'{}'", words.front()) : fmt::format("one of: {}", fmt::join(words, ", "));
}

int read_word(Reader& reader, const Node& node, const std::string& path, const std::vector<std::string>& words) {
  if (node.kind == Node::Kind::scalar) {
    const auto found = std::find(words.begin(), words.end(), node.text);
    if (found != words.end()) return static_cast<int>(found - words.begin());
    reader.wrong(node.at, fmt::format("{} is '{}'", shown(path), shown(node.text)), expected_one_of(node.text, words));
    return -1;
  }
  mismatch(reader, node, path, word_expected(words));
  return -1;
}

namespace {

/// "[tp, pp, dp]" of "tp,pp,dp", words and numbers that stand without brackets; "[...]" of anything else.
std::string list_of(const Node& node) {
  constexpr std::size_t longest = 60;
  if (node.kind != Node::Kind::scalar || node.text.size() > longest) return "[...]";
  std::vector<std::string> elements(1);
  for (const char c : node.text) {
    if (c == ',')
      elements.emplace_back();
    else if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-')
      elements.back() += c;
    else if (c != ' ' || !elements.back().empty())
      return "[...]";
  }
  return std::ranges::any_of(elements, &std::string::empty) ? "[...]" : fmt::format("[{}]", fmt::join(elements, ", "));
}

}  // namespace

bool expect_list(Reader& reader, const Node& node, const std::string& path, int longest, bool of_values) {
  if (node.kind != Node::Kind::list) {
    mismatch(reader, node, path, "a list " + (of_values ? list_of(node) : "[...]"));
    return false;
  }
  if (node.items.size() > static_cast<std::size_t>(longest)) {
    reader.wrong(node.at, fmt::format("{} has {} elements", shown(path), node.items.size()),
                 fmt::format("expected up to {}", longest));
    return false;
  }
  return true;
}

Object::Object(Reader& reader, const Node& node, std::string path, Null null)
    : reader_(reader), node_(node), path_(std::move(path)), null_(null), valid_(node.kind == Node::Kind::map) {
  if (valid_) return;
  mismatch(reader_, node_, path_.empty() ? "the file" : path_, "a map of keys and values");
  reader_.spoil(path_);
}

std::string Object::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

bool Object::has(std::string_view key) const { return node_.find(key) != nullptr; }

namespace {

/// An entry whose key is probably a misspelling of `key`; nullptr: none is near enough. `others` are right as they are.
const Entry* misspelt(const Node& node, std::string_view key, const std::vector<std::string>& others) {
  const std::size_t most = std::max<std::size_t>(1, key.size() / 5);
  for (const Entry& entry : node.entries) {
    if (entry.key == key || entry.key.size() > key.size() + most) continue;
    if (std::find(others.begin(), others.end(), entry.key) != others.end()) continue;
    if (edit_distance(entry.key, key) <= most) return &entry;
  }
  return nullptr;
}

}  // namespace

const Entry* Object::misnamed(std::string_view key) const {
  for (const auto& [known, names] : also_called_) {
    if (known != key) continue;
    for (const Entry& entry : node_.entries)
      if (std::ranges::find(names, entry.key) != names.end() && std::ranges::find(keys_, entry.key) == keys_.end())
        return &entry;
  }
  return misspelt(node_, key, keys_);
}

const Object::Elsewhere* Object::elsewhere(std::string_view key) const {
  const auto found = std::ranges::find(elsewhere_, key, &Elsewhere::key);
  return found == elsewhere_.end() ? nullptr : &*found;
}

const Object::Elsewhere* Object::instead(std::string_view key) const {
  const Node* here = valid_ ? node_.find(key) : nullptr;
  const bool lacking = here == nullptr || (here->kind == Node::Kind::null && null_ == Null::is_missing);
  return lacking ? elsewhere(key) : nullptr;
}

bool Object::is_elsewhere(std::string_view key) const {
  const Elsewhere* other = instead(key);
  return other != nullptr && other->node != nullptr;
}

std::string Object::or_elsewhere(std::string_view key) const {
  const Elsewhere* other = elsewhere(key);
  return other == nullptr ? std::string() : fmt::format("; or give '{}' in the scenario", other->path);
}

void Object::missing(std::string_view key, bool required, const std::string& expected) {
  // Where other keys are errors too, finish() says what is misspelt.
  const Entry* near = null_ == Null::is_missing ? misnamed(key) : nullptr;
  if (required) {
    reader_.error(
        node_.at, fmt::format("required key '{}' is missing{}", key, path_.empty() ? "" : " in " + shown(path_)),
        (near == nullptr ? "" : fmt::format("is '{}' ({}) meant? ", shown(near->key), to_text(near->at.location()))) +
            "expected " + expected + or_elsewhere(key));
    reader_.spoil(path_of(key));
  } else if (near != nullptr && reader_.good(path_of(key))) {
    reader_.warn({near->at.location(), fmt::format("key '{}' is not read", shown(near->key)),
                  fmt::format("did you mean '{}'? it is absent and has its default", key)});
  }
}

const Node* Object::look(std::string_view key, Holds holds, bool required, const std::string& expected) {
  reader_.ask(path_of(key), holds, required);
  keys_.emplace_back(key);
  if (!valid_) return nullptr;
  const Node* found = node_.find(key);
  bool null = found != nullptr && found->kind == Node::Kind::null && null_ == Null::is_missing;
  if (is_elsewhere(key)) {
    found = elsewhere(key)->node;
    null = false;
  }
  if (const Elsewhere* other = instead(key); required && other != nullptr && other->is_wrong) {
    reader_.spoil(path_of(key));
    return nullptr;
  }
  if (null && required && !reader_.parts_only()) {
    reader_.error(found->at,
                  fmt::format("required key '{}' is null{}", key, path_.empty() ? "" : " in " + shown(path_)),
                  "expected " + expected + or_elsewhere(key));
    reader_.spoil(path_of(key));
    return nullptr;
  }
  if (null) found = nullptr;
  if (found == nullptr && !reader_.parts_only()) missing(key, required, expected);
  if (found != nullptr) reader_.found(path_of(key), found->at.location());
  return found;
}

const Node& Object::section(std::string_view key) {
  const Node* found = optional_map(key);
  empty_.kind = Node::Kind::map;
  return found == nullptr ? empty_ : *found;
}

void Object::refuse(std::string_view key, const std::string& why, std::string_view because) {
  const auto entry =
      std::find_if(node_.entries.begin(), node_.entries.end(), [&](const Entry& e) { return e.key == key; });
  if (entry == node_.entries.end()) return;
  keys_.emplace_back(key);
  const std::string said = fmt::format("'{}'", shown(path_of(key)));
  const Node* cause = because.empty() ? nullptr : node_.find(because);
  const Location there = entry->at.location();
  const int away = depth(reader_.files(), there);
  if (cause == nullptr || depth(reader_.files(), cause->at.location()) >= away)
    return reader_.error(entry->at, fmt::format("{} has no meaning here: {}", said, why), "remove it");
  const std::string leave = fmt::format("leave out '{}' ({})", shown(path_of(because)), to_text(cause->at.location()));
  reader_.error(cause->at, fmt::format("{} ({}) has no meaning here: {}", said, to_text(there), why),
                away == 0 ? fmt::format("{}, or remove {} from {}", leave, said, there.file)
                          : fmt::format("it comes from a base, from which nothing can be taken away: {}, or copy {} "
                                        "and change the copy instead of 'extends'",
                                        leave, there.file));
}

std::vector<std::string> Object::meant_by(std::string_view misspelling) const {
  for (const auto& [known, names] : also_called_)
    if (!has(known) && std::find(names.begin(), names.end(), misspelling) != names.end()) return {known};
  std::vector<std::string> absent, required;
  for (const std::string& key : keys_) {
    if (has(key)) continue;
    absent.push_back(key);
    if (reader_.is_required(path_of(key))) required.push_back(key);
  }
  if (absent.empty()) return keys_;
  // Of words that are as near, the one that is missed comes first; so does one that is cut short, where it could be
  // others.
  const auto near = nearest_word(misspelling, absent), missed = nearest_word(misspelling, required);
  if (missed && (!near || edit_distance(misspelling, *missed) <= edit_distance(misspelling, *near))) {
    const auto at = std::find(absent.begin(), absent.end(), *missed);
    std::rotate(absent.begin(), at, at + 1);
  }
  return absent;
}

void Object::finish() {
  for (const Entry& entry : node_.entries) {
    if (std::find(keys_.begin(), keys_.end(), entry.key) == keys_.end())
      reader_.unknown(entry, path_of(entry.key), meant_by(entry.key));
  }
}

}  // namespace collcast::input
