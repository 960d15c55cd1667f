#include "collcast/nccl/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "nccl/collnet_tuning.hpp"
#include "nccl/terms.hpp"

namespace collcast::nccl {

namespace {

using tuned::Generation;
using tuned::Hardware;
using tuned::Version;

template <class Enum>
constexpr std::size_t at(Enum value) {
  return static_cast<std::size_t>(value);
}

/// Point to point, LL is used up to here for each channel, unless NCCL_P2P_LL_THRESHOLD says otherwise
/// [src/enqueue.cc].
constexpr std::int64_t largest_ll_message = 16 << 10;
/// A pair's channels that count for it: until 2.19 the one that a part is for, then all that the pair may have. Newer
/// sources count those in use, which are fewer than would allow LL: one again. v2.28 has the former, and tables
/// of 2.23, 2.27.3 and 2.28.9 show it, those of 2.29.2 on six machines the latter.
constexpr int first_ll_by_most_channels = 22000, first_ll_by_one_channel = 22900;
/// Until 2.7 a pair's channel has parts of 2 MiB, then 512 KiB at least, 64 KiB since 2.14 [src/group.cc, enqueue.cc].
constexpr int first_smaller_part = 20800, first_small_part = 21400;

/// Tables of 2.29.2 on B200, B300, GB200 and GB300 go from LL to Simple; those of 2.28.9 on B200 have LL128 between.
constexpr int first_without_blackwell_ll128 = 22900;

double gb(Bandwidth rate) { return rate.value() / 1e9; }

bool is_nvls(Algorithm a) { return a == Algorithm::nvls || a == Algorithm::nvls_tree; }

}  // namespace

bool does(Algorithm a, CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return a == Algorithm::ring;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
      return a == Algorithm::ring || a == Algorithm::nvls || a == Algorithm::collnet_direct || a == Algorithm::pat;
    case CollectiveKind::all_reduce:
      return a != Algorithm::pat;
    default:
      return false;
  }
}

