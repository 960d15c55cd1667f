// collcast topology list, show, check, import, export: the machines.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/collective_options.hpp"
#include "cli/commands.hpp"
#include "cli/foreign_machine.hpp"
#include "cli/inputs.hpp"
#include "cli/machine.hpp"
#include "cli/output.hpp"
#include "cli/values.hpp"
#include "collcast/nccl/channels.hpp"
#include "collcast/nccl/communicator.hpp"
#include "collcast/report/documents.hpp"

namespace collcast::cli {

namespace {

struct TopologyArgs {
  MachineOptions machine;  ///< `topology` is the positional
  bool nccl = false;
  std::string graph;  ///< to compare NCCL's channels with
  std::vector<std::string> env;
  std::string rank;
  OutputOptions output;
  ImportArgs import;
  ExportArgs exported;
};

Exit run_list(const TopologyArgs& args, const Session& session) {
  Diagnostics errors, unread;
  const Format format = parse_format(args.output, errors);
  TopologyListing listing;
  for (const TopologyEntry& entry : list_topologies(session.search)) {
    const Result<TopologySpec> spec = load_topology(entry.name, session.search);
    if (!spec) {
      unread.push_back(first_of(spec.errors()));
      continue;
    }
    int ranks = 0;
    for (const DeviceGroup& group : spec->devices) {
      if (group.kind == DeviceKind::gpu || group.kind == DeviceKind::host) ranks = group.count;
    }
    append(errors, check_overwriting(files_of_machine(*spec), args.machine.outputs));
    listing.entries.push_back({entry.name, spec->title, spec->gpu.model, ranks, spec->default_nodes, spec->teaching});
  }
  if (!errors.empty()) return refuse(session, errors);
  if (listing.entries.empty() && !unread.empty()) return refuse(session, unread);
  if (listing.entries.empty())
    return refuse(session, {{command_line, fmt::format("no machines in {}", fmt::join(session.search.topologies, ", ")),
                             "COLLCAST_DATA names the folder that holds topologies/ and scenarios/"}});
  const Exit listed = deliver(session, listing, format, args.output);
  return listed != Exit::ok || unread.empty() ? listed : refuse(session, unread);
}

/// Of one pattern, in a line.
std::string compared_graph(const char* what, const nccl::Graph& own, const nccl::Graph& stated) {
  const auto text = [](const nccl::Graph& graph) {
    return fmt::format("{} x {:g}/{:g} GB/s {}/{}", graph.channels, graph.inside.value() / 1e9,
                       graph.between.value() / 1e9, to_string(graph.type_inside), to_string(graph.type_between));
  };
  const bool same = text(own) == text(stated);
  return fmt::format("{}: search {}, file {}{}", what, text(own), text(stated),
                     !same                       ? ": differs"
                     : own.order == stated.order ? ": the same"
                                                 : ": the same, in other orders");
}

/// Of a CollNet graph.
std::string compared_collnet(const nccl::Communicator& own, const nccl::StatedGraph& stated) {
  const char* what = stated.id == nccl::GraphId::collnet_chain ? "CollNet chain" : "CollNet direct";
  if (!own.collnet) return fmt::format("{}: not used, {}", what, own.without_collnet);
  if (stated.id == nccl::GraphId::collnet_direct && !own.collnet->direct)
    return fmt::format("{}: the search has none, the file has", what);
  return compared_graph(what, stated.id == nccl::GraphId::collnet_chain ? own.collnet->chain : *own.collnet->direct,
                        stated.graph);
}

std::vector<std::string> compared_graphs(const nccl::Communicator& own, const nccl::Communicator& stated,
                                         const nccl::GraphFile& file) {
  std::vector<std::string> out{fmt::format("beside {}:", file.name)};
  for (const nccl::StatedGraph& graph : file.graphs) {
    if (graph.id == nccl::GraphId::ring) out.push_back(compared_graph("ring", own.ring, graph.graph));
    if (graph.id == nccl::GraphId::tree) out.push_back(compared_graph("tree", own.tree, graph.graph));
    if (graph.id == nccl::GraphId::nvls && own.nvls) out.push_back(compared_graph("NVLS", *own.nvls, graph.graph));
    if (graph.id == nccl::GraphId::nvls && !own.nvls) out.push_back("NVLS: the search has none, the file has");
    if (graph.is_collnet()) out.push_back(compared_collnet(own, graph));
  }
  out.push_back(fmt::format("coll channels: {} by the search, {} by the file", own.channels, stated.channels));
  return out;
}

/// Options that are about NCCL's channels, without these.
Diagnostics useless_without_nccl(const TopologyArgs& args) {
  Diagnostics out;
  const auto refuse = [&](const char* option, const char* what, bool given) {
    if (given && !args.nccl)
      out.push_back({command_line, fmt::format("{} {} NCCL's channels", option, what), "expected --nccl too"});
  };
  refuse("--graph", "is compared with", !args.graph.empty());
  refuse("--env", "is about", !args.env.empty());
  refuse("--rank", "is about", !args.rank.empty());
  return out;
}

/// NCCL's lines, and the channels that run: the file's where there is one.
Diagnostics add_nccl(const Fabric& fabric, const nccl::Environment& environment, const nccl::Files& files, int rank,
                     TopologyReport& report) {
  const Group all = Group::strided(Rank(0), 1, fabric.rank_count());
  const Result<nccl::Communicator> own = nccl::connect(fabric, all, environment);
  if (!own) return own.errors();
  const auto add = [&](const std::vector<std::string>& lines) {
    report.nccl.insert(report.nccl.end(), lines.begin(), lines.end());
  };
  add(graph_lines(*own));
  std::optional<Result<nccl::Communicator>> stated;
  if (files.graphs) {
    stated = nccl::connect(fabric, all, with_files(environment, files));
    if (!*stated) return stated->errors();
    add(compared_graphs(*own, **stated, *files.graphs));
  }
  const nccl::Communicator& run = stated ? **stated : *own;
  report.nccl_channels = channels(fabric, all, run);
  add(channel_lines(run, report.nccl_channels, rank));
  return {};
}

Exit run_show(const TopologyArgs& args, const Session& session) {
  Diagnostics errors;
  const Format format = parse_format(args.output, errors);
  const auto machine = load_machine(args.machine, 0, session, errors);
  const Result<nccl::Environment> environment = nccl::read_environment(parse_env(args.env, Library::nccl, errors));
  append(errors, environment.errors());
  const nccl::Files files = read_nccl_files({args.graph, {}}, Library::nccl, session, errors);
  const int ranks = machine ? machine->fabric.rank_count() : 1'000'000'000;
  const int rank = args.rank.empty() ? 0 : parse_count("--rank", args.rank, 0, errors, ranks - 1).value_or(0);
  append(errors, useless_without_nccl(args));
  append(errors, check_overwriting({args.machine.topology, args.graph}, {args.output.file}));
  if (!errors.empty()) return refuse(session, errors);
  TopologyReport report = describe(machine->fabric);
  Diagnostics warnings = machine->warnings;
  if (args.nccl) append(warnings, nccl::warnings(*environment, machine->fabric.nodes(), machine->fabric.spec()));
  report.said = warn(session, warnings);
  if (args.nccl) {
    const Diagnostics wrong = add_nccl(machine->fabric, *environment, files, rank, report);
    if (!wrong.empty()) return refuse(session, wrong);
    if (const auto names = nccl::unused(*environment, machine->fabric.nodes(), machine->fabric.spec()); !names.empty())
      report.nccl.push_back(fmt::format("no effect here: {}", fmt::join(names, ", ")));
  }
  return deliver(session, report, format, args.output);
}

/// All that a machine is read from, as far as it could be, and where `errors` are.
std::vector<std::string> files_read(const TopologyArgs& args, const Session& session, const Diagnostics& errors) {
  std::vector<std::string> out{args.machine.topology};
  for (const Diagnostic& error : errors) out.push_back(error.where.file);
  if (const auto unset = load_topology(args.machine.topology, session.search))
    for (std::string& file : files_of_machine(*unset)) out.push_back(std::move(file));
  return out;
}

/// A machine is found by its file's name, whatever it calls itself.
Diagnostics misnamed(const TopologySpec& spec) {
  const std::filesystem::path file = spec.file;
  if (spec.file == "-" || file.stem() == spec.name) return {};
  return {{{spec.file},
           fmt::format("name is '{}', the file is called '{}'", spec.name, file.filename().string()),
           fmt::format("commands and lists know it by its file: '{}'", file.stem().string())}};
}

/// What other commands would refuse of the machine by their default: of a node's GPUs, or of two nodes with one each.
Diagnostics refused_by_nccl(const Fabric& fabric) {
  const int ranks = std::min(fabric.rank_count(), std::max(2, fabric.ranks_per_node()));
  if (ranks < 2 || !nccl::compute_capability(fabric.spec().gpu.model)) return {};
  const auto joined = nccl::connect(fabric, Group::strided(Rank(0), 1, ranks));
  if (joined) return {};
  Diagnostics out = joined.errors();
  for (Diagnostic& one : out) one.message = "--library nccl refuses the machine: " + one.message;
  return out;
}

Exit run_check(const TopologyArgs& args, const Session& session) {
  Diagnostics errors;
  const Format format = parse_format(args.output, errors);
  if (!errors.empty()) return refuse(session, errors);
  const auto machine = load_machine(args.machine, 0, session, errors);
  Diagnostics overwriting;
  if (machine && !machine->fabric.spec().gpu.kernels.empty()) {
    const Result<KernelModel> kernels = load_kernels(machine->fabric.spec(), session.search);
    append(errors, kernels.errors());
    if (kernels) overwriting = check_overwriting(files_of_kernels(*kernels), args.machine.outputs);
  }
  append(overwriting, check_overwriting(files_read(args, session, errors), args.machine.outputs));
  if (machine && errors.empty() && overwriting.empty()) {
    Diagnostics warnings = machine->warnings;
    append(warnings, misnamed(machine->fabric.spec()));
    append(warnings, refused_by_nccl(machine->fabric));
    TopologyReport report = describe(machine->fabric);
    report.said = warn(session, warnings);
    return deliver(session, CheckReport{machine->fabric.spec().name, std::move(report), {}}, format, args.output);
  }
  // A program gets the errors as its document, a person reads them on the error stream.
  if (format == Format::json && overwriting.empty())
    deliver(session, CheckReport{std::filesystem::path(args.machine.topology).stem().string(), std::nullopt, errors},
            format, args.output);
  append(errors, overwriting);
  return refuse(session, errors);
}

/// The positional and the options that change or size a machine.
void add_target(CLI::App& app, MachineOptions& machine, const char* name) {
  app.add_option(name, machine.topology, "a machine of 'collcast topology list', a file, or - for standard input")
      ->type_name("")
      ->required();
  const auto option = [&](const char* option_name, std::string& value, const char* type, const char* text) {
    app.add_option(option_name, value, text)->type_name(type)->group("Machine");
  };
  option("--nodes", machine.nodes, "N", "number of nodes (default: the file's)");
  option("--ranks", machine.ranks, "K", "sizes a teaching machine");
  option("--link-bandwidth", machine.link_bandwidth, "RATE", "of the network's links");
  option("--link-latency", machine.link_latency, "TIME", "of the network's links");
  app.add_option("--set", machine.sets, "change one value of the file for this run (repeatable)")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false)
      ->group("Machine");
}

/// What of NCCL is shown.
void add_nccl_options(CLI::App& app, TopologyArgs& args) {
  app.add_flag("--nccl", args.nccl,
               "also NCCL's channels, their speeds, rings and trees among all ranks, as NCCL_DEBUG=INFO prints them")
      ->group("Machine");
  app.add_option("--rank", args.rank, "with --nccl: whose Ring and Trees lines (default: 0)")
      ->type_name("R")
      ->group("Machine");
  app.add_option("--env", args.env, "with --nccl: a variable of NCCL's, such as NCCL_MAX_NCHANNELS=4 (repeatable)")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->group("Machine");
  app.add_option("--graph", args.graph,
                 "with --nccl: channels of NCCL's graph XML, which run, and what the search finds otherwise")
      ->type_name("FILE")
      ->group("Machine");
}

constexpr const char* topology_show_footer =
    "Examples:\n  collcast topology show dgx-h100 --nodes 4\n  collcast topology show dgx-h100 --nodes 4 --nccl\n"
    "  collcast topology show dgx-h100 --nodes 4 --nccl --rank 9 --env NCCL_MAX_NCHANNELS=4\n"
    "  collcast topology show my-machine.yaml --nccl --graph graph.xml\n"
    "  collcast topology show ring --ranks 8 --link-bandwidth 10GB/s --link-latency 0s";
constexpr const char* topology_check_footer =
    "Examples:\n  collcast topology check dgx-h100\n"
    "  nvidia-smi topo -m | collcast topology import - --like dgx-a100 --nic-rate 100Gb/s | collcast topology check "
    "-";
constexpr const char* topology_import_footer =
    "Examples:\n  collcast topology import topo.xml --like dgx-h100 --output my-machine.yaml\n"
    "  nvidia-smi topo -m | collcast topology import - --like dgx-a100 --nic-rate 100Gb/s --output my-machine.yaml";
constexpr const char* topology_export_footer =
    "Examples:\n  collcast topology export dgx-h100 --nodes 2 --output dgx-h100.dot\n"
    "  collcast topology export dgx-h100 --to nccl-xml --output topo.xml";

}  // namespace

