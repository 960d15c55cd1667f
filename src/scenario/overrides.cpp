// `path=value` of the command line and of what_if.
#include <fmt/format.h>

#include "scenario/files.hpp"
#include "scenario/parse.hpp"

namespace collcast {

Result<Override> parse_override(std::string_view text) {
  const Location where{"command line"};
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size())
    return Diagnostic{where, fmt::format("'{}' sets nothing", input::shown(text)),
                      "expected path=value, such as network.link.bandwidth=400Gb/s"};
  return Override{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)), where};
}

namespace input {

namespace {

Result<Setting> to_setting(const Override& given) {
  Result<Node> value = parse_yaml(given.value, given.where.file);
  if (value) return Setting{given.path, std::move(value).value(), given.where};
  Diagnostics errors;
  for (const Diagnostic& d : value.errors())
    errors.push_back({given.where, fmt::format("value of '{}': {}", shown(given.path), d.message), d.hint});
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
      errors.insert(errors.end(), setting.errors().begin(), setting.errors().end());
    }
  }
  if (!errors.empty()) return errors;
  return settings;
}

}  // namespace input

}  // namespace collcast