namespace {

std::string ll128_refusal(const Communicator& c, CollectiveKind kind, Algorithm a) {
  if (c.compute_capability < 70) return "LL128 needs compute capability 7.0";
  if (c.environment.names_protocols(kind)) return {};  // NCCL_PROTO insists
  if (!c.factors.takes_ll128) return "LL128 is not taken, by the machine's calibration";
  if (c.most_on_a_node > 1 && !c.nvlink) return "LL128 needs NVLink inside the node";
  if (c.compute_capability >= 100 && c.environment.launch.version >= first_without_blackwell_ll128)
    return "LL128 is not taken on Blackwell since 2.29";
  const PathType most = c.compute_capability >= 90 ? PathType::pxn : PathType::pxb;
  const PathType between = (a == Algorithm::tree ? c.tree : c.ring).type_between;
  if (c.nodes > 1 && between > most)
    return fmt::format("LL128 needs NICs no farther than {}, these are {}", to_string(most), to_string(between));
  return {};
}

/// Of NCCL, from which on it has the algorithm; of others none that are followed lack it. v2.17's sources have NVLS and
/// no trees of it; 2.18 and 2.23 brought these and PAT [release notes].
int first_version_with(Algorithm a) {
  if (a == Algorithm::nvls) return 21700;
  if (a == Algorithm::nvls_tree) return 21800;
  return a == Algorithm::pat ? 22300 : 0;
}

/// Why it cannot be taken; empty: it can.
std::string refusal(const Communicator& c, CollectiveKind kind, Algorithm a, Protocol p) {
  if (!does(a, kind)) return fmt::format("{} does no {}", to_string(a), to_string(kind));
  if (a != Algorithm::ring && a != Algorithm::tree && p != Protocol::simple)
    return fmt::format("{} has Simple only", to_string(a));
  const int version = c.environment.launch.version, first = first_version_with(a);
  if (version > 0 && version < first) return fmt::format("NCCL has it since {}.{}", first / 10'000, first / 100 % 100);
  if (is_nvls(a)) {
    if (!c.environment.nvls) return "switched off by NCCL_NVLS_ENABLE";
    if (!c.nvls) return "needs Hopper or newer on an NVSwitch, and three GPUs on the node";
    if (const Reduced& r = c.environment.launch.reduced; reduces(kind) && !r.by_nvswitch())
      return fmt::format("NVSwitches have no {}", text_of(r));
  }
  if (is_collnet(a) || is_nvls_over_network(c, a))
    if (std::string why = collnet_refusal(c, kind, a); !why.empty()) return why;
  if (is_nvls(a)) {
    if (a == Algorithm::nvls_tree && c.nodes == 1) return "needs several nodes";
    if (c.nvls->channels < 2) return "needs two heads";
  }
  if (a == Algorithm::pat && !c.environment.pat) return "switched off by NCCL_PAT_ENABLE";
  if (a == Algorithm::pat && (c.most_on_a_node > 1 || c.nodes < 2)) return "needs one rank per node";
  if (p == Protocol::ll128)
    if (std::string why = ll128_refusal(c, kind, a); !why.empty()) return why;
  if (!c.environment.allows(kind, a)) return "not in NCCL_ALGO";
  if (!c.environment.allows(kind, p)) return "not in NCCL_PROTO";
  return {};
}

int ring_steps(CollectiveKind kind, int ranks) {
  if (kind == CollectiveKind::all_reduce) return 2 * (ranks - 1);
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ? ranks : ranks - 1;
}

/// What NVLS reaches of its links by a kind's bus rate.
double nvls_reached(const Communicator& c, CollectiveKind kind) {
  const double per_node = mean_on_a_node(c);
  return tuned::nvls_efficiency[at(generation(c))] *
         (kind == CollectiveKind::all_reduce ? 2 : (per_node - 1) / per_node);
}

/// Of one channel of NVLS: what heads take in and hand out.
double nvls_inside(const Communicator& c, CollectiveKind kind) {
  const double heads = c.nvls->channels;
  return gb(c.nvls->inside) * (heads - 1) / heads * nvls_reached(c, kind);
}

/// Of the bus rate, the algorithm's: gathers and scatters have it as it is.
double nvls_ratio(const Communicator& c, CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce ? 1.0 * c.ranks / ring_steps(kind, c.ranks) : 1;
}

/// The same of a tree's way over NICs.
double nvls_between(const Communicator& c) { return gb(c.nvls->between) * (c.nodes == 2 ? 2 : 1); }

double nvls_tree_cap(const Communicator& c) { return tuned::nvls_tree_per_channel[at(generation(c))][scale_of(c)]; }

double nvls_per_channel(const Communicator& c, CollectiveKind kind, Algorithm a) {
  const double inside = nvls_inside(c, kind);
  // What heads have outside the node counts on one node, too [src/graph/tuning.cc].
  if (a == Algorithm::nvls) return std::min(inside, gb(c.nvls->between));
  return std::min({inside, nvls_between(c), nvls_tree_cap(c)});
}

/// The same before 2.23: 5/6 of the slower of inside and between, the whole of two nodes' and half of others' NICs.
double plain_nvls_per_channel(const Communicator& c, Algorithm a) {
  const Graph& graph = *c.nvls;
  const double between = gb(graph.between) / (a == Algorithm::nvls_tree && c.nodes > 2 ? 2 : 1);
  return std::min(gb(graph.inside), between) * 5 / 6;
}

/// LL128's cap on a channel of a ring.
double ring_ll128_cap(const Communicator& c, CollectiveKind kind, const Version& v) {
  double by_kind = 0;
  switch (kind) {
    case CollectiveKind::broadcast:
      by_kind = v.ring_ll128[0];
      break;
    case CollectiveKind::reduce:
      by_kind = v.ring_ll128[1];
      break;
    case CollectiveKind::all_gather:
      by_kind = v.ring_ll128[2];
      break;
    case CollectiveKind::reduce_scatter:
      by_kind = v.ring_ll128[3];
      break;
    default:
      by_kind = v.ring_ll128[4];
      break;
  }
  return by_kind > 0 ? by_kind : tuned::ring_ll128_per_channel[at(generation(c))][scale_of(c)];
}

double ll_share(const Communicator& c, CollectiveKind kind, const Version& v) {
  const bool copies = kind != CollectiveKind::all_reduce && kind != CollectiveKind::reduce && c.nodes == 1;
  return copies ? v.ll_share_of_copies : v.ll_share;
}

/// GB/s of the algorithm: size over time.
double bandwidth_of(const Communicator& c, CollectiveKind kind, Algorithm a, Protocol p, const Version& v) {
  if (is_collnet(a)) return collnet_bandwidth(c, kind, a);
  const std::size_t row = at(generation(c)), scale = scale_of(c);
  const Graph& graph = is_nvls(a) ? *c.nvls : a == Algorithm::tree || a == Algorithm::pat ? c.tree : c.ring;
  const double channels = graph.channels;
  if (is_nvls(a) && v.plain_nvls) return channels * plain_nvls_per_channel(c, a);
  double bus = channels * (is_nvls(a) ? nvls_per_channel(c, kind, a) : gb(c.nodes <= 2 ? graph.inside : graph.between));
  if (generation(c) == Generation::ampere) bus = std::min(bus, v.ampere_bus);
  // With several nodes the host decides: Ampere's row for AMD, Volta's for others.
  const std::size_t ll_row = c.nodes == 1 ? row : at(c.cpu == CpuFamily::amd ? Generation::ampere : Generation::volta);
  const double ll_cap = v.ll[ll_row][scale];
  if (a == Algorithm::ring && p == Protocol::ll) bus = std::min(ll_cap, bus * ll_share(c, kind, v));
  if (a == Algorithm::ring && p == Protocol::ll128)
    bus = std::min((c.ranks_per_node == 1 ? v.ll128_alone : tuned::tree_of_bus) * bus,
                   channels * ring_ll128_cap(c, kind, v));
  if (a == Algorithm::tree) {
    bus = std::min(tuned::tree_of_bus * bus, channels * v.tree[row][scale]);
    if (p == Protocol::ll) bus = std::min(bus / tuned::tree_ll_divisor, ll_cap);
    if (p == Protocol::ll128)
      bus = std::min(bus * (c.nodes == 1 ? tuned::tree_ll128 : v.tree_ll128_between),
                     channels * tuned::tree_ll128_per_channel[row][scale]);
  }
  if (a == Algorithm::pat) return bus * 0.75;
  if (a == Algorithm::tree) return bus * (graph.pattern == GraphPattern::tree ? v.tree_of_one_gpu * 0.5 : 0.5);
  return bus * (is_nvls(a) ? nvls_ratio(c, kind) : 1.0 * c.ranks / ring_steps(kind, c.ranks));
}

double ring_latency(const Communicator& c, CollectiveKind kind, Protocol p, Hardware inside, double hop_in,
                    double hop_out, const Version& v) {
  if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce) {
    // One hop where all channels pass the GPUs in one order, else one for every rank; these are trees' for Simple.
    const std::size_t by = at(c.nodes > 1 ? Hardware::network : inside);
    if (channels_alike(c)) return v.ring_hop[by][at(p)];
    return c.ranks * (p == Protocol::simple ? v.tree_hop : v.ring_hop)[by][at(p)];
  }
  const double usual = c.cpu == CpuFamily::amd ? 2.0 : 1.0;
  double overhead = c.nodes == 1 || !v.posts     ? 0
                    : c.environment.net_overhead ? c.environment.net_overhead->count() * 1e6
                                                 : usual;
  if (p == Protocol::simple) overhead *= 3;
  const bool reduces = kind == CollectiveKind::all_reduce;
  const int rounds = reduces ? 2 : 1;
  const int out = c.nodes == 1 ? 0 : rounds * (reduces && v.ring_crosses_back ? c.nodes : c.nodes - 1);
  return (rounds * (c.ranks - 1) - out) * std::max(hop_in, overhead) + out * hop_out;
}

/// Of trees, rings and all others.
double hop_of(Hardware hardware, Algorithm a, Protocol p, const Version& v) {
  if (a == Algorithm::tree) return v.tree_hop[at(hardware)][at(p)];
  if (a == Algorithm::ring) return v.ring_hop[at(hardware)][at(p)];
  if (a == Algorithm::nvls_tree && hardware == Hardware::network) return v.nvls_tree_network_hop;
  return tuned::hop_latency[at(hardware)][at(a)][at(p)];
}

/// A hop between nodes with what the network's plugin says of a message; under Simple what came must be flushed, too.
double with_plugin(const Communicator& c, Protocol p, double hop, const Version& v) {
  const double said = c.plugin_latency.count() * 1e6;
  if (said <= 0 || v.plugin == Version::Plugin::silent) return hop;
  return v.plugin == Version::Plugin::replaces ? said : hop + said * (p == Protocol::simple ? 2 : 1);
}

/// Microseconds before the first byte counts.
double latency_of(const Communicator& c, CollectiveKind kind, Algorithm a, Protocol p, const Version& v) {
  // A graph that goes through GPUs counts with hops of PCIe [src/graph/tuning.cc, intraHw].
  const bool straight = (a == Algorithm::tree ? c.tree : c.ring).type_inside != PathType::nvb;
  const Hardware inside = c.nvlink && straight ? Hardware::nvlink : Hardware::pcie;
  const double hop_in = hop_of(inside, a, p, v) * (c.nodes > 1 && p == Protocol::ll ? v.ll_hop_between : 1);
  const Algorithm out_by = c.most_on_a_node == 1 && v.tree_hop_alone ? Algorithm::tree : a;
  const double hop_out = with_plugin(c, p, hop_of(Hardware::network, out_by, p, v), v);
  const double base = a == Algorithm::tree   ? v.tree_base[at(p)]
                      : a == Algorithm::ring ? v.ring_base[at(p)]
                                             : tuned::base_latency[at(a)][at(p)];
  const int levels = floor_log2(c.nodes);
  switch (a) {
    case Algorithm::ring:
      return base + ring_latency(c, kind, p, inside, hop_in, hop_out, v);
    case Algorithm::tree:  // with ranks on a node rounded down, as in NCCL
      return base + 2 * ((c.ranks_per_node - 1) * hop_in + levels * hop_out);
    case Algorithm::nvls:
      return hop_in + (c.nodes > 1 ? hop_out : 0);
    case Algorithm::nvls_tree:
      return base + hop_in + 2 * levels * hop_out;
    case Algorithm::pat:
      return base + levels * hop_out / 3.5 + 2.8 * c.ranks;
    case Algorithm::collnet_direct:
    case Algorithm::collnet_chain:
      return base + collnet_latency(c, a, hop_in, hop_out);
  }
  return base;
}

double tree_factor(Protocol p, Bytes size, const Version& v) {
  if (size.value() < 64) return 1;
  const auto power = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(size.value()) / 64)) - 1;
  const tuned::TreeFactor& factor = p == Protocol::ll128 ? v.ll128_tree_factor : tuned::tree_factor[at(p)];
  return power < factor.size() ? factor[power] : 1;
}