Command add_topology(CLI::App& parent) {
  const auto args = std::make_shared<TopologyArgs>();
  CLI::App& app = *parent.add_subcommand("topology", "machines: list, show, check, import, export");
  app.require_subcommand(1);
  CLI::App* list = app.add_subcommand("list", "the shipped machines");
  add_output_options(*list, args->output);
  list->footer("Example:\n  collcast topology list");
  CLI::App* show = app.add_subcommand("show", "devices, links, rates and their sources, examples of paths");
  add_target(*show, args->machine, "NAME");
  add_nccl_options(*show, *args);
  add_output_options(*show, args->output);
  show->footer(topology_show_footer);
  CLI::App* check = app.add_subcommand("check", "everything that is wrong with a file, or 'ok' and its size");
  add_target(*check, args->machine, "FILE");
  add_output_options(*check, args->output);
  check->footer(topology_check_footer);
  CLI::App* import = app.add_subcommand("import", "a machine's file from NCCL's topology XML or nvidia-smi topo -m");
  add_import_options(*import, args->import);
  import->footer(topology_import_footer);
  CLI::App* out = app.add_subcommand("export", "a machine for other programs: its whole graph, or a node for NCCL");
  add_target(*out, args->exported.machine, "NAME");
  add_export_formats(*out, args->exported);
  out->add_option("--output", args->exported.output,
                  "write the result to FILE, complete or not at all ('-': standard output)")
      ->type_name("FILE");
  out->footer(topology_export_footer);
  app.footer("Example:\n  collcast topology show dgx-h100");
  return [=](const Session& session) {
    args->machine.outputs = {args->output.file};
    args->exported.machine.outputs = {args->exported.output};
    if (list->parsed()) return run_list(*args, session);
    if (show->parsed()) return run_show(*args, session);
    if (check->parsed()) return run_check(*args, session);
    if (import->parsed()) return run_import(args->import, session);
    return run_export(args->exported, session);
  };
}

}  // namespace collcast::cli
