#include "collcast/nccl/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "nccl/gdr_level.hpp"
#include "nccl/named_nics.hpp"
#include "nccl/not_modelled.hpp"
#include "nccl/pair_rates.hpp"
#include "nccl/peer_level.hpp"
#include "nccl/tuning_constants.hpp"
#include "nccl/variables.hpp"

namespace collcast::nccl {

namespace {

/// What has an older name, which is passed over where both are given.
constexpr std::array renamed{std::pair{"NCCL_MIN_NRINGS", "NCCL_MIN_NCHANNELS"},
                             std::pair{"NCCL_MAX_NRINGS", "NCCL_MAX_NCHANNELS"}};
/// What needs a reduction in the network.
constexpr std::array of_collnet{"NCCL_COLLNET_ENABLE", "NCCL_COLLNET_NODE_THRESHOLD"};

constexpr std::array algorithm_words{"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};

}  // namespace

std::string_view to_string(Algorithm algorithm) { return algorithm_words[static_cast<std::size_t>(algorithm)]; }

std::string_view to_string(Protocol protocol) {
  constexpr std::array words{"LL", "LL128", "Simple"};
  return words[static_cast<std::size_t>(protocol)];
}

std::optional<Algorithm> parse_algorithm(std::string_view text) {
  const auto found = std::find(algorithm_words.begin(), algorithm_words.end(), text);
  if (found == algorithm_words.end()) return std::nullopt;
  return static_cast<Algorithm>(found - algorithm_words.begin());
}

std::vector<std::string> algorithm_names() { return {algorithm_words.begin(), algorithm_words.end()}; }

bool Environment::allows(CollectiveKind kind, Algorithm algorithm) const {
  const auto& set = algorithm_sets[static_cast<std::size_t>(kind)];
  return !set || (*set >> static_cast<unsigned>(algorithm) & 1U) != 0;
}

bool Environment::allows(CollectiveKind kind, Protocol protocol) const {
  const auto& set = protocol_sets[static_cast<std::size_t>(kind)];
  return !set || (*set >> static_cast<unsigned>(protocol) & 1U) != 0;
}

bool Environment::relays() const {
  constexpr int first = 21200;
  return pxn && (launch.version == 0 || launch.version >= first);
}

bool Environment::sends_through_gpus() const {
  constexpr int first = 20900;
  return bridges && (launch.version == 0 || launch.version >= first);
}

bool Environment::launches_groups() const {
  constexpr int first_without = 20900;
  return launch.one_process && launch.version > 0 && launch.version < first_without && !parallel_launch;
}

bool Environment::names_protocols(CollectiveKind kind) const {
  return protocol_sets[static_cast<std::size_t>(kind)].has_value();
}

namespace {

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, word) != words.end();
}

constexpr std::array<std::string_view, 5> of_8_bit_floats{"fp8", "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2"};

}  // namespace

/// NVSwitches add integers of 32 and 64 bits and floats of 16 and more, and take the least and most of these but floats
/// of 32 and 64 bits; averages are scaled sums, which they do not have [src/include/device.h, ncclNvlsSupported;
/// src/enqueue.cc, hostToDevRedOp].
bool Reduced::by_nvswitch() const {
  constexpr std::array<std::string_view, 4> of_8_bit_integers{"int8", "uint8", "char", "byte"};
  constexpr std::array<std::string_view, 4> of_wide_floats{"float", "float32", "double", "float64"};
  constexpr std::array<std::string_view, 3> no_plain_sums{"prod", "avg", "mulsum"};
  constexpr std::array<std::string_view, 2> extremes{"min", "max"};
  if (is_one_of(type, of_8_bit_integers) || is_one_of(type, of_8_bit_floats)) return false;
  if (is_one_of(operation, extremes)) return !type.empty() && !is_one_of(type, of_wide_floats);
  return !is_one_of(operation, no_plain_sums);
}

/// SHARP has sums, which averages are to it, least and most, and no floats of 8 bits [nccl-rdma-sharp-plugins,
/// src/sharp_plugin.c].
bool Reduced::by_network() const { return operation != "prod" && !is_one_of(type, of_8_bit_floats); }

std::string text_of(const Reduced& r) {
  const std::string of = r.operation.empty() || r.type.empty() ? "" : " of ";
  return r.operation + of + r.type;
}

std::string text_of(const Environment& environment) {
  std::string out;
  for (const Setting& one : environment.given) out += (out.empty() ? "" : " ") + one.name + "=" + one.value;
  if (environment.launch.version > 0)
    out += fmt::format("{}NCCL {}", out.empty() ? "" : " ", environment.launch.version);
  if (environment.launches_groups()) out += ", one process";
  // Known by it are communicators; what all switches can do makes no difference.
  if (const Reduced& r = environment.launch.reduced; !r.by_nvswitch() || !r.by_network())
    out += (out.empty() ? "" : ", ") + text_of(r);
  return out;
}

