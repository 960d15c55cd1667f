#include "cli/validate_options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <map>
#include <ostream>
#include <set>

#include "cli/collective_options.hpp"
#include "cli/inputs.hpp"
#include "cli/values.hpp"
#include "collcast/base/numbers.hpp"
#include "collcast/base/text.hpp"
#include "collcast/validation/calibrate.hpp"

namespace collcast::cli {

namespace {

/// What the tables do not say themselves.
struct Missing {
  std::string collective;
  int nodes = 0, ranks = 0;
};

/// A table that says otherwise keeps what it says, unless it contradicts itself.
void fill(MeasuredTable& table, const Missing& missing) {
  MeasuredFacts& facts = table.facts;
  if (facts.collective.empty()) facts.collective = missing.collective;
  if (!facts.doubt.empty() && missing.ranks > 0) {
    facts.doubt.clear();
    facts.ranks = missing.ranks;
    if (missing.nodes > 0) facts.nodes = missing.nodes;
  }
  if (facts.ranks == 0) facts.ranks = missing.ranks;
  if (facts.nodes == 0) facts.nodes = missing.nodes > 0 ? missing.nodes : missing.ranks > 0 ? 1 : 0;
}

/// Tables that say otherwise than an option does.
struct Conflict {
  std::string option, value;
  std::vector<std::string> tables;  ///< with what they say
};

std::vector<Conflict> conflicts(const std::vector<MeasuredTable>& tables, const Missing& missing) {
  Conflict kind{"--collective", missing.collective, {}}, ranks{"--ranks", std::to_string(missing.ranks), {}},
      nodes{"--nodes", std::to_string(missing.nodes), {}};
  for (const MeasuredTable& table : tables) {
    const MeasuredFacts& facts = table.facts;
    const auto says = [&](Conflict& of, const std::string& what) {
      of.tables.push_back(fmt::format("'{}' says {}", facts.id, what));
    };
    if (!missing.collective.empty() && facts.collective != missing.collective) says(kind, facts.collective);
    if (missing.ranks > 0 && facts.ranks != missing.ranks) says(ranks, std::to_string(facts.ranks));
    if (missing.nodes > 0 && facts.nodes != missing.nodes) says(nodes, std::to_string(facts.nodes));
  }
  std::vector<Conflict> out;
  for (Conflict& one : std::array{std::move(kind), std::move(ranks), std::move(nodes)})
    if (!one.tables.empty()) out.push_back(std::move(one));
  return out;
}

/// Of no table an option is a mistake; of some it is told.
void look_for_conflicts(const std::vector<MeasuredTable>& tables, const Missing& missing, const Session& session,
                        Diagnostics& errors) {
  constexpr std::size_t most_named = 3;
  for (const Conflict& one : conflicts(tables, missing)) {
    std::vector<std::string> named = one.tables;
    if (named.size() > most_named) {
      named.resize(most_named);
      named.push_back(fmt::format("and {} more otherwise", one.tables.size() - most_named));
    }
    const std::string what = fmt::format("{} {}, but table {}", one.option, one.value, fmt::join(named, ", "));
    if (one.tables.size() == tables.size())
      errors.push_back({command_line, what, "it is for logs that do not say; remove the option"});
    else
      session.err << fmt::format("{}: warning: {}: what a table says counts\n", to_text(command_line), what);
  }
}

Missing parse_missing(const MeasuredArgs& args, Diagnostics& errors) {
  Missing out;
  if (!args.collective.empty()) {
    const auto index = parse_word("--collective", args.collective, collective_names(), errors);
    if (index) out.collective = collective_names()[*index];
  }
  if (!args.machine.nodes.empty())
    out.nodes = parse_count("--nodes", args.machine.nodes, 1, errors, most_nodes).value_or(0);
  if (!args.machine.ranks.empty()) out.ranks = parse_count("--ranks", args.machine.ranks, 1, errors).value_or(0);
  if (args.measured.empty() && (out.nodes > 0 || out.ranks > 0 || !out.collective.empty()))
    errors.push_back({command_line, "--nodes, --ranks and --collective are for logs that do not say",
                      "the shipped tables do; name a log with --measured"});
  return out;
}

std::optional<SizePart> parse_part(const std::string& text, Diagnostics& errors) {
  if (text.empty()) return SizePart{};
  const std::size_t slash = text.find('/');
  Diagnostics wrong;
  if (slash != std::string::npos) {
    const auto of = parse_count("--part", text.substr(slash + 1), 1, wrong, 1000);
    const auto index = parse_count("--part", text.substr(0, slash), 1, wrong, of.value_or(1000));
    if (of && index) return SizePart{*index, *of};
  }
  errors.push_back({typed("--part", text), fmt::format("'{}' is no part", text),
                    "expected I/N with I from 1 to N, such as 1/2 for every second size"});
  return std::nullopt;
}

std::optional<Machines> find_machines(const MeasuredArgs& args, const Session& session, Diagnostics& errors) {
  const std::vector<Override> overrides = parse_overrides(args.machine, "", errors);
  if (args.machine.topology.empty()) {
    if (!overrides.empty())
      errors.push_back({command_line, "--set, --link-bandwidth and --link-latency need --topology: of which machine?",
                        "expected --topology NAME|FILE"});
    Result<Machines> all = Machines::shipped(session.search);
    if (all) return std::move(all).value();
    append(errors, all.errors());
    return std::nullopt;
  }
  Result<TopologySpec> spec = load_topology(args.machine.topology, session.search, overrides);
  if (spec) return Machines::only(std::move(spec).value(), texts(overrides));
  append(errors, spec.errors());
  return std::nullopt;
}

std::vector<std::string> places(const MeasuredArgs& args, const Session& session, Diagnostics& errors) {
  if (std::count(args.measured.begin(), args.measured.end(), "-") > 1)
    errors.push_back({command_line, "--measured: standard input is named twice", "expected '-' once"});
  if (!args.measured.empty()) return args.measured;
  if (session.search.measured.empty())
    errors.push_back({command_line, "no shipped measurements were found", "expected --measured DIR|FILE"});
  return session.search.measured;
}

/// Rows without a usable time, of each file the first few.
Diagnostics few_of_each_file(const Diagnostics& rows, const std::map<std::string, std::size_t>& more) {
  constexpr std::size_t most = 10;
  Diagnostics out;
  std::map<std::string, std::size_t> seen;
  for (const Diagnostic& row : rows)
    if (++seen[row.where.file] <= most) out.push_back(row);
  for (const auto& [file, count] : more) seen[file] += count;
  for (const auto& [file, count] : seen)
    if (count > most)
      out.push_back({{file}, fmt::format("{} more rows without a usable time are left out", count - most), ""});
  return out;
}

/// Of a file that an earlier path has brought already nothing counts again, nor is it said again.
void count_once(Readings& more, std::set<std::filesystem::path>& files) {
  std::set<std::filesystem::path> own;
  std::set<std::string> again;
  std::error_code ignored;
  std::erase_if(more.tables, [&](const MeasuredTable& table) {
    std::filesystem::path file = std::filesystem::weakly_canonical(table.file, ignored);
    if (files.count(file) > 0) again.insert(table.file);
    own.insert(std::move(file));
    return again.count(table.file) > 0;
  });
  files.merge(own);
  std::set<std::string> silent = again;  // and their sidecars
  for (const std::string& file : again)
    for (const char* sidecar : {".yaml", ".yml"})
      silent.insert(std::filesystem::path(file).replace_extension(sidecar).string());
  const auto is_again = [&](const Diagnostic& said) { return silent.count(said.where.file) > 0; };
  std::erase_if(more.warnings, is_again);
  std::erase_if(more.untimed, is_again);
  std::erase_if(more.wrong, is_again);
  for (const std::string& file : again) {
    more.more_untimed.erase(file);
    more.warnings.push_back({{file}, "this file is given twice", "it counts once"});
  }
}

/// As documents say it: at its file, without the folder.
std::string of_its_file(const Diagnostic& warning) {
  Location where = warning.where;
  where.file = std::filesystem::path(where.file).filename().string();
  return fmt::format("{}: {}", to_text(where), warning.message);
}

/// What paths hold, together, and what is said of it in documents.
struct Loaded {
  Readings readings;
  std::vector<std::string> said;
};

/// Tables have names apart, and what is left out is told, once.
void settle(Loaded& all) {
  Readings& readings = all.readings;
  for (Diagnostic& renamed : name_apart(readings.tables)) {
    all.said.push_back(of_its_file(renamed));
    readings.warnings.push_back(std::move(renamed));
  }
  for (const Diagnostic& reason : readings.unread)
    readings.warnings.push_back({reason.where, reason.message + ": the file is left out", reason.hint});
  const Diagnostics untimed = few_of_each_file(readings.untimed, readings.more_untimed);
  append(readings.warnings, untimed);
  append(readings.unread, untimed);
  append(readings.unread, readings.wrong);  // which were said as warnings of their file
}

/// Each path and each file once.
Loaded load_all(const std::vector<std::string>& paths, Diagnostics& errors) {
  Loaded out;
  Readings& all = out.readings;
  std::set<std::filesystem::path> seen, files;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!seen.insert(std::filesystem::weakly_canonical(path, ignored)).second) {
      all.warnings.push_back(
          {typed("--measured", path), fmt::format("'{}' is given twice", shown(path)), "it counts once"});
      continue;
    }
    Result<Readings> one =
        path == "-" ? load_measured_stream(std::cin, "standard input") : load_measured(path, typed("--measured", path));
    if (!one) {
      append(errors, one.errors());
      continue;
    }
    Readings readings = std::move(one).value();
    count_once(readings, files);
    std::move(readings.tables.begin(), readings.tables.end(), std::back_inserter(all.tables));
    for (const Diagnostic& warning : readings.warnings) out.said.push_back(of_its_file(warning));
    append(all.warnings, readings.warnings);
    append(all.unread, readings.unread);
    append(all.untimed, readings.untimed);
    append(all.wrong, readings.wrong);
    all.more_untimed.merge(readings.more_untimed);
  }
  settle(out);
  return out;
}

