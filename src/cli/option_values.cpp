#include "cli/option_values.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "cli/help.hpp"
#include "cli/session.hpp"

namespace collcast::cli {

namespace {

bool takes_values(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

bool names_files(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.find("FILE") != std::string::npos || type.find("DIR") != std::string::npos;
}

const CLI::App* command_named(const CLI::App& app, std::string_view name) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (command->get_name() == name) return command;
  return nullptr;
}

bool is_long_option(std::string_view word) { return word.starts_with("--") && word.size() > 2; }

}  // namespace

Diagnostics missing_values(const CLI::App& root, std::span<const char* const> words) {
  Diagnostics out;
  const CLI::App* app = &root;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--") break;
    if (!is_long_option(word)) {
      if (const CLI::App* command = command_named(*app, word)) app = command;
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name(word.substr(0, equals));
    const CLI::Option* option = app->get_option_no_throw(name);
    if (option == nullptr) continue;  // said by the parser
    const std::string help = fmt::format("'{} --help' has an example", command_of(*app));
    if (equals != std::string_view::npos) {
      if (equals + 1 < word.size()) continue;
      out.push_back({command_line, name + (takes_values(*option) ? " needs a value" : " takes no value"), help});
      continue;
    }
    if (!takes_values(*option) || i + 1 == words.size()) continue;
    const std::string_view value = words[i + 1];
    // One that may stand alone takes no option for its value.
    const bool takes_any = option->get_items_expected_min() > 0;
    if (value.empty())
      out.push_back({command_line, name + " is empty",
                     fmt::format("expected {}: {}", option->get_type_name(), option->get_description())});
    else if (takes_any && names_files(*option) && is_long_option(value))
      out.push_back({command_line, fmt::format("{} needs a value, and '{}' stands in its place", name, value),
                     fmt::format("expected {}; a file of that name is './{}'", option->get_type_name(), value)});
    if (takes_any || value.empty()) ++i;
  }
  return out;
}

}  // namespace collcast::cli
