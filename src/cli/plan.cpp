// collcast plan: the layouts of a scenario's model on its GPUs, ranked.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "cli/collective_options.hpp"
#include "cli/commands.hpp"
#include "cli/machine.hpp"
#include "cli/output.hpp"
#include "cli/patience.hpp"
#include "cli/plan_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario_list.hpp"
#include "cli/scenario_options.hpp"
#include "cli/step_interval.hpp"
#include "cli/values.hpp"
#include "collcast/evaluate/evaluate.hpp"
#include "collcast/report/plan_document.hpp"
#include "collcast/workload/impossible_rate.hpp"

namespace collcast::cli {

namespace {

constexpr const char* all_variants = "all";

struct PlanArgs {
  ScenarioArgs scenario;
  SpaceArgs space;
  GoalArgs goals;
  std::string simulate = "8", top, threads, why;
  bool why_given = false, simulate_given = false;
  bool list = false;
  LimitArgs limits;
  OutputOptions output;
};

/// The numbers among the arguments.
struct Numbers {
  std::optional<std::size_t> rows;
  PlanOptions options;
};

/// How many of the best: with one method alone none, or all that fit.
int to_simulate(const PlanArgs& args, Diagnostics& errors) {
  const int asked = parse_count("--simulate", args.simulate, 0, errors).value_or(0);
  const auto method = parse_method(args.scenario.method, errors);
  if (!method || *method == Method::both) return asked;
  const bool none = *method == Method::estimate;
  if (args.simulate_given && !(none && asked == 0))
    errors.push_back({typed("--simulate", args.simulate),
                      fmt::format("--simulate {} has no effect on --method {}", args.simulate, args.scenario.method),
                      none ? "the closed form alone ranks; expected --method both"
                           : "all that fit are simulated; expected --method both"});
  return none ? 0 : std::numeric_limits<int>::max();
}

Numbers parse_numbers(const PlanArgs& args, Diagnostics& errors) {
  Numbers n;
  if (!args.top.empty()) n.rows = parse_count("--top", args.top, 1, errors);
  if (!args.threads.empty()) n.options.threads = parse_count("--threads", args.threads, 1, errors).value_or(1);
  n.options.simulate = to_simulate(args, errors);
  constexpr int most_threads = 1024;
  if (n.options.threads > most_threads)
    errors.push_back({command_line, fmt::format("--threads: {} threads", n.options.threads),
                      fmt::format("expected up to {}", most_threads)});
  return n;
}

int gpus_per_node(const TopologySpec& topology) {
  for (const DeviceGroup& group : topology.devices)
    if (group.kind == DeviceKind::gpu || group.kind == DeviceKind::host) return group.count;
  return 1;
}

/// A scenario with its machine, ready to be planned.
struct Question {
  Scenario scenario;
  Fabric fabric;
  PlanInputs inputs;
  std::vector<std::string> notes;
};

/// What a job has: `ranks`, else all of the nodes that are placed or named, else as many as the layout has, else the
/// machine's usual size, which is 0 here. Random nodes are as many as the layout needs, of all.
int gpus_of_job(const Scenario& scenario, int per_node) {
  const int world = scenario.step->layout.world();
  if (scenario.ranks > 0) return scenario.ranks;
  if (!scenario.placement.nodes.empty()) return static_cast<int>(scenario.placement.nodes.size()) * per_node;
  return (scenario.nodes == 0 || scenario.placement.random) && world > 1 ? world : 0;
}

/// The layout of --why by its values; nothing where that is by its number, or not asked.
std::optional<LayoutQuestion> asked_layout(const PlanArgs& args) {
  Diagnostics said;
  const auto question = args.why_given ? parse_why(args.why, said) : std::nullopt;
  const LayoutQuestion* layout = question ? std::get_if<LayoutQuestion>(&*question) : nullptr;
  return layout != nullptr ? std::optional(*layout) : std::nullopt;
}

Result<Question> understand(const PlanArgs& args, const std::string& what_if, const Session& session,
                            bool overlay_may_lack = false) {
  ScenarioArgs asked = args.scenario;
  asked.what_if = what_if;
  asked.overlay_may_lack = overlay_may_lack;
  Diagnostics errors;
  Result<Scenario> loaded = load(asked, session, {});
  if (!loaded) return loaded.errors();
  Scenario scenario = std::move(loaded).value();
  if (!scenario.step)
    return Diagnostic{scenario.origins.of("tasks"), "a scenario of measured tasks has no layout to plan",
                      "expected a scenario with a model and a batch"};
  const bool serves = scenario.step->serving.has_value();
  if (Diagnostics wrong = misplaced(args.space, args.goals, asked_layout(args), serves); !wrong.empty()) return wrong;
  std::vector<std::string> notes = keep_to_settings(scenario, args.space, scenario.search);
  override_space(args.space, scenario.search, errors);
  const Goals goals = parse_goals(args.goals, errors);
  if (!errors.empty()) return errors;
  if (Diagnostics wrong = without_load(goals, args.goals, scenario); !wrong.empty()) return wrong;

  const int per_node = gpus_per_node(scenario.topology), world = scenario.step->layout.world();
  int gpus = gpus_of_job(scenario, per_node);
  int nodes = scenario.nodes;
  if (nodes == 0) nodes = gpus > 0 ? (gpus + per_node - 1) / per_node : scenario.topology.default_nodes;
  Result<Fabric> fabric = build_within_memory(scenario.topology, nodes,
                                              gpus > 0 || scenario.nodes > 0 ? nodes_asked_at(scenario) : Location{});
  if (!fabric) return fabric.errors();
  if (Diagnostics wrong = check_ranks(scenario, *fabric); !wrong.empty()) return wrong;
  if (gpus == 0) {
    gpus = fabric->rank_count();
    // The number of nodes may be meant for another machine's.
    const bool typed = scenario.origins.of("nodes").file.starts_with("--");
    if (gpus > world && world > 1 && !typed)
      notes.push_back(
          fmt::format("all {} GPUs of {} nodes are planned, the scenario's layout has {}: --ranks {} plans "
                      "for as many",
                      gpus, nodes, world, world));
  }
  PlanInputs inputs{*scenario.step,       scenario.search,    gpus,
                    scenario.collectives, {scenario.sharing}, {scenario.faults, scenario.placement},
                    goals.objective};
  if (serves) inputs.limits = limits_of(scenario, goals);
  for (Diagnostic& unchecked : gates_unchecked(scenario)) scenario.warnings.push_back(std::move(unchecked));
  for (Diagnostic& idle : idle_gpus(scenario, gpus)) scenario.warnings.push_back(std::move(idle));
  return Question{std::move(scenario), std::move(fabric).value(), std::move(inputs), std::move(notes)};
}

/// On a calibrated machine: between what each layout's step is, by the closed form of all with the collectives as
/// short, and as long, as 8 of 10 measurements were. Nothing where the search is ended meanwhile.
void add_intervals(const Question& q, PlanOptions options, PlanResult& result) {
  options.simulate = 0;
  options.progress = {};
  PlanInputs inputs = q.inputs;
  inputs.limits.clear();
  const auto with = [&](const auto& stretch) -> std::optional<std::map<LayoutChoice, PlannedLayout>> {
    inputs.collectives.stretch = stretch;
    const Result<PlanResult> all = plan(inputs, q.fabric, options, q.scenario.origins);
    if (!all || all->partial) return std::nullopt;
    std::map<LayoutChoice, PlannedLayout> out;
    for (const PlannedLayout& p : all->ranked) out[p.choice] = p;
    return out;
  };
  const auto low = with(q.scenario.spread->low), high = low ? with(q.scenario.spread->high) : std::nullopt;
  if (!high) return;
  for (std::vector<PlannedLayout>* layouts : {&result.ranked, &result.pareto})
    for (PlannedLayout& p : *layouts) {
      const PlannedLayout &shortest = low->at(p.choice), &longest = high->at(p.choice);
      const double scale = p.step() / p.estimate;
      p.interval = {shortest.estimate * scale, longest.estimate * scale};
      if (!p.server) continue;
      const auto within = [&](Seconds ServerTimes::*of) {
        const double by = p.server->times().*of / p.server->estimate.*of;
        return TimeRange{shortest.server->estimate.*of * by, longest.server->estimate.*of * by};
      };
      p.server->ttft_interval = within(&ServerTimes::ttft);
      p.server->tpot_interval = within(&ServerTimes::tpot);
    }
}

Result<PlanResult> search(const Question& q, PlanOptions options, const Session& session) {
  std::optional<Progress> bar;
  std::string doing;
  options.progress = [&](const char* what, std::size_t done, std::size_t total) {
    if (!bar || doing != what) bar.emplace(session, total);
    doing = what;
    if (done < total) bar->begin(fmt::format("{} {}", q.scenario.name, what), done);
  };
  Result<PlanResult> result = plan(q.inputs, q.fabric, options, q.scenario.origins);
  if (!result || !q.scenario.spread || result->partial) return result;
  PlanResult with_intervals = std::move(result).value();
  add_intervals(q, options, with_intervals);
  return with_intervals;
}

/// Of the best layout, on a calibrated machine.
std::string best_beyond_fit(const Question& q, const PlanResult& result) {
  if (!q.scenario.fitted_to || result.ranked.empty()) return {};
  StepInputs step = q.inputs.base;
  put(result.ranked.front().choice, step);
  const Result<StepResult> best = forecast_step(step, q.fabric, q.scenario.collectives, Method::estimate);
  return best ? beyond_fit(*q.scenario.fitted_to, q.fabric, *best) : std::string();
}

/// What of the best was not simulated, and which layouts have less of a sharding group or of expert TP than was asked
/// for.
std::vector<std::string> lacks(const Question& q, const PlanResult& result) {
  const StepInputs& base = q.inputs.base;
  std::vector<std::string> out;
  if (result.unsimulated)
    out.push_back(fmt::format("{} of the best layouts {} not simulated: {}; the closed form alone",
                              result.unsimulated->count, result.unsimulated->count == 1 ? "was" : "were",
                              result.unsimulated->reason));
  const auto say = [&](const std::string& asked, const char* of, const char* instead, const auto& has_less) {
    if (const auto count = std::ranges::count_if(result.ranked, has_less); count > 0)
      out.push_back(fmt::format("{} does not divide {} of {} of {} layouts that fit: {}", asked, of, count,
                                result.ranked.size(), instead));
  };
  say(fmt::format("layout.dp_shard {}", base.layout.dp_shard), "the DP", "there it is the largest divisor of DP below",
      [&](const PlannedLayout& p) {
        return p.choice.zero > 0 && dp_shard_of(p.choice, base.layout) != base.layout.dp_shard;
      });
  if (!base.serving)
    say(fmt::format("layout.etp {}", base.layout.etp), "the ranks of a stage",
        "there it is the largest divisor of both",
        [&](const PlannedLayout& p) { return etp_of(p.choice, base) != base.layout.etp; });
  return out;
}

/// What the search has not looked at: what a wider one would, and what the scenario rules out.
std::vector<std::string> narrower(const PlanInputs& inputs) {
  std::vector<std::string> out;
  if (const std::vector<std::string> missing = left_out(inputs); !missing.empty())
    out.push_back(fmt::format("not searched: {}; --search all has them, too", fmt::join(missing, ", ")));
  for (const std::string& what : ruled_out(inputs)) out.push_back("not searched: " + what);
  return out;
}

PlanVariant variant_of(const std::string& name, const Question& q, const PlanResult& result) {
  PlanVariant v{name, summary(q.fabric), q.inputs.gpus, result.evaluated, result.feasible, result.partial,
                {},   q.inputs.base};
  v.machine.library = to_string(q.scenario.collectives.library);
  if (!result.ranked.empty()) v.best = result.ranked.front();
  return v;
}

Result<Why> answer(const WhyQuestion& question, const Question& q, const PlanResult& result) {
  const int* rank = std::get_if<int>(&question);
  if (rank != nullptr && *rank > std::ssize(result.ranked))
    return Diagnostic{command_line,
                      fmt::format("--why: there is no layout number {}{}", *rank,
                                  !result.ranked.empty() ? ""
                                  : result.all_seen      ? ": no layout fits"
                                                         : ": the search was stopped before any layout that fits"),
                      fmt::format("expected {}a layout such as tp=8,pp=4",
                                  result.ranked.empty() ? "" : fmt::format("1 to {}, or ", result.ranked.size()))};
  const LayoutChoice choice = rank != nullptr ? result.ranked[static_cast<std::size_t>(*rank - 1)].choice
                                              : complete(std::get<LayoutQuestion>(question), result, q.inputs);
  return why(q.inputs, q.fabric, choice, result.ranked);
}

/// Every layout was looked at, of every variant that was asked for, and none fits.
bool nothing_fits(const PlanReport& report) {
  return report.result.feasible == 0 && !report.result.partial &&
         std::ranges::all_of(report.variants, [](const PlanVariant& v) { return v.feasible == 0; });
}

/// CSV has a row per layout that fits: of a plan without one its reasons are in the other formats alone.
Diagnostics reasons_beside_csv(const std::vector<Rejection>& rejected) {
  constexpr std::size_t most_named = 3;
  std::vector<std::string> reasons;
  for (const Rejection& r : rejected) reasons.push_back(fmt::format("{} ({})", r.count, r.reason));
  const std::size_t more = reasons.size() - std::min(reasons.size(), most_named);
  reasons.resize(reasons.size() - more);
  return {{command_line,
           fmt::format("why layouts were rejected is not in CSV, which has one row per layout that fits: {}{}",
                       fmt::join(reasons, ", "), more > 0 ? fmt::format(" and {} reasons more", more) : ""),
           "--format table, json or markdown has all of them"}};
}

/// What is wrong with one variant of several, with its name.
Diagnostics of_variant(const std::string& name, Diagnostics errors) {
  for (Diagnostic& error : errors) error.message = fmt::format("what_if '{}': {}", name, error.message);
  return errors;
}

/// Of the best that has such a rate; a server has none.
std::vector<std::string> impossible_rates(const Question& q, const PlanResult& result) {
  for (const PlannedLayout& layout : result.ranked)
    if (const auto rate = impossible_rate(q.inputs.base, layout.rates.mfu, layout.rates.hfu)) return {*rate};
  return {};
}

/// What is said of a variant and was not said of the base already.
Diagnostics new_warnings(const Scenario& variant, const Scenario& base) {
  Diagnostics out;
  for (const Diagnostic& d : variant.warnings)
    if (std::ranges::none_of(base.warnings, [&](const Diagnostic& b) {
          return to_text(b.where) == to_text(d.where) && b.message == d.message;
        }))
      out.push_back(d);
  return out;
}

/// Of the last variant, whose machine is not the base's.
void say_of_machine(PlanReport& report, const Session& session) {
  const PlanVariant& variant = report.variants.back();
  const std::vector<std::string> of_base = machine_warnings(report.machine);
  for (const std::string& text : machine_warnings(variant.machine)) {
    if (std::ranges::find(of_base, text) != of_base.end()) continue;
    report.said.push_back(fmt::format("what_if '{}': {}", variant.name, text));
    say(session, {report.said.back()});
  }
}

/// Plans every variant of the scenario beside the base. One that runs on a machine which the overlay does not know is
/// planned without it, and said to be.
Diagnostics add_variants(const PlanArgs& args, const Numbers& numbers, const Session& session, const Question& base,
                         PlanReport& report) {
  report.variants.push_back(variant_of("", base, report.result));
  for (const std::string& name : base.scenario.what_if) {
    if (numbers.options.stop()) break;
    const Result<Question> q = understand(args, name, session, true);
    if (!q) return of_variant(name, q.errors());
    if (is_own(q->scenario.step->layout.schedule)) {
      report.notes.push_back(fmt::format(
          "what_if '{}' is left out: its schedule '{}' is for one number of stages and micro-batches, and a plan "
          "varies both",
          name, q->scenario.step->layout.own->name));
      continue;
    }
    if (!args.scenario.overlay.empty() && !q->scenario.topology.calibrated)
      report.notes.push_back(
          fmt::format("what_if '{}' runs on {}, which the overlay does not calibrate: its figures are "
                      "those of the data sheet",
                      name, q->scenario.topology.name));
    for (const std::string& note : q->notes) report.notes.push_back(fmt::format("what_if '{}': {}", name, note));
    for (const std::string& note : narrower(q->inputs))
      if (std::ranges::find(report.notes, note) == report.notes.end())
        report.notes.push_back(fmt::format("what_if '{}': {}", name, note));
    for (const std::string& warning : warn(session, of_variant(name, new_warnings(q->scenario, base.scenario))))
      report.said.push_back(warning);
    const Result<PlanResult> result = search(*q, numbers.options, session);
    if (!result) return of_variant(name, result.errors());
    for (std::string& rate : impossible_rates(*q, *result)) {
      report.said.push_back(fmt::format("what_if '{}': {}", name, rate));
      say(session, {report.said.back()});
    }
    for (const std::string& lack : lacks(*q, *result))
      report.notes.push_back(fmt::format("what_if '{}': {}", name, lack));
    report.variants.push_back(variant_of(name, *q, *result));
    say_of_machine(report, session);
  }
  report.result.partial = report.result.partial || numbers.options.stop();
  return {};
}

Exit run_plan(const PlanArgs& args, const Session& session) {
  Diagnostics errors;
  const Patience patience(args.limits, errors);
  const Format format = parse_format(args.output, errors);
  Numbers numbers = parse_numbers(args, errors);
  numbers.options.stop = [&patience] { return patience.is_over(); };
  SearchSpace ignored;
  override_space(args.space, ignored, errors);
  parse_goals(args.goals, errors);
  const auto question = args.why_given ? parse_why(args.why, errors) : std::nullopt;
  if (!errors.empty()) return refuse(session, errors);
  // Who is asked for more threads than memory holds gets fewer: the result does not depend on them.
  numbers.options.threads = Patience::threads(numbers.options.threads);

  const bool all = args.scenario.what_if == all_variants;
  const std::string what_if = all ? std::string() : args.scenario.what_if;
  const Result<Question> q = understand(args, what_if, session);
  if (!q) return refuse(session, q.errors());
  std::vector<std::string> said = warn(session, q->scenario.warnings);
  numbers.options.memory = Patience::room_now();
  Result<PlanResult> result = search(*q, numbers.options, session);
  if (!result) return refuse(session, result.errors());

  for (std::string& rate : impossible_rates(*q, *result)) {
    say(session, {rate});
    said.push_back(std::move(rate));
  }
  PlanReport report{summary(q->fabric),
                    q->scenario.name,
                    q->scenario.title,
                    what_if,
                    q->inputs,
                    std::move(result).value(),
                    numbers.rows,
                    {},
                    {},
                    q->notes,
                    std::move(said)};
  report.machine.library = to_string(q->scenario.collectives.library);
  for (std::string& note : narrower(q->inputs)) report.notes.push_back(std::move(note));
  for (std::string& lack : lacks(*q, report.result)) report.notes.push_back(std::move(lack));
  if (const std::string beyond = best_beyond_fit(*q, report.result); !beyond.empty())
    report.notes.push_back("of the best layout " + beyond);
  if (all)
    if (Diagnostics wrong = add_variants(args, numbers, session, *q, report); !wrong.empty())
      return refuse(session, wrong);
  if (question) {
    Result<Why> reasons = answer(*question, *q, report.result);
    if (!reasons) return refuse(session, reasons.errors());
    report.why = std::move(reasons).value();
  }
  if (report.result.partial) report.stopped_by = patience.reason();
  // A page on standard output says it itself.
  const bool page_is_read = is_page_read(args.output, format);
  if (report.result.partial && !page_is_read) say(session, {partial_text(report)});
  if (nothing_fits(report) && !page_is_read) say(session, {nothing_fits_text(report)});
  if (format == Format::csv && report.result.ranked.empty() && !report.result.rejected.empty())
    warn(session, reasons_beside_csv(report.result.rejected));
  const Exit delivered = deliver(session, report, format, args.output);
  return patience.exit(delivered);
}

}  // namespace

Command add_plan(CLI::App& parent) {
  const auto args = std::make_shared<PlanArgs>();
  CLI::App& app = *parent.add_subcommand("plan", "layouts ranked, the Pareto set, what was rejected and why");
  add_scenario_options(app, args->scenario);
  add_list_option(app, args->list);
  app.get_option("--method")
      ->description(
          "estimate: rank by closed form; both: and simulate the best K; simulate: all that fit (default: both)");
  app.get_option("--what-if")->description("a variant of the scenario; all: the best layout of each");
  add_space_options(app, args->space);
  add_goal_options(app, args->goals);
  add_fault_option(app, args->scenario.faults,
                   "rank by the step with what is wrong with a GPU or a link, as 'gpu: 12, compute: 80%' (repeatable)");
  const auto option = [&](const char* name, std::string& value, const char* type, const char* text, const char* group) {
    app.add_option(name, value, text)->type_name(type)->group(group);
  };
  app.get_option("--ranks")->description(
      "plan for the first K GPUs, as --set ranks=K (default: the scenario's, else all of its nodes)");
  option("--gpus", args->scenario.gpus, "K", "the same as --ranks", "Machine");
  option("--simulate", args->simulate, "K", "with --method both: simulate the best K by closed form (default: 8)",
         "Model");
  option("--threads", args->threads, "N", "(default: all cores; the result does not depend on it)", "Model");
  option("--top", args->top, "N", "rows of the ranking (default: 10 for people, all in JSON and CSV)", "Output");
  option("--why", args->why, "LAYOUT", "compare one layout with the best: its number, or tp=16,pp=4,micro_batch=1",
         "Output");
  add_limit_options(app, args->limits);
  add_output_options(app, args->output);
  app.footer(
      "Examples:\n"
      "  collcast plan llama3-70b-64xh100\n"
      "  collcast plan llama3-70b-64xh100 --tp 4,8 --recompute none --why tp=8,pp=4\n"
      "  collcast plan llama3-70b-64xh100 --search all\n"
      "  collcast plan llama3-70b-64xh100 --what-if all\n"
      "  collcast plan llama3-70b-64xh100 --tp 4,8 --recompute none --method simulate\n"
      "  collcast plan llama3-70b-straggler-64xh100 --fault 'gpu: 12, compute: 80%'\n"
      "Of a server: most tokens/s per GPU among those that keep the limits, replicas of 8 to 64 sequences\n"
      "  collcast plan llama3-70b-inference-8xh100 --batch 8,16,32,64 --max-ttft 2s --max-tpot 30ms\n"
      "  collcast plan llama3-70b-inference-8xh100 --objective tpot --why tp=4\n"
      "  collcast plan llama3-70b-inference-8xh100 --what-if benchmark-run --max-ttft p99=2s --max-tpot p90=25ms\n"
      "Where no layout fits it says what would make one fit.\n"
      "Ctrl-C prints the best so far, marked partial, and exits with 130.");
  return [args, &app](const Session& session) {
    args->scenario.outputs = {args->output.file};
    args->why_given = app.count("--why") > 0;
    args->simulate_given = app.count("--simulate") > 0;
    return args->list ? run_list(app, args->scenario.scenario, args->output, session) : run_plan(*args, session);
  };
}

}  // namespace collcast::cli
