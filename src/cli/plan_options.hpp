// What a person may say of a plan's space and of the layout that they ask about.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "cli/session.hpp"
#include "collcast/planner/why.hpp"

namespace CLI {
class App;
}

namespace collcast::cli {

struct SpaceArgs {
  std::string tp, pp, dp, micro_batch, sequence_parallel, recompute, zero, vpp;  ///< lists; empty: the scenario's
};
void add_space_options(CLI::App&, SpaceArgs&);
/// Lists of the command line replace those of the scenario.
void override_space(const SpaceArgs&, SearchSpace&, Diagnostics& errors);

/// "5", a place in the ranking, or "tp=16,pp=4,micro_batch=1".
using WhyQuestion = std::variant<int, LayoutQuestion>;
std::optional<WhyQuestion> parse_why(const std::string& text, Diagnostics& errors);

}  // namespace collcast::cli
