// A command's scenario, wherever it is from.
#pragma once

#include "cli/scenario_options.hpp"

namespace collcast::cli {

/// By name, from a file, or from standard input, where paths are as from the present folder; its machine likewise.
Result<Scenario> load_named(const ScenarioArgs& args, ScenarioOptions options);

}  // namespace collcast::cli
