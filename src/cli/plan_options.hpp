// What a person may say of a plan's space and of the layout that they ask about.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/session.hpp"
#include "collcast/planner/why.hpp"
#include "collcast/scenario/scenario.hpp"

namespace CLI {
class App;
}

namespace collcast::cli {

struct SpaceArgs {
  std::string tp, pp, dp, micro_batch, sequence_parallel, recompute, zero, vpp, cp, ep,
      batch;           ///< lists; empty: the scenario's
  std::string search;  ///< a word; empty: the scenario's
};
void add_space_options(CLI::App&, SpaceArgs&);

/// What is asked of a server.
struct GoalArgs {
  std::string objective, max_ttft, max_tpot;  ///< empty: nothing asked
};
void add_goal_options(CLI::App&, GoalArgs&);
struct Goals {
  ServingObjective objective = {};
  std::vector<Gate> limits;
};
Goals parse_goals(const GoalArgs&, Diagnostics& errors);
/// Goals on the requests of a run, where the scenario has none.
Diagnostics without_load(const Goals&, const GoalArgs&, const Scenario&);
/// The scenario's limits on what it trains, which nothing in a plan is held to; a server's are its limits.
Diagnostics gates_unchecked(const Scenario&);
/// Limits of the command line replace the scenario's of the same figure.
std::vector<Gate> limits_of(const Scenario&, const Goals&);

/// Options and settings that a plan of such a scenario, which serves or trains, does not have.
Diagnostics misplaced(const SpaceArgs&, const GoalArgs&, const std::optional<LayoutQuestion>&, bool serves);

/// What a variant or --set says of one of the step's choices restricts the search to it, unless `args` or the setting
/// of a search of its own does; the degrees, which have to fill the GPUs, stay searched. A sentence for each.
std::vector<std::string> keep_to_settings(const Scenario&, const SpaceArgs& args, SearchSpace&);

/// Lists of the command line replace those of the scenario.
void override_space(const SpaceArgs&, SearchSpace&, Diagnostics& errors);

/// "5", a place in the ranking, or "tp=16,pp=4,micro_batch=1".
using WhyQuestion = std::variant<int, LayoutQuestion>;
std::optional<WhyQuestion> parse_why(const std::string& text, Diagnostics& errors);

}  // namespace collcast::cli