void print_warnings(const Diagnostics& warnings, const Session& session) {
  for (const Diagnostic& warning : warnings)
    session.err << fmt::format("{}: warning: {}\n", to_text(warning.where), warning.message)
                << (warning.hint.empty() ? std::string() : fmt::format("    note: {}\n", warning.hint));
}

/// The files of tables and machines, and the overlay's, which no output may be.
std::vector<std::string> measured_inputs(const MeasuredArgs& args, const std::vector<std::string>& paths,
                                         const std::optional<Machines>& machines) {
  std::vector<std::string> out{args.machine.overlay};
  for (const std::string& path : paths)
    for (std::string& file : files_of_measured(path)) out.push_back(std::move(file));
  if (machines)
    for (const TopologySpec& spec : machines->specs())
      for (std::string& file : files_of_machine(spec)) out.push_back(std::move(file));
  return out;
}

/// Tables that --part leaves no row of; where none is left at all, that is an error.
std::vector<UnscoredTable> take_part(const MeasuredArgs& args, const SizePart& part, std::vector<MeasuredTable>& tables,
                                     Diagnostics& errors) {
  std::vector<UnscoredTable> emptied = keep_part(tables, part);
  if (tables.empty())
    for (const UnscoredTable& table : emptied)
      errors.push_back({typed("--part", args.part), fmt::format("table '{}': {}", table.id, table.why), table.hint});
  return emptied;
}

}  // namespace

