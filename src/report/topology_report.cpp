// Machines: the list of those shipped, what is in one, and everything wrong with a file.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "collcast/base/units.hpp"
#include "collcast/report/documents.hpp"
#include "collcast/topology/switches.hpp"
#include "report/document.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

std::string_view to_text(Wiring wiring) {
  switch (wiring) {
    case Wiring::all:
      return "all to all";
    case Wiring::one_to_one:
      return "one to one";
    case Wiring::spread:
      return "spread evenly";
    case Wiring::ring:
      return "ring";
    case Wiring::pairs:
      return "listed pairs";
  }
  return "";
}

/// How the nodes are joined: one row of name, bandwidth, latency and remark per kind of link.
struct NetworkRow {
  std::string what, remark;
  Bandwidth bandwidth;
  Seconds latency;
};

/// Down bandwidth of a leaf over its spines and the oversubscription, as LeafSpineNetwork has it.
Bandwidth leaf_to_spine(const LeafSpineNetwork& tree, int nics_per_node) {
  const int down_links = tree.rail_optimized ? tree.nodes_per_leaf : tree.nodes_per_leaf * nics_per_node;
  return tree.bandwidth * static_cast<double>(down_links) / (tree.oversubscription * tree.spines);
}

std::vector<NetworkRow> network_rows(const TopologySpec& spec) {
  const NetworkSpec& network = spec.network;
  std::vector<NetworkRow> out;
  if (const auto* star = std::get_if<StarNetwork>(&network))
    out.push_back({"star", "one non-blocking switch", star->bandwidth, star->latency});
  if (const auto* torus = std::get_if<TorusNetwork>(&network)) {
    const std::string dims =
        torus->dims.empty() ? "sized by the number of nodes" : fmt::format("{}", fmt::join(torus->dims, " x "));
    const bool is_ring = torus->wrap && torus->dims.size() < 2;
    out.push_back({is_ring ? "ring" : torus->wrap ? "torus" : "mesh", dims, torus->bandwidth, torus->latency});
  }
  if (const auto* tree = std::get_if<LeafSpineNetwork>(&network)) {
    out.push_back(
        {"leaf/spine, NIC to leaf",
         fmt::format("{}, {} per leaf", tree->rail_optimized ? "one rail per NIC" : "all NICs of a node on one leaf",
                     counted(tree->nodes_per_leaf, "node")),
         tree->bandwidth, tree->latency});
    if (tree->spines > 0) {
      out.push_back({"leaf/spine, leaf to spine",
                     fmt::format("{}, oversubscription {:.3g}", counted(tree->spines, "spine"), tree->oversubscription),
                     leaf_to_spine(*tree, network_ports(spec)), tree->spine_latency});
    }
  }
  return out;
}

