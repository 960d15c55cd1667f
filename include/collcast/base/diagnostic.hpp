// What is wrong with the user's input, and Result: a value or every reason why there is none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collcast/base/check.hpp"

namespace collcast {

/// A place in an input. `line` and `column` are 1-based; 0 means unknown. `file` is the name as the
/// user gave it, or "command line".
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
};

struct Diagnostic {
  Location where;
  std::string message;  ///< what is wrong, with the value that was given
  std::string hint;     ///< what was expected, or the nearest right word; may be empty
  /// Nothing beside it can make it right: no value of its key, no key at all, no file.
  bool in_itself = false;
};
using Diagnostics = std::vector<Diagnostic>;

void append(Diagnostics&, const Diagnostics& more);

/// "file:line:column", or the file alone.
std::string to_text(const Location&);

/// "file:line:column: error: message\n    hint: ..." per diagnostic, in order.
std::string to_text(const Diagnostics&);

/// "message; message": where there are no places.
std::string messages(const Diagnostics&);

/// A T, or every Diagnostic that stood in its way.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Diagnostics errors) : errors_(std::move(errors)) {
    check(!errors_.empty(), "a failed Result names at least one reason");
  }
  Result(Diagnostic error) { errors_.push_back(std::move(error)); }

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const T& value() const& {
    check(ok(), "value() of a failed Result");
    return *value_;
  }
  T value() && {
    check(ok(), "value() of a failed Result");
    return std::move(*value_);
  }
  const T& operator*() const& { return value(); }
  const T* operator->() const { return &value(); }
  const Diagnostics& errors() const { return errors_; }

 private:
  std::optional<T> value_;
  Diagnostics errors_;
};

/// The word of `known` nearest to `word` by edit distance, if near enough to be a likely typo.
std::optional<std::string> nearest_word(std::string_view word, const std::vector<std::string>& known);

/// "did you mean 'x'? " + "expected one of: a, b, c" for an unknown word. Of more than twenty known words the first are
/// listed, or with a likely typo none.
std::string expected_one_of(std::string_view word, const std::vector<std::string>& known);

}  // namespace collcast