void add_measured_options(CLI::App& app, MeasuredArgs& args) {
  app.add_option(
         "--measured", args.measured,
         "tables, logs of nccl-tests (text or -J), folders of them, or '-' for standard input (default: the shipped "
         "tables)")
      ->type_name("DIR|FILE...")
      ->group("Measured");
  const auto option = [&](const char* name, std::string& value, const char* type, const char* text) {
    app.add_option(name, value, text)->type_name(type)->group("Measured");
  };
  option("--collective", args.collective, "KIND", "of logs that do not name theirs");
  option("--statistic", args.statistic, "WORD",
         "mean (default), median or min of a row's repetitions, where its sidecar has them");
  option("--part", args.part, "I/N", "of each table's sizes every N-th, beginning with the I-th");
  add_machine_options(app, args.machine);
  app.get_option("--topology")
      ->description("the machine of all tables (default: the one that lists a table's system, else the likest)");
  app.get_option("--nodes")->description("of logs that do not name their devices");
  app.get_option("--ranks")->description("of logs that do not name their devices");
}

std::optional<Measured> read_measured(const MeasuredArgs& args, const Session& session, Diagnostics& errors) {
  const Missing missing = parse_missing(args, errors);
  const std::optional<SizePart> part = parse_part(args.part, errors);
  const auto statistic = parse_word("--statistic", args.statistic, {"mean", "median", "min"}, errors);
  std::optional<Machines> machines = find_machines(args, session, errors);
  const std::vector<std::string> paths = places(args, session, errors);
  append(errors, check_overwriting(measured_inputs(args, paths, machines), args.machine.outputs));
  Loaded all = load_all(paths, errors);
  print_warnings(all.readings.warnings, session);
  if (!errors.empty() || !machines) return std::nullopt;
  std::vector<MeasuredTable>& tables = all.readings.tables;
  for (MeasuredTable& table : tables) fill(table, missing);
  look_for_conflicts(tables, missing, session, errors);
  if (!errors.empty()) return std::nullopt;
  machines->derive(tables);
  std::vector<UnscoredTable> emptied = take_part(args, *part, tables, errors);
  if (!errors.empty()) return std::nullopt;
  return Measured{.tables = std::move(tables),
                  .unread = std::move(all.readings.unread),
                  .emptied = std::move(emptied),
                  .machines = std::move(*machines),
                  .statistic = static_cast<Statistic>(*statistic),
                  .said = std::move(all.said)};
}

