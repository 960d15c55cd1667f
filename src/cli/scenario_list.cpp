// --list of the commands on a scenario: which there are, or the variants of the one that is named.
#include "cli/scenario_list.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/inputs.hpp"
#include "collcast/report/scenario_listing.hpp"
#include "collcast/scenario/listing.hpp"

namespace collcast::cli {

void add_list_option(CLI::App& app, bool& list) {
  app.add_flag("--list", list, "the shipped scenarios, or SCENARIO alone, with their variants; nothing is run")
      ->group("Scenario");
}

Exit run_list(const CLI::App& app, const std::string& scenario, const OutputOptions& output, const Session& session) {
  Diagnostics errors, unread;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool listed = option->get_positional() || name == "--list" || name == "--format" || name == "--output";
    if (option->count() > 0 && !listed)
      errors.push_back({command_line, fmt::format("{} has no effect beside --list, which runs nothing", name),
                        "leave out one of the two"});
  }
  const Format format = parse_format(output, errors);
  std::vector<std::string> names{scenario};
  append(errors, check_overwriting(names, {output.file}));
  if (scenario.empty()) {
    names.clear();
    for (const TopologyEntry& entry : list_scenarios(session.search)) {
      names.push_back(entry.name);
      append(errors, check_overwriting({entry.file}, {output.file}));
    }
  }
  ScenarioListing listing;
  for (const std::string& name : names) {
    Result<ScenarioEntry> entry = describe_scenario(name, session.search);
    if (!entry) {
      unread.push_back(first_of(entry.errors()));
      continue;
    }
    // What is listed can be read; that all of it can is another matter.
    const Result<Scenario> whole = load_scenario(name, {session.search, {}, {}, {}, {}});
    if (!whole) unread.push_back(first_of(whole.errors()));
    listing.entries.push_back({entry->name, entry->title, {}});
    for (const ScenarioEntry::Variant& v : entry->what_if) listing.entries.back().what_if.push_back({v.name, v.title});
  }
  if (!errors.empty()) return refuse(session, errors);
  if (listing.entries.empty() && !unread.empty()) return refuse(session, unread);
  if (listing.entries.empty())
    return refuse(session, {{command_line, fmt::format("no scenarios in {}", fmt::join(session.search.scenarios, ", ")),
                             "COLLCAST_DATA names the folder that holds topologies/ and scenarios/"}});
  const Exit listed = deliver(session, listing, format, output);
  return listed != Exit::ok || unread.empty() ? listed : refuse(session, unread);
}

}  // namespace collcast::cli
