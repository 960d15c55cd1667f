#include "cli/machine.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "cli/inputs.hpp"
#include "cli/patience.hpp"
#include "cli/values.hpp"
#include "collcast/base/text.hpp"
#include "collcast/base/units.hpp"
#include "collcast/engine/footprint.hpp"
#include "collcast/nccl/run.hpp"
#include "collcast/topology/footprint.hpp"
#include "collcast/topology/switches.hpp"
#include "collcast/validation/machines.hpp"

namespace collcast::cli {

namespace {

int ranks_per_node(const TopologySpec& spec) {
  for (const DeviceGroup& group : spec.devices) {
    if (group.kind == DeviceKind::gpu || group.kind == DeviceKind::host) return group.count;
  }
  return 1;
}

std::vector<std::string> names(const std::vector<TopologyEntry>& entries) {
  std::vector<std::string> out;
  out.reserve(entries.size());
  for (const TopologyEntry& entry : entries) out.push_back(entry.name);
  return out;
}

}  // namespace

void add_machine_options(CLI::App& app, MachineOptions& options) {
  const auto option = [&](const char* name, std::string& value, const char* type, const char* text) {
    app.add_option(name, value, text)->type_name(type)->group("Machine");
  };
  option("--topology", options.topology, "NAME|FILE", "a machine of 'collcast topology list', or a file");
  option("--nodes", options.nodes, "N", "number of nodes (default: what the ranks need, or the file's)");
  option("--ranks", options.ranks, "K", "the first K GPUs take part; sizes a teaching machine");
  option("--link-bandwidth", options.link_bandwidth, "RATE",
         "of the network's links: --set network.link.bandwidth=RATE");
  option("--link-latency", options.link_latency, "TIME", "of the network's links: --set network.link.latency=TIME");
  app.add_option("--set", options.sets, "change one value of the file for this run (repeatable)")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false)
      ->group("Machine");
}

Result<Overlay> read_overlay(const std::string& file, const Session& session) {
  const Location where = typed("--overlay", file);
  if (file == "-")
    return Diagnostic{where, "an overlay is not read from standard input",
                      "expected a file of 'collcast calibrate', or a shipped one's name"};
  return load_overlay(file, session.search, where);
}

std::optional<Calibration> load_calibration(const std::string& file, const std::string& machine, Library library,
                                            bool may_lack, const Session& session, Diagnostics& errors) {
  const Location where = typed("--overlay", file);
  const Result<Overlay> overlay = read_overlay(file, session);
  if (!overlay) {
    append(errors, overlay.errors());
    return std::nullopt;
  }
  if (may_lack && overlay->find(machine, library) == nullptr) return std::nullopt;
  Result<Calibration> out = calibration_of(*overlay, machine, library, where);
  if (out) return std::move(out).value();
  append(errors, out.errors());
  return std::nullopt;
}

Library library_with(const Overlay& overlay, const std::string& machine, Library usual) {
  if (overlay.find(machine, usual) != nullptr || overlay.machines.empty()) return usual;
  const Library other = usual == Library::nccl ? Library::ideal : Library::nccl;
  const auto is_other = [&](const Calibration& one) { return one.library == other; };
  const bool only_other = std::all_of(overlay.machines.begin(), overlay.machines.end(), is_other);
  return only_other || overlay.find(machine, other) != nullptr ? other : usual;
}

Diagnostics overlay_warnings(const std::string& file, const Calibration& by, const TopologySpec& described,
                             const std::vector<Override>& set) {
  Diagnostics out = line_rate_warnings(file, calibrated(described, by));
  if (std::string text = other_description(by, described, texts(set)); !text.empty())
    out.push_back(
        {typed("--overlay", file), std::move(text), "calibrate again on this one, or take its figures as a guess"});
  return out;
}

