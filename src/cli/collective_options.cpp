#include "cli/collective_options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/inputs.hpp"
#include "cli/values.hpp"
#include "collcast/base/text.hpp"
#include "collcast/base/units.hpp"
#include "collcast/evaluate/nodes.hpp"
#include "collcast/exchange/msccl_file.hpp"
#include "collcast/exchange/nccl_files.hpp"
#include "collcast/nccl/tuning.hpp"

namespace collcast::cli {

namespace {

std::vector<std::string> algorithm_words() {
  std::vector<std::string> out{"auto", "all"};
  for (const AlgorithmInfo& info : algorithms()) out.push_back(info.name);
  return out;
}

std::vector<std::string> nccl_algorithm_words() {
  std::vector<std::string> out{"auto", "all"};
  const std::vector<std::string> names = nccl::algorithm_names();
  out.insert(out.end(), names.begin(), names.end());
  return out;
}

std::optional<CollectiveKind> parse_kind(const std::string& text, Diagnostics& errors) {
  const auto kind = parse_collective(text);
  if (kind) return kind;
  const auto known = collective_names();
  errors.push_back(
      {command_line, text.empty() ? "KIND is missing: which collective?" : fmt::format("unknown collective '{}'", text),
       text.empty() ? fmt::format("expected one of: {}", fmt::join(known, ", ")) : expected_one_of(text, known)});
  return std::nullopt;
}

std::vector<Group> parse_groups(const CollectiveArgs& args, Diagnostics& errors) {
  std::vector<Group> out;
  for (const std::string& text : args.groups) {
    if (auto group = parse_group(text, errors)) out.push_back(std::move(*group));
  }
  return out;
}

int ranks_needed(const std::vector<Group>& groups) {
  std::uint32_t needed = 0;
  for (const Group& group : groups) {
    for (int i = 0; i < group.size(); ++i) needed = std::max(needed, group[i].value() + 1);
  }
  return static_cast<int>(needed);
}

}  // namespace

void add_collective_options(CLI::App& app, CollectiveArgs& args) {
  app.add_option("KIND", args.kind, fmt::format("{}", fmt::join(collective_names(), ", ")))->type_name("");
  add_machine_options(app, args.machine);
  app.add_option("--overlay", args.machine.overlay, "a calibration of the machine, by 'collcast calibrate'")
      ->type_name("FILE")
      ->group("Machine");
  const auto option = [&](const char* name, std::string& value, const char* type, const std::string& text) {
    return app.add_option(name, value, text)->type_name(type)->group("Collective");
  };
  const bool one = args.size.find(':') == std::string::npos;
  const std::string sizes = fmt::format(
      "{} (default: {})", one ? "8, 256KiB or 1GiB" : "256KiB, or several: 8,256KiB,1GiB; 8:16GiB:x2 or 8:64:+8 sweeps",
      args.size);
  option("--size", args.size, "SIZE", sizes);
  app.add_option("--group", args.groups, "ranks of the group: 0,1,8,9 or 0-7 or 0-56:8; repeat for several groups")
      ->type_name("RANKS")
      ->allow_extra_args(false)
      ->group("Collective");
  option("--groups-of", args.groups_of, "N[:STRIDE]", "cut the ranks into groups of N, STRIDE apart (default 1)");
  app.add_flag("--concurrent", args.concurrent, "all groups at once, so that contention shows")->group("Collective");
  option("--root", args.root, "INDEX", "root's place in the group (default: 0)");
  option("--algorithm", args.algorithm, "NAME",
         fmt::format("{} (default: auto){}; of library nccl: {}", fmt::join(algorithm_words(), ", "),
                     one ? "" : ", or msccl:FILE, an algorithm of your own as MSCCL's XML",
                     fmt::join(nccl_algorithm_words(), ", ")));
  option("--chunks", args.chunks, "S", "pieces that each message is cut into, or auto (default)");
  option("--channels", args.channels, "C", "rotated copies side by side, or auto (default)");
  const auto model = [&](const char* name, std::string& value, const char* text) {
    app.add_option(name, value, text)->type_name("WORD")->group("Model");
  };
  model("--method", args.method, "estimate, simulate or both (default: both, simulation only where it is quick)");
  model(
      "--sharing", args.sharing,
      "max_min: transfers share a link fairly (default); fifo: one at a time, each waits until all links of its route "
      "are free at once, so a slow transfer also blocks fast links");
  model("--library", args.library,
        "nccl: as NCCL runs it (default on NVIDIA GPUs); ideal: the textbook on "
        "the fabric (default elsewhere, and with options that only it has: --chunks, --channels, --concurrent, ...)");
  add_env_option(app, args.env);
  add_graph_option(app, args.files.graph);
  add_tuner_option(app, args.files.tuner);
}

std::optional<Sharing> parse_sharing(const std::string& text, Diagnostics& errors) {
  const auto index = parse_word("--sharing", text, {"max_min", "fifo"}, errors);
  if (!index) return std::nullopt;
  return *index == 0 ? Sharing::max_min : Sharing::fifo;
}

std::optional<Library> parse_library(const std::string& text, Diagnostics& errors) {
  if (text.empty()) return std::nullopt;
  const auto index = parse_word("--library", text, {"ideal", "nccl"}, errors);
  if (!index) return std::nullopt;
  return *index == 0 ? Library::ideal : Library::nccl;
}

void add_env_option(CLI::App& app, std::vector<std::string>& env) {
  app.add_option("--env", env, "a variable of NCCL's for --library nccl, such as NCCL_PROTO=LL (repeatable)")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->group("Model");
}

void add_graph_option(CLI::App& app, std::string& file) {
  app.add_option("--graph", file, "channels of library nccl by NCCL's graph XML (NCCL_GRAPH_FILE)")
      ->type_name("FILE")
      ->group("Model");
}

void add_tuner_option(CLI::App& app, std::string& file) {
  app.add_option("--tuner", file, "choices of library nccl by a table of its example tuner (NCCL_TUNER_CONFIG_FILE)")
      ->type_name("FILE")
      ->group("Model");
}

nccl::Files read_nccl_files(const NcclFileArgs& args, std::optional<Library> library, const Session& session,
                            Diagnostics& errors) {
  nccl::Files out;
  const auto text_of = [&](const char* option, const std::string& file) -> std::optional<std::string> {
    if (file.empty()) return std::nullopt;
    if (library == Library::ideal)
      errors.push_back(
          {command_line, fmt::format("{} has no meaning: it is about NCCL", option), "expected --library nccl"});
    Result<std::string> text = read_file(file, typed(option, file));
    append(errors, text.errors());
    return text ? std::optional(std::move(text).value()) : std::nullopt;
  };
  if (const auto text = text_of("--graph", args.graph)) {
    Result<exchange::ReadGraphs> read = exchange::read_nccl_graphs(*text, args.graph);
    append(errors, read.errors());
    if (read) {
      warn(session, read->warnings);
      out.graphs = std::make_shared<nccl::GraphFile>(std::move(read).value().file);
    }
  }
  if (const auto text = text_of("--tuner", args.tuner)) {
    Result<nccl::TunerFile> read = exchange::read_tuner_table(*text, args.tuner);
    append(errors, read.errors());
    if (read) out.tuner = std::make_shared<nccl::TunerFile>(std::move(read).value());
  }
  return out;
}

std::vector<nccl::Setting> parse_env(const std::vector<std::string>& env, std::optional<Library> library,
                                     Diagnostics& errors) {
  std::vector<nccl::Setting> out;
  for (const std::string& text : env) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      errors.push_back(
          {typed("--env", text), fmt::format("--env {}: no variable with a value", text), "expected NAME=VALUE"});
      continue;
    }
    const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
    const char* option = name == "NCCL_GRAPH_FILE" ? "--graph" : name == "NCCL_TUNER_CONFIG_FILE" ? "--tuner" : nullptr;
    if (option != nullptr)
      errors.push_back({typed("--env", text), fmt::format("{} is an option of its own here", name),
                        fmt::format("expected {} {}", option, shown(value))});
    out.push_back({name, value, typed("--env", text)});
  }
  if (!env.empty() && library == Library::ideal)
    errors.push_back({command_line, "--env has no meaning: the ideal library has no variables",
                      "expected library nccl, which runs on NVIDIA GPUs"});
  return out;
}

