#include "cli/help.hpp"

#include <algorithm>
#include <sstream>

namespace collcast::cli {

namespace {

constexpr std::size_t name_width = 28;
constexpr std::size_t line_width = 110;

/// "  name      description", the description wrapped at blanks.
std::string entry(const std::string& name, const std::string& description) {
  std::string line = "  " + name;
  line.resize(std::max(line.size() + 2, name_width), ' ');
  std::string out;
  std::istringstream words(description);
  bool first = true;
  for (std::string word; words >> word; first = false) {
    if (!first && line.size() + 1 + word.size() > line_width) {
      out += line + '\n';
      line.assign(name_width, ' ');
      first = true;
    }
    line += (first ? "" : " ") + word;
  }
  return out + line + '\n';
}

/// Two blank lines become one.
std::string closed_up(std::string text) {
  for (std::size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
  return text;
}

}  // namespace

std::string command_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : command_of(*parent) + " " + app.get_name();
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  return closed_up(make_description(app) + "\n" + make_usage(app, std::move(name)) + make_positionals(app) +
                   make_groups(app, mode) + make_subcommands(app, mode) + "\n" + make_footer(app));
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  const bool has_commands = !app->get_subcommands([](const CLI::App*) { return true; }).empty();
  const auto arguments = app->get_options([](const CLI::Option* o) { return o->get_positional(); });
  std::string out = "Usage: " + name;
  if (has_commands && arguments.empty()) return out + " COMMAND [OPTIONS]\n";
  for (const CLI::Option* option : arguments) out += " " + option->get_name(true, false);
  return out + " [OPTIONS]\n";
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string name = make_option_name(option, is_positional);
  if (!is_positional && !option->get_type_name().empty()) name += " " + option->get_type_name();
  return entry(name, option->get_description());
}

std::string HelpFormatter::make_subcommand(const CLI::App* sub) const {
  return entry(sub->get_name(), sub->get_description());
}

}  // namespace collcast::cli