namespace {

constexpr const char* level_variable = "NCCL_P2P_LEVEL";
constexpr const char* gdr_level_variable = "NCCL_NET_GDR_LEVEL";

/// Variables that a version does not have, of those that it would follow.
std::vector<std::string_view> not_in(int version) {
  constexpr int first_pair_ll_limit = 21400;
  std::vector<std::string_view> out;
  if (!tuned::version_of(version).posts) out.push_back("NCCL_NET_OVERHEAD");
  if (version > 0 && version < first_pair_ll_limit)
    out.insert(out.end(), {"NCCL_P2P_LL_THRESHOLD", "NCCL_ALLOC_P2P_NET_LL_BUFFERS"});
  return out;
}

bool level_changes_nothing(const Environment& environment, const TopologySpec& spec) {
  return !environment.peer_access || peer_access(spec, environment) == PeerAccess::as_usual;
}

/// Of a level that some GPUs of a node are within otherwise than by themselves.
void warn_of_level(const Environment& environment, const TopologySpec& spec, Diagnostics& out) {
  const auto level = std::find_if(environment.given.begin(), environment.given.end(),
                                  [](const Setting& one) { return one.name == level_variable; });
  if (environment.peer_level && environment.peer_access && level != environment.given.end() &&
      peer_access(spec, environment) == PeerAccess::of_others)
    out.push_back({level->where,
                   fmt::format("NCCL_P2P_LEVEL={} is not modelled here: some GPUs of a node would reach each other's "
                               "memory and others not, otherwise than without it",
                               level->value),
                   "the forecast is that without it; of a group no two of which are as near it is that of "
                   "NCCL_P2P_DISABLE=1"});
}

/// Of a level that has NICs beyond a processor read and write GPUs' memory.
void warn_of_gdr_level(const Environment& environment, const TopologySpec& spec, Diagnostics& out) {
  const auto level = std::ranges::find(environment.given, gdr_level_variable, &Setting::name);
  if (level == environment.given.end() || direct_access(spec, environment) != DirectAccess::of_farther) return;
  out.push_back({level->where,
                 fmt::format("{}={} changes nothing here: what NICs beyond a processor move is forecast as over the "
                             "host, whether they read and write GPUs' memory or not",
                             level->name, level->value),
                 "levels below PXB are followed: NICs that are farther count as over the host"});
}

/// Fewer threads of a channel than NCCL takes by itself. Under LL what each has in hand counts.
void warn_of_threads(const Environment& environment, Diagnostics& out) {
  const auto less = [&](const char* name, std::optional<int> threads, int usual, const char* counts) {
    const auto given = std::ranges::find_if(environment.given, [&](const Setting& one) { return one.name == name; });
    if (!threads || *threads >= usual || given == environment.given.end()) return;
    out.push_back(
        {given->where,
         fmt::format("{}={}: the forecast has what NCCL's own threads of a channel move, up to {}, and not how "
                     "much less fewer do{}",
                     name, *threads, usual, counts),
         "from which size on all channels are used follows it"});
  };
  less("NCCL_NTHREADS", environment.threads, 512, ", but under LL the 8 bytes that each has in hand");
  less("NCCL_LL128_NTHREADS", environment.ll128_threads, 640, "");
}

}  // namespace

std::vector<std::string> unused(const Environment& environment, int nodes, const TopologySpec& spec) {
  std::vector<std::string> out;
  const auto has = [](const auto& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const Setting& one : environment.given)
    if ((has(environment.without_effect, one.name) && !names_fewer_nics(one, spec)) ||
        (!spec.plugin.collnet && has(of_collnet, one.name)) || has(not_in(environment.launch.version), one.name) ||
        !is_of_consequence(one, spec) || (nodes < 2 && groups_of(one.name) == OfGroups::on_several) ||
        (one.name == "NCCL_NVB_DISABLE" && (environment.bridges || !lacks_nvlinks(spec))) ||
        (one.name == gdr_level_variable && direct_access(spec, environment) == DirectAccess::as_usual) ||
        (one.name == level_variable && environment.peer_level && level_changes_nothing(environment, spec)))
      out.push_back(one.name);
  return out;
}