std::optional<Method> parse_method(const std::string& text, Diagnostics& errors) {
  if (text.empty()) return Method::both;
  const auto index = parse_word("--method", text, {"estimate", "simulate", "both"}, errors);
  if (!index) return std::nullopt;
  constexpr std::array methods{Method::estimate, Method::simulate, Method::both};
  return methods[*index];
}

namespace {

/// Options that only textbook algorithms have.
void refuse_ideal_options(const CollectiveArgs& args, Diagnostics& errors) {
  const auto refuse = [&](bool given, const char* option, const char* why, const char* hint) {
    if (given) errors.push_back({command_line, fmt::format("{}: {}", option, why), hint});
  };
  refuse(args.chunks != "auto", "--chunks", "NCCL cuts its chunks by the size of its buffers",
         "expected --env NCCL_BUFFSIZE=BYTES, or none");
  refuse(args.channels != "auto", "--channels", "NCCL's search finds the channels",
         "expected --env NCCL_MIN_NCHANNELS=C or NCCL_MAX_NCHANNELS=C");
  refuse(!args.faults.empty(), "--fault", "NCCL's model knows no single links", "expected --library ideal");
  refuse(args.concurrent, "--concurrent", "groups at once are not in library nccl yet",
         "expected --library ideal, or the groups one at a time");
  refuse(args.sharing == "fifo", "--sharing fifo", "NCCL's channels share links fairly", "expected --library ideal");
}

constexpr std::string_view brought_prefix = "msccl:";

bool is_brought(const CollectiveArgs& args) { return args.algorithm.starts_with(brought_prefix); }

bool has_word(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Whether NCCL ever runs the algorithm for that collective; both libraries have a ring and a tree.
bool is_run_by_nccl(const std::string& algorithm, std::optional<CollectiveKind> kind) {
  if (!has_word(nccl_algorithm_words(), algorithm)) return false;
  const std::optional<nccl::Algorithm> named = nccl::parse_algorithm(algorithm);
  return !named || !kind || nccl::does(*named, *kind);
}

/// An option that only the textbook's algorithms have; empty: none.
std::string ideal_option(const CollectiveArgs& args, std::optional<CollectiveKind> kind) {
  if (!args.of_ideal.empty()) return args.of_ideal;
  if (args.concurrent) return "--concurrent";
  if (!args.faults.empty()) return "--fault";
  if (args.chunks != "auto") return "--chunks";
  if (args.channels != "auto") return "--channels";
  if (args.sharing == "fifo") return "--sharing fifo";
  if (is_brought(args)) return "--algorithm msccl:FILE";
  const bool has_word_of_ideal = has_word(algorithm_words(), args.algorithm);
  return has_word_of_ideal && !is_run_by_nccl(args.algorithm, kind) ? "--algorithm " + args.algorithm : "";
}

/// Whether something is given that only NCCL has.
bool is_of_nccl(const CollectiveArgs& args) {
  const bool algorithm =
      has_word(nccl_algorithm_words(), args.algorithm) && !has_word(algorithm_words(), args.algorithm);
  return !args.env.empty() || !args.files.graph.empty() || !args.files.tuner.empty() || algorithm;
}

/// "auto", "all" or a name that the library has; one of the other library's is told as such.
void check_algorithm(const std::string& word, Library library, Diagnostics& errors) {
  const bool is_nccl = library == Library::nccl;
  const std::vector<std::string> own = is_nccl ? nccl_algorithm_words() : algorithm_words();
  if (!has_word(own, word) && has_word(is_nccl ? algorithm_words() : nccl_algorithm_words(), word)) {
    errors.push_back({typed("--algorithm", word),
                      fmt::format("'{}' is of library {}, not {}", word,
                                  to_string(is_nccl ? Library::ideal : Library::nccl), to_string(library)),
                      fmt::format("expected one of: {}", fmt::join(own, ", "))});
    return;
  }
  if (is_nccl && word == "p2p") {
    errors.push_back({typed("--algorithm", word), fmt::format("'{}' cannot be asked for", word),
                      "NCCL takes it by itself for alltoall, gather, scatter and sendrecv: expected auto"});
    return;
  }
  parse_word("--algorithm", word, own, errors);
}

/// The user's algorithm, and what cannot be asked of it.
std::optional<msccl::Algorithm> read_brought(const CollectiveArgs& args, std::optional<Library> library,
                                             std::optional<CollectiveKind> kind, const Session& session,
                                             Diagnostics& errors) {
  if (!is_brought(args)) return std::nullopt;
  const std::string file = args.algorithm.substr(brought_prefix.size());
  const auto refuse = [&](bool given, const char* option, const char* why, const char* hint) {
    if (given) errors.push_back({command_line, fmt::format("{}: {}", option, why), hint});
  };
  refuse(library == Library::nccl, "--algorithm msccl:FILE", "NCCL runs its own algorithms only",
         "expected --library ideal");
  refuse(args.channels != "auto", "--channels", "the file says which channels there are", "remove it");
  refuse(args.concurrent, "--concurrent", "groups at once run catalogued algorithms only", "remove it");
  const Result<std::string> text = read_file(file, typed("--algorithm", args.algorithm));
  append(errors, text.errors());
  if (!text) return std::nullopt;
  Result<exchange::ReadMsccl> read = exchange::read_msccl(*text, file);
  append(errors, read.errors());
  if (!read) return std::nullopt;
  warn(session, read->warnings);
  msccl::Algorithm out = std::move(read).value().algorithm;
  if (kind && out.kind != *kind)
    errors.push_back({out.where, fmt::format("{} is an algorithm of {}", out.name, to_string(out.kind)),
                      fmt::format("expected an algorithm of {}, as on the command line", to_string(*kind))});
  return out;
}

void check_ranks(const msccl::Algorithm& algorithm, const std::vector<Group>& groups, Diagnostics& errors) {
  const auto ranks = static_cast<int>(algorithm.gpus.size());
  for (const Group& group : groups)
    if (group.size() != ranks)
      return errors.push_back(
          {algorithm.where,
           fmt::format("{} is for {} ranks, and the group has {}", algorithm.name, ranks, group.size()),
           fmt::format("expected --groups-of {}, --group or --ranks that names so many", ranks)});
}

/// Those of --fault, which the machine has from then on.
std::vector<MachineFault> put_in_faults(const CollectiveArgs& args, std::optional<Machine>& machine,
                                        Diagnostics& errors) {
  if (args.faults.empty()) return {};
  const Result<std::vector<MachineFault>> faults = parse_faults(args.faults);
  if (!faults) {
    append(errors, faults.errors());
    return {};
  }
  for (const MachineFault& fault : *faults)
    if (fault.gpu() != nullptr)
      errors.push_back({fault.where, "a slow GPU has no effect on a collective, which does not compute",
                        "expected a fault of a link; 'collcast step --fault' takes both"});
  for (const MachineFault& fault : *faults)
    if (fault.link() != nullptr && fault.jitter() != nullptr)
      errors.push_back({fault.where, "jitter of a link has no effect on a collective by itself, which takes the mean",
                        "expected a fault without jitter; 'collcast step --fault' draws"});
  for (const MachineFault& fault : *faults)
    if (fault.comes_or_goes())
      errors.push_back({fault.from > Seconds{} ? fault.from_where : fault.until_where,
                        "the links of a collective stay as they are from its start to its end",
                        "expected a fault without 'from' and 'until'; those of 'collcast step --fault' may have them"});
  if (machine) {
    const Result<Fabric> faulty = with_faults(machine->fabric, *faults);
    append(errors, faulty.errors());
    if (faulty)
      for (const std::string& one : rates_without_effect(machine->fabric, *faults))
        machine->warnings.push_back({command_line, one, "a link by its name, 'A -> B', leaves others out"});
    if (faulty) machine->fabric = *faulty;
  }
  return *faults;
}

/// That one of the groups is on.
int most_nodes_of(const Fabric& fabric, const std::vector<Group>& groups) {
  int most = 0;
  for (const Group& group : groups) most = std::max(most, node_count(fabric, group));
  return most;
}

/// Where an option chose the textbook on a machine that runs NCCL. Naming an algorithm that only the textbook has says
/// what is meant; "also the links" does not, nor a name of NCCL's.
void warn_of_implied_library(const CollectiveArgs& args, const LibraryClues& clues, const std::string& of_ideal,
                             Machine& machine) {
  const bool names_it = of_ideal.starts_with("--algorithm") && !has_word(nccl_algorithm_words(), args.algorithm);
  const bool implied = !clues.named && clues.of_ideal && machine.library == Library::ideal && !names_it;
  if (implied && usual_library(machine.fabric.spec()) == Library::nccl)
    machine.warnings.push_back({command_line,
                                fmt::format("{} is of library ideal alone: this is the textbook, not NCCL", of_ideal),
                                "leave it out for what NCCL makes of it; --library ideal says that it is meant"});
}

/// What is asked of library nccl; nothing under the other.
struct NcclAsked {
  nccl::Environment environment;  ///< without the files
  nccl::Files files;
  std::optional<nccl::Algorithm> algorithm;
};

NcclAsked read_nccl(const CollectiveArgs& args, Library library, const Session& session, Diagnostics& errors) {
  NcclAsked out;
  const std::vector<nccl::Setting> settings = parse_env(args.env, library, errors);
  if (library == Library::nccl) {
    refuse_ideal_options(args, errors);
    Result<nccl::Environment> environment = nccl::read_environment(settings);
    append(errors, environment.errors());
    if (environment) out.environment = std::move(environment).value();
    out.algorithm = nccl::parse_algorithm(args.algorithm);
  }
  out.files = read_nccl_files(args.files, library, session, errors);
  return out;
}

CollectivePolicy parse_policy(const CollectiveArgs& args, Diagnostics& errors) {
  CollectivePolicy out;
  out.algorithm = args.algorithm == "all" ? "auto" : args.algorithm;
  out.chunks = parse_auto_or_count("--chunks", args.chunks, most_chunks, errors);
  out.channels = parse_auto_or_count("--channels", args.channels, most_channels, errors);
  return out;
}

std::optional<GroupsOf> parse_cut(const CollectiveArgs& args, Diagnostics& errors) {
  if (args.groups_of.empty()) return std::nullopt;
  const std::optional<GroupsOf> cut = parse_groups_of(args.groups_of, errors);
  if (!args.groups.empty())
    errors.push_back({command_line, "--group and --groups-of exclude each other", "expected one of the two"});
  return cut;
}

/// Those that were named, else the ranks cut as was asked, else all ranks as one.
std::vector<Group> settle_groups(std::vector<Group> named, const CollectiveArgs& args,
                                 const std::optional<GroupsOf>& cut, int ranks, Diagnostics& errors) {
  if (cut) return cut_into_groups(*cut, ranks, errors);
  if (args.groups.empty()) return {Group::strided(Rank(0), 1, ranks)};
  return named;
}

/// --ranks beside --group: only a teaching machine is sized by the one while the other picks.
void refuse_groups_beside_ranks(const CollectiveArgs& args, const Machine& machine, const std::vector<Group>& groups,
                                Diagnostics& errors) {
  if (args.machine.ranks.empty() || args.groups.empty()) return;
  const int needed = args.groups_of.empty() ? ranks_needed(groups) : 0;
  if (!machine.fabric.spec().teaching)
    errors.push_back({command_line, "--ranks and --group exclude each other on a machine that --ranks does not size",
                      "expected one of the two"});
  else if (needed > machine.ranks)
    errors.push_back({command_line, fmt::format("--group: rank {} is outside --ranks {}", needed - 1, machine.ranks),
                      fmt::format("expected ranks from 0 to {}, or --ranks {}", machine.ranks - 1, needed)});
}

/// What options say one by one; nothing where one cannot be read.
struct Asked {
  std::optional<CollectiveKind> kind;
  std::optional<Method> method;
  std::optional<Sharing> sharing;
  std::optional<int> root;
};

/// Options that are right each for itself.
void refuse_what_does_not_go_together(const CollectiveArgs& args, const Asked& asked,
                                      const std::optional<Machine>& machine, const std::vector<Group>& groups,
                                      Diagnostics& errors) {
  const auto& [kind, method, sharing, root] = asked;
  for (const Group& group : groups) {
    if (root && *root >= group.size())
      errors.push_back({command_line, fmt::format("--root: {} is outside a group of {} ranks", *root, group.size()),
                        fmt::format("expected an index from 0 to {}", group.size() - 1)});
  }
  if (args.concurrent && errors.empty() && groups.size() < 2)
    errors.push_back(
        {command_line, "--concurrent needs several groups", "expected --group twice or more, or --groups-of N"});
  if (kind && root && *root > 0 && !is_rooted(*kind))
    errors.push_back({command_line, fmt::format("--root has no meaning: {} has none", to_string(*kind)), "remove it"});
  if (method && sharing && *method == Method::estimate && *sharing == Sharing::fifo)
    errors.push_back({command_line, "--sharing fifo has no effect on --method estimate",
                      "the closed form always has fair shares; expected --method simulate or both"});
  if (machine) refuse_groups_beside_ranks(args, *machine, groups, errors);
}

}  // namespace

std::optional<CollectiveQuestion> understand(const CollectiveArgs& args, const Session& session, Diagnostics& errors) {
  Asked asked;
  asked.kind = parse_kind(args.kind, errors);
  Diagnostics wrong_groups, wrong_machine;
  std::vector<Group> groups = parse_groups(args, wrong_groups);
  const std::string of_ideal = ideal_option(args, asked.kind);
  const LibraryClues clues{parse_library(args.library, errors), !of_ideal.empty(), is_of_nccl(args)};
  auto machine = load_machine(args.machine, ranks_needed(groups), session, wrong_machine, clues);
  std::vector<MachineFault> faults = put_in_faults(args, machine, wrong_machine);
  if (machine) warn_of_implied_library(args, clues, of_ideal, *machine);
  // The library is settled from here on.
  const Library library = machine ? machine->library : chosen_library(clues, Library::ideal);
  const NcclAsked of_nccl = read_nccl(args, library, session, errors);
  asked.method = parse_method(args.method, errors);
  asked.sharing = parse_sharing(args.sharing, errors);
  std::vector<Bytes> sizes = parse_sizes(args.size, errors);
  asked.root = parse_count("--root", args.root, 0, errors);
  std::optional<msccl::Algorithm> brought = read_brought(args, library, asked.kind, session, errors);
  if (!is_brought(args)) check_algorithm(args.algorithm, library, errors);
  CollectivePolicy policy = parse_policy(args, errors);
  append(errors, wrong_groups);
  const std::optional<GroupsOf> cut = parse_cut(args, errors);
  append(errors, wrong_machine);
  if (machine) groups = settle_groups(std::move(groups), args, cut, machine->ranks, errors);
  if (machine && brought) check_ranks(*brought, groups, errors);
  refuse_what_does_not_go_together(args, asked, machine, groups, errors);
  if (!errors.empty()) return std::nullopt;
  append(machine->warnings, warnings(of_nccl.environment, most_nodes_of(machine->fabric, groups),
                                     machine->fabric.spec(), asked.kind == CollectiveKind::alltoall));
  return CollectiveQuestion{.kind = *asked.kind,
                            .fabric = std::move(machine->fabric),
                            .groups = std::move(groups),
                            .sizes = std::move(sizes),
                            .root = *asked.root,
                            .all_algorithms = args.algorithm == "all",
                            .policy = std::move(policy),
                            .method = *asked.method,
                            .method_given = !args.method.empty(),
                            .engine = EngineOptions{*asked.sharing},
                            .concurrent = args.concurrent,
                            .calibration = std::move(machine->calibration),
                            .warnings = std::move(machine->warnings),
                            .faults = std::move(faults),
                            .library = library,
                            .environment = with_files(of_nccl.environment, of_nccl.files),
                            .nccl_algorithm = of_nccl.algorithm,
                            .brought = std::move(brought)};
}

namespace {

/// None of the files that are read may be written.
Format check_output(const CollectiveArgs& args, const OutputOptions& output, Diagnostics& errors) {
  const Format format = parse_format(output, errors);
  append(errors, check_overwriting({args.files.graph, args.files.tuner}, {output.file}));
  return format;
}

}  // namespace

CollectiveOpening::CollectiveOpening(const CollectiveArgs& args, const LimitArgs& limits, const OutputOptions& output,
                                     const Session& session)
    : format(check_output(args, output, errors)),
      patience(limits, errors),
      question(understand(args, session, errors)) {
  if (!question) return;
  question->patience = &patience;
  question->engine.watch = patience.watch();
  question->engine.memory = Patience::room_now();
}

}  // namespace collcast::cli
