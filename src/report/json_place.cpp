#include "report/json_place.hpp"

#include <algorithm>

namespace collcast {

namespace {

constexpr std::string_view blanks = " \t\r\n";

/// Steps over the tokens of a text that has been parsed before.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    skip_blanks();
  }
  std::size_t at() const { return at_; }

  /// Goes to the value of `key` in the object or array here; false if there is none.
  bool enter(const std::string& key) {
    const char open = peek();
    if (open != '{' && open != '[') return false;
    next();
    for (std::size_t index = 0; peek() != '}' && peek() != ']'; ++index) {
      std::string name = std::to_string(index);
      if (open == '{') {
        name = skip_string();
        next();  // the colon
      }
      if (name == key) return true;
      skip_value();
      if (peek() == ',') next();
    }
    return false;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '}'; }
  void skip_blanks() { at_ = std::min(text_.find_first_not_of(blanks, at_), text_.size()); }
  void next() {
    ++at_;
    skip_blanks();
  }
  /// What is between the quotes, as it is written.
  std::string skip_string() {
    const std::size_t start = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    std::string inside(text_.substr(start, at_ - start));
    next();
    return inside;
  }
  void skip_value() {
    int depth = 0;
    do {
      const char c = peek();
      if (c == '"') {
        skip_string();
      } else if (c == '{' || c == '[' || c == '}' || c == ']') {
        depth += c == '{' || c == '[' ? 1 : -1;
        next();
      } else if (c == ',' || c == ':') {
        next();
      } else {
        at_ = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
        skip_blanks();
      }
    } while (depth > 0 && at_ < text_.size());
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Location place_of(std::string_view text, const std::vector<std::string>& path, const std::string& file) {
  Walker walker(text);
  for (const std::string& key : path) {
    const Walker before = walker;
    if (walker.enter(key)) continue;
    walker = before;
    break;
  }
  return place_at(text, walker.at(), file);
}

std::optional<std::size_t> too_deep(std::string_view text, int most) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\')
        ++at;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > most) return at;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return std::nullopt;
}

}  // namespace collcast
