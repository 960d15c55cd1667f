// topologies/*.yaml -> TopologySpec. docs/formats.md has the keys. Whether the parts fit each other (names,
// wiring, reachability) is Fabric::build's question.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "collcast/nccl/environment.hpp"
#include "scenario/files.hpp"

namespace collcast::input {

namespace {

// A million nodes of a thousand devices are 2^30: ranks fit an int.
constexpr int most_devices = 1024;  // of one group
constexpr int most_links = 256;

GpuSpec read_gpu(Reader& reader, const Node& node) {
  GpuSpec gpu;
  Object o(reader, node, "gpu");
  o.required("model", gpu.model, AsText{});
  o.required("memory", gpu.memory, AsBytes{});
  o.required("memory_bandwidth", gpu.memory_bandwidth, AsBandwidth{});
  if (o.optional("kernels", gpu.kernels, AsName{})) gpu.kernels_where = node.find("kernels")->at.location();
  o.optional("kernel_scale", gpu.kernel_scale, AsNumber{least_kernel_scale, most_kernel_scale});
  o.optional("power_limit", gpu.power_limit, AsPercent{least_power_limit});
  o.required("source", gpu.source, AsText{});
  if (const Node* peak = o.required_map("peak")) {
    Object rates(reader, *peak, "gpu.peak");
    for (const std::string& precision : precisions()) {
      FlopRate rate;
      if (rates.optional(precision, rate, AsFlopRate{})) gpu.peak[precision] = rate;
    }
    rates.finish();
    if (peak->kind == Node::Kind::map && peak->entries.empty())
      reader.error(peak->at, "gpu.peak is empty", "expected at least one precision, such as bf16: 312TFLOP/s");
  }
  o.finish();
  return gpu;
}

HostSpec read_host(Reader& reader, const Node& node) {
  HostSpec host;
  Object o(reader, node, "host");
  o.required("cpu", host.cpu,
             as_word<CpuFamily>({CpuFamily::intel_broadwell, CpuFamily::intel_skylake, CpuFamily::intel_sapphire_rapids,
                                 CpuFamily::intel_emerald_rapids, CpuFamily::amd, CpuFamily::arm, CpuFamily::power}));
  o.required("source", host.source, AsText{});
  o.finish();
  return host;
}

void read_devices(Reader& reader, const Node& node, std::vector<DeviceGroup>& devices) {
  const std::string path = "node.devices";
  if (node.kind != Node::Kind::map) return mismatch(reader, node, path, "a map of device names");
  for (const Entry& entry : node.entries) {
    DeviceGroup group;
    Node name;
    name.kind = Node::Kind::scalar;
    name.text = entry.key;
    name.at = entry.at;
    AsName{}(reader, name, path, group.name);
    group.where = entry.at.location();
    Object o(reader, entry.value, path + "." + entry.key);
    o.required("kind", group.kind,
               as_word<DeviceKind>({DeviceKind::gpu, DeviceKind::host, DeviceKind::nvswitch, DeviceKind::pcie_switch,
                                    DeviceKind::cpu, DeviceKind::nic}));
    o.optional("count", group.count, AsCount{1, most_devices});
    o.finish();
    if (!reader.good(path + "." + entry.key)) group.count = 0;  // known by name only
    devices.push_back(std::move(group));
  }
}

bool read_pair(Reader& reader, const Node& node, const std::string& path, std::pair<int, int>& pair) {
  std::vector<int> ends;
  if (!AsList<AsCount, int>{{0, most_devices}, 2}(reader, node, path, ends)) return false;
  if (ends.size() != 2) {
    mismatch(reader, node, path, "two device numbers, such as [0, 3]");
    return false;
  }
  pair = {ends[0], ends[1]};
  return true;
}

/// A list of [i, j].
struct AsPairs {
  static constexpr Holds holds = Holds::list;
  bool operator()(Reader& reader, const Node& node, const std::string& path,
                  std::vector<std::pair<int, int>>& out) const {
    if (!expect_list(reader, node, path, most_devices * most_devices)) return false;
    out.resize(node.items.size());
    bool good = true;
    for (std::size_t i = 0; i < node.items.size(); ++i)
      good = read_pair(reader, node.items[i], fmt::format("{}.{}", path, i), out[i]) && good;
    return good;
  }
  std::string expected() const { return "a list of device numbers, such as [[0, 1], [1, 2]]"; }
};

LinkGroup read_link(Reader& reader, const Node& node, const std::string& path) {
  LinkGroup link;
  link.where = node.at.location();
  reader.found(path, link.where);
  Object o(reader, node, path);
  o.required("from", link.from, AsName{});
  o.required("to", link.to, AsName{});
  o.optional(
      "wiring", link.wiring,
      AsWord<Wiring>{wiring_words(), {Wiring::all, Wiring::one_to_one, Wiring::spread, Wiring::ring, Wiring::pairs}});
  if (link.wiring == Wiring::pairs) {
    o.required("pairs", link.pairs, AsPairs{});
  } else {
    o.refuse("pairs", "it belongs to 'wiring: pairs'");
  }
  o.required("kind", link.kind,
             as_word<LinkKind>({LinkKind::nvlink, LinkKind::pcie, LinkKind::socket, LinkKind::c2c, LinkKind::nic_port,
                                LinkKind::network, LinkKind::direct}));
  o.required("bandwidth", link.bandwidth, AsBandwidth{});
  o.required("latency", link.latency, AsTime{});
  o.required("source", link.source, AsText{});
  o.finish();
  if (!reader.good(path)) link.bandwidth = Bandwidth();  // known by name only
  return link;
}

void read_node(Reader& reader, const Node& node, TopologySpec& spec) {
  Object o(reader, node, "node");
  if (const Node* devices = o.required_map("devices")) read_devices(reader, *devices, spec.devices);
  const Node* links = o.optional_list("links");
  if (links != nullptr && expect_list(reader, *links, "node.links", most_links)) {
    for (std::size_t i = 0; i < links->items.size(); ++i)
      spec.links.push_back(read_link(reader, links->items[i], fmt::format("node.links.{}", i)));
  }
  o.finish();
}

enum class NetworkKind { none, star, ring, mesh, torus, leaf_spine };

struct NetworkLink {
  Bandwidth bandwidth{};
  Seconds latency{};
};
NetworkLink read_network_link(Reader& reader, Object& network) {
  NetworkLink link;
  if (const Node* node = network.required_map("link")) {
    Object o(reader, *node, "network.link");
    o.required("bandwidth", link.bandwidth, AsBandwidth{});
    o.required("latency", link.latency, AsTime{});
    o.finish();
  }
  return link;
}

constexpr AsList<AsCount, int> grid_dims{{1, most_nodes}, 8};

TorusNetwork read_grid(Object& o, NetworkKind kind, const NetworkLink& link) {
  TorusNetwork grid{{}, kind != NetworkKind::mesh, link.bandwidth, link.latency};
  if (kind == NetworkKind::torus) o.required("dims", grid.dims, grid_dims);
  if (kind == NetworkKind::mesh) o.optional("dims", grid.dims, grid_dims);
  return grid;
}

void read_uplinks(Object& o, LeafSpineNetwork& network) {
  o.optional("spines", network.spines, AsCount{0, most_devices});
  o.optional("oversubscription", network.oversubscription, AsNumber{0.001, 1000});
}

LeafSpineNetwork read_leaf_spine(Reader& reader, Object& o, const NetworkLink& link) {
  LeafSpineNetwork network;
  network.bandwidth = link.bandwidth;
  network.latency = link.latency;
  o.optional("rail_optimized", network.rail_optimized, AsTruth{});
  o.required("nodes_per_leaf", network.nodes_per_leaf, AsCount{1, most_nodes});
  read_uplinks(o, network);
  if (!reader.good("network.spines")) {
    o.allow({"spine_latency"});  // whether it belongs here depends on them
  } else if (network.spines > 0) {
    o.required("spine_latency", network.spine_latency, AsTime{});
  } else {
    o.refuse("spine_latency", "there are no spines", "spines");
  }
  return network;
}

/// NCCL's variables by name, none of them twice, with values that NCCL takes.
void read_variables(Reader& reader, const Node& node, NetworkPlugin& plugin) {
  std::vector<nccl::Setting> settings;
  if (node.kind != Node::Kind::map)
    return mismatch(reader, node, "network.plugin.environment", "a map of variables and their values");
  for (const Entry& entry : node.entries) {
    if (entry.value.kind == Node::Kind::scalar)
      settings.push_back({entry.key, entry.value.text, entry.value.at.location()});
    else
      mismatch(reader, entry.value, "network.plugin.environment." + entry.key, "its value");
  }
  if (const Result<nccl::Environment> all = nccl::read_environment(settings); !all) return reader.error(all.errors());
  for (const nccl::Setting& one : settings) plugin.environment.emplace_back(one.name, one.value);
}

/// Two or three numbers of up to three digits between dots, the first not 0.
bool is_version(std::string_view text) {
  int parts = 0;
  for (;; ++parts) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    if (digits < 1 || digits > 3 || (parts == 0 && text.starts_with('0'))) return false;
    text.remove_prefix(digits);
    if (text.empty()) break;
    if (!text.starts_with('.')) return false;
    text.remove_prefix(1);
  }
  return parts == 1 || parts == 2;
}

/// {system: version}, of systems that the file stands for.
void read_nccl_versions(Reader& reader, const Node& node, TopologySpec& spec) {
  if (node.kind != Node::Kind::map)
    return mismatch(reader, node, "nccl_versions", "a map of systems and NCCL's version on each");
  for (const Entry& entry : node.entries) {
    const std::string path = "nccl_versions." + entry.key;
    if (std::find(spec.systems.begin(), spec.systems.end(), entry.key) == spec.systems.end() && entry.key != spec.name)
      reader.error(entry.value.at, fmt::format("{}: this file does not stand for '{}'", path, entry.key),
                   spec.systems.empty() ? "expected its name; it has no systems"
                                        : fmt::format("expected one of systems: {}", fmt::join(spec.systems, ", ")));
    if (entry.value.kind != Node::Kind::scalar || !is_version(entry.value.text))
      mismatch(reader, entry.value, path, "a version of NCCL such as 2.27.3");
    else
      spec.nccl_versions.emplace_back(entry.key, entry.value.text);
  }
}

/// Sockets have no plugin that could reduce, and a grid no switches.
void read_plugin(Reader& reader, Object& network, bool has_switches, NetworkPlugin& plugin) {
  if (const Node* node = network.optional_map("plugin")) {
    Object o(reader, *node, "network.plugin");
    o.optional("latency", plugin.latency, AsTime{});
    o.optional("gpudirect", plugin.gpudirect, AsTruth{});
    o.optional("sockets", plugin.sockets, AsTruth{});
    o.optional("collnet", plugin.collnet, AsTruth{});
    if (const Node* environment = o.optional_map("environment")) read_variables(reader, *environment, plugin);
    if (plugin.collnet && plugin.sockets) o.refuse("collnet", "sockets add nothing up", "sockets");
    if (plugin.collnet && !has_switches) o.refuse("collnet", "the network has no switches that add up");
    o.finish();
  }
}

/// Which keys belong here depends on the kind; those that are there can be wrong by themselves.
void read_network_of_no_kind(Reader& reader, Object& o) {
  std::string text;
  LeafSpineNetwork leaves;
  TorusNetwork grid;
  o.optional("attach", text, AsName{});
  o.optional("source", text, AsText{});
  if (o.has("link")) read_network_link(reader, o);
  NetworkPlugin plugin;
  read_plugin(reader, o, true, plugin);
  o.optional("dims", grid.dims, grid_dims);
  o.optional("rail_optimized", leaves.rail_optimized, AsTruth{});
  o.optional("nodes_per_leaf", leaves.nodes_per_leaf, AsCount{1, most_nodes});
  read_uplinks(o, leaves);
  o.optional("spine_latency", leaves.spine_latency, AsTime{});
}

void read_network(Reader& reader, const Node& node, TopologySpec& spec) {
  Object o(reader, node, "network");
  NetworkKind kind = NetworkKind::none;
  const bool known = o.required("kind", kind,
                                AsWord<NetworkKind>{{"none", "star", "ring", "mesh", "torus", "leaf_spine"},
                                                    {NetworkKind::none, NetworkKind::star, NetworkKind::ring,
                                                     NetworkKind::mesh, NetworkKind::torus, NetworkKind::leaf_spine}});
  if (!known) {
    read_network_of_no_kind(reader, o);
    return o.finish();
  }
  if (kind != NetworkKind::none) {
    o.required("attach", spec.network_devices, AsName{});
    o.required("source", spec.network_source, AsText{});
    const NetworkLink link = read_network_link(reader, o);
    read_plugin(reader, o, kind == NetworkKind::star || kind == NetworkKind::leaf_spine, spec.plugin);
    if (kind == NetworkKind::star) spec.network = StarNetwork{link.bandwidth, link.latency};
    if (kind == NetworkKind::leaf_spine) spec.network = read_leaf_spine(reader, o, link);
    if (kind == NetworkKind::ring || kind == NetworkKind::mesh || kind == NetworkKind::torus)
      spec.network = read_grid(o, kind, link);
  }
  if (kind == NetworkKind::none)
    for (const char* key : {"attach", "link", "source", "plugin"}) o.refuse(key, "the network is 'none'", "kind");
  if (kind != NetworkKind::torus && kind != NetworkKind::mesh)
    o.refuse("dims", "it belongs to a torus or a mesh", "kind");
  if (kind != NetworkKind::leaf_spine) {
    for (const char* key : {"rail_optimized", "nodes_per_leaf", "spines", "oversubscription", "spine_latency"})
      o.refuse(key, "it belongs to a leaf_spine network", "kind");
  }
  o.finish();
}

void read_nodes(Reader& reader, const Node& node, TopologySpec& spec) {
  Object o(reader, node, "nodes");
  o.optional("default", spec.default_nodes, AsCount{1, most_nodes});
  o.optional("max", spec.max_nodes, AsCount{0, most_nodes});
  o.finish();
  if (spec.max_nodes == 0 || spec.default_nodes <= spec.max_nodes) return;
  // A default of 1 is within every maximum: both are written.
  const Location usual = node.find("default")->at.location(), most = node.find("max")->at.location();
  reader.error({nearest_place(reader.files(), {&usual, &most}),
                fmt::format("nodes.default is {} but nodes.max is {}", spec.default_nodes, spec.max_nodes),
                "expected a default within the maximum"});
}

}  // namespace

