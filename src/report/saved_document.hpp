// A document being read back: its values by key, and what is wrong with them at their place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collcast/report/saved.hpp"
#include "report/document.hpp"

namespace collcast {

/// Names of strangers as they may be shown anywhere: on one line, control characters and changes of direction spelled
/// out, cut to `longest` bytes.
inline constexpr std::size_t line_length = 160, text_length = 4000;
std::string harmless(std::string_view text, std::size_t longest = line_length);

/// The text that a document came from, for places.
struct SavedText {
  std::string_view text;
  const std::string& file;
  Diagnostics errors;
};

/// One value of it.
class SavedValue {
 public:
  SavedValue(SavedText& text, const Json& value, std::vector<std::string> path = {})
      : text_(text), value_(value), path_(std::move(path)) {}

  bool has(const std::string& key) const {
    return value_.is_object() && value_.contains(key) && !value_[key].is_null();
  }
  const Json& json() const { return value_; }
  void error(std::string message, std::string hint = {}) const;
  SavedValue at(const std::string& key, const Json& value) const;
  /// At its `schema`, which no reader knows.
  void unknown_schema(const std::string& schema, std::string hint) const;

  /// Each of these says what is wrong, and then goes on with something empty.
  std::string text(const std::string& key) const;
  std::optional<double> number(const std::string& key) const;
  double required_number(const std::string& key) const;
  double positive_number(const std::string& key) const;
  SavedValue object(const std::string& key) const;
  std::vector<SavedValue> list(const std::string& key) const;

 private:
  const Json* find(const std::string& key, bool required) const;
  std::string path_text(const std::string& key) const;

  SavedText& text_;
  const Json& value_;
  std::vector<std::string> path_;
};

/// Puts the rows, facts, gates and warnings of a document into a result; one function per schema.
void read_step_rows(const SavedValue&, SavedResult&);
void read_sweep_rows(const SavedValue&, SavedResult&);
void read_collective_rows(const SavedValue&, SavedResult&);
void read_plan_rows(const SavedValue&, SavedResult&);
void read_validate_rows(const SavedValue&, SavedResult&);
void read_calibrate_rows(const SavedValue&, SavedResult&);

}  // namespace collcast
