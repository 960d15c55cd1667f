// JSON -> tree by nlohmann's SAX interface, which neither recurses nor throws.
//
// The library gives no positions, so its input iterator counts what it has consumed: the start of a token is
// the first character after the token before it that is not blank, comma or colon.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <iterator>

#include "scenario/parse.hpp"

namespace collcast::input {

namespace {

using nlohmann::json;

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(std::string_view text, std::size_t at, std::size_t* furthest)
      : text_(text), at_(at), furthest_(furthest) {}
  const char& operator*() const { return text_[at_]; }
  CountingIterator& operator++() {
    ++at_;
    *furthest_ = at_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  std::string_view text_;
  std::size_t at_;
  std::size_t* furthest_;
};

/// The library's remark, the piece of the file that it quotes cut to a line's length.
std::string readable(const std::string& remark) {
  constexpr std::string_view quoting = "; last read: '";
  const std::size_t quote = remark.find(quoting);
  if (quote == std::string::npos) return remark;
  const std::string quoted = remark.substr(quote + quoting.size());
  return fmt::format("{}, at '{}'", remark.substr(0, quote), shown(quoted.substr(0, quoted.rfind('\''))));
}

class TreeBuilder : public nlohmann::json_sax<json> {
 public:
  TreeBuilder(std::string_view text, const std::string& file, const std::size_t* consumed)
      : text_(text), name_(file), file_(std::make_shared<const std::string>(file)), consumed_(consumed) {}

  Node root;
  Diagnostics errors;

  bool null() override { return add(token(Node::Kind::null)); }
  bool boolean(bool value) override { return scalar(value ? "true" : "false", false); }
  bool number_integer(std::int64_t value) override { return scalar(std::to_string(value), false); }
  bool number_unsigned(std::uint64_t value) override { return scalar(std::to_string(value), false); }
  bool number_float(double, const std::string& spelled) override { return scalar(spelled, false); }
  bool string(std::string& value) override { return scalar(value, true); }
  bool binary(json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Node::Kind::map); }
  bool start_array(std::size_t) override { return open(Node::Kind::list); }
  bool end_array() override { return close(); }
  bool end_object() override {
    check_keys(open_.back(), errors);
    return close();
  }
  bool key(std::string& value) override {
    const Node here = token(Node::Kind::scalar);
    open_.back().entries.push_back({value, here.at, Node{}});
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    const std::string what = e.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ...": the tail says it.
    const bool unexpected = what.find("unexpected") != std::string::npos;
    const Location where = place_at(text_,
                                    unexpected     ? start_of_token(position)
                                    : position > 0 ? position - 1
                                                   : 0,
                                    name_);
    if (what.find("unexpected end of input") != std::string::npos) {
      errors.push_back(
          {where, "the JSON ends before it is complete", "is the file whole? A quote, bracket or brace is still open"});
      return false;
    }
    const std::size_t tail = what.find("syntax error");
    errors.push_back(
        {where, fmt::format("this is not JSON: {}", readable(tail == std::string::npos ? what : what.substr(tail))),
         "check quotes, commas and brackets here and just above"});
    return false;
  }

 private:
  /// Of the token that ends at `position` and fits nowhere: behind the last one that did, and at most a comma or colon.
  std::size_t start_of_token(std::size_t position) const {
    const std::size_t end = position > 0 ? position - 1 : 0;
    std::size_t start = text_.find_first_not_of(" \t\r\n", std::min(last_end_, text_.size()));
    if (start < end && (text_[start] == ',' || text_[start] == ':'))
      start = text_.find_first_not_of(" \t\r\n", start + 1);
    constexpr std::string_view punctuation = ",:]}";
    return start < end && punctuation.find(text_[start]) == std::string_view::npos ? start : end;
  }
  /// A node at the token the library has just read.
  Node token(Node::Kind kind) {
    std::size_t start = std::min(last_end_, text_.size());
    start = std::min(text_.find_first_not_of(" \t\r\n,:", start), text_.size());
    while (located_ < start) {
      if (text_[located_++] == '\n') {
        ++line_;
        line_start_ = located_;
      }
    }
    last_end_ = *consumed_;
    Node node;
    node.kind = kind;
    node.at = {file_, line_, static_cast<int>(start - line_start_) + 1};
    return node;
  }
  bool scalar(std::string text, bool quoted) {
    Node node = token(Node::Kind::scalar);
    node.text = std::move(text);
    node.quoted = quoted;
    return add(std::move(node));
  }
  bool open(Node::Kind kind) {
    Node node = token(kind);
    if (open_.size() >= static_cast<std::size_t>(max_depth)) {
      errors.push_back({node.at.location(), "too deeply nested", fmt::format("up to {} levels are read", max_depth)});
      return false;
    }
    open_.push_back(std::move(node));
    return true;
  }
  bool close() {
    last_end_ = *consumed_;
    Node done = std::move(open_.back());
    open_.pop_back();
    return add(std::move(done));
  }
  bool add(Node node) {
    if (open_.empty()) {
      root = std::move(node);
    } else if (open_.back().kind == Node::Kind::list) {
      open_.back().items.push_back(std::move(node));
    } else {
      open_.back().entries.back().value = std::move(node);
    }
    return true;
  }

  std::string_view text_;
  std::string name_;
  std::shared_ptr<const std::string> file_;
  const std::size_t* consumed_;
  std::size_t last_end_ = 0;
  std::size_t located_ = 0, line_start_ = 0;
  int line_ = 1;
  std::vector<Node> open_;
};

}  // namespace

Result<Node> parse_json(std::string_view text, const std::string& file) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (Diagnostics errors = check_text(text, file, false); !errors.empty()) return errors;
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return Diagnostic{{file, 1, 1}, "the file is empty", "expected a model's config.json"};
  std::size_t consumed = 0;
  TreeBuilder builder(text, file, &consumed);
  json::sax_parse(CountingIterator(text, 0, &consumed), CountingIterator(text, text.size(), &consumed), &builder);
  if (!builder.errors.empty()) {
    append(builder.errors, repeated_keys(builder.root));
    return std::move(builder.errors);
  }
  return std::move(builder.root);
}

}  // namespace collcast::input