Diagnostics line_rate_warnings(const std::string& file, const TopologySpec& calibrated) {
  constexpr double rounding = 1e-4;  // files have six digits
  const auto is_above = [&](const NcclFactor& factor, double most) {
    return (factor.by_links || factor.by_nics) && calibrated.nccl.*factor.value > most * (1 + rounding);
  };
  if (std::ranges::none_of(nccl_factors, [&](const NcclFactor& factor) { return is_above(factor, 1); })) return {};
  std::set<std::string> beyond;
  for (const int nodes : {1, 2}) {
    const Result<Fabric> fabric = Fabric::build(calibrated, nodes);
    if (!fabric) continue;
    const auto all = nccl::connect(*fabric, Group::strided(Rank(0), 1, fabric->rank_count()));
    if (!all) continue;
    const nccl::FactorsOfLineRate line = nccl::factors_of_line_rate(*all);
    for (const NcclFactor& factor : nccl_factors) {
      const bool shows = factor.by_nics ? all->nodes > 1 : all->most_on_a_node > 1;
      const double most = factor.by_nics ? line.network : line.links;
      if (shows && is_above(factor, most))
        beyond.insert(
            fmt::format("{} {:.3g}, of which {:.3g} is line rate", factor.name, calibrated.nccl.*factor.value, most));
    }
  }
  if (beyond.empty()) return {};
  return {{typed("--overlay", file),
           fmt::format("by its factors links or NICs of {} carry more than their data sheet has: {}", calibrated.name,
                       fmt::join(beyond, "; ")),
           "collcast calibrate fits none above line rate; correct them, or the machine's rates"}};
}

std::vector<std::string> texts(const std::vector<Override>& overrides) {
  std::vector<std::string> out;
  for (const Override& one : overrides) out.push_back(fmt::format("{}={}", one.path, one.value));
  return out;
}

std::string settings_text(const std::vector<std::string>& sets, const std::vector<Override>& swept) {
  std::vector<std::string> all = texts(swept);
  all.insert(all.begin(), sets.begin(), sets.end());
  return all.empty() ? std::string() : shown(fmt::format(" (with {})", fmt::join(all, ", ")));
}

std::vector<Override> parse_overrides(const MachineOptions& options, const std::string& prefix, Diagnostics& errors) {
  std::vector<Override> out;
  for (const std::string& text : options.sets) {
    Result<Override> one = parse_override(text);
    if (one)
      out.push_back(std::move(one).value());
    else
      append(errors, one.errors());
  }
  const auto set_link = [&](const char* option, const char* key, const std::string& value) {
    if (value.empty()) return;
    const Location where = typed(option, value);
    const std::string path = fmt::format("{}network.link.{}", prefix, key);
    check_contradiction(option, value, path, out, errors);
    out.push_back({path, value, {where.file, 1, 1}, where});
  };
  set_link("--link-bandwidth", "bandwidth", options.link_bandwidth);
  set_link("--link-latency", "latency", options.link_latency);
  return out;
}

void check_contradiction(const char* option, const std::string& value, const std::string& path,
                         const std::vector<Override>& sets, Diagnostics& errors) {
  for (const Override& set : sets) {
    if (value.empty() || set.path != path || set.value == value) continue;
    errors.push_back({set.value_where, fmt::format("'{}' contradicts {} {}", set.value, option, value),
                      fmt::format("both are the value of '{}'; leave out one of them", path)});
  }
}

namespace {

/// By name, from a file, or from standard input.
Result<TopologySpec> load_described(const std::string& topology, const Session& session,
                                    const std::vector<Override>& overrides) {
  if (topology != "-") return load_topology(topology, session.search, overrides);
  const Result<std::string> piped = read_stdin("expected a machine's file, as in 'collcast topology check - < FILE'");
  if (!piped) return piped.errors();
  return parse_topology(*piped, topology, session.search, overrides);
}

/// The library that runs on a machine, and what an overlay says of it there.
struct AsCalibrated {
  Library library = Library::ideal;
  std::optional<Calibration> calibration;
  Diagnostics warnings;
};

/// The calibration is put into `spec`.
AsCalibrated put_in_overlay(const MachineOptions& options, const std::vector<Override>& overrides,
                            const LibraryClues& clues, const Session& session, Result<TopologySpec>& spec,
                            Diagnostics& errors) {
  Library usual = usual_library(*spec);
  if (options.overlay.empty()) return {chosen_library(clues, usual), {}, {}};
  if (const Result<Overlay> overlay = read_overlay(options.overlay, session))
    usual = library_with(*overlay, spec->name, usual);
  AsCalibrated out{chosen_library(clues, usual), {}, {}};
  out.calibration = load_calibration(options.overlay, spec->name, out.library, false, session, errors);
  if (!out.calibration) return out;
  out.warnings = overlay_warnings(options.overlay, *out.calibration, *spec, overrides);
  spec = calibrated(*spec, *out.calibration);
  return out;
}

/// What is asked of a machine's size; 0: nothing.
struct SizeAsked {
  int nodes, ranks, ranks_needed;