Json spec_json(const TopologySpec& spec) {
  Json out;
  out["systems"] = spec.systems;
  for (const auto& [system, version] : spec.nccl_versions) out["nccl_versions"][system] = version;
  out["sources"] = spec.sources;
  Json gpu;
  if (!spec.gpu.model.empty()) {
    gpu["model"] = spec.gpu.model;
    gpu["memory_bytes"] = spec.gpu.memory.value();
    gpu["memory_bandwidth_bytes_per_s"] = spec.gpu.memory_bandwidth.value();
    gpu["peak_flops_per_s"] = Json::object();
    for (const auto& [precision, rate] : spec.gpu.peak) gpu["peak_flops_per_s"][precision] = rate.value();
    gpu["kernels"] = spec.gpu.kernels;
    if (spec.gpu.kernel_scale != 1) gpu["kernel_scale"] = spec.gpu.kernel_scale;
    if (spec.gpu.power_limit != 1) gpu["power_limit"] = spec.gpu.power_limit;
    gpu["source"] = spec.gpu.source;
  }
  out["gpu"] = gpu;
  Json host;
  if (spec.host.cpu != CpuFamily::unknown) {
    host["cpu"] = to_string(spec.host.cpu);
    host["source"] = spec.host.source;
  }
  out["host"] = host;
  for (const NcclFactor& factor : nccl_factors)
    if (spec.nccl.*factor.value != 1) out["nccl_factors"][factor.name] = spec.nccl.*factor.value;
  if (!spec.nccl.takes_ll128) out["nccl_factors"]["takes_ll128"] = false;
  if (spec.nccl.nic_rate != 1) out["nccl_factors"]["nic_rate"] = spec.nccl.nic_rate;
  out["devices"] = Json::array();
  for (const DeviceGroup& d : spec.devices)
    out["devices"].push_back({{"name", d.name}, {"kind", to_string(d.kind)}, {"count", d.count}});
  out["node_links"] = Json::array();
  for (const LinkGroup& l : spec.links) {
    out["node_links"].push_back({{"from", l.from},
                                 {"to", l.to},
                                 {"wiring", to_text(l.wiring)},
                                 {"pairs", l.pairs},
                                 {"kind", to_string(l.kind)},
                                 {"bandwidth_bytes_per_s", l.bandwidth.value()},
                                 {"latency_s", l.latency.count()},
                                 {"source", l.source}});
  }
  out["network"] = Json::array();
  for (const NetworkRow& n : network_rows(spec)) {
    out["network"].push_back({{"what", n.what},
                              {"remark", n.remark},
                              {"bandwidth_bytes_per_s", n.bandwidth.value()},
                              {"latency_s", n.latency.count()}});
  }
  out["network_source"] = spec.network_source;
  if (spec.plugin != NetworkPlugin())
    out["network_plugin"] = {{"latency_s", spec.plugin.latency.count()}, {"gpudirect", spec.plugin.gpudirect}};
  if (spec.plugin.sockets) out["network_plugin"]["sockets"] = true;
  if (spec.plugin.collnet) out["network_plugin"]["collnet"] = true;
  for (const auto& [name, value] : spec.plugin.environment) out["network_plugin"]["environment"][name] = value;
  return out;
}

Json channels_json(const std::vector<nccl::Channel>& channels) {
  Json out = Json::array();
  for (const nccl::Channel& channel : channels) {
    Json parents = Json::array();
    for (const nccl::TreePlace& place : channel.tree) parents.push_back(place.up);
    out.push_back({{"ring", channel.ring}, {"tree", {{"root", channel.root()}, {"parents", std::move(parents)}}}});
  }
  return out;
}

Json document_json(const TopologyReport& report) {
  Json out = document("collcast.machine.v1");
  out["machine"] = machine(report.machine);
  out.update(spec_json(report.spec));
  for (std::size_t i = 0; i < report.spec.devices.size(); ++i)
    if (const int switches = report.spec.devices[i].stands_for; switches > 1)
      out["devices"][i]["stands_for"] = switches;
  out["links"] = report.links;
  out["paths"] = Json::array();
  for (const auto& example : report.paths) {
    out["paths"].push_back({{"from", example.from.value()},
                            {"to", example.to.value()},
                            {"bandwidth_bytes_per_s", example.path.bandwidth.value()},
                            {"latency_s", example.path.latency.count()},
                            {"links", example.links}});
  }
  out["warnings"] = report.said;
  out["nccl"] = report.nccl;
  if (!report.nccl.empty()) {
    out["nccl_channels"] = channels_json(report.nccl_channels.all);
    out["nvls_heads"] = report.nccl_channels.nvls_heads;
    if (!report.nccl_channels.collnet_chains.empty()) {
      out["collnet_heads"] = report.nccl_channels.collnet_heads;
      out["collnet_chains"] = report.nccl_channels.collnet_chains;
    }
  }
  return out;
}

Table devices_table(const TopologySpec& spec) {
  Table out{"a node", {{"device", "", Align::left}, {"kind", "", Align::left}, {"count", "", Align::right}}, {}};
  for (const DeviceGroup& d : spec.devices)
    out.rows.push_back({d.name, std::string(to_string(d.kind)), fmt::format("{}", d.count)});
  return out;
}

