// What the commands on a scenario have in common: the scenario, changed, and its forecast.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/patience.hpp"
#include "cli/session.hpp"
#include "collcast/report/documents.hpp"

namespace CLI {
class App;
}

namespace collcast::cli {

struct ScenarioArgs {
  std::string scenario;  ///< '-': standard input
  /// What standard input was, the scenario or the machine, as it is read once.
  std::shared_ptr<std::optional<std::string>> piped = std::make_shared<std::optional<std::string>>();
  std::string what_if;
  bool sweeps = false;                       ///< the command runs what the scenario's file sweeps
  std::string topology, nodes, ranks, gpus;  ///< instead of the scenario's; gpus is ranks, a topology of '-' is piped
  std::string link_bandwidth, link_latency;
  std::string overlay;            ///< a calibration to put in; empty: none
  bool overlay_may_lack = false;  ///< a machine that the overlay does not name stays as it is described
  std::vector<std::string> sets;
  std::vector<Override> swept;  ///< of one point of a sweep
  std::vector<SweepAxis> axes;  ///< of --sweep, whose values are checked; of a point none, as all values have been
  bool runs_own_sweep = false;  ///< the file's sweep, whose values are checked in their place
  std::string algorithm, chunks, channels;  ///< empty: the scenario's
  std::string method, sharing, library;
  std::vector<std::string> env;      ///< NAME=VALUE, of library nccl
  std::vector<std::string> faults;   ///< "gpu: 12, compute: 80%"
  bool must_simulate = false;        ///< the closed form alone is no answer
  bool unfolded = false;             ///< a step of every rank for itself, beside the folded one
  std::string measured;              ///< what a step took that somebody ran
  std::string seeds;                 ///< draws of the jitter among them; empty: one
  std::vector<std::string> outputs;  ///< that may be none of the files the scenario is read from
};
void add_scenario_options(CLI::App&, ScenarioArgs&);
/// --fault, which only some commands have.
void add_fault_option(CLI::App&, std::vector<std::string>& faults, const char* text);

/// The scenario as the options change it; nothing if there are `errors` already.
Result<Scenario> load(const ScenarioArgs&, const Session&, Diagnostics errors);

/// As many nodes as the job needs, unless a number is given.
int nodes_needed(const Scenario&);

/// Warnings of faults of GPUs that have no part in a job of the first `gpus`.
Diagnostics idle_gpus(const Scenario&, int gpus);

/// What decides how many nodes the scenario runs on; empty: the machine's default.
Location nodes_asked_at(const Scenario&);

/// A job that has more GPUs than the machine.
Diagnostics check_ranks(const Scenario&, const Fabric&);

// --- step_forecast.cpp ---
/// `timeline`, if given, receives what was simulated. A simulation that outlasts the patience, or takes more memory
/// than there is, is left out where the closed form was asked for as well. `order`, if given, receives what each stage
/// does turn by turn.
Result<StepReport> forecast(const ScenarioArgs&, const Session&, StepTimeline* timeline, const Patience&,
                            OwnSchedule* order = nullptr);

}  // namespace collcast::cli