/// Rings over several nodes do not overlap their hops while a slice is small.
double plateau(const Communicator& c, CollectiveKind kind, Algorithm a, Protocol p, Bytes size, const Version& v) {
  const double of_rank = static_cast<double>(size.value()) / c.ranks;
  const bool applies = a == Algorithm::ring && p == Protocol::simple && kind == CollectiveKind::all_reduce &&
                       c.nodes > 1 && (v.plateau_by_chunk ? of_rank / c.channels >= 64 : of_rank >= 4096);
  return !applies ? 1 : c.compute_capability >= 80 ? v.plateau_of_new : 1.9;
}

int threads_of(const Communicator& c, Algorithm a, Protocol p) {
  if (p == Protocol::ll128) return c.environment.ll128_threads.value_or(640);
  if (a != Algorithm::ring && a != Algorithm::tree) return 640;
  const bool slow = a == Algorithm::ring && p == Protocol::simple && c.ring.channels * gb(c.ring.inside) <= 12;
  return c.environment.threads.value_or(slow ? 256 : 512);
}

/// Below this of each thread fewer are taken.
double bytes_of_a_thread(const Communicator& c, const Plan& plan) {
  const bool ring = plan.algorithm == Algorithm::ring;
  if (ring || plan.algorithm == Algorithm::tree) {
    const auto& given = ring ? c.environment.ring_thresholds : c.environment.tree_thresholds;
    if (const auto& own = given[at(plan.protocol)]) return static_cast<double>(*own);
  }
  if (plan.protocol == Protocol::simple) return 64;
  return plan.protocol == Protocol::ll && ring ? 8.0 * c.ranks : 8;
}