Diagnostics warnings(const Environment& environment, int nodes, const TopologySpec& spec, bool has_alltoall) {
  const NetworkPlugin& plugin = spec.plugin;
  Diagnostics out;
  warn_of_level(environment, spec, out);
  warn_of_threads(environment, out);
  warn_of_not_modelled(environment, nodes, spec, has_alltoall, out);
  if (nodes < 2 || plugin.sockets) return out;
  warn_of_gdr_level(environment, spec, out);
  const auto enables = [](const Setting& one) { return one.name == "NCCL_COLLNET_ENABLE"; };
  if (plugin.collnet && environment.collnet && nodes >= environment.collnet_nodes)
    out.push_back({std::find_if(environment.given.begin(), environment.given.end(), enables)->where,
                   "forecasts of CollNet are rough: no published table measures it on a machine that is known here",
                   "docs/nccl.md, 'CollNet', has what they rest on"});
  for (const Setting& one : environment.given)
    if (names_fewer_nics(one, spec))
      out.push_back(
          {one.where,
           fmt::format("{}={} names {} of a node's {} NICs; the forecast is of all", one.name, one.value,
                       named_nics(one.value), network_ports(spec)),
           "describe a node with these NICs alone: a file that extends the machine, with node.devices and the "
           "'pairs' of node.links; of a measured table of no machine's system its nics_per_node does"});
  for (const Setting& one : environment.leave_nics)
    out.push_back({one.where,
                   fmt::format("{}={}: NCCL would take other ways between nodes; the forecast is of the NICs as the "
                               "machine's file describes them",
                               one.name, one.value),
                   "describe the sockets' rate and latency, and say that it is they: --link-bandwidth, --link-latency, "
                   "--set network.plugin.sockets=true (network.link and network.plugin in a file)"});
  return out;
}

Environment with_files(Environment environment, const Files& files) {
  environment.files = files;
  if (files.graphs) environment.given.push_back({"NCCL_GRAPH_FILE", files.graphs->name, {}});
  if (files.tuner) environment.given.push_back({"NCCL_TUNER_CONFIG_FILE", files.tuner->name, {}});
  return environment;
}

namespace {

bool is_given(const Environment& environment, std::string_view name) {
  return std::any_of(environment.given.begin(), environment.given.end(),
                     [&](const Setting& one) { return one.name == name; });
}

/// Under that name, or under the older one of it where that counts.
bool sets(const Setting& one, std::string_view name, const Environment& environment) {
  if (is_given(environment, name)) return one.name == name;
  return std::ranges::any_of(renamed, [&](const auto& pair) { return one.name == pair.first && pair.second == name; });
}

/// What variables say against each other, at the last of them that was given and not set by a machine.
void check_together(const Environment& environment, Diagnostics& errors) {
  const auto contradiction = [&](std::optional<int> least, std::optional<int> most, const char* name_of_least,
                                 const char* name_of_most) {
    if (!least || !most || *least <= *most) return;
    Location last;
    for (const Setting& one : environment.given)
      if (!one.where.file.empty() && (sets(one, name_of_least, environment) || sets(one, name_of_most, environment)))
        last = one.where;
    errors.push_back({last, fmt::format("at least {} channels but at most {}", *least, *most),
                      fmt::format("expected {} within {}", name_of_least, name_of_most)});
  };
  contradiction(environment.min_channels, environment.max_channels, "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS");
  contradiction(environment.min_blocks, environment.max_blocks, "NCCL_MIN_CTAS", "NCCL_MAX_CTAS");
}

}  // namespace

Result<Environment> with_defaults(Environment environment,
                                  std::span<const std::pair<std::string, std::string>> defaults) {
  Diagnostics errors;
  std::vector<std::string> set;
  for (const auto& [name, value] : defaults) {
    const auto says_it = [&, &named = name](const std::pair<std::string_view, std::string_view>& pair) {
      return pair.second == named && is_given(environment, pair.first);
    };
    if (is_given(environment, name) || std::any_of(renamed.begin(), renamed.end(), says_it)) continue;
    const Setting one{name, value, {}};
    set.push_back(name + "=" + value);
    environment.given.push_back(one);
    read_variable(one, environment, errors);
  }
  check_together(environment, errors);
  for (Diagnostic& one : errors) one.hint += fmt::format("; the machine sets {}", fmt::join(set, " "));
  if (!errors.empty()) return errors;
  return environment;
}

Result<Environment> of_job(Environment environment, const TopologySpec& spec, int nodes) {
  if (nodes < 2) return environment;
  return with_defaults(std::move(environment), spec.plugin.environment);
}

Result<Environment> read_environment(std::span<const Setting> settings) {
  Environment out;
  Diagnostics errors;
  for (const Setting& setting : settings) {
    if (is_given(out, setting.name))
      errors.push_back({setting.where, fmt::format("{} is given twice", setting.name), "remove one"});
    out.given.push_back(setting);
    read_variable(setting, out, errors);
  }
  for (const auto& [older, newer] : renamed)
    if (is_given(out, older) && is_given(out, newer)) out.without_effect.emplace_back(older);
  check_together(out, errors);
  if (!errors.empty()) return errors;
  return out;
}

}  // namespace collcast::nccl
