// A step at several points: --sweep, the sweep of a scenario's file, and --what-if all.
#pragma once

#include <string>
#include <vector>

#include "cli/output.hpp"
#include "cli/scenario_options.hpp"

namespace collcast::cli {

/// What a step is run with, one after the other.
struct Sweep {
  std::vector<SweepAxis> axes;
  std::vector<std::string> variants;  ///< of the scenario, for all of which it is run as well as for itself
  std::string scenario, title;        ///< what it is of
  std::vector<std::string> files;     ///< that its errors may name
  bool has_gates = false;
  bool empty() const { return axes.empty() && variants.empty(); }
};

/// `sweeps` as given to --sweep, instead of the file's; a path that --set or the variant sets stays as they say.
Sweep sweep_of(const std::vector<std::string>& sweeps, const ScenarioArgs&, const Session&, Diagnostics& errors);

/// "what is wrong: what would be right", and of how many errors it is the first; the scenario's files by their names
/// alone, as in all documents.
std::string reason_of(const Diagnostics&, const std::vector<std::string>& files);
/// Those that errors of a scenario may name.
std::vector<std::string> files_named(const Scenario&);

/// Every point's step; points that cannot be are told with the reason.
Exit run_sweep(const ScenarioArgs&, const Sweep&, const Patience&, Format, const OutputOptions&, const Session&);

}  // namespace collcast::cli
