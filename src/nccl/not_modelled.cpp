#include "nccl/not_modelled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "collcast/base/words.hpp"
#include "nccl/named_nics.hpp"
#include "nccl/variables.hpp"

namespace collcast::nccl {

namespace {

/// GPUs whose host's processor is joined by chip-to-chip links.
bool has_c2c(const TopologySpec& spec) {
  return std::ranges::any_of(spec.links, [](const LinkGroup& link) { return link.kind == LinkKind::c2c; });
}

bool has_nvlink(const TopologySpec& spec) {
  return std::ranges::any_of(spec.links, [](const LinkGroup& link) { return link.kind == LinkKind::nvlink; });
}

bool has_no_nvlink(const TopologySpec& spec) { return !has_nvlink(spec); }

bool has_several_gpus(const TopologySpec& spec) {
  return std::ranges::any_of(spec.devices,
                             [](const DeviceGroup& group) { return group.kind == DeviceKind::gpu && group.count > 1; });
}

/// Whose network's plugin sets variables, as those do that unpack what comes on the GPU.
bool has_own_plugin(const TopologySpec& spec) { return !spec.plugin.environment.empty(); }

bool is_any(const TopologySpec&) { return true; }

constexpr std::string_view any_value;

/// Values by which nothing changes; the first is NCCL's own, and with `any_value` there is none.
struct NotModelled {
  std::string_view name, own, also_own;
  bool (*concerns)(const TopologySpec&);
  const char* message;
  const char* hint;
  bool of_alltoall = false;  ///< of nothing else
};

constexpr const char* describe_servers =
    "describe the rack's servers as nodes with NICs between them: a file with node.devices of one server";
constexpr const char* over_nics = "the forecast is of ways to NICs as NCCL takes them by itself";
constexpr const char* own_chunks = "chunks of sends, receives and alltoall are forecast in NCCL's own size";
constexpr const char* channels_of_pairs = "NCCL_MAX_P2P_NCHANNELS and NCCL_NCHANNELS_PER_NET_PEER are followed";

// By the documentation of NCCL's variables, and src/graph/paths.cc, topo.cc, src/transport/p2p.cc and src/init.cc.
constexpr std::array table{
    NotModelled{"NCCL_P2P_NET_CHUNKSIZE", any_value, any_value, is_any, own_chunks, channels_of_pairs},
    NotModelled{"NCCL_P2P_NVL_CHUNKSIZE", any_value, any_value, has_nvlink, own_chunks, channels_of_pairs},
    NotModelled{"NCCL_P2P_PCI_CHUNKSIZE", any_value, any_value, has_no_nvlink, own_chunks, channels_of_pairs},
    NotModelled{"NCCL_CHUNK_SIZE", "0", "0", is_any, own_chunks, channels_of_pairs},
    NotModelled{"NCCL_MNNVL_ENABLE", "2", "1", is_rack,
                "NVLinks between the servers of a rack would not be used, and are in the forecast", describe_servers},
    NotModelled{"NCCL_MNNVL_UUID", any_value, any_value, is_rack,
                "servers that have another one would not be reached over NVLink; the forecast has the rack as one",
                describe_servers},
    NotModelled{"NCCL_MNNVL_CLIQUE_ID", "-1", "-1", is_rack,
                "servers that have another one would not be reached over NVLink; the forecast has the rack as one",
                describe_servers},
    NotModelled{"NCCL_MNNVL_RAIL_PER_HOST", "0", "0", is_rack, "the forecast has the NICs of a rack as one node's",
                over_nics},
    NotModelled{"NCCL_MNNVL_SCATTER_NETS_ENABLE", "1", "1", is_rack,
                "the forecast has the NICs of a rack as one node's", over_nics},
    NotModelled{"NCCL_NETDEVS_POLICY", "AUTO", "AUTO", is_any, "the forecast has the NICs that NCCL gives a GPU",
                "NCCL_CROSS_NIC and NCCL_PXN_DISABLE are followed"},
    NotModelled{"NCCL_PXN_C2C", "1", "1", has_c2c,
                "the forecast relays over GPUs whose processor has the NIC, as NCCL does since 2.28",
                "NCCL_PXN_DISABLE is followed"},
    NotModelled{"NCCL_NET_GDR_C2C", "1", "1", has_c2c,
                "the forecast has GPUDirect RDMA over the processor's links, as NCCL does since 2.27", over_nics},
    NotModelled{"NCCL_LL128_C2C", "1", "1", has_c2c, "the forecast takes LL128 as NCCL does by itself",
                "NCCL_PROTO is followed"},
    NotModelled{"NCCL_P2P_READ_ENABLE", "-2", "-2", has_several_gpus,
                "the forecast is of what GPUs of a node move as NCCL has them read or write by itself",
                "no published table measures the other way"},
    NotModelled{"NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE", "0", "0", is_any,
                "the forecast has sends and receives of alltoall in NCCL's usual order",
                "collectives of rings, trees and NVLS do not depend on it", true},
    NotModelled{"NCCL_UNPACK_DOUBLE_NCHANNELS", "1", "1", has_own_plugin,
                "the forecast has the channels that NCCL takes by itself",
                "NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS are followed"},
};

const NotModelled* row_of(const Setting& setting) {
  const auto* const found = std::ranges::find(table, std::string_view(setting.name), &NotModelled::name);
  return found == table.end() ? nullptr : found;
}

}  // namespace

bool is_of_consequence(const Setting& setting, const TopologySpec& spec) {
  const NotModelled* const row = row_of(setting);
  if (row == nullptr) return true;
  const std::string value = lower(setting.value);
  const bool own = row->own != any_value && (value == lower(row->own) || value == lower(row->also_own));
  return !own && row->concerns(spec);
}

void warn_of_not_modelled(const Environment& environment, int nodes, const TopologySpec& spec, bool has_alltoall,
                          Diagnostics& out) {
  const OfGroups passed_over = nodes < 2 ? OfGroups::on_several : OfGroups::on_one_node;
  for (const Setting& one : environment.not_followed) {
    const NotModelled* const row = row_of(one);
    check(row != nullptr, "what is not followed has a row");
    if (!is_of_consequence(one, spec) || passed_over == groups_of(one.name)) continue;
    if (row->of_alltoall && !has_alltoall) continue;
    out.push_back({one.where, fmt::format("{}={} is not modelled: {}", one.name, one.value, row->message), row->hint});
  }
}

}  // namespace collcast::nccl
