// YAML -> tree by yaml-cpp's events; its Node class (shared, lazily failing) is not used.
//
// yaml-cpp recurses per level but the handler stops it at max_depth, long before its own limit of 500.
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <map>
#include <sstream>

#include "scenario/parse.hpp"

namespace collcast::input {

namespace {

/// Unwinds yaml-cpp once nothing more can be read; the reason is already among the errors.
struct Abandoned : std::exception {};

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const std::string& file)
      : text_(text), file_(std::make_shared<const std::string>(file)) {}

  Node root;
  Diagnostics errors;
  int documents = 0;

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents > 1)
      abandon(mark, "a second document begins here", "one file holds one document; remove '---' and what follows");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(at(mark, Node::Kind::null));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse_anchor(mark, 1);
    add(at(mark, Node::Kind::null));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    Node node = at(mark, Node::Kind::scalar);
    node.text = value;
    node.quoted = tag == "!";
    if (node.quoted) check_closed(mark);
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::map);
  }
  void OnMapEnd() override {
    check_keys(open_.back().node, errors);
    close();
  }

 private:
  struct Open {
    Node node;
    bool key_given = false;  ///< of a map: the next event is the value of its last entry
  };

  Location location(const YAML::Mark& mark) const { return {*file_, mark.line + 1, mark.column + 1}; }
  Node at(const YAML::Mark& mark, Node::Kind kind) const {
    Node node;
    node.kind = kind;
    node.at = {file_, mark.line + 1, mark.column + 1};
    return node;
  }
  [[noreturn]] void abandon(const YAML::Mark& mark, std::string message, std::string hint) {
    errors.push_back({location(mark), std::move(message), std::move(hint)});
    throw Abandoned();
  }
  /// Said once; the rest of the file is still looked through, an alias standing for nothing.
  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor == 0 || anchored_) return;
    anchored_ = true;
    errors.push_back(
        {location(mark), "anchors (&name) and aliases (*name) are not read", "write the value out, or use 'extends'"});
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!")
      abandon(mark, fmt::format("tag '{}' is not read", shown(tag)), "remove it");
  }
  /// yaml-cpp takes the end of the file for a closing quote.
  void check_closed(const YAML::Mark& mark) {
    const auto start = static_cast<std::size_t>(mark.pos);
    if (start >= text_.size() || (text_[start] != '\'' && text_[start] != '"')) return;
    const char quote = text_[start];
    std::size_t i = start + 1;
    while (i < text_.size() && text_[i] != quote) i += (quote == '"' && text_[i] == '\\') ? 2 : 1;
    if (i >= text_.size()) abandon(mark, "this quote is never closed", fmt::format("end the text with {}", quote));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Node::Kind kind) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (!open_.empty() && open_.back().node.kind == Node::Kind::map && !open_.back().key_given)
      abandon(mark, "a map or list stands where a key is expected", "keys are words; is a bracket left open?");
    if (open_.size() >= static_cast<std::size_t>(max_depth))
      abandon(mark, "too deeply nested", fmt::format("up to {} levels are read", max_depth));
    open_.push_back({at(mark, kind), false});
  }
  void close() {
    Node done = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(done));
  }
  void add(Node node) {
    if (open_.empty()) {
      root = std::move(node);
      return;
    }
    Open& top = open_.back();
    if (top.node.kind == Node::Kind::list) {
      top.node.items.push_back(std::move(node));
    } else if (top.key_given) {
      // Nothing after a colon is marked where the next key begins; it is missing here.
      if (node.kind == Node::Kind::null) node.at = top.node.entries.back().at;
      top.node.entries.back().value = std::move(node);
      top.key_given = false;
    } else {
      top.node.entries.push_back({std::move(node.text), node.at, Node{}});
      top.key_given = true;
    }
  }

  std::string_view text_;
  std::shared_ptr<const std::string> file_;
  std::vector<Open> open_;
  bool anchored_ = false;
};

void run_parser(std::string_view text, const std::string& file, TreeBuilder& builder) {
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) continue;
  } catch (const Abandoned&) {
    return;
  } catch (const YAML::Exception& e) {
    Location where{file};
    if (!e.mark.is_null()) where = {file, e.mark.line + 1, e.mark.column + 1};
    builder.errors.push_back({where, fmt::format("this is not YAML: {}", e.msg),
                              "check quotes, brackets, colons and indentation here and just above"});
  } catch (const std::exception& e) {
    builder.errors.push_back({{file}, fmt::format("this is not YAML: {}", e.what()), ""});
  }
}

}  // namespace

void check_keys(Node& map, Diagnostics& errors) {
  if (map.entries.size() > max_map_keys) {
    errors.push_back({map.at.location(), fmt::format("{} keys in one map", map.entries.size()),
                      fmt::format("up to {} are read", max_map_keys)});
    return;
  }
  std::map<std::string_view, int> first;  // line
  std::vector<bool> repeated;
  for (const Entry& entry : map.entries) {
    const auto [before, is_first] = first.try_emplace(entry.key, entry.at.line);
    repeated.push_back(!is_first);
    if (!is_first)
      map.repeated.push_back({entry.at.location(), fmt::format("key '{}' is given twice", shown(entry.key)),
                              fmt::format("it was first given in line {}", before->second)});
  }
  if (map.repeated.empty()) return;
  std::vector<Entry> kept;
  for (std::size_t i = 0; i < repeated.size(); ++i)
    if (!repeated[i]) kept.push_back(std::move(map.entries[i]));
  map.entries = std::move(kept);
}

Result<Node> parse_yaml(std::string_view text, const std::string& file) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (Diagnostics errors = check_text(text, file, true); !errors.empty()) return errors;
  TreeBuilder builder(text, file);
  run_parser(text, file, builder);
  if (!builder.errors.empty()) {
    append(builder.errors, repeated_keys(builder.root));
    return std::move(builder.errors);
  }
  if (builder.documents == 0 || builder.root.kind == Node::Kind::null)
    return Diagnostic{{file, 1, 1}, "the file is empty", "docs/formats.md shows what belongs in it"};
  return std::move(builder.root);
}

}  // namespace collcast::input