Table links_table(const TopologySpec& spec) {
  Table out{"links, each direction",
            {{"from", "", Align::left},
             {"to", "", Align::left},
             {"kind", "", Align::left},
             {"bandwidth", "", Align::right},
             {"latency", "", Align::right},
             {"how", "", Align::left}},
            {}};
  for (const LinkGroup& l : spec.links) {
    out.rows.push_back({l.from, l.to, std::string(to_string(l.kind)), format_bandwidth(l.bandwidth),
                        format_seconds(l.latency), std::string(to_text(l.wiring))});
  }
  for (const NetworkRow& n : network_rows(spec)) {
    out.rows.push_back(
        {spec.network_devices, n.what, "network", format_bandwidth(n.bandwidth), format_seconds(n.latency), n.remark});
  }
  return out;
}

Table gpu_table(const GpuSpec& gpu) {
  Table out{"GPU", {{"", "", Align::left}, {"", "", Align::right}}, {}};
  out.rows.push_back({"model", gpu.model});
  out.rows.push_back({"memory", size_text(gpu.memory)});
  out.rows.push_back({"memory bandwidth", format_bandwidth(gpu.memory_bandwidth)});
  if (gpu.kernel_scale != 1) out.rows.push_back({"time of each kernel", fmt::format("x {:.4g}", gpu.kernel_scale)});
  if (gpu.power_limit != 1) out.rows.push_back({"power limit", fmt::format("{:.4g}%", 100 * gpu.power_limit)});
  for (const auto& [precision, rate] : gpu.peak) out.rows.push_back({"peak " + precision, format_flop_rate(rate)});
  return out;
}

Table paths_table(const TopologyReport& report) {
  Table out{"examples of paths",
            {{"ranks", "", Align::left},
             {"bandwidth", "", Align::right},
             {"latency", "", Align::right},
             {"links", "", Align::left}},
            {}};
  for (const auto& example : report.paths) {
    out.rows.push_back({fmt::format("{} -> {}", example.from.value(), example.to.value()),
                        format_bandwidth(example.path.bandwidth), format_seconds(example.path.latency),
                        fmt::format("{}", fmt::join(example.links, ", "))});
  }
  return out;
}

Json error_json(const Diagnostic& d) {
  // Without its folder, as the document is the same bytes wherever the file lies. Of an option what was typed.
  const std::string& from = d.where.file;
  const std::string file = from.starts_with("--") ? from : std::filesystem::path(from).filename().string();
  return {{"file", file}, {"line", d.where.line}, {"column", d.where.column}, {"message", d.message}, {"hint", d.hint}};
}

}  // namespace

std::string digest(const TopologySpec& spec) { return digest(spec_json(spec)); }

namespace {

std::string changed_factors(const NcclFactors& factors) {
  std::vector<std::string> changed;
  for (const NcclFactor& factor : nccl_factors)
    if (factors.*factor.value != 1) changed.push_back(fmt::format("{} {:.3g}", factor.name, factors.*factor.value));
  if (!factors.takes_ll128) changed.emplace_back("without LL128");
  if (factors.nic_rate != 1) changed.push_back(fmt::format("NICs of {:.3g} of their rate", factors.nic_rate));
  return fmt::format("{}", fmt::join(changed, ", "));
}

}  // namespace

MachineSummary summary(const Fabric& fabric) {
  const TopologySpec& spec = fabric.spec();
  MachineSummary out;
  out.topology = spec.name;
  out.title = spec.title;
  out.gpu = spec.gpu.model;
  out.calibrated = spec.calibrated;
  out.interval_of_fitted_rows = spec.interval_of_fitted_rows;
  out.nccl_factors = changed_factors(spec.nccl);
  out.nodes = fabric.nodes();
  out.ranks = fabric.rank_count();
  out.digest = digest(spec);
  out.collnet = spec.plugin.collnet;
  if (const auto* tree = std::get_if<LeafSpineNetwork>(&spec.network))
    if (tree->spines > 0 && out.nodes > tree->nodes_per_leaf) out.oversubscription = tree->oversubscription;
  return out;
}