std::vector<TopologySpec> specs_of(const MachineOptions& machine, const Session& session, Diagnostics& errors) {
  const std::vector<Override> overrides = parse_overrides(machine, "", errors);
  if (machine.topology.empty()) {
    if (!overrides.empty())
      errors.push_back({command_line, "--set, --link-bandwidth and --link-latency need --topology: of which machine?",
                        "expected --topology NAME|FILE"});
    const Result<Machines> all = Machines::shipped(session.search);
    append(errors, all.errors());
    return all ? all->specs() : std::vector<TopologySpec>();
  }
  const Result<TopologySpec> spec = load_topology(machine.topology, session.search, overrides);
  append(errors, spec.errors());
  return spec ? std::vector<TopologySpec>{*spec} : std::vector<TopologySpec>();
}

std::vector<std::string> inputs_of(const std::vector<std::string>& paths, const std::vector<TopologySpec>& machines) {
  std::vector<std::string> out;
  for (const std::string& path : paths)
    for (std::string& file : files_of(path, ".csv")) out.push_back(std::move(file));
  for (const TopologySpec& machine : machines)
    for (std::string& file : files_of_machine(machine)) out.push_back(std::move(file));
  return out;
}

std::optional<double> parse_limit(std::string_view limit, const Location& where, Diagnostics& errors) {
  const std::string limit_text(limit);
  const bool has_sign = limit.ends_with('%');
  if (has_sign) limit.remove_suffix(1);
  const auto percent = to_number<double>(limit);
  if (!has_sign || !percent || !(*percent > 0) || *percent > 10'000) {
    errors.push_back(
        {where, fmt::format("the limit is '{}'", limit_text), "expected a percentage above 0%, to 10000%, such as 8%"});
    return std::nullopt;
  }
  return *percent / 100;
}

std::optional<RowBudget> parse_row_budget(std::string_view text, Location where, const RowBudgetWords& words,
                                          Diagnostics& errors) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    errors.push_back({where, fmt::format("'{}' is no budget", text), words.form});
    return std::nullopt;
  }
  const auto known = [&](const std::string& word, std::set<std::string> may_be, const char* what) {
    may_be.insert("all");
    if (may_be.count(word) > 0) return true;
    errors.push_back({where, fmt::format("unknown {} '{}'", what, word),
                      expected_one_of(word, std::vector<std::string>(may_be.begin(), may_be.end()))});
    return false;
  };
  const std::string name(text.substr(0, equals));
  const std::size_t dot = name.rfind('.');
  RowBudget out{dot == std::string::npos ? "all" : name.substr(0, dot),
                dot == std::string::npos ? name : name.substr(dot + 1), 0};
  if (!known(out.source, words.sources, words.source_name) || !known(out.word, words.words, words.word_name))
    return std::nullopt;
  for (std::string* word : {&out.source, &out.word})
    if (*word == "all") word->clear();
  where.column += static_cast<int>(equals) + 1;
  const std::optional<double> limit = parse_limit(text.substr(equals + 1), where, errors);
  if (!limit) return std::nullopt;
  out.limit = *limit;
  return out;
}

