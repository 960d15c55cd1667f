#include "cli/plan_options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/values.hpp"
#include "collcast/base/text.hpp"
#include "collcast/base/units.hpp"
#include "collcast/base/words.hpp"
#include "collcast/workload/limits.hpp"

namespace collcast::cli {

namespace {

constexpr std::size_t most_values = 64;
const std::vector<std::string> truths{"true", "false"};
const std::vector<std::string> recomputes{"none", "selective", "full"};

/// At commas, without the blanks around them.
std::vector<std::string> items_of(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view item : split(text, ',')) out.emplace_back(trimmed(item, " "));
  return out;
}

// Limits as a scenario's.
std::optional<int> read_degree(std::string_view option, const std::string& text, Diagnostics& errors) {
  constexpr int most_of_a_degree = 10'000'000;
  return parse_count(option, text, 1, errors, most_of_a_degree);
}
std::optional<int> read_chunks(std::string_view option, const std::string& text, Diagnostics& errors) {
  return parse_count(option, text, 1, errors, most_layers);
}
std::optional<int> read_batch(std::string_view option, const std::string& text, Diagnostics& errors) {
  return parse_count(option, text, 1, errors, most_sequences);
}
std::optional<int> read_zero(std::string_view option, const std::string& text, Diagnostics& errors) {
  const auto index = parse_word(option, text, {"0", "1", "2", "3"}, errors);
  return index ? std::optional(static_cast<int>(*index)) : std::nullopt;
}
std::optional<bool> read_truth(std::string_view option, const std::string& text, Diagnostics& errors) {
  const auto index = parse_word(option, text, truths, errors);
  return index ? std::optional(*index == 0) : std::nullopt;
}
std::optional<Recompute> read_recompute(std::string_view option, const std::string& text, Diagnostics& errors) {
  const auto index = parse_word(option, text, recomputes, errors);
  return index ? std::optional(static_cast<Recompute>(*index)) : std::nullopt;
}

template <class T, class Read>
void override_list(std::string_view option, const std::string& text, Read read, std::vector<T>& out,
                   Diagnostics& errors) {
  if (text.empty()) return;
  const std::vector<std::string> words = items_of(text);
  if (words.size() > most_values) {
    errors.push_back({command_line, fmt::format("{}: {} values", option, words.size()),
                      fmt::format("expected up to {}", most_values)});
    return;
  }
  out.clear();
  for (const std::string& word : words)
    if (const auto value = read(option, word, errors)) out.push_back(*value);
}

}  // namespace

void add_space_options(CLI::App& app, SpaceArgs& args) {
  const auto option = [&](const char* name, std::string& value, const char* text) {
    app.add_option(name, value, text)->type_name("LIST")->group("Search");
  };
  option("--tp", args.tp, "tensor parallel degrees, such as 1,2,4,8 (default: the scenario's, else all that divide)");
  option("--pp", args.pp, "pipeline stages");
  option("--dp", args.dp, "data parallel degrees");
  option("--cp", args.cp, "context parallel degrees (default: 1; where the scenario has more all that divide)");
  option("--ep", args.ep,
         "expert parallel degrees (default: 1; where the scenario has more, and of a server, all that divide)");
  option("--micro-batch", args.micro_batch, "samples (of a server: sequences) per micro-batch");
  option("--sequence-parallel", args.sequence_parallel, "true, false (default: both; of a server the scenario's)");
  option("--recompute", args.recompute, "none, selective, full (default: all three)");
  option("--zero", args.zero, "0, 1, 2, 3 (default: 0 and 1; all four where the scenario says 2 or 3)");
  option("--vpp", args.vpp,
         "model chunks of a stage, such as 1,2,4; above 1 interleaved (default: 1; with schedule interleaved all that "
         "divide)");
  app.add_option("--search", args.search,
                 "where none are named: usual, or all CP (powers of two), EP, ZeRO stages and chunks of a stage that "
                 "divide (default: usual)")
      ->type_name("WORD")
      ->group("Search");
  option("--batch", args.batch, "of a server: sequences that a replica serves together (default: the scenario's)");
}

