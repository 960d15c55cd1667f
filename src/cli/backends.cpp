// collcast backends: what NCCL, Gloo and MPI can do, and what is missing here to use them.
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "collcast/runner/runner.hpp"

namespace collcast::cli {

Command add_backends(CLI::App& parent) {
  const auto output = std::make_shared<OutputOptions>();
  CLI::App& app = *parent.add_subcommand(
      "backends", "what can be run and forecast here of NCCL, Gloo and MPI, and what is missing");
  add_output_options(app, *output);
  app.footer(
      "Examples:\n"
      "  collcast backends\n"
      "  collcast backends --format json");
  return [output](const Session& session) {
    Diagnostics errors;
    const Format format = parse_format(*output, errors);
    if (!errors.empty()) return refuse(session, errors);
    return deliver(session, backends(), format, *output);
  };
}

}  // namespace collcast::cli