std::vector<std::string> machine_warnings(const MachineSummary& machine) {
  std::vector<std::string> out;
  if (machine.interval_of_fitted_rows)
    out.push_back(
        "\"8 of 10\" by this calibration is of the rows that it was fitted to, and of no table that it had not seen: "
        "of "
        "other jobs far fewer may be within (of one shipped table's range, about a third of its system's others).");
  if (machine.library == "nccl" && machine.oversubscription > 1 && machine.collnet)
    out.push_back(fmt::format(
        "leaves are oversubscribed {:.4g}:1, which is not seen where CollNet adds up in the network: what passes the "
        "spines then may take that many times as long; library ideal has no CollNet, and sees them.",
        machine.oversubscription));
  return out;
}

std::string calibrated_text(const MachineSummary& machine, Seconds base_latency) {
  if (!machine.nccl_factors.empty())
    return "calibrated: of what library nccl takes for all machines, " + machine.nccl_factors;
  return fmt::format(
      "calibrated: rates and latencies of links are fitted ones, and {} come in front of every collective",
      format_seconds(base_latency));
}

TopologyReport describe(const Fabric& fabric) {
  TopologyReport out;
  out.machine = summary(fabric);
  out.spec = fabric.spec();
  out.links = static_cast<std::int64_t>(fabric.links().size());
  // Neighbours in a node, the same place one node on, and the far end.
  const int last = fabric.rank_count() - 1;
  std::vector<int> ends{1, fabric.ranks_per_node(), last};
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  for (const int end : ends) {
    if (end < 1 || end > last) continue;
    const Rank to(static_cast<std::uint32_t>(end));
    std::vector<LinkId> route;
    fabric.route(Rank(0), to, 0, route);
    TopologyReport::Example example{Rank(0), to, fabric.path(Rank(0), to), {}};
    for (const LinkId link : route) example.links.push_back(fabric.link_name(link));
    out.paths.push_back(std::move(example));
  }
  return out;
}

std::string json(const TopologyReport& report) { return text(document_json(report)); }

Table csv(const TopologyReport& report) { return csv_values(document_json(report)); }

namespace {

/// Otherwise than most, beside the variables that it sets.
bool says_of_nics(NetworkPlugin plugin) {
  plugin.environment.clear();
  return plugin != NetworkPlugin();
}

/// Where the numbers come from, each beside what it is for, then the documents themselves.
void add_sources(Page& out, const TopologySpec& spec) {
  const auto add = [&out](std::string_view what, const std::string& source) {
    if (!source.empty()) out.blocks.push_back(Paragraph{fmt::format("{}: {}", what, source), Paragraph::Tone::plain});
  };
  add("GPU", spec.gpu.source);
  add(fmt::format("host, {}", to_string(spec.host.cpu)), spec.host.source);
  for (const LinkGroup& link : spec.links) add(fmt::format("{} - {}", link.from, link.to), link.source);
  add("network", spec.network_source);
  if (spec.plugin.sockets)
    add("NCCL's network", "sockets, whose rate and latency are the network's above");
  else if (says_of_nics(spec.plugin))
    add("NCCL's network plugin",
        fmt::format("{}{}a message takes {}", spec.plugin.gpudirect ? "" : "no GPUDirect RDMA, ",
                    spec.plugin.collnet ? "CollNet (switches add up), " : "", format_seconds(spec.plugin.latency)));
  if (!spec.plugin.environment.empty()) {
    std::string set;
    for (const auto& [name, value] : spec.plugin.environment) set += fmt::format(" {}={}", name, value);
    add("set for NCCL in jobs of several nodes, where they do not set it", set.substr(1));
  }
  for (const std::string& source : spec.sources) add("source", source);
}

/// How the description is read, which is no warning of it.
void add_joined_switches(Page& out, const TopologySpec& spec) {
  if (std::string text = joined_switches_text(spec); !text.empty())
    out.blocks.push_back(Paragraph{std::move(text), Paragraph::Tone::note});
}

}  // namespace