/// Channels and threads that a size is worth: dropped while each thread would have less than its threshold of bytes.
void reduce_work(const Communicator& c, CollectiveKind kind, Bytes size, Plan& plan) {
  plan.threads = threads_of(c, plan.algorithm, plan.protocol);
  if (is_nvls(plan.algorithm)) {
    plan.channels = c.nvls_channels;
    return;
  }
  if (is_collnet(plan.algorithm)) return reduce_collnet_work(c, size, plan);
  const double bytes = static_cast<double>(size.value());
  const double threshold = bytes_of_a_thread(c, plan);
  plan.channels = c.channels;
  const auto too_little = [&] { return bytes < plan.channels * plan.threads * threshold; };
  while (plan.channels > 1 && too_little()) --plan.channels;
  while (plan.channels == 1 && plan.threads % 128 == 0 && plan.threads > 64 && too_little()) plan.threads /= 2;
  // No channel gets less than 16 KiB of traffic; LL counts four times.
  const double traffic = bytes * (kind == CollectiveKind::all_reduce ? 2 : 1) * (plan.protocol == Protocol::ll ? 4 : 1);
  plan.channels = static_cast<int>(std::clamp(traffic / 16384, 1.0, static_cast<double>(plan.channels)));
  if (plan.algorithm == Algorithm::tree) plan.threads = 640;  // whatever decided on its channels
}

