// collcast explain: the formula behind a figure, the numbers in it, and where they came from.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "cli/collective_options.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/scenario_options.hpp"
#include "collcast/report/documents.hpp"

namespace collcast::cli {

namespace {

struct Args {
  CollectiveArgs collective;
  ScenarioArgs scenario;
  OutputOptions output;
};

/// Larger ones are explained by the closed form alone.
constexpr std::int64_t most_messages = 100'000'000;

Exit explain_collective(const Args& args, const Session& session) {
  Diagnostics errors;
  const Format format = parse_format(args.output, errors);
  const auto question = understand(args.collective, session, errors);
  if (question && (question->sizes.size() != 1 || question->groups.size() != 1))
    errors.push_back({command_line, "one figure is explained at a time", "expected one --size and one --group"});
  if (question && question->all_algorithms)
    errors.push_back({command_line, "one figure is explained at a time", "expected --algorithm auto or one name"});
  if (!errors.empty()) return refuse(session, errors);

  const CollectiveQuestion& q = *question;
  const CollectiveRequest request{q.kind, q.groups.front(), q.sizes.front(), q.root, {}};
  const Result<std::vector<Choice>> choices = choose(q.fabric, request, q.policy);
  if (!choices) return refuse(session, choices.errors());
  const Choice& choice = choices->front();
  std::optional<Timeline> simulated;
  if (q.simulate && (q.method_given || traffic(choice.pattern).messages <= most_messages)) {
    Result<Timeline> timeline = simulate(q.fabric, choice.pattern, q.engine);
    if (!timeline) return refuse(session, timeline.errors());
    simulated = std::move(timeline).value();
  }
  const auto curve = chunk_curve(q.fabric, request, choice.options);
  const std::optional<Seconds> time = simulated ? std::optional(to_seconds(simulated->finish)) : std::nullopt;
  ExplainReport report = explain(q.fabric, request, *choices, time, curve);
  if (simulated && simulated->finish > SimTime{}) report.sections.push_back(link_use(q.fabric, *simulated));
  return deliver(session, report, format, args.output);
}

Exit explain_step(const Args& args, const Session& session) {
  Diagnostics errors;
  const Format format = parse_format(args.output, errors);
  if (!errors.empty()) return refuse(session, errors);
  const Result<StepReport> report = forecast(args.scenario, session, nullptr);
  if (!report) return refuse(session, report.errors());
  return deliver(session, explain(*report), format, args.output);
}

}  // namespace

Command add_explain(CLI::App& parent) {
  const auto args = std::make_shared<Args>();
  args->collective.size = "64MiB";
  CLI::App& app = *parent.add_subcommand("explain", "the formula, the numbers put into it and their source");
  app.require_subcommand(1);
  CLI::App* collective = app.add_subcommand("collective", "of one collective at one size (default: 64MiB)");
  add_collective_options(*collective, args->collective);
  add_output_options(*collective, args->output);
  collective->footer(
      "Example:\n"
      "  collcast explain collective all_reduce --topology dgx-h100 --nodes 2 --size 64MiB");
  CLI::App* step = app.add_subcommand("step", "of a training step");
  add_scenario_options(*step, args->scenario);
  add_output_options(*step, args->output);
  step->footer("Example:\n  collcast explain step llama3-70b-64xh100");
  app.footer(
      "Example:\n  collcast explain collective broadcast --topology ring --ranks 8 --algorithm ring --chunks 64 --size "
      "1GiB");
  return [=](const Session& session) {
    return collective->parsed() ? explain_collective(*args, session) : explain_step(*args, session);
  };
}

}  // namespace collcast::cli