void add_goal_options(CLI::App& app, GoalArgs& args) {
  const auto option = [&](const char* name, std::string& value, const char* type, const char* text) {
    app.add_option(name, value, text)->type_name(type)->group("Search");
  };
  option(
      "--objective", args.objective, "WORD",
      "of a server: what ranks it: tokens_per_s_per_gpu, tpot or ttft; with inference.load also ttft.p99 and its kin "
      "(default: tokens_per_s_per_gpu)");
  option("--max-ttft", args.max_ttft, "LIMITS",
         "of a server: reject what takes longer until the first tokens: 2s; with inference.load also p99=2s, or "
         "p50=500ms,p99=2s, of p50, p90, p99, longest (default: the scenario's gates)");
  option("--max-tpot", args.max_tpot, "LIMITS", "and what takes longer from token to token");
}

namespace {

/// The figure that a limit is on: "ttft_s", or of "p99" the requests' "ttft.p99_s"; nothing, and an error, of no word.
std::optional<std::string> limited_figure(const char* option, std::string_view figure, const std::string& statistic,
                                          const Location& where, Diagnostics& errors) {
  std::vector<std::string> words;
  for (const TimeStatistic& one : limited_statistics) words.emplace_back(one.name);
  if (!parse_word(option, statistic, words, errors)) {
    errors.back().where = where;
    return std::nullopt;
  }
  const auto found = std::ranges::find_if(
      gate_figures(), [&](const GateFigure& f) { return f.among == figure && f.statistic == statistic; });
  return std::string(found->name);
}

/// "2s", "p99=2s" or "500ms,p99=2s".
void parse_limits(const char* option, const std::string& text, const char* figure, Goals& goals, Diagnostics& errors) {
  if (text.empty()) return;
  const Location begin = typed(option, text);
  std::size_t from = 0;
  for (const std::string& limit : items_of(text)) {
    from = text.find(limit, from);
    Location where = begin;
    where.column += static_cast<int>(from);
    from += limit.size();
    const std::size_t equals = limit.find('=');
    const bool is_plain = equals == std::string::npos;
    const auto name = is_plain ? std::optional<std::string>(figure)
                               : limited_figure(option, figure, limit.substr(0, equals), where, errors);
    const std::string value = is_plain ? limit : limit.substr(equals + 1);
    const Parsed<Seconds> read = parse_seconds(value);
    if (!read.ok || read.value <= Seconds(0))
      errors.push_back({where, fmt::format("'{}' is no time to keep", shown(value)),
                        "expected a time above 0, such as 50ms, or p99=50ms"});
    else if (name && std::ranges::count(goals.limits, *name, &Gate::figure) > 0)
      errors.push_back({where, fmt::format("'{}' has its limit already", is_plain ? figure : limit.substr(0, equals)),
                        "expected each once"});
    else if (name)
      goals.limits.push_back({*name, read.value.count(), where});
  }
}

}  // namespace

Goals parse_goals(const GoalArgs& args, Diagnostics& errors) {
  Goals out;
  if (!args.objective.empty()) {
    const std::vector<ServingObjective> objectives = serving_objectives();
    std::vector<std::string> words;
    for (const ServingObjective& objective : objectives) words.push_back(to_string(objective));
    if (const auto index = parse_word("--objective", args.objective, words, errors)) out.objective = objectives[*index];
  }
  parse_limits("--max-ttft", args.max_ttft, "ttft_s", out, errors);
  parse_limits("--max-tpot", args.max_tpot, "tpot_s", out, errors);
  return out;
}

Diagnostics without_load(const Goals& goals, const GoalArgs& args, const Scenario& scenario) {
  Diagnostics wrong;
  if (scenario.step->serving && scenario.step->serving->load) return wrong;
  const auto refuse = [&](const Location& where, std::string_view what, const std::string& without) {
    wrong.push_back({where, fmt::format("{} is of the requests of a run, and the scenario has none", what),
                     "expected a scenario with 'inference.load', or a goal without a statistic, such as " + without});
  };
  if (goals.objective.statistic != nullptr)
    refuse(typed("--objective", args.objective), to_string(goals.objective),
           "--objective " + to_string(ServingObjective{goals.objective.figure}));
  for (const Gate& limit : goals.limits)
    if (const GateFigure& figure = gate_figure(limit.figure); figure.of == GateFigure::Of::load)
      refuse(limit.where, figure.name, figure.among == "ttft_s" ? "--max-ttft 2s" : "--max-tpot 50ms");
  return wrong;
}