void for_each_budget(const std::vector<std::string>& texts,
                     const std::function<void(std::string_view, const Location&)>& parse, Diagnostics& errors) {
  std::set<std::string_view> given;
  for (const std::string& text : texts) {
    std::string_view rest = text;
    Location where = typed("--budget", text);
    while (true) {
      const std::size_t comma = rest.find(',');
      const std::string_view one = rest.substr(0, comma), name = one.substr(0, one.find('='));
      if (name.size() < one.size() && !given.insert(name).second)
        errors.push_back({where, fmt::format("a second budget of '{}'", name), "expected each once"});
      parse(one, where);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
      where.column += static_cast<int>(comma) + 1;
    }
  }
}

namespace {

std::optional<Budget> parse_budget(std::string_view text, Location where, Diagnostics& errors) {
  const char* const form = "expected BAND=PERCENT or COLLECTIVE.BAND=PERCENT, such as large=8% or all_reduce.small=30%";
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || text.empty()) {
    errors.push_back({where, fmt::format("'{}' is no budget", text), form});
    return std::nullopt;
  }
  Budget out;
  std::string_view name = text.substr(0, equals), limit = text.substr(equals + 1);
  if (const std::size_t dot = name.find('.'); dot != std::string_view::npos) {
    out.collective = std::string(name.substr(0, dot));
    if (!parse_collective(out.collective)) {
      errors.push_back({where, fmt::format("unknown collective '{}'", out.collective),
                        expected_one_of(out.collective, collective_names())});
      return std::nullopt;
    }
    name.remove_prefix(dot + 1);
    where.column += static_cast<int>(dot) + 1;
  }
  const std::vector<std::string> words{"small", "medium", "large"};
  const auto band = std::find(words.begin(), words.end(), name);
  if (band == words.end()) {
    errors.push_back({where, fmt::format("unknown band '{}'", name), expected_one_of(std::string(name), words)});
    return std::nullopt;
  }
  out.band = bands[static_cast<std::size_t>(band - words.begin())];
  where.column += static_cast<int>(name.size()) + 1;
  const std::optional<double> share = parse_limit(limit, where, errors);
  if (!share) return std::nullopt;
  out.limit = *share;
  return out;
}

}  // namespace

std::vector<Budget> parse_budgets(const std::vector<std::string>& texts, Diagnostics& errors) {
  std::vector<Budget> out;
  for_each_budget(
      texts,
      [&](std::string_view text, const Location& where) {
        if (auto budget = parse_budget(text, where, errors)) out.push_back(*budget);
      },
      errors);
  return out;
}

CollectivePolicy policy_of(const std::string& text, const std::vector<std::string>& env, Diagnostics& errors) {
  const std::optional<Library> library = parse_library(text.empty() ? "nccl" : text, errors);
  Result<nccl::Environment> environment = nccl::read_environment(parse_env(env, library, errors));
  append(errors, environment.errors());
  CollectivePolicy out;
  out.library = library.value_or(Library::nccl);
  if (environment) out.environment = std::move(environment).value();
  return out;
}

std::string reached_text(std::size_t reached, std::size_t not_reached, const char* what) {
  return fmt::format("{} of {} {} were reached", reached, reached + not_reached, what);
}

Exit exit_of(Exit concluded, bool is_part, bool has_budgets, const Patience& patience, const Session& session) {
  if (concluded != Exit::ok || !is_part || !has_budgets) return patience.exit(concluded);
  say(session, {"no budget is called met: what was not reached may be above it"});
  return Exit::gate_failed;
}

}  // namespace collcast::cli