bool counts_most_channels(int version) {
  return version >= first_ll_by_most_channels && version < first_ll_by_one_channel;
}

/// What a channel has of a message, at least; and at most, where there are more channels.
struct Part {
  std::int64_t least, most;
};
Part part_of(const Communicator& c, Protocol p) {
  constexpr std::int64_t kib = 1024, mib = 1 << 20;
  const int version = c.environment.launch.version;
  const bool across = c.nodes > 1;
  if (version > 0 && version < first_smaller_part) return {2 * mib, 2 * mib};
  if (version > 0 && version < first_small_part) return {512 * kib, 2 * mib};
  if (p == Protocol::ll && counts_most_channels(version))
    return across ? Part{32 * kib, 64 * kib} : Part{8 * kib, 2 * mib};
  return across ? Part{64 * kib, 128 * kib} : Part{64 * kib, 16 * mib};
}

/// As few as leave one for every peer and as have a least part each, then twice as many while one's part is too large
/// [src/enqueue.cc].
int channels_to_peer(const Communicator& c, std::int64_t bytes, Protocol p) {
  const Part part = part_of(c, p);
  const int most = c.p2p_channels_per_peer;
  const bool old = c.environment.launch.version > 0 && c.environment.launch.version < first_smaller_part;
  int channels = most;
  while (!old && channels > 1 && channels * c.ranks > c.p2p_channels) channels /= 2;
  const std::int64_t worth = std::max<std::int64_t>(1, (bytes + part.least - 1) / part.least);
  channels = static_cast<int>(std::min<std::int64_t>(channels, worth));
  while (bytes / channels > part.most && 2 * channels <= most) channels *= 2;
  return channels;
}

