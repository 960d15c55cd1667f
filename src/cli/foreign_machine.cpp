#include "cli/foreign_machine.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <sstream>

#include "cli/inputs.hpp"
#include "cli/output.hpp"
#include "cli/values.hpp"
#include "collcast/base/text.hpp"
#include "collcast/base/units.hpp"
#include "collcast/exchange/machine.hpp"
#include "collcast/nccl/communicator.hpp"

namespace collcast::cli {

namespace {

using exchange::ForeignNode;
using exchange::MachineFormat;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_name_character(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-'; }

/// "My topo.xml" -> "My-topo"
std::string name_of_file(const std::string& file) {
  std::string out = std::filesystem::path(file).stem().string();
  std::replace_if(
      out.begin(), out.end(), [](char c) { return !is_name_character(c); }, '-');
  if (out.empty() || !is_letter(out.front())) out.insert(0, "machine-");
  return out;
}

std::string name_of(const ImportArgs& args, Diagnostics& errors) {
  const auto is_file = [](const std::string& path) { return !path.empty() && path != "-"; };
  if (args.name.empty() && !is_file(args.output) && !is_file(args.file)) return "machine";
  if (args.name.empty()) return name_of_file(is_file(args.output) ? args.output : args.file);
  if (!is_letter(args.name.front()) || !std::all_of(args.name.begin(), args.name.end(), is_name_character))
    errors.push_back({typed("--name", args.name), fmt::format("--name is '{}'", shown(args.name)),
                      "expected a letter, then letters, digits, '_' or '-'"});
  return args.name;
}

Result<ForeignNode> read_foreign(const ImportArgs& args, std::optional<MachineFormat> format) {
  const bool is_piped = args.file == "-";
  const std::string& file = args.file;
  const Result<std::string> text = is_piped
                                       ? read_stdin("expected NCCL's topology XML or what 'nvidia-smi topo -m' prints")
                                       : read_file(args.file, command_line);
  if (!text) return text.errors();
  if (!format) format = exchange::machine_format(*text);
  if (!format && text->find_first_not_of(" \t\r\n") == std::string::npos)
    return Diagnostic{
        {file, 1, 1}, "the file is empty", "expected NCCL's topology XML or what 'nvidia-smi topo -m' prints"};
  if (!format)
    if (Diagnostics wrong = check_encoding(*text, file); !wrong.empty()) return wrong;
  if (!format)
    return Diagnostic{{file, 1, 1},
                      "this is no description of a machine that is known",
                      "expected NCCL's topology XML or what 'nvidia-smi topo -m' prints; --format nccl-xml or "
                      "--format nvidia-smi says which"};
  Result<ForeignNode> read = *format == MachineFormat::nccl_xml ? exchange::read_nccl_topology(*text, file)
                                                                : exchange::read_nvidia_smi(*text, file);
  if (!read || !is_piped) return read;
  ForeignNode node = std::move(read).value();
  node.file = "standard input";  // in sentences; places are of '-'
  return node;
}

/// Shipped machines whose GPU `is_one` says yes to; those with as many of them as the node first.
std::vector<std::string> machines_with(const ForeignNode& node, const Session& session,
                                       const std::function<bool(const std::string& gpu)>& is_one) {
  std::vector<std::pair<int, std::string>> found;
  for (const TopologyEntry& entry : list_topologies(session.search)) {
    const Result<TopologySpec> spec = load_topology(entry.name, session.search);
    if (!spec || spec->gpu.model.empty() || !is_one(spec->gpu.model)) continue;
    const bool as_many = std::any_of(spec->devices.begin(), spec->devices.end(), [&](const DeviceGroup& group) {
      return group.kind == DeviceKind::gpu && group.count == static_cast<int>(node.gpus.size());
    });
    found.emplace_back(as_many ? 0 : 1, entry.name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (const auto& [rank, name] : found) names.push_back(name);
  return names;
}

/// Those with the node's GPU; where its PCI id names none, or none of theirs, those of its compute capability.
std::string machines_like(const ForeignNode& node, const Session& session) {
  const auto text = [](const std::string& with, const std::vector<std::string>& names) {
    return fmt::format("expected --like NAME|FILE; {}there are: {}", with, fmt::join(names, ", "));
  };
  if (!node.gpu_model.empty()) {
    const auto same = machines_with(node, session, [&](const std::string& gpu) { return gpu == node.gpu_model; });
    if (!same.empty()) return text("with " + node.gpu_model + " ", same);
  }
  const auto asked = node.compute_capability  ? node.compute_capability
                     : node.gpu_model.empty() ? std::nullopt
                                              : nccl::compute_capability(node.gpu_model);
  const auto alike = machines_with(
      node, session, [&](const std::string& gpu) { return !asked || nccl::compute_capability(gpu) == asked; });
  if (alike.empty()) return "'collcast topology list' has the machines; none has this GPU";
  return text(asked ? fmt::format("with GPUs of compute capability {}.{} ", *asked / 10, *asked % 10) : "", alike);
}

std::optional<TopologySpec> like_machine(const ImportArgs& args, const std::optional<ForeignNode>& node,
                                         const Session& session, Diagnostics& errors) {
  if (args.like.empty()) {
    if (node)
      errors.push_back({command_line,
                        fmt::format("--like is missing: {} does not say what its GPUs compute, how long a hop takes "
                                    "or what joins the nodes",
                                    node->file),
                        machines_like(*node, session)});
    return std::nullopt;
  }
  Result<TopologySpec> like = load_topology(args.like, session.search);
  if (like) return std::move(like).value();
  append(errors, like.errors());
  return std::nullopt;
}

/// What --format and the option beside it say: a format of the file, by its place in a list, and one of a report.
struct Formats {
  std::optional<std::size_t> of_file;
  std::optional<Format> of_report;
};
Formats parse_formats(const std::string& format, const char* other, const std::string& of_file,
                      const std::vector<std::string>& of_files, Diagnostics& errors) {
  constexpr std::array reports{Format::table, Format::json, Format::csv, Format::markdown};
  std::vector<std::string> words = of_files;
  words.insert(words.end(), {"table", "json", "csv", "markdown"});
  Formats out;
  if (!of_file.empty()) out.of_file = parse_word(other, of_file, of_files, errors);
  const auto word = format.empty() ? std::nullopt : parse_word("--format", format, words, errors);
  if (!word) return out;
  if (*word >= of_files.size())
    out.of_report = reports.at(*word - of_files.size());
  else if (out.of_file && out.of_file != word)
    errors.push_back({command_line, fmt::format("--format {} and {} {} are of one file", format, other, of_file),
                      "expected one of them, or --format table, json, csv or markdown of a report"});
  else
    out.of_file = word;
  return out;
}

/// The file where it is asked for, else in the place of a report.
Exit deliver_beside_report(const Session& session, const std::string& text, const std::string& output,
                           const Fabric& fabric, std::vector<std::string> said, std::optional<Format> report) {
  if (!report && output.empty()) return deliver(session, text);
  if (!report) return deliver(session, std::string_view(), {{output, text}});
  std::vector<OutputFile> files;
  if (!output.empty()) files.push_back({output, text});
  TopologyReport machine = describe(fabric);
  machine.said = std::move(said);
  return deliver(session, machine, *report, {}, std::move(files));
}

}  // namespace

void add_import_options(CLI::App& app, ImportArgs& args) {
  app.add_option("FILE", args.file, "NCCL's topology XML, or the output of 'nvidia-smi topo -m'; - for standard input")
      ->type_name("")
      ->required();
  const auto option = [&](const char* name, std::string& value, const char* type, const char* text) {
    app.add_option(name, value, text)->type_name(type);
  };
  option("--like", args.like, "NAME|FILE",
         "the machine that says what FILE does not: GPU figures, latencies, the network, NVLinks of a VM's file");
  option("--from", args.from, "WORD", "what FILE is: nccl-xml, nvidia-smi or auto (default: by content)");
  option("--format", args.format, "WORD",
         "the same, or table, json, csv or markdown: what was imported, as 'topology show' has it, in the place of its "
         "file, which goes to --output alone");
  option("--nic-rate", args.nic_rate, "RATE", "line rate of a NIC, such as 100Gb/s, whatever the two say");
  option("--name", args.name, "NAME", "of the machine (default: by the file's)");
  option("--output", args.output, "FILE", "write the machine's file to FILE, complete or not at all");
}

void add_export_formats(CLI::App& app, ExportArgs& args) {
  const auto option = [&](const char* name, std::string& value, const char* text) {
    app.add_option(name, value, text)->type_name("FORMAT");
  };
  option("--to", args.to,
         "dot: Graphviz, all nodes (default); nccl-xml: a node, for NCCL_TOPO_FILE (default for FILE.xml)");
  option("--format", args.format,
         "the same, or table, json, csv or markdown: what is exported, as 'topology show' has it, in the place of the "
         "graph, which goes to --output alone");
}

Exit run_import(const ImportArgs& args, const Session& session) {
  Diagnostics errors = check_overwriting({args.file, args.like}, {args.output});
  const Formats formats = parse_formats(args.format, "--from", args.from, {"auto", "nccl-xml", "nvidia-smi"}, errors);
  const std::string name = name_of(args, errors);
  const Parsed<Bandwidth> nic_rate =
      args.nic_rate.empty() ? Parsed<Bandwidth>{true, {}, {}} : parse_bandwidth(args.nic_rate);
  if (!nic_rate.ok)
    errors.push_back({typed("--nic-rate", args.nic_rate), fmt::format("--nic-rate is '{}'", shown(args.nic_rate)),
                      "expected " + nic_rate.expected});
  if (!errors.empty()) return refuse(session, errors);
  std::optional<MachineFormat> format;
  if (formats.of_file > 0) format = *formats.of_file == 1 ? MachineFormat::nccl_xml : MachineFormat::nvidia_smi;
  Result<ForeignNode> read = read_foreign(args, format);
  append(errors, read.errors());
  std::optional<ForeignNode> node;
  if (read) node = std::move(read).value();
  const auto like = like_machine(args, node, session, errors);
  if (!errors.empty()) return refuse(session, errors);
  const Result<exchange::ImportedMachine> imported = exchange::complete(*node, *like, name, nic_rate.value);
  if (!imported) return refuse(session, imported.errors());
  const Result<Fabric> fabric = Fabric::build(imported->spec);
  if (!fabric) return refuse(session, fabric.errors());
  return deliver_beside_report(session, topology_text(imported->spec, imported->remarks), args.output, *fabric,
                               warn(session, imported->warnings), formats.of_report);
}

Exit run_export(const ExportArgs& args, const Session& session) {
  Diagnostics errors;
  const Formats formats = parse_formats(args.format, "--to", args.to, {"dot", "nccl-xml"}, errors);
  const std::size_t word = formats.of_file.value_or(lower_suffix(args.output) == ".xml" ? 1 : 0);
  const auto machine = load_machine(args.machine, 0, session, errors);
  append(errors, check_overwriting({args.machine.topology}, {args.output}));
  if (word == 1 && !args.machine.nodes.empty())
    errors.push_back({command_line, "--nodes has no meaning: NCCL's topology is of one node", "remove it"});
  if (!errors.empty()) return refuse(session, errors);
  std::ostringstream text;
  Diagnostics warnings = machine->warnings;
  if (word == 0) {
    machine->fabric.write_dot(text);
  } else {
    const Result<exchange::WrittenTopology> xml = exchange::nccl_topology_xml(machine->fabric.spec());
    if (!xml) return refuse(session, xml.errors());
    append(warnings, xml->warnings);
    text << xml->text;
  }
  return deliver_beside_report(session, text.str(), args.output, machine->fabric, warn(session, warnings),
                               formats.of_report);
}

}  // namespace collcast::cli
