// The command line as a whole: which command, and what to say when it is not one.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <sys/resource.h>
#include <system_error>

#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/option_values.hpp"
#include "cli/output.hpp"
#include "collcast/base/units.hpp"

namespace collcast::cli {

namespace {

/// The innermost subcommand that was reached.
const CLI::App& reached(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : reached(*parsed.back());
}

std::vector<std::string> subcommands(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) out.push_back(sub->get_name());
  return out;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
  }
  return out;
}

Diagnostic unknown_option(const CLI::App& app, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const auto near = nearest_word(name, option_names(app));
  const std::string help = fmt::format("'{} --help' lists its options", command_of(app));
  return {command_line, fmt::format("unknown option '{}'", name),
          near ? fmt::format("did you mean '{}'? {}", *near, help) : help};
}

/// Words that no command and no option took: all of them, with the nearest right ones.
Diagnostics unknown_words(const CLI::App& app, const CLI::App& root) {
  Diagnostics out;
  const std::vector<std::string> words = root.remaining(true);
  const auto is_option = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
  for (const std::string& word : words) {
    if (is_option(word)) out.push_back(unknown_option(app, word));
  }
  if (!out.empty() || words.empty()) return out;
  const auto known = subcommands(app);
  if (!known.empty())
    return {{command_line, fmt::format("unknown command '{}'", words.front()), expected_one_of(words.front(), known)}};
  return {{command_line, fmt::format("unexpected argument '{}'", words.front()),
           fmt::format("'{} --help' shows what it takes", command_of(app))}};
}

/// CLI11's remark in our words: it begins with the name of what it is about.
std::string remark(const CLI::ParseError& error) {
  std::string text = error.what();
  const std::string name = text.substr(0, text.find_first_of(": "));
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) return name + " is missing";
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return text;
  const bool too_many = text.find("At Most") != std::string::npos;
  return name + (too_many ? " is given more than once" : " needs a value");
}

Diagnostics usage_errors(const CLI::App& root, const CLI::ParseError& error) {
  const CLI::App& app = reached(root);
  // A misspelt word usually explains whatever else is missing.
  if (!subcommands(app).empty() && !root.remaining(true).empty() && root.remaining(true).front().front() != '-')
    return {{command_line, fmt::format("unknown command '{}'", root.remaining(true).front()),
             expected_one_of(root.remaining(true).front(), subcommands(app))}};
  if (Diagnostics unknown = unknown_words(app, root); !unknown.empty()) return unknown;
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !subcommands(app).empty())
    return {{command_line, fmt::format("'{}' needs a command", command_of(app)),
             fmt::format("expected one of: {}", fmt::join(subcommands(app), ", "))}};
  return {{command_line, remark(error), fmt::format("'{} --help' has an example", command_of(app))}};
}

/// `collcast help COMMAND...`: what COMMAND --help prints.
Exit help(const CLI::App& root, std::span<const char* const> words, const Session& session) {
  const CLI::App* app = &root;
  for (const std::string word : words) {
    const auto known = subcommands(*app);
    if (std::find(known.begin(), known.end(), word) == known.end())
      return refuse(session, {{command_line, fmt::format("unknown command '{}'", word),
                               known.empty() ? fmt::format("'{}' has no commands of its own", command_of(*app))
                                             : expected_one_of(word, known)}});
    app = app->get_subcommand(word);
  }
  return deliver(session, app->help(app->get_parent() == nullptr ? std::string() : command_of(*app->get_parent())));
}

/// Puts the subcommands of all levels under one heading in help.
void group_commands(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    command->group("Commands");
    group_commands(*command);
  }
}

Exit lacking(const Session& session, std::string what) {
  return lack(session, {{command_line, std::move(what),
                         "expected a smaller question, or a machine with more; nothing was written"}});
}

/// What was not known to take so much before it was begun: memory was refused, and nothing more was taken.
Exit lacking_memory(const Session& session) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return lacking(session, "there is not enough memory for this");
  const std::string most = format_bytes(Bytes(static_cast<std::int64_t>(limit.rlim_cur)));
  return lack(session, {{command_line, fmt::format("this takes more memory than the {} that its data may take", most),
                         "expected a larger --memory-limit, fewer ranks, --method estimate, or one algorithm by its "
                         "name; nothing was written"}});
}

/// --memory-limit is the process's while a command runs, and what it was before afterwards.
class MemoryLimitAsBefore {
 public:
  MemoryLimitAsBefore() : known_(::getrlimit(RLIMIT_DATA, &limit_) == 0) {}
  ~MemoryLimitAsBefore() {
    if (known_) ::setrlimit(RLIMIT_DATA, &limit_);
  }
  MemoryLimitAsBefore(const MemoryLimitAsBefore&) = delete;
  MemoryLimitAsBefore& operator=(const MemoryLimitAsBefore&) = delete;

 private:
  rlimit limit_{};
  bool known_;
};

}  // namespace

Exit run(int argc, const char* const* argv, const Session& session) {
  CLI::App app("Forecasts collective communication and 3D-parallel training steps on GPU clusters.", "collcast");
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("collcast {}", tool_version()), "print the version and exit");
  app.set_help_flag("-h,--help", "print this help and exit");
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->label("Positionals", "Arguments");
  app.footer(
      "'collcast help COMMAND' shows its options and an example. A first question:\n"
      "  collcast collective all_reduce --topology dgx-h100 --nodes 2\n"
      "\n"
      "COLLCAST_DATA names another folder for the shipped topologies/ and scenarios/.\n"
      "Exit: 0 done, 1 a gate was missed or a measurement failed, 2 wrong input or usage, 3 this machine lacks what is "
      "needed,\n"
      "130 stopped by Ctrl-C.");
  const std::vector<Command> commands{add_collective(app), add_step(app),      add_plan(app),    add_groups(app),
                                      add_topology(app),   add_explain(app),   add_measure(app), add_backends(app),
                                      add_validate(app),   add_calibrate(app), add_compare(app), add_report(app)};
  const auto names = subcommands(app);
  group_commands(app);
  if (argc > 1 && argv[1] == std::string_view("help"))
    return help(app, std::span(argv + 2, static_cast<std::size_t>(argc - 2)), session);
  if (argc > 1)
    if (Diagnostics missing = missing_values(app, std::span(argv + 1, static_cast<std::size_t>(argc - 1)));
        !missing.empty())
      return refuse(session, std::move(missing));
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    return deliver(session, std::string(version.what()) + "\n");
  } catch (const CLI::Success&) {
    // "collcast nonsense --help" is no question about collcast.
    if (app.get_subcommands().empty() && !app.remaining().empty() && app.remaining().front().front() != '-')
      return refuse(session, unknown_words(app, app));
    return deliver(session, app.help());
  } catch (const CLI::ParseError& error) {
    return refuse(session, usage_errors(app, error));
  }
  const MemoryLimitAsBefore limit;
  Session asked = session;
  asked.words.assign(argv + 1, argv + argc);
  const auto chosen = std::find(names.begin(), names.end(), app.get_subcommands().front()->get_name());
  try {
    return commands[static_cast<std::size_t>(chosen - names.begin())](asked);
  } catch (const std::bad_alloc&) {
    return lacking_memory(session);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    return lacking(session, fmt::format("the machine gives no more: {}", error.code().message()));
  }
}

}  // namespace collcast::cli
