// `path=value` of the command line and of what_if.
#include <fmt/format.h>

#include "scenario/files.hpp"
#include "scenario/parse.hpp"

namespace collcast {

Result<Override> parse_override(std::string_view text) {
  // Columns count in what the user typed, the option's name included.
  constexpr std::string_view option = "--set ";
  const std::string typed = std::string(option) + shown(text);
  const auto column = [&](std::size_t offset) {
    return Location{typed, 1, static_cast<int>(option.size() + offset) + 1};
  };
  const std::size_t equals = text.find('=');
  const char* hint = "expected path=value, such as network.link.bandwidth=400Gb/s";
  if (equals == std::string_view::npos)
    return Diagnostic{column(text.size()), fmt::format("'{}' has no '=' and sets nothing", shown(text)), hint};
  if (equals == 0) return Diagnostic{column(0), fmt::format("'{}' names no path", shown(text)), hint};
  if (equals + 1 == text.size())
    return Diagnostic{column(text.size()), fmt::format("'{}' gives no value", shown(text)), hint};
  return Override{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)), column(0),
                  column(equals + 1)};
}

namespace input {

namespace {

/// A line and column of the value alone, where the value begins at `start`.
template <class LineAndColumn>
void shift(LineAndColumn& at, const Location& start) {
  if (start.line == 0 || at.line == 0) {
    at.line = start.line;
    at.column = start.column;
    return;
  }
  if (at.line == 1) at.column += start.column - 1;
  at.line += start.line - 1;
}

void shift_all(Node& node, const Location& start) {
  shift(node.at, start);
  for (Node& item : node.items) shift_all(item, start);
  for (Entry& entry : node.entries) {
    shift(entry.at, start);
    shift_all(entry.value, start);
  }
}

Result<Setting> to_setting(const Override& given) {
  const Location& start = given.value_where.file.empty() ? given.where : given.value_where;
  Result<Node> parsed = parse_yaml(given.value, start.file);
  if (parsed)
    if (Diagnostics repeated = repeated_keys(*parsed); !repeated.empty()) parsed = std::move(repeated);
  if (parsed) {
    Node value = std::move(parsed).value();
    shift_all(value, start);
    return Setting{given.path, std::move(value), given.where};
  }
  Diagnostics errors = parsed.errors();
  for (Diagnostic& d : errors) {
    shift(d.where, start);
    d.message = fmt::format("value of '{}': {}", shown(given.path), d.message);
  }
  return errors;
}

}  // namespace

Result<std::vector<Setting>> to_settings(const std::vector<Override>& overrides) {
  std::vector<Setting> settings;
  Diagnostics errors;
  for (const Override& given : overrides) {
    Result<Setting> setting = to_setting(given);
    if (setting) {
      settings.push_back(std::move(setting).value());
    } else {
      append(errors, setting.errors());
    }
  }
  if (!errors.empty()) return errors;
  return settings;
}

}  // namespace input

}  // namespace collcast
