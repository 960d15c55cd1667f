// NCCL_ALGO and NCCL_PROTO: a list of names, all but those after a ^, for every collective or "name:list" for some,
// separated by semicolons. Names of variables and their values are NCCL's (its documentation, "Environment Variables").
#include "collcast/nccl/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "nccl/named_nics.hpp"
#include "nccl/pair_rates.hpp"
#include "nccl/peer_level.hpp"

namespace collcast::nccl {

namespace {

/// Known to NCCL, of no consequence here; the first are those that one would expect to matter.
constexpr std::array without_effect{"NCCL_NET_GDR_READ",
                                    "NCCL_SHM_DISABLE",
                                    "NCCL_P2P_DIRECT_DISABLE",
                                    "NCCL_P2P_USE_CUDA_MEMCPY",
                                    "NCCL_NET",
                                    "NCCL_NET_PLUGIN",
                                    "NCCL_TUNER_PLUGIN",
                                    "NCCL_TUNER_CONFIG_FILE",
                                    "NCCL_PROFILER_PLUGIN",
                                    "NCCL_DEBUG",
                                    "NCCL_DEBUG_SUBSYS",
                                    "NCCL_DEBUG_FILE",
                                    "NCCL_SOCKET_IFNAME",
                                    "NCCL_SOCKET_FAMILY",
                                    "NCCL_SOCKET_NTHREADS",
                                    "NCCL_NSOCKS_PERTHREAD",
                                    "NCCL_IB_HCA",
                                    "NCCL_IB_DISABLE",
                                    "NCCL_IB_GID_INDEX",
                                    "NCCL_IB_TC",
                                    "NCCL_IB_SL",
                                    "NCCL_IB_TIMEOUT",
                                    "NCCL_IB_RETRY_CNT",
                                    "NCCL_IB_QPS_PER_CONNECTION",
                                    "NCCL_IB_SPLIT_DATA_ON_QPS",
                                    "NCCL_IB_AR_THRESHOLD",
                                    "NCCL_IB_ADAPTIVE_ROUTING",
                                    "NCCL_IB_PCI_RELAXED_ORDERING",
                                    "NCCL_IB_CUDA_SUPPORT",
                                    "NCCL_IB_MERGE_NICS",
                                    "NCCL_IB_FIFO_TC",
                                    "NCCL_MNNVL_ENABLE",
                                    "NCCL_CUMEM_ENABLE",
                                    "NCCL_CUMEM_HOST_ENABLE",
                                    "NCCL_DMABUF_ENABLE",
                                    "NCCL_TOPO_FILE",
                                    "NCCL_TOPO_DUMP_FILE",
                                    "NCCL_GRAPH_FILE",
                                    "NCCL_GRAPH_DUMP_FILE",
                                    "NCCL_GRAPH_REGISTER",
                                    "NCCL_LOCAL_REGISTER",
                                    "NCCL_LAUNCH_MODE",
                                    "NCCL_CHECK_POINTERS",
                                    "NCCL_IGNORE_CPU_AFFINITY",
                                    "NCCL_CHECKS_DISABLE",
                                    "NCCL_COMM_BLOCKING",
                                    "NCCL_COMM_ID",
                                    "NCCL_HOSTID",
                                    "NCCL_CONF_FILE",
                                    "NCCL_OOB_NET_ENABLE",
                                    "NCCL_SET_STACK_SIZE",
                                    "NCCL_PROGRAM",
                                    "NCCL_RAS_ENABLE",
                                    "NCCL_SINGLE_RING_THRESHOLD",
                                    "NCCL_THREAD_THRESHOLDS",
                                    "NCCL_TREE_THRESHOLD",
                                    "NCCL_WORK_FIFO_BYTES",
                                    "NCCL_WIN_ENABLE",
                                    "NCCL_NET_SHARED_BUFFERS",
                                    "NCCL_NET_SHARED_COMMS",
                                    "NCCL_NET_FORCE_FLUSH",
                                    "NCCL_NET_DISABLE_INTRA",
                                    "NCCL_GDRCOPY_ENABLE",
                                    "NCCL_FASTRAK_ENABLE",
                                    "NCCL_LL128_C2C",
                                    "NCCL_CGA_CLUSTER_SIZE",
                                    "NCCL_WARN_ENABLE_DEBUG_INFO"};

constexpr std::array with_effect{"NCCL_ALGO",
                                 "NCCL_PROTO",
                                 "NCCL_MIN_NCHANNELS",
                                 "NCCL_MAX_NCHANNELS",
                                 "NCCL_MIN_NRINGS",
                                 "NCCL_MAX_NRINGS",
                                 "NCCL_MIN_CTAS",
                                 "NCCL_MAX_CTAS",
                                 "NCCL_NTHREADS",
                                 "NCCL_LL128_NTHREADS",
                                 "NCCL_NVLS_ENABLE",
                                 "NCCL_P2P_DISABLE",
                                 "NCCL_P2P_LEVEL",
                                 "NCCL_MIN_P2P_NCHANNELS",
                                 "NCCL_MAX_P2P_NCHANNELS",
                                 "NCCL_NCHANNELS_PER_NET_PEER",
                                 "NCCL_BUFFSIZE",
                                 "NCCL_LL_BUFFSIZE",
                                 "NCCL_LL128_BUFFSIZE",
                                 "NCCL_PAT_ENABLE",
                                 "NCCL_NET_GDR_LEVEL",
                                 "NCCL_NVLS_NCHANNELS",
                                 "NCCL_NVLS_CHUNKSIZE",
                                 "NCCL_NVLSTREE_MAX_CHUNKSIZE",
                                 "NCCL_CROSS_NIC",
                                 "NCCL_PXN_DISABLE",
                                 "NCCL_P2P_PXN_LEVEL",
                                 "NCCL_COLLNET_ENABLE",
                                 "NCCL_COLLNET_NODE_THRESHOLD"};
/// Of those, what has an older name, which is passed over where both are given.
constexpr std::array renamed{std::pair{"NCCL_MIN_NRINGS", "NCCL_MIN_NCHANNELS"},
                             std::pair{"NCCL_MAX_NRINGS", "NCCL_MAX_NCHANNELS"}};
/// Of those, what needs a reduction in the network.
constexpr std::array of_collnet{"NCCL_COLLNET_ENABLE", "NCCL_COLLNET_NODE_THRESHOLD"};
/// Known, and not followed: sizes of chunks of sends and receives, between nodes, and on one over NVLink or PCIe.
constexpr std::array of_pair_chunks{"NCCL_P2P_NET_CHUNKSIZE", "NCCL_P2P_NVL_CHUNKSIZE", "NCCL_P2P_PCI_CHUNKSIZE"};

constexpr std::array algorithm_words{"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
/// As NCCL_ALGO spells them.
constexpr std::array nccl_words{"tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"};

/// NCCL's words for collectives in these lists.
struct NamedKind {
  const char* word;
  CollectiveKind kind;
};
constexpr std::array kinds_with_choice{
    NamedKind{"broadcast", CollectiveKind::broadcast}, NamedKind{"reduce", CollectiveKind::reduce},
    NamedKind{"allreduce", CollectiveKind::all_reduce}, NamedKind{"allgather", CollectiveKind::all_gather},
    NamedKind{"reducescatter", CollectiveKind::reduce_scatter}};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

std::string trimmed(std::string_view text) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t end = text.find(by);
    out.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

template <class Words>
std::vector<std::string> listed(const Words& words) {
  return {words.begin(), words.end()};
}

Diagnostic wrong(const Setting& setting, const std::string& message, std::string hint) {
  return {setting.where, fmt::format("{}={}: {}", setting.name, setting.value, message), std::move(hint)};
}

/// "^tree,ring" over `words`; their indices are the bits.
std::optional<unsigned> read_set(const Setting& setting, std::string list, const std::vector<std::string>& words,
                                 Diagnostics& errors) {
  const bool all_but = !list.empty() && list.front() == '^';
  if (all_but) list.erase(0, 1);
  unsigned bits = 0;
  for (const std::string& word : split(list, ',')) {
    const auto found = std::find(words.begin(), words.end(), lower(word));
    if (found == words.end()) {
      errors.push_back(wrong(setting, word.empty() ? "a name is missing" : fmt::format("unknown name '{}'", word),
                             word.empty() ? fmt::format("expected one of: {}", fmt::join(words, ", "))
                                          : expected_one_of(lower(word), words)));
      return std::nullopt;
    }
    bits |= 1U << static_cast<unsigned>(found - words.begin());
  }
  return all_but ? ~bits : bits;
}

using Sets = std::array<std::optional<unsigned>, collective_kinds>;

void read_sets(const Setting& setting, const std::vector<std::string>& words, Sets& sets, Diagnostics& errors) {
  for (const std::string& part : split(setting.value, ';')) {
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos) {
      const auto bits = read_set(setting, part, words, errors);
      for (const NamedKind& named : kinds_with_choice)
        if (bits) sets[static_cast<std::size_t>(named.kind)] = bits;
      continue;
    }
    const std::string name = lower(trimmed(part.substr(0, colon)));
    const auto kind = std::find_if(kinds_with_choice.begin(), kinds_with_choice.end(),
                                   [&](const NamedKind& named) { return named.word == name; });
    if (kind == kinds_with_choice.end()) {
      std::vector<std::string> known;
      for (const NamedKind& named : kinds_with_choice) known.emplace_back(named.word);
      errors.push_back(wrong(setting, fmt::format("unknown collective '{}'", name), expected_one_of(name, known)));
      continue;
    }
    if (const auto bits = read_set(setting, trimmed(part.substr(colon + 1)), words, errors))
      sets[static_cast<std::size_t>(kind->kind)] = bits;
  }
}

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A whole number in a range that is a multiple of `step`.
std::optional<std::int64_t> read_number(const Setting& setting, std::int64_t least, std::int64_t most,
                                        std::int64_t step, Diagnostics& errors) {
  const auto value = whole(setting.value);
  if (value && *value >= least && *value <= most && *value % step == 0) return value;
  errors.push_back(wrong(setting, "out of range or no whole number",
                         step == 1 ? fmt::format("expected a whole number from {} to {}", least, most)
                                   : fmt::format("expected a multiple of {} from {} to {}", step, least, most)));
  return std::nullopt;
}

/// A kind of path by its name, or by its number in the order of older versions [src/graph/paths.cc].
void read_level(const Setting& setting, PathType& into, Diagnostics& errors) {
  constexpr std::array levels{PathType::loc, PathType::pix, PathType::pxb, PathType::phb, PathType::sys, PathType::sys};
  const auto number = whole(setting.value);
  const auto named = parse_path_type(setting.value);
  if (number && *number >= 0 && *number < static_cast<std::int64_t>(levels.size()))
    into = levels[static_cast<std::size_t>(*number)];
  else if (named && *named <= PathType::sys)
    into = *named;
  else
    errors.push_back(
        wrong(setting, "no such level", "expected LOC, PIX, PXB, PHB or SYS (or another path's name), or 0 to 5"));
}

constexpr int most_channels = 64;
/// NCCL rounds chunks of Simple down to whole 512 bytes; it has no limits, and values below make loops without number.
constexpr std::int64_t chunk_grain = 512, least_chunk = 4096, most_chunk = std::int64_t{16} << 20;
constexpr std::int64_t least_buffer = 64 << 10, most_buffer = std::int64_t{1} << 30;

void read_one(const Setting& setting, Environment& out, Diagnostics& errors) {
  const std::string& name = setting.name;
  const auto count = [&](std::optional<int>& into, std::int64_t least, std::int64_t most, std::int64_t step) {
    if (const auto value = read_number(setting, least, most, step, errors)) into = static_cast<int>(*value);
  };
  // The newer name's value stays, in whatever order they come [src/graph/connect.cc].
  const auto older = [&](std::optional<int>& into) {
    std::optional<int> value;
    count(value, 1, most_channels, 1);
    if (!into) into = value;
  };
  const auto buffer = [&](Bytes& into) {
    if (const auto value = read_number(setting, least_buffer, most_buffer, 1, errors)) into = Bytes(*value);
  };
  const auto chunk = [&](std::optional<Bytes>& into) {
    if (const auto value = read_number(setting, least_chunk, most_chunk, chunk_grain, errors)) into = Bytes(*value);
  };
  const bool sockets = name == "NCCL_NET" && lower(setting.value) == "socket";
  if (sockets || (name == "NCCL_IB_DISABLE" && setting.value != "0")) {
    out.leave_nics.push_back(setting);
  } else if (name == "NCCL_ALGO") {
    read_sets(setting, listed(nccl_words), out.algorithm_sets, errors);
  } else if (name == "NCCL_PROTO") {
    read_sets(setting, {"ll", "ll128", "simple"}, out.protocol_sets, errors);
  } else if (name == "NCCL_MIN_NCHANNELS") {
    count(out.min_channels, 1, most_channels, 1);
  } else if (name == "NCCL_MAX_NCHANNELS") {
    count(out.max_channels, 1, most_channels, 1);
  } else if (name == "NCCL_MIN_NRINGS") {
    older(out.min_channels);
  } else if (name == "NCCL_MAX_NRINGS") {
    older(out.max_channels);
  } else if (name == "NCCL_MIN_CTAS") {
    count(out.min_blocks, 1, most_channels, 1);
  } else if (name == "NCCL_MAX_CTAS") {
    count(out.max_blocks, 1, most_channels, 1);
  } else if (name == "NCCL_NVLS_NCHANNELS") {
    count(out.nvls_channels, 1, most_channels, 1);
  } else if (name == "NCCL_NVLS_CHUNKSIZE") {
    chunk(out.nvls_chunk);
  } else if (name == "NCCL_NVLSTREE_MAX_CHUNKSIZE") {
    chunk(out.nvls_tree_chunk);
  } else if (name == "NCCL_NVB_DISABLE") {
    const auto value = read_number(setting, 0, 1, 1, errors);
    if (value == 1) out.no_bridges = setting;
    if (value == 0) out.without_effect.push_back(name);
  } else if (name == "NCCL_NTHREADS") {
    count(out.threads, 64, 512, 32);
  } else if (name == "NCCL_LL128_NTHREADS") {
    count(out.ll128_threads, 160, 640, 32);
  } else if (name == "NCCL_NVLS_ENABLE") {
    if (const auto value = read_number(setting, 0, 2, 1, errors)) out.nvls = *value != 0;
  } else if (name == "NCCL_PAT_ENABLE") {
    if (const auto value = read_number(setting, 0, 2, 1, errors)) out.pat = *value != 0;
  } else if (name == "NCCL_COLLNET_ENABLE") {
    if (const auto value = read_number(setting, 0, 1, 1, errors)) out.collnet = *value == 1;
  } else if (name == "NCCL_COLLNET_NODE_THRESHOLD") {
    if (const auto value = read_number(setting, 0, most_nodes, 1, errors)) out.collnet_nodes = static_cast<int>(*value);
  } else if (name == "NCCL_NET_GDR_LEVEL") {
    read_level(setting, out.gpudirect_level, errors);
  } else if (name == "NCCL_CROSS_NIC") {
    if (const auto value = read_number(setting, 0, 2, 1, errors)) out.cross_nic = static_cast<CrossNic>(*value);
  } else if (name == "NCCL_PXN_DISABLE") {
    if (const auto value = read_number(setting, 0, 1, 1, errors)) out.pxn = *value == 0;
  } else if (name == "NCCL_P2P_PXN_LEVEL") {
    if (const auto value = read_number(setting, 0, 2, 1, errors)) out.pxn_of_pairs = *value != 0;
  } else if (name == "NCCL_P2P_DISABLE") {
    if (read_number(setting, 0, 1, 1, errors) == 1) out.peer_access = false;
  } else if (name == "NCCL_P2P_LEVEL") {
    PathType level = PathType::pxb;
    read_level(setting, level, errors);
    if (level == PathType::loc)
      out.peer_access = false;
    else
      out.peer_level = level;
  } else if (name == "NCCL_MIN_P2P_NCHANNELS") {
    count(out.min_p2p_channels, 1, most_channels, 1);
  } else if (name == "NCCL_MAX_P2P_NCHANNELS") {
    count(out.max_p2p_channels, 1, most_channels, 1);
  } else if (name == "NCCL_NCHANNELS_PER_NET_PEER") {
    // NCCL's own value, -1 and before it -2, leaves the number to it.
    if (setting.value == "-1" || setting.value == "-2")
      out.without_effect.push_back(name);
    else
      count(out.net_peer_channels, 1, most_channels, 1);
  } else if (std::find(of_pair_chunks.begin(), of_pair_chunks.end(), name) != of_pair_chunks.end()) {
    out.pair_chunks.push_back(setting);
  } else if (name == "NCCL_BUFFSIZE") {
    buffer(out.simple_buffer);
  } else if (name == "NCCL_LL_BUFFSIZE") {
    buffer(out.ll_buffer);
  } else if (name == "NCCL_LL128_BUFFSIZE") {
    buffer(out.ll128_buffer);
  } else if (std::find(without_effect.begin(), without_effect.end(), name) != without_effect.end()) {
    out.without_effect.push_back(name);
  } else {
    std::vector<std::string> known = listed(with_effect);
    for (const auto& more : {listed(without_effect), listed(of_pair_chunks)})
      known.insert(known.end(), more.begin(), more.end());
    const auto near = nearest_word(name, known);
    errors.push_back({setting.where, fmt::format("unknown variable '{}'", name),
                      near ? fmt::format("did you mean '{}'?", *near)
                           : fmt::format("those that change a forecast: {}", fmt::join(with_effect, ", "))});
  }
}

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

std::vector<std::string> algorithm_names() { return listed(algorithm_words); }

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
  return pxn && (version == 0 || version >= first);
}

bool Environment::launches_groups() const {
  constexpr int first_without = 20900;
  // Asked for every price: words are looked through where the rest leaves it open alone.
  return one_process && version > 0 && version < first_without && std::ranges::none_of(given, [](const Setting& one) {
           return one.name == "NCCL_LAUNCH_MODE" && one.value == "PARALLEL";
         });
}

bool Environment::names_protocols(CollectiveKind kind) const {
  return protocol_sets[static_cast<std::size_t>(kind)].has_value();
}

std::string text_of(const Environment& environment) {
  std::string out;
  for (const Setting& one : environment.given) out += (out.empty() ? "" : " ") + one.name + "=" + one.value;
  if (environment.version > 0) out += fmt::format("{}NCCL {}", out.empty() ? "" : " ", environment.version);
  if (environment.launches_groups()) out += ", one process";
  return out;
}

namespace {

constexpr const char* level_variable = "NCCL_P2P_LEVEL";

bool level_changes_nothing(const Environment& environment, const TopologySpec& spec) {
  return !environment.peer_access || peer_access(spec, environment) == PeerAccess::as_usual;
}

/// Of what no forecast of sends and receives follows.
void warn_of_pairs(const Environment& environment, int nodes, const TopologySpec& spec, Diagnostics& out) {
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
  const bool nvlink = std::any_of(spec.links.begin(), spec.links.end(),
                                  [](const LinkGroup& link) { return link.kind == LinkKind::nvlink; });
  const char* counts = nodes > 1 ? of_pair_chunks[0] : nvlink ? of_pair_chunks[1] : of_pair_chunks[2];
  for (const Setting& one : environment.pair_chunks)
    if (one.name == counts)
      out.push_back({one.where,
                     fmt::format("{}={} is not modelled: chunks of sends, receives and alltoall are forecast in "
                                 "NCCL's own size",
                                 one.name, one.value),
                     "NCCL_MAX_P2P_NCHANNELS and NCCL_NCHANNELS_PER_NET_PEER are followed"});
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

std::vector<std::string> unused(const Environment& environment, const TopologySpec& spec) {
  std::vector<std::string> out;
  const auto has = [](const auto& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const Setting& one : environment.given)
    if ((has(environment.without_effect, one.name) && !names_fewer_nics(one, spec)) ||
        (!spec.plugin.collnet && has(of_collnet, one.name)) ||
        (environment.no_bridges && environment.no_bridges->name == one.name && !sends_through_gpus(spec)) ||
        (one.name == level_variable && environment.peer_level && level_changes_nothing(environment, spec)))
      out.push_back(one.name);
  return out;
}

Diagnostics warnings(const Environment& environment, int nodes, const TopologySpec& spec) {
  const NetworkPlugin& plugin = spec.plugin;
  Diagnostics out;
  if (environment.no_bridges && sends_through_gpus(spec))
    out.push_back({environment.no_bridges->where,
                   "NCCL_NVB_DISABLE=1 is not modelled: GPUs without an NVLink between them would send over PCIe, and "
                   "are forecast to send through the memory of a GPU that has one to both",
                   "of sends and receives and alltoall the forecast is too fast; NCCL_P2P_DISABLE=1 has no NVLink"});
  warn_of_pairs(environment, nodes, spec, out);
  warn_of_threads(environment, out);
  if (nodes < 2 || plugin.sockets) return out;
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
                       named_nics(one.value), nics_of_node(spec)),
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

/// What variables say against each other, at the last one that was given and not set by a machine.
void check_together(const Environment& environment, Diagnostics& errors) {
  const auto asked = std::find_if(environment.given.rbegin(), environment.given.rend(),
                                  [](const Setting& one) { return !one.where.file.empty(); });
  const auto contradiction = [&](std::optional<int> least, std::optional<int> most, const char* expected) {
    if (least && most && *least > *most)
      errors.push_back({asked == environment.given.rend() ? Location{} : asked->where,
                        fmt::format("at least {} channels but at most {}", *least, *most), expected});
  };
  contradiction(environment.min_channels, environment.max_channels,
                "expected NCCL_MIN_NCHANNELS within NCCL_MAX_NCHANNELS");
  contradiction(environment.min_blocks, environment.max_blocks, "expected NCCL_MIN_CTAS within NCCL_MAX_CTAS");
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
    read_one(one, environment, errors);
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
    read_one(setting, out, errors);
  }
  for (const auto& [older, newer] : renamed)
    if (is_given(out, older) && is_given(out, newer)) out.without_effect.emplace_back(older);
  check_together(out, errors);
  if (!errors.empty()) return errors;
  return out;
}

}  // namespace collcast::nccl
