// The subcommands: each declares its options on a CLI11 app and returns what runs it once they are parsed.
#pragma once

#include <functional>

#include "cli/session.hpp"

namespace CLI {
class App;
}

namespace collcast::cli {

using Command = std::function<Exit(const Session&)>;

Command add_collective(CLI::App& parent);
Command add_step(CLI::App& parent);
Command add_plan(CLI::App& parent);
Command add_groups(CLI::App& parent);
Command add_topology(CLI::App& parent);
Command add_explain(CLI::App& parent);
Command add_measure(CLI::App& parent);
/// `measure kernels`, of add_measure.
Command add_measure_kernels(CLI::App& measure);
Command add_backends(CLI::App& parent);
Command add_validate(CLI::App& parent);
Command add_calibrate(CLI::App& parent);
Command add_compare(CLI::App& parent);
Command add_report(CLI::App& parent);

/// The whole program: parses, runs, and says how it ended.
Exit run(int argc, const char* const* argv, const Session&);

}  // namespace collcast::cli