/// The root of a gather or scatter is the group's first rank.
bool has_pairs_on_a_node(const Communicator& c, CollectiveKind kind) {
  const bool rooted = kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
  return (rooted && !c.pairs.loads.empty() ? c.pairs.loads.front().ranks_of_root : c.most_on_a_node) > 1;
}

Plan plan_of_pairs(const Communicator& c, CollectiveKind kind, Bytes size) {
  const std::int64_t per_peer = kind == CollectiveKind::sendrecv ? size.value() : size.value() / c.ranks;
  const int counted = counts_most_channels(c.environment.launch.version) ? c.p2p_channels_per_peer : 1;
  Plan out;
  out.point_to_point = true;
  const std::int64_t limit = c.environment.pair_ll_limit.value_or(Bytes(largest_ll_message)).value();
  const Protocol by_size = per_peer <= counted * limit ? Protocol::ll : Protocol::simple;
  const bool near = has_pairs_on_a_node(c, kind);
  // Connections of pairs over a network share their buffers, which are Simple's [src/transport/net.cc].
  out.protocol_between = (c.nodes == 1 || c.environment.pair_ll_between) ? by_size : Protocol::simple;
  out.protocol = near ? by_size : out.protocol_between;
  out.channels = channels_to_peer(c, per_peer, out.protocol);
  out.channels_between = channels_to_peer(c, per_peer, out.protocol_between);
  return out;
}

bool matches(const TunerRule& rule, const Communicator& c, CollectiveKind kind, Bytes size) {
  const auto any_or = [](const auto& wanted, auto value) { return !wanted || *wanted == value; };
  // One call at a time, with buffers that are not registered.
  return rule.kind == kind && size >= rule.least && size <= rule.most && any_or(rule.nodes, c.nodes) &&
         any_or(rule.ranks, c.ranks) && any_or(rule.operations, 1) && any_or(rule.registered, false);
}

/// As the example does: the first rule that matches and whose choice is available gets no cost, so it is taken.
std::optional<Plan> by_tuner(const Communicator& c, CollectiveKind kind, Bytes size,
                             const std::vector<Candidate>& table, std::optional<Algorithm> only) {
  if (!c.environment.files.tuner) return std::nullopt;
  for (const TunerRule& rule : c.environment.files.tuner->rules) {
    if (!matches(rule, c, kind, size) || (only && rule.algorithm != *only)) continue;
    const auto found = std::find_if(table.begin(), table.end(), [&](const Candidate& one) {
      return one.available && one.algorithm == rule.algorithm && one.protocol == rule.protocol;
    });
    if (found == table.end()) continue;
    Plan out = plan_of(c, kind, size, *found);
    const int most = is_nvls(rule.algorithm) ? c.nvls_channels : c.channels;
    if (rule.channels) out.channels = std::min(*rule.channels, most);
    out.tuner_line = rule.line;
    out.tuner_channels = rule.channels.value_or(0);
    return out;
  }
  return std::nullopt;
}

}  // namespace

std::string protocols_text(const Plan& plan) {
  std::string out(to_string(plan.protocol));
  if (plan.point_to_point && plan.protocol_between != plan.protocol)
    out += "+" + std::string(to_string(plan.protocol_between));
  return out;
}

bool is_point_to_point(CollectiveKind kind) {
  return kind == CollectiveKind::alltoall || kind == CollectiveKind::sendrecv || kind == CollectiveKind::gather ||
         kind == CollectiveKind::scatter;
}

NvlsRates todays_nvls_rates(const Communicator& c, CollectiveKind kind, Algorithm a) {
  const double ratio = nvls_ratio(c, kind), channels = 1e9 * c.nvls->channels * ratio;
  // A GPU's links have all data and once more a head's part of them.
  const double inside = c.gpu.nvls.value() / (1 + 1.0 / c.nvls->channels) * nvls_reached(c, kind) * ratio;
  NvlsRates out{inside, unlimited, unlimited, channels * nvls_per_channel(c, kind, a)};
  if (is_nvls_over_network(c, a)) out.booked = channels * gb(c.nvls->between);
  if (a == Algorithm::nvls_tree) {
    out.booked = channels * nvls_between(c);
    out.cap = channels * nvls_tree_cap(c);
  }
  return out;
}