  int most_ranks() const { return std::max(ranks, ranks_needed); }
};

/// Where the number of nodes comes from; empty: it is the file's.
Location place_of_nodes(const MachineOptions& options, const SizeAsked& asked, bool by_ranks) {
  if (asked.nodes > 0) return typed("--nodes", options.nodes);
  if (!by_ranks) return {};
  return asked.ranks >= asked.ranks_needed ? typed("--ranks", options.ranks) : command_line;
}

/// Of as many nodes as are asked for or needed.
Result<Fabric> build_as_asked(const TopologySpec& spec, const MachineOptions& options, const SizeAsked& asked) {
  const int per_node = ranks_per_node(spec);
  const int needed = (asked.most_ranks() + per_node - 1) / per_node;
  int nodes = asked.nodes;
  if (nodes == 0) nodes = spec.teaching && needed > 0 ? needed : std::max(spec.default_nodes, needed);
  const bool one_node = std::holds_alternative<std::monostate>(spec.network);
  if (one_node && asked.nodes == 0 && needed > 1)
    return Diagnostic{command_line,
                      fmt::format("{} ranks are needed, but {} is one node of {} without a network", asked.most_ranks(),
                                  spec.name, per_node),
                      fmt::format("expected up to {} ranks", per_node)};
  Result<Fabric> fabric =
      build_within_memory(spec, nodes, place_of_nodes(options, asked, nodes == needed && needed > 0));
  if (fabric && asked.most_ranks() > fabric->rank_count())
    return Diagnostic{command_line,
                      fmt::format("{} ranks are needed, but {} with {} has {}", asked.most_ranks(), spec.name,
                                  nodes == 1 ? "1 node" : fmt::format("{} nodes", nodes), fabric->rank_count()),
                      fmt::format("expected --nodes {}, or fewer ranks", needed)};
  return fabric;
}

}  // namespace

std::optional<Machine> load_machine(const MachineOptions& options, int ranks_needed, const Session& session,
                                    Diagnostics& errors, const LibraryClues& clues) {
  const std::size_t errors_before = errors.size();
  const auto overrides = parse_overrides(options, "", errors);
  const auto nodes_asked = options.nodes.empty() ? 0 : parse_count("--nodes", options.nodes, 1, errors, most_nodes);
  if (options.topology.empty()) {
    errors.push_back({command_line, "--topology is missing: which machine?",
                      fmt::format("expected one of: {}, or a file; 'collcast topology list' describes them",
                                  fmt::join(names(list_topologies(session.search)), ", "))});
    return std::nullopt;
  }
  Result<TopologySpec> spec = load_described(options.topology, session, overrides);
  const int most_ranks = spec ? most_nodes * ranks_per_node(*spec) : std::numeric_limits<int>::max();
  const auto ranks_asked = options.ranks.empty() ? 0 : parse_count("--ranks", options.ranks, 1, errors, most_ranks);
  std::vector<std::string> read{options.overlay};
  if (!spec)
    append(errors, spec.errors());
  else
    for (std::string& file : files_of_machine(*spec)) read.push_back(std::move(file));
  append(errors, check_overwriting(read, options.outputs));
  AsCalibrated as;
  if (spec) as = put_in_overlay(options, overrides, clues, session, spec, errors);
  if (errors.size() > errors_before) return std::nullopt;

  const SizeAsked asked{*nodes_asked, *ranks_asked, ranks_needed};
  Result<Fabric> fabric = build_as_asked(*spec, options, asked);
  if (!fabric) {
    append(errors, fabric.errors());
    return std::nullopt;
  }
  append(as.warnings, switches_apart(*spec));
  const int ranks = asked.ranks > 0 ? asked.ranks : fabric->rank_count();
  return Machine{.fabric = std::move(fabric).value(),
                 .ranks = ranks,
                 .library = as.library,
                 .calibration = std::move(as.calibration),
                 .warnings = std::move(as.warnings)};
}

Result<Fabric> build_within_memory(const TopologySpec& spec, int nodes, const Location& asked_at) {
  const Bytes room = Patience::room_now();
  if (const std::optional<Bytes> needed = footprint(spec, nodes); needed && *needed > room)
    return Diagnostic{
        {std::string(memory_place)},
        fmt::format("the links of {} nodes of '{}' take about {} of memory, more than the {} that there "
                    "is room for",
                    nodes == 0 ? spec.default_nodes : nodes, spec.name, format_bytes(*needed), format_bytes(room)),
        "expected fewer nodes or ranks, or a larger --memory-limit"};
  return Fabric::build(spec, nodes, asked_at);
}

}  // namespace collcast::cli
