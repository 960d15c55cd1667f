// NCCL_ALGO and NCCL_PROTO: a list of names, all but those after a ^, for every collective or "name:list" for some,
// separated by semicolons. Names of variables and their values are NCCL's (its documentation, "Environment Variables").
#include "nccl/variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "collcast/base/numbers.hpp"
#include "collcast/base/words.hpp"

namespace collcast::nccl {

namespace {

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

std::string trimmed_text(std::string_view text) { return std::string(trimmed(text, white_space)); }

std::vector<std::string> trimmed_parts(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (const std::string_view part : split(text, separator)) out.push_back(trimmed_text(part));
  return out;
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
  for (const std::string& word : trimmed_parts(list, ',')) {
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
  for (const std::string& part : trimmed_parts(setting.value, ';')) {
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos) {
      const auto bits = read_set(setting, part, words, errors);
      for (const NamedKind& named : kinds_with_choice)
        if (bits) sets[static_cast<std::size_t>(named.kind)] = bits;
      continue;
    }
    const std::string name = lower(trimmed_text(part.substr(0, colon)));
    const auto kind = std::find_if(kinds_with_choice.begin(), kinds_with_choice.end(),
                                   [&](const NamedKind& named) { return named.word == name; });
    if (kind == kinds_with_choice.end()) {
      std::vector<std::string> known;
      for (const NamedKind& named : kinds_with_choice) known.emplace_back(named.word);
      errors.push_back(wrong(setting, fmt::format("unknown collective '{}'", name), expected_one_of(name, known)));
      continue;
    }
    if (const auto bits = read_set(setting, trimmed_text(part.substr(colon + 1)), words, errors))
      sets[static_cast<std::size_t>(kind->kind)] = bits;
  }
}

/// A whole number in a range that is a multiple of `step`.
std::optional<std::int64_t> read_number(const Setting& setting, std::int64_t least, std::int64_t most,
                                        std::int64_t step, Diagnostics& errors) {
  const auto value = to_number<std::int64_t>(setting.value);
  if (value && *value >= least && *value <= most && *value % step == 0) return value;
  errors.push_back(wrong(setting, "out of range or no whole number",
                         step == 1 ? fmt::format("expected a whole number from {} to {}", least, most)
                                   : fmt::format("expected a multiple of {} from {} to {}", step, least, most)));
  return std::nullopt;
}

/// A kind of path by its name, or by its number in the order of older versions [src/graph/paths.cc].
void read_level(const Setting& setting, PathType& into, Diagnostics& errors) {
  constexpr std::array levels{PathType::loc, PathType::pix, PathType::pxb, PathType::phb, PathType::sys, PathType::sys};
  const auto number = to_number<std::int64_t>(setting.value);
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

// --- readers: each of one variable, or of those of one form ---

template <std::optional<int> Environment::*into, int least = 1, int most = most_channels, int step = 1>
void count(const Setting& setting, Environment& out, Diagnostics& errors) {
  if (const auto value = read_number(setting, least, most, step, errors)) out.*into = static_cast<int>(*value);
}

/// An older name of a count: the newer one's value stays, in whatever order they come [src/graph/connect.cc].
template <std::optional<int> Environment::*into>
void older_count(const Setting& setting, Environment& out, Diagnostics& errors) {
  const auto value = read_number(setting, 1, most_channels, 1, errors);
  if (value && !(out.*into)) out.*into = static_cast<int>(*value);
}

/// 0 is no; NCCL has a 2 of some: as it sees fit.
template <bool Environment::*into, int most = 1>
void enabled(const Setting& setting, Environment& out, Diagnostics& errors) {
  if (const auto value = read_number(setting, 0, most, 1, errors)) out.*into = *value != 0;
}

template <bool Environment::*into>
void disabled(const Setting& setting, Environment& out, Diagnostics& errors) {
  if (const auto value = read_number(setting, 0, 1, 1, errors)) out.*into = *value == 0;
}

template <Bytes Environment::*into>
void buffer(const Setting& setting, Environment& out, Diagnostics& errors) {
  if (const auto value = read_number(setting, least_buffer, most_buffer, 1, errors)) out.*into = Bytes(*value);
}

template <std::optional<Bytes> Environment::*into>
void chunk(const Setting& setting, Environment& out, Diagnostics& errors) {
  if (const auto value = read_number(setting, least_chunk, most_chunk, chunk_grain, errors)) out.*into = Bytes(*value);
}

void without_effect(const Setting& setting, Environment& out, Diagnostics&) {
  out.without_effect.push_back(setting.name);
}

void read_algorithms(const Setting& setting, Environment& out, Diagnostics& errors) {
  read_sets(setting, {nccl_words.begin(), nccl_words.end()}, out.algorithm_sets, errors);
}

void read_protocols(const Setting& setting, Environment& out, Diagnostics& errors) {
  read_sets(setting, {"ll", "ll128", "simple"}, out.protocol_sets, errors);
}

void read_gpudirect_level(const Setting& setting, Environment& out, Diagnostics& errors) {
  read_level(setting, out.gpudirect_level, errors);
}

void read_peer_level(const Setting& setting, Environment& out, Diagnostics& errors) {
  PathType level = PathType::pxb;
  read_level(setting, level, errors);
  if (level == PathType::loc)
    out.peer_access = false;
  else
    out.peer_level = level;
}

/// 0 leaves what NCCL_P2P_LEVEL says.
void read_peer_access(const Setting& setting, Environment& out, Diagnostics& errors) {
  if (read_number(setting, 0, 1, 1, errors) == 1) out.peer_access = false;
}

/// NCCL's own value, -1 and before it -2, leaves the number to it.
void read_net_peer_channels(const Setting& setting, Environment& out, Diagnostics& errors) {
  if (setting.value == "-1" || setting.value == "-2")
    without_effect(setting, out, errors);
  else
    count<&Environment::net_peer_channels>(setting, out, errors);
}

void read_cross_nic(const Setting& setting, Environment& out, Diagnostics& errors) {
  if (const auto value = read_number(setting, 0, 2, 1, errors)) out.cross_nic = static_cast<CrossNic>(*value);
}

void read_collnet_nodes(const Setting& setting, Environment& out, Diagnostics& errors) {
  if (const auto value = read_number(setting, 0, most_nodes, 1, errors)) out.collnet_nodes = static_cast<int>(*value);
}

void read_net(const Setting& setting, Environment& out, Diagnostics& errors) {
  if (lower(setting.value) == "socket")
    out.leave_nics.push_back(setting);
  else
    without_effect(setting, out, errors);
}

void read_no_verbs(const Setting& setting, Environment& out, Diagnostics& errors) {
  if (setting.value != "0")
    out.leave_nics.push_back(setting);
  else
    without_effect(setting, out, errors);
}

/// Of NCCL before 2.9 alone (Environment::launches_groups), and named as without effect.
void read_launch_mode(const Setting& setting, Environment& out, Diagnostics& errors) {
  out.parallel_launch = setting.value == "PARALLEL";
  without_effect(setting, out, errors);
}

/// Whole nanoseconds; NCCL's own value is -2, by the host's processor.
void read_net_overhead(const Setting& setting, Environment& out, Diagnostics& errors) {
  constexpr std::int64_t most = 1'000'000'000;
  if (setting.value == "-2")
    without_effect(setting, out, errors);
  else if (const auto value = read_number(setting, 0, most, 1, errors))
    out.net_overhead = Seconds(1e-9 * static_cast<double>(*value));
}

/// Bytes of a message for each channel.
void read_pair_ll_limit(const Setting& setting, Environment& out, Diagnostics& errors) {
  if (const auto value = read_number(setting, 0, most_buffer, 1, errors)) out.pair_ll_limit = Bytes(*value);
}

/// Up to six numbers: of trees under LL, LL128 and Simple, and of rings; below 0, and where the list ends: NCCL's own.
void read_thread_thresholds(const Setting& setting, Environment& out, Diagnostics& errors) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  std::vector<std::string> parts = trimmed_parts(setting.value, ' ');
  std::erase(parts, std::string());
  const bool fits = !parts.empty() && parts.size() <= 2 * protocols.size();
  for (std::size_t i = 0; fits && i < parts.size(); ++i) {
    const auto value = to_number<std::int64_t>(parts[i]);
    if (!value || *value > most) {
      errors.push_back(wrong(setting, fmt::format("'{}' is out of range or no whole number", parts[i]),
                             fmt::format("expected up to six whole numbers, no more than {}", most)));
      return;
    }
    auto& of_algorithm = i < protocols.size() ? out.tree_thresholds : out.ring_thresholds;
    if (*value >= 0) of_algorithm[i % protocols.size()] = *value;
  }
  if (!fits)
    errors.push_back(wrong(setting, parts.empty() ? "a number is missing" : "more numbers than NCCL reads",
                           "expected bytes of a thread for trees under LL, LL128 and Simple, and for rings: six "
                           "numbers, or the first of them"));
}

void not_followed(const Setting& setting, Environment& out, Diagnostics&) { out.not_followed.push_back(setting); }

/// Of anything else NCCL says that it takes AUTO instead [src/graph/topo.cc].
void read_nics_policy(const Setting& setting, Environment& out, Diagnostics& errors) {
  constexpr std::string_view most = "max:";
  const std::string word = lower(setting.value);
  const auto number =
      word.starts_with(most) ? to_number<std::int64_t>(std::string_view(word).substr(most.size())) : std::nullopt;
  if (word == "auto" || word == "all" || (number && *number > 0)) return not_followed(setting, out, errors);
  errors.push_back(wrong(setting, "no such policy", "expected AUTO, ALL or MAX:N, with N from 1"));
}

/// In the order in which a hint looks for the nearest name: of equally near ones the first is offered.
constexpr std::array all_variables{
    Variable{"NCCL_ALGO", read_algorithms, true},
    Variable{"NCCL_PROTO", read_protocols, true},
    Variable{"NCCL_MIN_NCHANNELS", count<&Environment::min_channels>, true},
    Variable{"NCCL_MAX_NCHANNELS", count<&Environment::max_channels>, true},
    Variable{"NCCL_MIN_NRINGS", older_count<&Environment::min_channels>, true},
    Variable{"NCCL_MAX_NRINGS", older_count<&Environment::max_channels>, true},
    Variable{"NCCL_MIN_CTAS", count<&Environment::min_blocks>, true},
    Variable{"NCCL_MAX_CTAS", count<&Environment::max_blocks>, true},
    Variable{"NCCL_NTHREADS", count<&Environment::threads, 64, 512, 32>, true},
    Variable{"NCCL_LL128_NTHREADS", count<&Environment::ll128_threads, 160, 640, 32>, true},
    Variable{"NCCL_NVLS_ENABLE", enabled<&Environment::nvls, 2>, true},
    Variable{"NCCL_P2P_DISABLE", read_peer_access, true},
    Variable{"NCCL_P2P_LEVEL", read_peer_level, true},
    Variable{"NCCL_MIN_P2P_NCHANNELS", count<&Environment::min_p2p_channels>, true},
    Variable{"NCCL_MAX_P2P_NCHANNELS", count<&Environment::max_p2p_channels>, true},
    Variable{"NCCL_NCHANNELS_PER_NET_PEER", read_net_peer_channels, true, OfGroups::on_several},
    Variable{"NCCL_BUFFSIZE", buffer<&Environment::simple_buffer>, true},
    Variable{"NCCL_LL_BUFFSIZE", buffer<&Environment::ll_buffer>, true},
    Variable{"NCCL_LL128_BUFFSIZE", buffer<&Environment::ll128_buffer>, true},
    Variable{"NCCL_PAT_ENABLE", enabled<&Environment::pat, 2>, true, OfGroups::on_several},
    Variable{"NCCL_NET_GDR_LEVEL", read_gpudirect_level, true, OfGroups::on_several},
    Variable{"NCCL_NVLS_NCHANNELS", count<&Environment::nvls_channels>, true},
    Variable{"NCCL_NVLS_CHUNKSIZE", chunk<&Environment::nvls_chunk>, true},
    Variable{"NCCL_NVLSTREE_MAX_CHUNKSIZE", chunk<&Environment::nvls_tree_chunk>, true, OfGroups::on_several},
    Variable{"NCCL_CROSS_NIC", read_cross_nic, true, OfGroups::on_several},
    Variable{"NCCL_NVB_DISABLE", disabled<&Environment::bridges>, true},
    Variable{"NCCL_PXN_DISABLE", disabled<&Environment::pxn>, true, OfGroups::on_several},
    Variable{"NCCL_P2P_PXN_LEVEL", enabled<&Environment::pxn_of_pairs, 2>, true, OfGroups::on_several},
    Variable{"NCCL_NET_OVERHEAD", read_net_overhead, true, OfGroups::on_several},
    Variable{"NCCL_THREAD_THRESHOLDS", read_thread_thresholds, true},
    Variable{"NCCL_P2P_LL_THRESHOLD", read_pair_ll_limit, true},
    Variable{"NCCL_ALLOC_P2P_NET_LL_BUFFERS", enabled<&Environment::pair_ll_between>, true, OfGroups::on_several},
    Variable{"NCCL_COLLNET_ENABLE", enabled<&Environment::collnet>, true, OfGroups::on_several},
    Variable{"NCCL_COLLNET_NODE_THRESHOLD", read_collnet_nodes, true, OfGroups::on_several},
    // Known to NCCL, of no consequence here; the first are those that one would expect to matter.
    Variable{"NCCL_NET_GDR_READ", without_effect},
    Variable{"NCCL_SHM_DISABLE", without_effect},
    Variable{"NCCL_P2P_DIRECT_DISABLE", without_effect},
    Variable{"NCCL_P2P_USE_CUDA_MEMCPY", without_effect},
    Variable{"NCCL_NET", read_net, false, OfGroups::on_several},
    Variable{"NCCL_NET_PLUGIN", without_effect},
    Variable{"NCCL_TUNER_PLUGIN", without_effect},
    Variable{"NCCL_TUNER_CONFIG_FILE", without_effect},
    Variable{"NCCL_PROFILER_PLUGIN", without_effect},
    Variable{"NCCL_DEBUG", without_effect},
    Variable{"NCCL_DEBUG_SUBSYS", without_effect},
    Variable{"NCCL_DEBUG_FILE", without_effect},
    Variable{"NCCL_SOCKET_IFNAME", without_effect},
    Variable{"NCCL_SOCKET_FAMILY", without_effect},
    Variable{"NCCL_SOCKET_NTHREADS", without_effect},
    Variable{"NCCL_NSOCKS_PERTHREAD", without_effect},
    Variable{"NCCL_IB_HCA", without_effect, false, OfGroups::on_several},
    Variable{"NCCL_IB_DISABLE", read_no_verbs, false, OfGroups::on_several},
    Variable{"NCCL_IB_GID_INDEX", without_effect},
    Variable{"NCCL_IB_TC", without_effect},
    Variable{"NCCL_IB_SL", without_effect},
    Variable{"NCCL_IB_TIMEOUT", without_effect},
    Variable{"NCCL_IB_RETRY_CNT", without_effect},
    Variable{"NCCL_IB_QPS_PER_CONNECTION", without_effect},
    Variable{"NCCL_IB_SPLIT_DATA_ON_QPS", without_effect},
    Variable{"NCCL_IB_AR_THRESHOLD", without_effect},
    Variable{"NCCL_IB_ADAPTIVE_ROUTING", without_effect},
    Variable{"NCCL_IB_PCI_RELAXED_ORDERING", without_effect},
    Variable{"NCCL_IB_CUDA_SUPPORT", without_effect},
    Variable{"NCCL_IB_MERGE_NICS", without_effect},
    Variable{"NCCL_IB_FIFO_TC", without_effect},
    Variable{"NCCL_CUMEM_ENABLE", without_effect},
    Variable{"NCCL_CUMEM_HOST_ENABLE", without_effect},
    Variable{"NCCL_DMABUF_ENABLE", without_effect},
    Variable{"NCCL_TOPO_FILE", without_effect},
    Variable{"NCCL_TOPO_DUMP_FILE", without_effect},
    Variable{"NCCL_GRAPH_FILE", without_effect},
    Variable{"NCCL_GRAPH_DUMP_FILE", without_effect},
    Variable{"NCCL_GRAPH_REGISTER", without_effect},
    Variable{"NCCL_LOCAL_REGISTER", without_effect},
    Variable{"NCCL_LAUNCH_MODE", read_launch_mode},
    Variable{"NCCL_CHECK_POINTERS", without_effect},
    Variable{"NCCL_IGNORE_CPU_AFFINITY", without_effect},
    Variable{"NCCL_CHECKS_DISABLE", without_effect},
    Variable{"NCCL_COMM_BLOCKING", without_effect},
    Variable{"NCCL_COMM_ID", without_effect},
    Variable{"NCCL_HOSTID", without_effect},
    Variable{"NCCL_CONF_FILE", without_effect},
    Variable{"NCCL_OOB_NET_ENABLE", without_effect},
    Variable{"NCCL_SET_STACK_SIZE", without_effect},
    Variable{"NCCL_PROGRAM", without_effect},
    Variable{"NCCL_RAS_ENABLE", without_effect},
    Variable{"NCCL_SINGLE_RING_THRESHOLD", without_effect},
    Variable{"NCCL_TREE_THRESHOLD", without_effect},
    Variable{"NCCL_WORK_FIFO_BYTES", without_effect},
    Variable{"NCCL_WIN_ENABLE", without_effect},
    Variable{"NCCL_NET_SHARED_BUFFERS", without_effect},
    Variable{"NCCL_NET_SHARED_COMMS", without_effect},
    Variable{"NCCL_NET_FORCE_FLUSH", without_effect},
    Variable{"NCCL_NET_DISABLE_INTRA", without_effect},
    Variable{"NCCL_GDRCOPY_ENABLE", without_effect},
    Variable{"NCCL_FASTRAK_ENABLE", without_effect},
    Variable{"NCCL_CGA_CLUSTER_SIZE", without_effect},
    Variable{"NCCL_WARN_ENABLE_DEBUG_INFO", without_effect},
    Variable{"NCCL_CHECK_MODE", without_effect},
    Variable{"NCCL_COMM_SHRINK_SHARE_RESOURCES", without_effect},
    Variable{"NCCL_COMM_SPLIT_SHARE_RESOURCES", without_effect},
    Variable{"NCCL_CONNECT_ROUND_MAX_PEERS", without_effect},
    Variable{"NCCL_CREATE_THREAD_CONTEXT", without_effect},
    Variable{"NCCL_CTA_POLICY", without_effect},
    Variable{"NCCL_DEBUG_LEVELS", without_effect},
    Variable{"NCCL_DEBUG_TIMESTAMP_FORMAT", without_effect},
    Variable{"NCCL_DEBUG_TIMESTAMP_LEVELS", without_effect},
    Variable{"NCCL_ENV_PLUGIN", without_effect},
    Variable{"NCCL_GDRCOPY_FIFO_ENABLE", without_effect},
    Variable{"NCCL_GDRCOPY_FLUSH_ENABLE", without_effect},
    Variable{"NCCL_GDRCOPY_SYNC_ENABLE", without_effect},
    Variable{"NCCL_GDR_FLUSH_DISABLE", without_effect},
    Variable{"NCCL_GIN_ENABLE", without_effect},
    Variable{"NCCL_GIN_PLUGIN", without_effect},
    Variable{"NCCL_GIN_TYPE", without_effect},
    Variable{"NCCL_GRAPH_DUMP_FILE_RANK", without_effect},
    Variable{"NCCL_GRAPH_HELPER_DISABLE", without_effect},
    Variable{"NCCL_GRAPH_MIXING_SUPPORT", without_effect},
    Variable{"NCCL_GRAPH_STREAM_ORDERING", without_effect},
    Variable{"NCCL_GROUP_CUDA_STREAM", without_effect},
    Variable{"NCCL_IB_ADDR_FAMILY", without_effect},
    Variable{"NCCL_IB_ADDR_RANGE", without_effect},
    Variable{"NCCL_IB_DATA_DIRECT", without_effect},
    Variable{"NCCL_IB_ECE_ENABLE", without_effect},
    Variable{"NCCL_IB_EVENT_BASED_LB", without_effect},
    Variable{"NCCL_IB_MERGE_VFS", without_effect},
    Variable{"NCCL_IB_OOO_RQ", without_effect},
    Variable{"NCCL_IB_PKEY", without_effect},
    Variable{"NCCL_IB_PKEY_VALUE", without_effect},
    Variable{"NCCL_IB_RETURN_ASYNC_EVENTS", without_effect},
    Variable{"NCCL_IB_ROCE_VERSION_NUM", without_effect},
    Variable{"NCCL_IB_ROUTABLE_FLID_GID_INDEX", without_effect},
    Variable{"NCCL_IB_USE_INLINE", without_effect},
    Variable{"NCCL_IB_WARN_RAIL_LOCAL", without_effect},
    Variable{"NCCL_IGNORE_COLLNET_MISMATCH", without_effect},
    Variable{"NCCL_IGNORE_DISABLED_P2P", without_effect},
    Variable{"NCCL_IGNORE_NET_MISMATCH", without_effect},
    Variable{"NCCL_IPC_USE_ABSTRACT_SOCKET", without_effect},
    Variable{"NCCL_L1_SHARED_MEMORY_CARVEOUT", without_effect},
    Variable{"NCCL_LAUNCH_ORDER_IMPLICIT", without_effect},
    Variable{"NCCL_LAUNCH_RACE_FATAL", without_effect},
    Variable{"NCCL_LEGACY_CUDA_REGISTER", without_effect},
    Variable{"NCCL_LL_THRESHOLD", without_effect},
    Variable{"NCCL_MEM_SYNC_DOMAIN", without_effect},
    Variable{"NCCL_MULTI_RANK_GPU_ENABLE", without_effect},
    Variable{"NCCL_NET_FORCE_MERGE", without_effect},
    Variable{"NCCL_NET_MERGE_LEVEL", without_effect},
    Variable{"NCCL_NET_MERGE_POLICY", without_effect},
    Variable{"NCCL_NET_OPTIONAL_RECV_COMPLETION", without_effect},
    Variable{"NCCL_NVB_PRECONNECT", without_effect},
    Variable{"NCCL_NVTX_DISABLE", without_effect},
    Variable{"NCCL_OOB_NET_IFNAME", without_effect},
    Variable{"NCCL_P2P_SCHEDULE_GROUP_SIZE", without_effect},
    Variable{"NCCL_PROGRESS_APPENDOP_FREQ", without_effect},
    Variable{"NCCL_PROXY_APPEND_BATCH_SIZE", without_effect},
    Variable{"NCCL_PROXY_CPUSET", without_effect},
    Variable{"NCCL_PROXY_DUMP_SIGNAL", without_effect},
    Variable{"NCCL_RAS_ADDR", without_effect},
    Variable{"NCCL_RAS_TIMEOUT_FACTOR", without_effect},
    Variable{"NCCL_REPORT_CONNECT_PROGRESS", without_effect},
    Variable{"NCCL_RMA_EAGER_INIT", without_effect},
    Variable{"NCCL_RMA_PLUGIN", without_effect},
    Variable{"NCCL_RUNTIME_CONNECT", without_effect},
    Variable{"NCCL_SET_CPU_STACK_SIZE", without_effect},
    Variable{"NCCL_SET_THREAD_NAME", without_effect},
    Variable{"NCCL_SHM_LOCALITY", without_effect},
    Variable{"NCCL_SHM_MEMCPY_MODE", without_effect},
    Variable{"NCCL_SHM_USE_CUDA_MEMCPY", without_effect},
    Variable{"NCCL_SINGLE_PROC_MEM_REG_ENABLE", without_effect},
    Variable{"NCCL_SOCKET_INLINE", without_effect},
    Variable{"NCCL_SOCKET_MIN_TASKSIZE", without_effect},
    Variable{"NCCL_SOCKET_RCVBUF", without_effect},
    Variable{"NCCL_SOCKET_RETRY_CNT", without_effect},
    Variable{"NCCL_SOCKET_RETRY_SLEEP_MSEC", without_effect},
    Variable{"NCCL_SOCKET_SNDBUF", without_effect},
    Variable{"NCCL_SYM_CTAS", without_effect},
    Variable{"NCCL_SYM_GIN_KERNELS_ENABLE", without_effect},
    Variable{"NCCL_SYM_KERNEL", without_effect},
    Variable{"NCCL_TOPO_DUMP_FILE_RANK", without_effect},
    Variable{"NCCL_UID_STAGGER_RATE", without_effect},
    Variable{"NCCL_UID_STAGGER_THRESHOLD", without_effect},
    Variable{"NCCL_WIN_STRIDE", without_effect},
    Variable{"NCCL_WORK_ARGS_BYTES", without_effect},
    // Of consequence, and followed by no forecast, which is warned of where it matters.
    Variable{"NCCL_P2P_NET_CHUNKSIZE", not_followed, false, OfGroups::on_several},
    Variable{"NCCL_P2P_NVL_CHUNKSIZE", not_followed, false, OfGroups::on_one_node},
    Variable{"NCCL_P2P_PCI_CHUNKSIZE", not_followed, false, OfGroups::on_one_node},
    Variable{"NCCL_CHUNK_SIZE", not_followed},
    Variable{"NCCL_MNNVL_ENABLE", not_followed},
    Variable{"NCCL_MNNVL_UUID", not_followed},
    Variable{"NCCL_MNNVL_CLIQUE_ID", not_followed},
    Variable{"NCCL_MNNVL_RAIL_PER_HOST", not_followed, false, OfGroups::on_several},
    Variable{"NCCL_MNNVL_SCATTER_NETS_ENABLE", not_followed, false, OfGroups::on_several},
    Variable{"NCCL_NETDEVS_POLICY", read_nics_policy, false, OfGroups::on_several},
    Variable{"NCCL_PXN_C2C", not_followed, false, OfGroups::on_several},
    Variable{"NCCL_NET_GDR_C2C", not_followed, false, OfGroups::on_several},
    Variable{"NCCL_LL128_C2C", not_followed, false, OfGroups::on_several},
    Variable{"NCCL_P2P_READ_ENABLE", not_followed},
    Variable{"NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE", not_followed, false, OfGroups::on_several},
    Variable{"NCCL_UNPACK_DOUBLE_NCHANNELS", not_followed, false, OfGroups::on_several},
};

Diagnostic unknown(const Setting& setting) {
  std::vector<std::string> known, followed;
  for (const Variable& one : all_variables) {
    known.emplace_back(one.name);
    if (one.followed) followed.emplace_back(one.name);
  }
  const auto near = nearest_word(setting.name, known);
  return {setting.where, fmt::format("unknown variable '{}'", setting.name),
          near ? fmt::format("did you mean '{}'?", *near)
               : fmt::format("those that change a forecast: {}", fmt::join(followed, ", "))};
}

}  // namespace

std::span<const Variable> variables() { return all_variables; }

OfGroups groups_of(std::string_view name) {
  const auto found = std::ranges::find(all_variables, name, &Variable::name);
  return found == all_variables.end() ? OfGroups::any : found->groups;
}

void read_variable(const Setting& setting, Environment& out, Diagnostics& errors) {
  const auto found = std::ranges::find(all_variables, std::string_view(setting.name), &Variable::name);
  if (found == all_variables.end())
    errors.push_back(unknown(setting));
  else
    found->read(setting, out, errors);
}

}  // namespace collcast::nccl