Diagnostics gates_unchecked(const Scenario& scenario) {
  if (scenario.step->serving || scenario.gates.empty()) return {};
  return {{scenario.gates.front().where, "the scenario's gates are not checked in a plan of training",
           "collcast step checks them, of one layout"}};
}

std::vector<Gate> limits_of(const Scenario& scenario, const Goals& goals) {
  std::vector<Gate> out = scenario.gates;
  for (const Gate& limit : goals.limits) {
    std::erase_if(out, [&](const Gate& gate) { return gate.figure == limit.figure; });
    out.push_back(limit);
  }
  return out;
}

Diagnostics misplaced(const SpaceArgs& space, const GoalArgs& goals, const std::optional<LayoutQuestion>& why,
                      bool serves) {
  using Given = std::pair<const char*, bool>;
  const LayoutQuestion q = why.value_or(LayoutQuestion{});
  const std::vector<Given> of_training{{"--recompute", !space.recompute.empty()},
                                       {"--zero", !space.zero.empty()},
                                       {"--cp", !space.cp.empty()},
                                       {"--vpp", !space.vpp.empty()},
                                       {"--search", !space.search.empty()},
                                       {"--why recompute", q.recompute.has_value()},
                                       {"--why zero", q.zero.has_value()},
                                       {"--why cp", q.cp.has_value()},
                                       {"--why vpp", q.vpp.has_value()}};
  const std::vector<Given> of_servers{{"--batch", !space.batch.empty()},
                                      {"--objective", !goals.objective.empty()},
                                      {"--max-ttft", !goals.max_ttft.empty()},
                                      {"--max-tpot", !goals.max_tpot.empty()},
                                      {"--why batch", q.batch.has_value()}};
  Diagnostics wrong;
  for (const auto& [option, given] : serves ? of_training : of_servers)
    if (given)
      wrong.push_back(
          {command_line,
           fmt::format("{} is of {}, and the scenario {}", option, serves ? "training" : "a server",
                       serves ? "is of inference" : "trains"),
           serves
               ? "expected none of these; --tp, --pp, --dp, --ep, --batch, --micro-batch and --sequence-parallel are "
                 "searched"
               : "expected a scenario with 'inference', such as llama3-70b-inference-8xh100"});
  return wrong;
}

void override_space(const SpaceArgs& args, SearchSpace& space, Diagnostics& errors) {
  override_list("--tp", args.tp, read_degree, space.tp, errors);
  override_list("--pp", args.pp, read_degree, space.pp, errors);
  override_list("--dp", args.dp, read_degree, space.dp, errors);
  override_list("--cp", args.cp, read_degree, space.cp, errors);
  override_list("--ep", args.ep, read_degree, space.ep, errors);
  override_list("--micro-batch", args.micro_batch, read_batch, space.micro_batch, errors);
  override_list("--sequence-parallel", args.sequence_parallel, read_truth, space.sequence_parallel, errors);
  override_list("--recompute", args.recompute, read_recompute, space.recompute, errors);
  override_list("--zero", args.zero, read_zero, space.zero, errors);
  override_list("--vpp", args.vpp, read_chunks, space.vpp, errors);
  override_list("--batch", args.batch, read_batch, space.batch, errors);
  if (args.search.empty()) return;
  if (const auto all = parse_word("--search", args.search, {"usual", "all"}, errors))
    space.values = *all == 1 ? SearchValues::all : SearchValues::usual;
}

