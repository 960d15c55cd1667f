#include "cli/named_scenario.hpp"

#include <utility>

#include "cli/inputs.hpp"
#include "cli/values.hpp"

namespace collcast::cli {

namespace {

Diagnostics read_piped(const ScenarioArgs& args, const char* expected) {
  if (*args.piped) return {};
  Result<std::string> text = read_stdin(expected);
  if (!text) return text.errors();
  *args.piped = std::move(text).value();
  return {};
}

}  // namespace

Result<Scenario> load_named(const ScenarioArgs& args, ScenarioOptions options) {
  const bool scenario = args.scenario == "-", machine = args.topology == "-";
  if (scenario && machine)
    return Diagnostic{typed("--topology", "-"), "SCENARIO and --topology are both standard input",
                      "expected one of them from a file, or a shipped one's name"};
  if (machine) {
    const char* expected = "expected a machine's file, as in 'collcast step SCENARIO --topology - < FILE'";
    if (Diagnostics wrong = read_piped(args, expected); !wrong.empty()) return wrong;
    options.machine = **args.piped;
  }
  if (!scenario) return load_scenario(args.scenario, options);
  if (Diagnostics wrong = read_piped(args, "expected a scenario, as in 'collcast step - < FILE'"); !wrong.empty())
    return wrong;
  return parse_scenario(**args.piped, "-", options);
}

}  // namespace collcast::cli
