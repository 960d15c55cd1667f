// collcast calibrate: a few physical parameters per machine, fitted to measured tables, into an overlay file.
#include "collcast/validation/calibrate.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <sstream>

#include "cli/collective_options.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/validate_options.hpp"

namespace collcast::cli {

namespace {

struct Args {
  MeasuredArgs measured;
  std::string library, overlay;
  OutputOptions output;
};

Exit run_calibrate(const Args& args, const Session& session) {
  Diagnostics errors;
  const Format format = parse_format(args.output, errors);
  check_library(args.library, errors);
  std::optional<Measured> measured = read_measured(args.measured, session, errors);
  if (!errors.empty()) return refuse(session, errors);

  Result<CalibrateResult> fitted = calibrate(measured->tables, measured->machines, measured->statistic);
  if (!fitted) return refuse(session, fitted.errors());
  CalibrateResult result = std::move(fitted).value();
  result.report.part = args.measured.part;
  say(session, worse_texts(result.report));
  std::vector<OutputFile> files;
  if (!args.overlay.empty()) files.push_back({args.overlay, overlay_text(result.overlay)});
  return deliver(session, result.report, format, args.output, files);
}

}  // namespace

Command add_calibrate(CLI::App& parent) {
  const auto args = std::make_shared<Args>();
  CLI::App& app = *parent.add_subcommand("calibrate", "fit latency and efficiency of machines to measured tables");
  add_measured_options(app, args->measured);
  app.add_option("--library", args->library, "ideal: what is fitted (default; nccl is to come)")
      ->type_name("WORD")
      ->group("Model");
  app.add_option("--format", args->output.format, "of the report: table (default), json, csv or markdown")
      ->type_name("WORD")
      ->group("Output");
  app.add_option("--output", args->overlay,
                 "write the overlay, for --overlay of validate, collective, step, plan and explain")
      ->type_name("FILE.yaml")
      ->group("Output");
  app.footer(
      "Fitted per machine: a latency that every collective has, a factor on the latency of links, and the share of\n"
      "their bandwidth that NVLink, PCIe and the network reach.\n"
      "Examples:\n"
      "  collcast calibrate --output overlay.yaml\n"
      "  collcast calibrate --measured my.log --topology dgx-h100 --output mine.yaml\n"
      "  collcast collective all_reduce --topology dgx-h100 --overlay mine.yaml\n"
      "  collcast step llama3-70b-64xh100 --overlay mine.yaml\n"
      "On half of the sizes, and checked on the other half:\n"
      "  collcast calibrate --measured tables/ --part 1/2 --output half.yaml\n"
      "  collcast validate --measured tables/ --part 2/2 --overlay half.yaml");
  return [args](const Session& session) { return run_calibrate(*args, session); };
}

}  // namespace collcast::cli
