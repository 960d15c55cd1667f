// collcast explain: the formula behind a figure, the numbers in it, and where they came from.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "cli/collective_options.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/patience.hpp"
#include "cli/scenario_options.hpp"
#include "collcast/base/units.hpp"
#include "collcast/engine/footprint.hpp"
#include "collcast/report/documents.hpp"
#include "collcast/report/nccl_report.hpp"
#include "collcast/workload/impossible_rate.hpp"

namespace collcast::cli {

namespace {

struct ExplainArgs {
  CollectiveArgs collective;
  ScenarioArgs scenario;
  LimitArgs limits;
  OutputOptions output;
};

/// Larger ones are explained by the closed form alone.
constexpr std::int64_t most_explained_messages = 100'000'000;

/// What each group runs: its own choice, or that of the first if all run at once.
Result<std::vector<Pattern>> patterns_of(const CollectiveQuestion& q, const Choice& first) {
  CollectivePolicy policy = q.policy;
  if (q.concurrent) policy = {first.options.algorithm, first.options.chunks, first.options.channels};
  std::vector<Pattern> patterns{first.pattern};
  for (std::size_t g = 1; g < q.groups.size(); ++g) {
    Result<std::vector<Choice>> choices = q.choices(q.request_alone(g, q.sizes.front()), policy);
    if (!choices) return choices.errors();
    patterns.push_back(std::move(choices)->front().pattern);
  }
  return patterns;
}

/// Each group's times, and the timeline that the first group ran in; none where it is not simulated.
struct Answers {
  std::vector<GroupTimes> groups;
  std::optional<Timeline> timeline;
  Diagnostics why_not;  ///< simulated to the end; none: it is, or was not to be
};

void add_base_latency(const CollectiveQuestion& q, Answers& answers) {
  const Seconds base = q.base_latency();
  for (GroupTimes& group : answers.groups)
    for (std::optional<Seconds>* time :
         {&group.estimate_alone, &group.simulate_alone, &group.estimate, &group.simulate})
      if (*time) **time += base;
}

/// The groups one by one, and all at once where they run so, as far as time, memory and the clock last.
Diagnostics simulate_groups(const CollectiveQuestion& q, const std::vector<Pattern>& patterns, Answers& out) {
  Bytes needed = q.concurrent ? footprint(q.fabric, patterns) : Bytes();
  for (const Pattern& pattern : patterns) needed = std::max(needed, footprint(q.fabric, {&pattern, 1}));
  if (needed > q.engine.memory) return {lacks_memory(patterns.front().algorithm, needed, q.engine.memory)};
  for (std::size_t g = 0; g < patterns.size(); ++g) {
    Result<Timeline> alone = simulate(q.fabric, patterns[g], q.engine);
    if (!alone) return alone.errors();
    out.groups[g].simulate_alone = to_seconds(alone->finish);
    if (g == 0 && !q.concurrent) out.timeline = std::move(alone).value();
  }
  if (!q.concurrent) return {};
  Result<Together> together = simulate_together(q.fabric, patterns, q.engine);
  if (!together) return together.errors();
  for (std::size_t g = 0; g < patterns.size(); ++g) out.groups[g].simulate = together->times[g];
  out.timeline = std::move(together)->timeline;
  return {};
}

Answers answer(const CollectiveQuestion& q, const std::vector<Pattern>& patterns) {
  std::int64_t messages = 0;
  for (const Pattern& pattern : patterns) messages += traffic(pattern).messages;
  Answers out;
  for (std::size_t g = 0; g < patterns.size(); ++g)
    out.groups.push_back({q.groups[g], estimate(q.fabric, patterns[g]).total, {}, {}, {}});
  if (q.concurrent) {
    const std::vector<Estimate> estimates = estimate(q.fabric, std::span<const Pattern>(patterns));
    for (std::size_t g = 0; g < patterns.size(); ++g) out.groups[g].estimate = estimates[g].total;
  }
  if (q.simulates() && !q.method_given && messages > most_explained_messages)
    out.why_not = {{{},
                    fmt::format("{} messages, more than {} that are stepped one by one unasked; --method both insists",
                                format_count(static_cast<double>(messages)),
                                format_count(static_cast<double>(most_explained_messages))),
                    ""}};
  else if (q.simulates())
    out.why_not = simulate_groups(q, patterns, out);
  add_base_latency(q, out);
  return out;
}

/// That the simulation is missing, and why.
void tell_why_not(const CollectiveQuestion& q, const Diagnostics& why_not, const Patience& patience,
                  const Session& session, bool page_is_read, ExplainReport& report) {
  if (why_not.empty()) return;
  if (q.is_over())
    report.partial = patience.tell_partial(session, "simulations are missing", page_is_read);
  else
    report.sections.front().text.push_back({"not simulated: " + why_not.front().message, Paragraph::Tone::note});
}

/// What the calibration says of the time that was explained: between what measurements of such sizes were, and whether
/// it has seen any.
void add_interval(const CollectiveQuestion& q, ExplainReport& report) {
  std::optional<Seconds> estimate, simulated;
  for (const Section& section : report.sections)
    for (const Term& term : section.terms) {
      if (term.name == "estimate") estimate = Seconds(term.value);
      if (term.name == "simulation") simulated = Seconds(term.value);
    }
  std::vector<Paragraph>& text = report.sections.back().text;
  const std::optional<Seconds> time = simulated ? simulated : estimate;
  if (const auto within = interval_of(q, q.sizes.front(), time))
    text.push_back(
        {fmt::format("8 of 10 measurements of such sizes are within {}, by the calibration{}", format_range(*within),
                     is_outside(*time, within) ? fmt::format("; {}", outside_text) : std::string()),
         Paragraph::Tone::note});
  if (std::string beyond = beyond_calibration(q); !beyond.empty())
    text.push_back({std::move(beyond), Paragraph::Tone::note});
}

/// Of many figures, and of times that no closed form gives, none is taken apart.
void refuse_what_is_not_explained(const CollectiveQuestion& q, Diagnostics& errors) {
  if (q.library == Library::nccl && q.method_given && q.simulates())
    errors.push_back({command_line, "--method: library nccl's closed form is what is taken apart",
                      "expected --method estimate; `collcast collective --method both` simulates it"});
  if (q.sizes.size() != 1) errors.push_back({command_line, "one figure is explained at a time", "expected one --size"});
  if (q.brought)
    errors.push_back({command_line, "an algorithm of your own has no closed form to take apart",
                      "expected --algorithm auto or one name; `collcast collective --links` shows its links"});
  if (q.all_algorithms)
    errors.push_back({command_line, "one figure is explained at a time", "expected --algorithm auto or one name"});
}

Exit explain_nccl(const ExplainArgs& args, const CollectiveQuestion& q, Format format, const Session& session) {
  const CollectiveRequest request = q.request(0, q.sizes.front());
  const Result<nccl::Communicator> communicator = nccl::connect(q.fabric, request.group, q.environment);
  if (!communicator) return refuse(session, communicator.errors());
  Result<ExplainReport> explained = explain(q.fabric, *communicator, request, q.nccl_algorithm);
  if (!explained) return refuse(session, explained.errors());
  ExplainReport report = std::move(explained).value();
  add_interval(q, report);
  std::ranges::move(warn(session, q.warnings), std::back_inserter(report.said));
  return deliver(session, report, format, args.output);
}

Exit explain_ideal(const ExplainArgs& args, const CollectiveQuestion& q, const Patience& patience, Format format,
                   const Session& session) {
  const auto fail = [&](const Diagnostics& why) {
    return q.is_over() ? patience.give_up(session, "nothing was worked out to its end",
                                          "nothing is known yet; expected a longer --time-limit, or fewer ranks")
                       : refuse(session, why);
  };
  const CollectiveRequest request = q.request(0, q.sizes.front());
  const Result<std::vector<Choice>> choices = q.choices(request, q.policy);
  if (!choices) return fail(choices.errors());
  const Result<std::vector<Pattern>> patterns = patterns_of(q, choices->front());
  if (!patterns) return fail(patterns.errors());
  const Answers answers = answer(q, *patterns);
  if (!answers.why_not.empty() && !q.estimates()) return fail(answers.why_not);

  const GroupTimes& first = answers.groups.front();
  const auto curve = chunk_curve(q.fabric, request, choices->front().options);
  ExplainReport report = explain(q.fabric, request, *choices, q.concurrent ? first.simulate : first.simulate_alone,
                                 curve, q.base_latency());
  add_interval(q, report);
  Diagnostics warnings = q.warnings;
  append(warnings, fine_chunks(args.collective.chunks, {{q.sizes.front(), &choices->front().pattern}}));
  report.said = warn(session, warnings);
  if (std::string text = q.passed_over(); !text.empty())
    report.sections.front().text.push_back({std::move(text), Paragraph::Tone::plain});
  for (const MachineFault& fault : q.faults)
    report.sections.front().text.push_back({"fault: " + to_text(fault), Paragraph::Tone::plain});
  if (q.groups.size() > 1) report.sections.push_back(group_times(answers.groups));
  if (q.concurrent) report.sections.push_back(shared_links(q.fabric, *patterns));
  if (answers.timeline) report.sections.push_back(link_use(q.fabric, *answers.timeline));
  tell_why_not(q, answers.why_not, patience, session, is_page_read(args.output, format), report);
  return patience.exit(deliver(session, report, format, args.output));
}

Exit explain_collective(const ExplainArgs& args, const Session& session) {
  CollectiveOpening opening(args.collective, args.limits, args.output, session);
  if (opening.question) refuse_what_is_not_explained(*opening.question, opening.errors);
  if (!opening.errors.empty()) return refuse(session, opening.errors);
  const CollectiveQuestion& q = *opening.question;
  if (q.library == Library::nccl) return explain_nccl(args, q, opening.format, session);
  return explain_ideal(args, q, opening.patience, opening.format, session);
}

Exit explain_step(const ExplainArgs& args, const Session& session) {
  Diagnostics errors;
  const Format format = parse_format(args.output, errors);
  const Patience patience(args.limits, errors);
  if (!errors.empty()) return refuse(session, errors);
  const Result<StepReport> report = forecast(args.scenario, session, nullptr, patience);
  if (!report && patience.has_ended_work()) return patience.refused(refuse(session, report.errors()));
  if (!report) return refuse(session, report.errors());
  ExplainReport explained = explain(*report);
  const StepResult& r = report->result;
  if (const auto rate = report->inputs ? impossible_rate(*report->inputs, r.mfu, r.hfu) : std::nullopt) {
    say(session, {*rate});
    explained.said.push_back(*rate);
  }
  return patience.exit(deliver(session, explained, format, args.output));
}

}  // namespace

Command add_explain(CLI::App& parent) {
  const auto args = std::make_shared<ExplainArgs>();
  args->collective.size = "64MiB";
  CLI::App& app = *parent.add_subcommand("explain", "the formula, the numbers put into it and their source");
  app.require_subcommand(1);
  CLI::App* collective = app.add_subcommand("collective", "of one collective at one size");
  add_collective_options(*collective, args->collective);
  add_fault_option(*collective, args->collective.faults,
                   "a link that is slow or has failed, in the words of a scenario's 'faults'; of library ideal "
                   "(repeatable)");
  add_limit_options(*collective, args->limits);
  add_output_options(*collective, args->output);
  collective->footer(
      "Example:\n"
      "  collcast explain collective all_reduce --topology dgx-h100 --nodes 2 --size 64MiB\n"
      "is NCCL's choice, its whole table, and the run. The textbook, its phases and links:\n"
      "  collcast explain collective all_reduce --topology dgx-h100 --nodes 2 --size 64MiB --library ideal\n"
      "Groups at once, each alone and beside the others, and the links that they share:\n"
      "  collcast explain collective all_reduce --topology ethernet-hosts --nodes 96 --groups-of 2:48 --concurrent");
  CLI::App* step = app.add_subcommand("step", "of a training step, or of a batch that is served");
  add_scenario_options(*step, args->scenario);
  add_fault_option(*step, args->scenario.faults,
                   "a GPU that computes slowly or unevenly, or a link that is slow or has failed, in the words of the "
                   "scenario's 'faults' (repeatable)");
  add_limit_options(*step, args->limits);
  add_output_options(*step, args->output);
  step->footer(
      "Examples:\n"
      "  collcast explain step llama3-70b-64xh100\n"
      "TTFT, TPOT, tokens/s and the cache of keys and values:\n"
      "  collcast explain step llama3-70b-inference-8xh100\n"
      "What a slow GPU costs, and how:\n"
      "  collcast explain step llama3-70b-64xh100 --fault 'gpu: 12, compute: 80%'");
  app.footer(
      "Example:\n  collcast explain collective broadcast --topology ring --ranks 8 --algorithm ring --chunks 64 --size "
      "1GiB");
  return [=](const Session& session) {
    args->scenario.outputs = args->collective.machine.outputs = {args->output.file};
    return collective->parsed() ? explain_collective(*args, session) : explain_step(*args, session);
  };
}

}  // namespace collcast::cli