std::vector<std::string> keep_to_settings(const Scenario& scenario, const SpaceArgs& args, SearchSpace& space) {
  std::vector<std::string> out;
  const StepInputs& step = *scenario.step;
  const auto is_set = [&](const char* path) { return std::ranges::count(scenario.settings, path) > 0; };
  const auto is_free = [&](const std::string& path, const std::string& option) {
    return is_set(path.c_str()) && option.empty() && !is_set(("search" + path.substr(path.find('.'))).c_str());
  };
  const auto keep = [&](const char* path, const std::string& option, auto& values, auto value,
                        const std::string& text) {
    if (!is_free(path, option)) return;
    values = {value};
    out.push_back(fmt::format("the search keeps to {} {}, which was set", path, text));
  };
  keep("batch.micro_batch", args.micro_batch, space.micro_batch, step.batch.micro_batch,
       std::to_string(step.batch.micro_batch));
  keep("layout.sequence_parallel", args.sequence_parallel, space.sequence_parallel, step.layout.sequence_parallel,
       step.layout.sequence_parallel ? "true" : "false");
  keep("training.recompute", args.recompute, space.recompute, step.options.recompute,
       recomputes[static_cast<std::size_t>(step.options.recompute)]);
  keep("training.zero", args.zero, space.zero, step.options.zero, std::to_string(step.options.zero));
  keep("layout.vpp", args.vpp, space.vpp, step.layout.vpp, std::to_string(step.layout.vpp));
  if (const auto& serving = step.serving) {
    keep("inference.batch", args.batch, space.batch, serving->batch, std::to_string(serving->batch));
    const int sequences = serving->batch / serving->micro_batches;
    if (is_free("inference.microbatches", args.micro_batch) && space.micro_batch.empty()) {
      space.micro_batch = {sequences};
      out.push_back(fmt::format("the search keeps to micro-batches of {} sequences, as inference.microbatches was set",
                                sequences));
    }
  }
  // Where the machine was set too, DP only follows it.
  const bool resized = std::ranges::any_of(scenario.settings, [](const std::string& path) {
    return path == "nodes" || path == "ranks" || path == "topology";
  });
  const auto note = [&](const char* path, const std::string& option, const std::vector<int>& values) {
    if (is_free(path, option) && values.size() != 1)
      out.push_back(fmt::format("{} was set and is searched all the same: --{} keeps to one", path, path + 7));
  };
  note("layout.tp", args.tp, space.tp);
  note("layout.pp", args.pp, space.pp);
  note("layout.cp", args.cp, space.cp);
  if (!resized) note("layout.dp", args.dp, space.dp);
  if (step.model.experts.count > 0) note("layout.ep", args.ep, space.ep);
  return out;
}

std::optional<WhyQuestion> parse_why(const std::string& text, Diagnostics& errors) {
  if (text.find('=') == std::string::npos) {
    const auto rank = parse_count("--why", text, 1, errors);
    return rank ? std::optional<WhyQuestion>(*rank) : std::nullopt;
  }
  LayoutQuestion q;
  const std::vector<std::string> keys{
      "tp", "pp", "dp", "micro_batch", "vpp", "cp", "ep", "batch", "sequence_parallel", "recompute", "zero"};
  const std::size_t before = errors.size();
  std::set<std::string> given;
  for (const std::string& pair : items_of(text)) {
    const std::size_t equals = pair.find('=');
    const std::string value = equals == std::string::npos ? std::string() : pair.substr(equals + 1);
    const auto key = parse_word("--why", pair.substr(0, equals), keys, errors);
    if (!key) continue;
    if (!given.insert(keys[*key]).second) {
      errors.push_back({typed("--why", text), fmt::format("'{}' is given twice", keys[*key]),
                        "one layout is compared with the best: expected each key once"});
      continue;
    }
    const std::string option = "--why " + keys[*key];
    struct Count {
      std::optional<int>& of;
      decltype(&read_degree) read;
    };
    const std::array<Count, 8> counts{{{q.tp, read_degree},
                                       {q.pp, read_degree},
                                       {q.dp, read_degree},
                                       {q.micro_batch, read_batch},
                                       {q.vpp, read_chunks},
                                       {q.cp, read_degree},
                                       {q.ep, read_degree},
                                       {q.batch, read_batch}}};
    if (*key < counts.size())
      counts[*key].of = counts[*key].read(option, value, errors);
    else if (keys[*key] == "sequence_parallel")
      q.sequence_parallel = read_truth(option, value, errors);
    else if (keys[*key] == "recompute")
      q.recompute = read_recompute(option, value, errors);
    else
      q.zero = read_zero(option, value, errors);
  }
  if (errors.size() > before) return std::nullopt;
  return q;
}

}  // namespace collcast::cli
