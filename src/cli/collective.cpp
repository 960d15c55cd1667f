// collcast collective: the time of one collective over sizes, algorithms and groups.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <new>

#include "cli/collective_msccl.hpp"
#include "cli/collective_nccl.hpp"
#include "cli/collective_options.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/scenario_options.hpp"
#include "collcast/base/units.hpp"
#include "collcast/engine/folded.hpp"
#include "collcast/engine/footprint.hpp"
#include "collcast/evaluate/nodes.hpp"
#include "collcast/report/documents.hpp"

namespace collcast::cli {

namespace {

struct CommandArgs {
  CollectiveArgs collective;
  LimitArgs limits;
  bool chunks_curve = false;
  bool links = false;
  OutputOptions output;
};

/// Simulations of more messages are refused: they would run for many minutes.
struct MostMessages {
  std::int64_t shared, unshared, by_recurrence;
};
constexpr MostMessages most_messages{4'000'000'000, 4'000'000'000, 400'000'000'000};
/// Without --method, simulations of more are left out: about a second each.
constexpr MostMessages most_messages_unasked{2'000'000, 100'000'000, 1'000'000'000};

/// One algorithm on every group at one size: what to price.
struct Case {
  Bytes size{};
  std::vector<Choice> chosen;                                ///< by group
  std::vector<std::optional<CollectiveRow::RunnerUp>> next;  ///< by group; of `auto`
};

/// The case of one algorithm, or why it does not apply. Groups at once all do what the first one chose beside
/// the others.
Result<Case> make_case(const CollectiveQuestion& q, const CollectivePolicy& policy, Bytes size) {
  Case out;
  out.size = size;
  for (std::size_t g = 0; g < q.groups.size(); ++g) {
    CollectivePolicy own = policy;
    const bool follows = q.concurrent && g > 0;
    if (follows) {
      const CollectiveOptions& first = out.chosen.front().options;
      own = {first.algorithm, first.chunks, first.channels};
    }
    Result<std::vector<Choice>> choices = q.choices(follows ? q.request_alone(g, size) : q.request(g, size), own);
    if (!choices) return choices.errors();
    std::vector<Choice> candidates = std::move(choices).value();
    out.next.emplace_back();
    if (candidates.size() > 1) {
      const Choice& second = candidates[1];
      out.next.back() = {second.options.algorithm, second.options.chunks, second.estimate.total, second.simulated};
    }
    out.chosen.push_back(std::move(candidates.front()));
  }
  return out;
}

/// Closed forms of rings take no time; those of trees, and of halving and doubling, are walked message by message,
/// for every number of chunks that is tried: nothing where they are few.
std::optional<std::string> takes_long(const CollectiveQuestion& q) {
  constexpr double many = 100'000;
  double ranks = 0;
  for (const Group& group : q.groups) ranks += group.size();
  const auto sizes = static_cast<double>(q.sizes.size());
  if (!q.all_algorithms || ranks * sizes < many) return std::nullopt;
  std::string sooner = "--algorithm with one name";
  if (q.policy.chunks == 0) sooner += ", --chunks 1";
  if (q.sizes.size() > 1) sooner += ", one --size";
  return fmt::format(
      "closed forms of all algorithms among {:.0f} ranks, at {:.0f} size{}, can take minutes and memory for each; "
      "--time-limit prints those that are known by then; sooner: {}",
      ranks, sizes, q.sizes.size() == 1 ? "" : "s", sooner);
}

/// Those that are known where the patience is over before all are; then there is an error.
std::vector<Case> make_cases(const CollectiveQuestion& q, const Session& session, CollectiveReport& report,
                             Diagnostics& errors) {
  std::vector<Case> cases;
  Progress progress(session, q.sizes.size() * (q.all_algorithms ? algorithms().size() : 1));
  for (const Bytes size : q.sizes) {
    if (!q.all_algorithms) {
      progress.begin(fmt::format("closed form of {}", format_bytes(size)));
      Result<Case> one = make_case(q, q.policy, size);
      if (!one) {
        errors = one.errors();
        return q.closed_forms_are_over() ? cases : std::vector<Case>{};
      }
      cases.push_back(std::move(one).value());
      continue;
    }
    std::vector<Case> ranked;
    for (const AlgorithmInfo& info : algorithms()) {
      progress.begin(fmt::format("closed form of {} {}", info.name, format_bytes(size)));
      CollectivePolicy policy = q.policy;
      policy.algorithm = info.name;
      Result<Case> one = make_case(q, policy, size);
      if (one) {
        ranked.push_back(std::move(one).value());
      } else if (q.closed_forms_are_over()) {
        errors = one.errors();
        break;
      } else if (size == q.sizes.front()) {
        report.skipped.push_back({info.name, one.errors().front().message});
      }
    }
    const auto slowest = [](const Case& c) {
      Seconds worst{};
      for (const Choice& choice : c.chosen) worst = std::max(worst, choice.estimate.total);
      return worst;
    };
    std::stable_sort(ranked.begin(), ranked.end(),
                     [&](const Case& a, const Case& b) { return slowest(a) < slowest(b); });
    std::move(ranked.begin(), ranked.end(), std::back_inserter(cases));
    if (!errors.empty()) break;
  }
  if (cases.empty() && errors.empty())
    for (const AlgorithmInfo& info : algorithms())
      for (const auto& [name, why] : report.skipped)
        if (name == info.name && std::find(info.kinds.begin(), info.kinds.end(), q.kind) != info.kinds.end())
          errors.push_back({command_line, fmt::format("{}: {}", name, why), "no algorithm of this collective is left"});
  return cases;
}

std::vector<std::pair<Bytes, const Pattern*>> patterns(const std::vector<Case>& cases) {
  std::vector<std::pair<Bytes, const Pattern*>> out;
  for (const Case& c : cases)
    for (const Choice& choice : c.chosen) out.emplace_back(c.size, &choice.pattern);
  return out;
}

std::int64_t messages(const Case& c) {
  std::int64_t sum = 0;
  for (const Choice& choice : c.chosen) sum += traffic(choice.pattern).messages;
  return sum;
}

/// Of those the ones that a simulation steps one by one, where it folds ranks that do the same. Only worked out where
/// more than `most` are sent.
std::int64_t stepped(const CollectiveQuestion& q, const Case& c, bool links, std::int64_t most) {
  const std::int64_t all = messages(c);
  if (all <= most || q.concurrent || links) return all;
  std::int64_t sum = 0;
  for (const Choice& choice : c.chosen)
    sum += messages_stepped_folded(q.fabric, {&choice.pattern, 1}, q.engine).value_or(traffic(choice.pattern).messages);
  return sum;
}

bool shares(const Case& c) {
  return std::any_of(c.chosen.begin(), c.chosen.end(), [](const Choice& choice) { return choice.estimate.shared; });
}

/// Whether every pattern is worked out without events.
bool by_recurrence(const CollectiveQuestion& q, const Case& c) {
  return !q.concurrent && std::all_of(c.chosen.begin(), c.chosen.end(),
                                      [&](const Choice& choice) { return has_recurrence(q.fabric, choice.pattern); });
}

std::int64_t limit(const MostMessages& most, const CollectiveQuestion& q, const Case& c, bool links) {
  if (shares(c)) return most.shared;
  return !links && by_recurrence(q, c) ? most.by_recurrence : most.unshared;
}

/// Two round-ups of a picosecond for each message one after the other.
Seconds rounding(const Choice& choice) {
  const double chunks = choice.pattern.chunks;
  double in_a_row = 0;
  for (const PhaseEstimate& phase : choice.estimate.phases)
    in_a_row += phase.flow == Flow::forwarding ? phase.rounds + chunks - 1 : phase.rounds * chunks;
  return Seconds(2e-12 * in_a_row);
}

std::vector<PhaseRow> phase_rows(const Fabric& fabric, const Estimate& estimate) {
  std::vector<PhaseRow> out;
  for (const PhaseEstimate& phase : estimate.phases)
    out.push_back(
        {phase, phase.busiest && phase.busiest_bytes > Volume{} ? fabric.link_name(*phase.busiest) : std::string()});
  return out;
}

/// What a calibration found in front of every collective, whatever its algorithm.
void add_base_latency(CollectiveRow& row, Seconds base) {
  for (std::optional<Seconds>* time : {&row.estimate, &row.simulate, &row.estimate_alone, &row.simulate_alone})
    if (*time) **time += base;
  if (!row.runner_up) return;
  row.runner_up->estimate += base;
  if (row.runner_up->simulate) *row.runner_up->simulate += base;
}

/// Where most of a long simulation was not worked out message by message.
void note_steady_state(const CollectiveRow& row, std::vector<std::string>& notes) {
  if (*row.messages < 100'000 || 2 * *row.stepped > *row.messages) return;
  const auto count = [](std::int64_t n) { return format_count(static_cast<double>(n)); };
  notes.push_back(
      fmt::format("{} {}: {} messages simulated, of which {} one by one; {} (exact)", row.algorithm,
                  format_bytes(row.size), count(*row.messages), count(*row.stepped),
                  row.classes ? fmt::format("one of each of {} classes of ranks that do the same", count(*row.classes))
                              : "the others repeat them, later by the same"));
}

/// Prices a case and appends one row per group.
Diagnostics price(const CollectiveQuestion& q, const Case& c, bool simulated, CollectiveReport& report) {
  const bool concurrent = q.concurrent;
  std::vector<Pattern> patterns;
  for (const Choice& choice : c.chosen) patterns.push_back(choice.pattern);
  const std::vector<Estimate> together = concurrent ? estimate(q.fabric, patterns) : std::vector<Estimate>();
  Together together_simulated;
  if (concurrent && simulated) {
    Result<Together> run = simulate_together(q.fabric, patterns, q.engine);
    if (!run) return run.errors();
    together_simulated = std::move(run).value();
  }
  for (std::size_t g = 0; g < c.chosen.size(); ++g) {
    const Choice& choice = c.chosen[g];
    CollectiveRow row;
    row.algorithm = choice.options.algorithm;
    row.group = static_cast<int>(g);
    row.nodes = node_count(q.fabric, q.groups[g]);
    row.size = c.size;
    row.chunks = choice.pattern.chunks;
    row.channels = choice.options.channels;
    row.rounding = rounding(choice);
    row.runner_up = c.next[g];
    const Estimate& counts = concurrent ? together[g] : choice.estimate;
    row.approximate = !counts.exact();
    row.shared = counts.shared;
    row.phases = phase_rows(q.fabric, counts);
    if (q.estimates()) {
      row.estimate = counts.total;
      if (concurrent) row.estimate_alone = estimate(q.fabric, choice.pattern).total;
    }
    if (simulated && choice.simulated && !report.links) {
      row.simulate = choice.simulated;
    } else if (simulated && !concurrent && !report.links) {
      const Result<SimulatedTime> run = simulated_time(q.fabric, choice.pattern, q.engine);
      if (!run) return run.errors();
      row.simulate = run->time;
      row.messages = run->messages;
      row.stepped = run->stepped;
      if (run->classes > 0) row.classes = run->classes;
      note_steady_state(row, report.notes);
    } else if (simulated) {
      const Result<Timeline> timeline = simulate(q.fabric, choice.pattern, q.engine);
      if (!timeline) return timeline.errors();
      row.simulate = concurrent ? together_simulated.times[g] : to_seconds(timeline->finish);
      if (concurrent) row.simulate_alone = to_seconds(timeline->finish);
      if (report.links) row.links = link_rows(q.fabric, concurrent ? together_simulated.timeline : *timeline);
    }
    add_base_latency(row, q.base_latency());
    row.interval = interval_of(q, row);
    report.rows.push_back(std::move(row));
  }
  return {};
}

Diagnostic too_many(const Case& c, std::int64_t count, std::int64_t most) {
  return {command_line,
          fmt::format("{} with {} chunks at {} would simulate {} messages, more than {}",
                      c.chosen.front().options.algorithm, c.chosen.front().pattern.chunks, format_bytes(c.size),
                      format_count(static_cast<double>(count)), format_count(static_cast<double>(most))),
          "expected --method estimate, or fewer --chunks or ranks"};
}

/// What the engine takes of memory while it simulates a case: all groups at once, or one after the other.
Bytes memory_of(const CollectiveQuestion& q, const Case& c, bool links) {
  std::vector<Pattern> all;
  for (const Choice& choice : c.chosen) all.push_back(choice.pattern);
  if (q.concurrent) return footprint(q.fabric, all);
  Bytes most{};
  for (const Pattern& pattern : all)
    most = std::max(most, !links && has_recurrence(q.fabric, pattern) ? recurrence_footprint(q.fabric, pattern)
                                                                      : footprint(q.fabric, {&pattern, 1}));
  return most;
}

Diagnostic too_large(const Case& c, Bytes needed, Bytes room) {
  return lacks_memory(fmt::format("{} at {}", c.chosen.front().options.algorithm, format_bytes(c.size)), needed, room);
}

std::string ran_out_of_memory(const Case& c, Bytes room) {
  return fmt::format("to simulate {} at {} takes more memory than the {} that there is room for",
                     c.chosen.front().options.algorithm, format_bytes(c.size), format_bytes(room));
}

/// The same as far as the patience and the simulation's clock last: beyond them the closed form alone, and nothing
/// where that was not asked for.
Diagnostics price_as_far(const CollectiveQuestion& q, const Case& c, bool simulated, CollectiveReport& report) {
  const std::size_t before = report.rows.size(), noted = report.notes.size();
  if (!simulated || !q.is_over()) {
    Diagnostics errors = price(q, c, simulated, report);
    if (errors.empty() || !simulated || (!q.is_over() && !q.estimates())) return errors;
    report.rows.resize(before);
    report.notes.resize(noted);
    if (!q.is_over()) {
      report.notes.push_back(not_simulated(c.chosen.front().options.algorithm, c.size, errors));
      return price(q, c, false, report);
    }
  }
  report.partial = true;
  return q.estimates() ? price(q, c, false, report) : Diagnostics();
}

/// Delivers what there is, and says what is missing: `have_no_room` of the simulations that were asked for.
Exit finish(const Session& session, const Patience& patience, CollectiveReport report,
            const std::vector<std::string>& have_no_room, Format format, const OutputOptions& output) {
  if (report.partial && report.rows.empty())
    return patience.give_up(session, "no simulation has come to its end",
                            "nothing is known yet; --method estimate takes no time");
  std::vector<std::string> missing;
  if (report.partial) missing.push_back(fmt::format("partial: {}; simulations are missing", patience.reason()));
  for (const std::string& lack : have_no_room)
    missing.push_back(fmt::format("partial: not simulated: {}; the closed form alone", lack));
  report.partial = !missing.empty();
  for (const std::string& text : missing) {
    if (!is_page_read(output, format)) say(session, {text});
    report.notes.push_back(text);
  }
  return patience.exit(deliver(session, report, format, output));
}

/// CSV has a row per time; what else was asked for is in the other formats.
void warn_of_csv(const CommandArgs& args, Format format, Diagnostics& warnings) {
  if (format != Format::csv) return;
  for (const auto& [option, given] : {std::pair("--links", args.links), std::pair("--chunks-curve", args.chunks_curve)})
    if (given)
      warnings.push_back({command_line, fmt::format("{} is not in CSV, which has one row per time", option),
                          "expected --format table, json or markdown"});
}

/// Options that the library or the algorithm does not have.
void add_what_does_not_go_together(const CommandArgs& args, const CollectiveQuestion& q, Diagnostics& errors) {
  if (q.library == Library::ideal && args.links && !q.simulates())
    errors.push_back({command_line, "--links needs a simulation", "expected --method simulate or both"});
  if (q.library == Library::nccl && args.chunks_curve)
    errors.push_back({command_line, "--chunks-curve: NCCL cuts its chunks by the size of its buffers", "remove it"});
  if (q.library == Library::nccl && args.links)
    errors.push_back(
        {command_line, "--links: library nccl's simulation keeps no links", "expected --library ideal, or none"});
  if (q.brought && args.chunks_curve)
    errors.push_back({command_line, "--chunks-curve is of catalogued algorithms", "remove it"});
}

/// What NCCL runs, or an algorithm that the user brought.
Exit answer_other_library(const CommandArgs& args, const CollectiveQuestion& q, const Patience& patience, Format format,
                          const Session& session) {
  Result<CollectiveReport> priced = q.brought ? price_msccl(q, session, args.links) : price_nccl(q, session);
  if (!priced && q.brought && q.closed_forms_are_over())
    return patience.give_up(session, fmt::format("algorithm '{}' is not proved to its end", q.brought->name),
                            "nothing is known of it; expected a longer --time-limit");
  if (!priced) return refuse(session, priced.errors());
  CollectiveReport report = std::move(priced).value();
  std::vector<std::string> said = warn(session, q.warnings);
  report.said.insert(report.said.begin(), said.begin(), said.end());
  return finish(session, patience, std::move(report), {}, format, args.output);
}

/// No case was known in time.
Exit give_up_cases(const CollectiveQuestion& q, const Patience& patience, const Session& session) {
  return q.policy.algorithm == "auto"
             ? patience.give_up(session, "no algorithm was chosen",
                                "nothing is known yet; expected --algorithm with one name, or fewer ranks")
             : patience.give_up(session, "no closed form was computed to its end",
                                "nothing is known yet; expected a longer --time-limit, or fewer ranks");
}

/// Simulations that were asked for and would run for too long.
void add_too_many(const CollectiveQuestion& q, const std::vector<Case>& cases, bool links, Diagnostics& errors) {
  if (!q.simulates() || !q.method_given) return;
  for (const Case& c : cases) {
    const std::int64_t most = limit(most_messages, q, c, links), count = stepped(q, c, links, most);
    if (count > most) errors.push_back(too_many(c, count, most));
  }
}

/// Simulations without a closed form that there is no room for: with one, what has no room is left out.
Diagnostics lacks_room(const CollectiveQuestion& q, const std::vector<Case>& cases, bool links, Bytes room) {
  Diagnostics errors;
  if (!q.simulates() || q.estimates()) return errors;
  for (const Case& c : cases)
    if (const Bytes needed = memory_of(q, c, links); needed > room) errors.push_back(too_large(c, needed, room));
  return errors;
}

/// Simulations that are not in the report.
struct NotSimulated {
  int left_out = 0;                       ///< that take long and were not asked for
  std::vector<std::string> have_no_room;  ///< of those that were
  Diagnostics failed;                     ///< the first that did, where nothing else was asked for
};

/// Its rows, as far as time and memory last.
Diagnostics price_with_room(const CollectiveQuestion& q, const Case& c, const Patience& patience,
                            CollectiveReport& report, NotSimulated& not_there) {
  std::vector<std::string>& lacks = q.method_given ? not_there.have_no_room : report.notes;
  const std::int64_t most = limit(most_messages_unasked, q, c, report.links);
  const bool quick = q.method_given || !q.simulates() || stepped(q, c, report.links, most) <= most;
  if (!quick) ++not_there.left_out;
  // Not asked for: left out where a limit is given, whatever the machine has.
  const bool has_limit = q.method_given || patience.memory_limit();
  const Bytes needed = q.simulates() && quick && has_limit ? memory_of(q, c, report.links) : Bytes();
  const bool fits = !has_limit || needed <= patience.room();
  if (!fits) lacks.push_back(too_large(c, needed, patience.room()).message);
  const std::size_t rows = report.rows.size();
  try {
    return price_as_far(q, c, q.simulates() && quick && fits, report);
  } catch (const std::bad_alloc&) {  // lists have grown beyond what was expected of them
    if (!q.estimates()) throw;
    report.rows.resize(rows);
    lacks.push_back(ran_out_of_memory(c, patience.room()));
    return price(q, c, false, report);
  }
}

/// All cases; what is wrong with one whose closed form was asked for ends it.
Diagnostics price_cases(CollectiveQuestion& q, const std::vector<Case>& cases, const CommandArgs& args,
                        const Patience& patience, const Session& session, CollectiveReport& report,
                        NotSimulated& not_there) {
  Progress progress(session, cases.size());
  q.engine.watch = patience.watch(&progress);
  for (const Case& c : cases) {
    progress.begin(fmt::format("{} {}", c.chosen.front().options.algorithm, format_bytes(c.size)));
    progress.expect(messages(c));
    q.engine.memory = Patience::room_now();
    if (Diagnostics errors = price_with_room(q, c, patience, report, not_there); !errors.empty()) {
      if (q.estimates()) return errors;
      report.notes.push_back(not_simulated(c.chosen.front().options.algorithm, c.size, errors));
      if (not_there.failed.empty()) not_there.failed = std::move(errors);
    }
    if (!args.chunks_curve) continue;
    const Choice& choice = c.chosen.front();
    report.curves.push_back({choice.options.algorithm, c.size, choice.pattern.chunks,
                             chunk_curve(q.fabric, q.request(0, c.size), choice.options)});
  }
  q.engine.watch = patience.watch();
  return {};
}

void note_left_out(int left_out, std::size_t cases, std::vector<std::string>& notes) {
  if (left_out == 0) return;
  notes.push_back(fmt::format(
      "{} of {} simulations left out, which step more than {} messages each, or {} where links are shared; --method "
      "both insists",
      left_out, cases, format_count(static_cast<double>(most_messages_unasked.unshared)),
      format_count(static_cast<double>(most_messages_unasked.shared))));
}

/// By a catalogued algorithm, or all of them.
Exit answer_ideal(const CommandArgs& args, CollectiveQuestion& q, const Patience& patience, Format format,
                  const Session& session) {
  CollectiveReport report = begin_report(q, args.links);
  if (const std::optional<std::string> hint = takes_long(q)) say(session, {*hint});
  Diagnostics errors;
  const std::vector<Case> cases = make_cases(q, session, report, errors);
  if (!errors.empty() && q.closed_forms_are_over()) {
    if (cases.empty()) return give_up_cases(q, patience, session);
    report.partial = true;
    errors.clear();
  }
  // What is asked for is known from here on; too large a simulation is refused before any work.
  add_too_many(q, cases, args.links, errors);
  if (!errors.empty()) return refuse(session, errors);
  if (const Diagnostics lacking = lacks_room(q, cases, args.links, patience.room()); !lacking.empty())
    return lack(session, lacking);
  Diagnostics warnings = q.warnings;
  append(warnings, fine_chunks(args.collective.chunks, patterns(cases)));
  report.said = warn(session, warnings);
  if (!q.all_algorithms)
    if (std::string text = q.passed_over(); !text.empty()) report.notes.push_back(std::move(text));

  NotSimulated not_there;
  errors = price_cases(q, cases, args, patience, session, report, not_there);
  if (!errors.empty()) return refuse(session, errors);
  if (report.rows.empty() && !not_there.failed.empty()) return refuse(session, not_there.failed);
  add_calibration_notes(q, report);
  note_left_out(not_there.left_out, cases.size(), report.notes);
  return finish(session, patience, std::move(report), not_there.have_no_room, format, args.output);
}

Exit run_collective(const CommandArgs& args, const Session& session) {
  CollectiveOpening opening(args.collective, args.limits, args.output, session);
  const Patience& patience = opening.patience;
  const Format format = opening.format;
  if (opening.question) add_what_does_not_go_together(args, *opening.question, opening.errors);
  if (!opening.errors.empty()) return refuse(session, opening.errors);
  CollectiveQuestion& q = *opening.question;
  warn_of_csv(args, format, q.warnings);
  if (q.brought || q.library == Library::nccl) return answer_other_library(args, q, patience, format, session);
  return answer_ideal(args, q, patience, format, session);
}

constexpr const char* collective_footer =
    "Examples:\n"
    "  collcast collective all_reduce --topology dgx-h100 --nodes 4 --algorithm all --size 1MiB:1GiB:x32\n"
    "  collcast collective broadcast --topology ring --ranks 8 --link-bandwidth 10GB/s --link-latency 0s \\\n"
    "      --algorithm ring --chunks 64 --size 1GiB --format json\n"
    "  collcast collective all_reduce --topology ethernet-hosts --nodes 96 --groups-of 2:48 --concurrent --size "
    "16MiB\n"
    "  collcast collective all_reduce --topology dgx-h100 --nodes 2 --library nccl --env NCCL_ALGO=Ring\n"
    "  collcast collective all_reduce --topology dgx-h100 --library nccl --tuner nccl_tuner.conf\n"
    "  collcast collective all_reduce --topology dgx-h100 --nodes 16 --set network.plugin.collnet=true --env "
    "NCCL_COLLNET_ENABLE=1 --algorithm all\n"
    "  collcast collective all_reduce --topology dgx-h100 --nodes 2 --library ideal --fault 'link: node0.nic3, "
    "failed: "
    "true'\n"
    "  collcast collective all_gather --topology ring --ranks 4 --algorithm msccl:mine.xml\n"
    "Ctrl-C prints what is known so far, marked partial, and exits with 130.\n"
    "The formula and the numbers behind a row: the same options after 'collcast explain collective', with its size:\n"
    "  collcast explain collective all_reduce --topology dgx-h100 --nodes 4 --size 1MiB";

}  // namespace

Command add_collective(CLI::App& parent) {
  const auto args = std::make_shared<CommandArgs>();
  CLI::App& app =
      *parent.add_subcommand("collective", "time of one collective over sizes, by formula and by simulation");
  add_collective_options(app, args->collective);
  add_fault_option(app, args->collective.faults,
                   "a link that is slow or has failed, in the words of a scenario's 'faults'; of library ideal "
                   "(repeatable)");
  app.add_flag("--chunks-curve", args->chunks_curve, "also the estimate over the number of chunks")
      ->group("Collective");
  app.add_flag("--links", args->links, "also the busiest links of each simulation")->group("Collective");
  add_limit_options(app, args->limits);
  add_output_options(app, args->output);
  app.footer(collective_footer);
  return [args](const Session& session) {
    args->collective.of_ideal = args->chunks_curve ? "--chunks-curve" : args->links ? "--links" : "";
    args->collective.machine.outputs = {args->output.file};
    return run_collective(*args, session);
  };
}

}  // namespace collcast::cli