const std::vector<std::string>& precisions() {
  static const std::vector<std::string> names{"fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8"};
  return names;
}

const std::vector<std::string>& wiring_words() {
  static const std::vector<std::string> words{"all", "one_to_one", "spread", "ring", "pairs"};
  return words;
}

bool read_schema(Reader& reader, Object& file, const std::string& schema) {
  struct Kind {
    const char *schema, *what, *use;
  };
  constexpr std::array kinds{
      Kind{"collcast.topology.v1", "a machine", "'collcast topology check FILE' reads it"},
      Kind{"collcast.kernels.v1", "a kernel table", "'collcast topology check' reads it with a machine that names it"},
      Kind{"collcast.scenario.v1", "a scenario", "'collcast step FILE' reads it"},
      Kind{"collcast.schedule.v1", "a pipeline schedule", "layout.schedule of a scenario names it"},
      Kind{"collcast.overlay.v1", "a calibration", "--overlay FILE of 'collcast collective' and 'step' reads it"}};
  const Node* stated = file.node().find("schema");
  const auto is = [](const std::string& text) { return [&](const Kind& kind) { return kind.schema == text; }; };
  if (stated != nullptr && stated->kind == Node::Kind::scalar && stated->text != schema) {
    const auto other = std::find_if(kinds.begin(), kinds.end(), is(stated->text));
    if (other != kinds.end()) {
      const auto expected = std::find_if(kinds.begin(), kinds.end(), is(schema));
      check(expected != kinds.end(), "every format that is read is listed");
      reader.error(stated->at, fmt::format("schema is '{}': this file is {}", stated->text, other->what),
                   fmt::format("expected {} ({}); {}", expected->what, schema, other->use));
      return false;
    }
  }
  std::string given;
  file.required("schema", given, AsWord<std::string>{{schema}, {schema}});
  return given == schema || !file.has("schema");
}

TopologySpec read_topology(Reader& reader, const Node& tree, const std::string& file) {
  TopologySpec spec;
  spec.file = file;
  spec.where = tree.at.location();
  Object o(reader, tree, "");
  if (!read_schema(reader, o, "collcast.topology.v1")) return spec;
  o.required("name", spec.name, AsName{});
  o.optional("title", spec.title, AsText{});
  std::string extends;
  o.optional("extends", extends, AsText{});
  o.optional("systems", spec.systems, AsList<AsText, std::string>{});
  if (const Node* versions = o.optional_map("nccl_versions")) read_nccl_versions(reader, *versions, spec);
  o.optional("sources", spec.sources, AsList<AsText, std::string>{});
  o.optional("teaching", spec.teaching, AsTruth{});
  read_nodes(reader, o.section("nodes"), spec);
  if (const Node* gpu = o.optional_map("gpu")) spec.gpu = read_gpu(reader, *gpu);
  if (const Node* host = o.optional_map("host")) spec.host = read_host(reader, *host);
  if (const Node* node = o.required_map("node")) read_node(reader, *node, spec);
  if (const Node* network = o.optional_map("network")) read_network(reader, *network, spec);
  o.finish();
  reader.finish();
  return spec;
}

}  // namespace collcast::input