Page page(const TopologyReport& report) {
  const TopologySpec& spec = report.spec;
  Page out;
  out.title = spec.title.empty() ? spec.name : fmt::format("{}: {}", spec.name, spec.title);
  out.blocks.push_back(Paragraph{fmt::format("{} with {}, {} directed links", counted(report.machine.nodes, "node"),
                                             counted(report.machine.ranks, "rank"), report.links),
                                 Paragraph::Tone::plain});
  out.blocks.push_back(devices_table(spec));
  out.blocks.push_back(links_table(spec));
  add_joined_switches(out, spec);
  if (!spec.gpu.model.empty()) out.blocks.push_back(gpu_table(spec.gpu));
  if (!report.paths.empty()) out.blocks.push_back(paths_table(report));
  if (!report.nccl.empty()) {
    Table table{"what NCCL's search finds", {{"", "", Align::left}}, {}};
    for (const std::string& line : report.nccl) table.rows.push_back({line});
    out.blocks.push_back(std::move(table));
  }
  for (const std::string& system : spec.systems) {
    const auto version = std::ranges::find(spec.nccl_versions, system, [](const auto& one) { return one.first; });
    const std::string with = version == spec.nccl_versions.end() ? "" : ", whose tables are of NCCL " + version->second;
    out.blocks.push_back(Paragraph{"stands for: " + system + with, Paragraph::Tone::plain});
  }
  add_sources(out, spec);
  return out;
}

namespace {

Json entries_json(const TopologyListing& listing) {
  Json rows = Json::array();
  for (const auto& entry : listing.entries) {
    rows.push_back({{"name", entry.name},
                    {"title", entry.title},
                    {"gpu", entry.gpu.empty() ? Json() : Json(entry.gpu)},
                    {"ranks_per_node", entry.ranks_per_node},
                    {"default_nodes", entry.default_nodes},
                    {"teaching", entry.teaching}});
  }
  return rows;
}

}  // namespace

std::string json(const TopologyListing& listing) {
  Json out = document("collcast.topologies.v1");
  out["rows"] = entries_json(listing);
  return text(out);
}

Table csv(const TopologyListing& listing) { return csv_rows(entries_json(listing)); }

Page page(const TopologyListing& listing) {
  Page out;
  out.title = "machines";
  Table table{{},
              {{"name", "", Align::left},
               {"GPU", "", Align::left},
               {"ranks per node", "", Align::right},
               {"what it is", "", Align::left}},
              {}};
  for (const auto& entry : listing.entries) {
    table.rows.push_back(
        {entry.name, entry.gpu.empty() ? "-" : entry.gpu, fmt::format("{}", entry.ranks_per_node), entry.title});
  }
  out.blocks.push_back(std::move(table));
  return out;
}

namespace {

Json document_json(const CheckReport& report) {
  Json out = document("collcast.check.v1");
  out["name"] = report.name;
  out["ok"] = report.errors.empty();
  out["errors"] = Json::array();
  for (const Diagnostic& error : report.errors) out["errors"].push_back(error_json(error));
  out["nodes"] = report.topology ? Json(report.topology->machine.nodes) : Json();
  out["ranks"] = report.topology ? Json(report.topology->machine.ranks) : Json();
  out["links"] = report.topology ? Json(report.topology->links) : Json();
  out["warnings"] = report.topology ? Json(report.topology->said) : Json::array();
  return out;
}

}  // namespace

std::string json(const CheckReport& report) { return text(document_json(report)); }

Table csv(const CheckReport& report) { return csv_values(document_json(report)); }

Page page(const CheckReport& report) {
  Page out;
  if (report.topology) {
    const TopologyReport& t = *report.topology;
    out.title = fmt::format("ok: {}, {}, {}, {} directed links", report.name, counted(t.machine.nodes, "node"),
                            counted(t.machine.ranks, "rank"), t.links);
    add_joined_switches(out, t.spec);
    return out;
  }
  out.title = fmt::format("{}: {}", report.name, counted(static_cast<std::int64_t>(report.errors.size()), "error"));
  return out;
}

}  // namespace collcast