std::vector<Candidate> tuning_table(const Communicator& c, CollectiveKind kind, Bytes size) {
  std::vector<Candidate> out;
  if (is_point_to_point(kind)) return out;
  const Version v = tuned::version_of(c.environment.launch.version);
  for (const Algorithm a : algorithms) {
    for (const Protocol p : protocols) {
      Candidate one{a, p, false, refusal(c, kind, a, p), {}, {}, {}};
      const double found = one.reason.empty() ? bandwidth_of(c, kind, a, p, v) : 0;
      if (found > 0) {
        one.available = true;
        const double factor = a == Algorithm::tree && kind == CollectiveKind::all_reduce ? tree_factor(p, size, v) : 1;
        one.latency = Seconds(latency_of(c, kind, a, p, v) * plateau(c, kind, a, p, size, v) * 1e-6);
        one.bandwidth = Bandwidth(found * factor * 1e9);
        one.time = one.latency + volume(size) / one.bandwidth;
      } else if (one.reason.empty()) {
        one.reason = "its channels have no bandwidth";
      }
      out.push_back(std::move(one));
    }
  }
  return out;
}

Plan plan_of(const Communicator& c, CollectiveKind kind, Bytes size, const Candidate& candidate) {
  check(candidate.available, "what is planned is available");
  Plan out;
  out.algorithm = candidate.algorithm;
  out.protocol = candidate.protocol;
  out.believed = candidate.time;
  reduce_work(c, kind, size, out);
  return out;
}

Result<Plan> plan(const Communicator& c, CollectiveKind kind, Bytes size, std::optional<Algorithm> only) {
  if (is_point_to_point(kind)) {
    if (only)
      return Diagnostic{
          {},
          fmt::format("NCCL sends {} point to point: {} does not apply", to_string(kind), to_string(*only)),
          "expected no algorithm, or auto"};
    return plan_of_pairs(c, kind, size);
  }
  const std::vector<Candidate> table = tuning_table(c, kind, size);
  if (const auto ruled = by_tuner(c, kind, size, table, only)) return *ruled;
  const Candidate* best = nullptr;
  const Candidate* asked = nullptr;  // refused, though asked for by name
  for (const Candidate& one : table) {
    if (only && one.algorithm != *only) continue;
    if (one.available && (best == nullptr || one.time < best->time)) best = &one;
    const bool by_name = c.environment.allows(kind, one.algorithm) && c.environment.allows(kind, one.protocol);
    if (!one.available && by_name) asked = &one;
  }
  if (best == nullptr) {
    const std::string what = only ? fmt::format("{} cannot be run", to_string(*only))
                                  : std::string("NCCL_ALGO and NCCL_PROTO leave nothing that can be run");
    const auto available = [](const std::vector<Candidate>& all) {
      std::vector<std::string> out;
      for (const Candidate& one : all)
        if (one.available) out.push_back(fmt::format("{} {}", to_string(one.algorithm), to_string(one.protocol)));
      return out;
    };
    std::vector<std::string> could = available(table);
    if (could.empty()) {
      const Environment free{};
      Communicator plain = c;
      plain.environment.algorithm_sets = free.algorithm_sets;
      plain.environment.protocol_sets = free.protocol_sets;
      could = available(tuning_table(plain, kind, size));
    }
    return Diagnostic{{},
                      fmt::format("{} for {} of {} on {}: {}", what, to_string(kind),
                                  c.ranks == 1 ? "1 rank" : fmt::format("{} ranks", c.ranks),
                                  c.nodes == 1 ? "1 node" : fmt::format("{} nodes", c.nodes),
                                  asked != nullptr ? asked->reason : "not in NCCL_ALGO or NCCL_PROTO"),
                      fmt::format("available here: {}", fmt::join(could, ", "))};
  }
  return plan_of(c, kind, size, *best);
}

}  // namespace collcast::nccl
