// A machine as its file describes it, hardware, and what a calibration of it says beyond; checked for form but not yet
// routed.
//
// A cluster is a number of equal nodes, each made of devices joined by links, and a network that joins
// the nodes. Every bandwidth is per direction; a link of the file becomes two directed links of a Fabric.
// Files of machines say no calibration: an overlay puts rates and latencies in the place of theirs, and NcclFactors,
// which are all 1 without one.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/origins.hpp"
#include "collcast/base/quantity.hpp"

namespace collcast {

enum class DeviceKind { gpu, host, nvswitch, pcie_switch, cpu, nic };
enum class LinkKind { nvlink, pcie, socket, c2c, nic_port, network, direct };

std::string_view to_string(DeviceKind);
std::string_view to_string(LinkKind);

/// Of a machine: no machine has as many, so that a mistyped count is answered instead of exhausting the memory.
inline constexpr int most_nodes = 1'000'000;

/// What one GPU can do, from its data sheet.
struct GpuSpec {
  std::string model;                     ///< e.g. "A100-SXM4-80GB"
  Bytes memory{};                        ///< capacity
  Bandwidth memory_bandwidth{};          ///< data sheet
  std::map<std::string, FlopRate> peak;  ///< dense, per precision: fp32 tf32 fp16 bf16 fp8 fp4 int8
  std::string source;                    ///< where these numbers come from
  std::string kernels;                   ///< name of the kernel-efficiency table (topologies/kernels/)
  Location kernels_where;
  double kernel_scale = 1;  ///< of the time of each kernel; fitted to steps of one's own
  double power_limit = 1;   ///< share of its usual power that it may draw (workload/power.hpp)
};
inline constexpr double least_kernel_scale = 0.1, most_kernel_scale = 10;
inline constexpr double least_power_limit = 0.3;  ///< below, clocks say nothing of what is left

/// Processors of a node's sockets, as far as communication libraries tell them apart: each word stands for its
/// generation and those up to the next word.
enum class CpuFamily {
  unknown,
  intel_broadwell,        ///< Xeon E5 v4 and older
  intel_skylake,          ///< Xeon Scalable, first to third generation
  intel_sapphire_rapids,  ///< fourth
  intel_emerald_rapids,   ///< fifth and newer
  amd,
  arm,
  power
};
std::string_view to_string(CpuFamily);

struct HostSpec {
  CpuFamily cpu = CpuFamily::unknown;
  std::string source;  ///< where that comes from; empty: the file does not say
};

struct DeviceGroup {
  std::string name;
  DeviceKind kind = DeviceKind::gpu;
  int count = 1;
  Location where;
  int stands_for = 1;  ///< NVSwitches of the file that are this one (topology/switches.hpp)
};

/// How two device groups of a node are wired.
enum class Wiring {
  all,         ///< every `from` to every `to` (each pair once where from == to)
  one_to_one,  ///< i to i
  spread,      ///< n `from` devices evenly over m <= n `to` devices, in order: i to floor(i*m/n)
  ring,        ///< i to i+1, around (from == to, 3 or more devices)
  pairs        ///< as listed
};

struct LinkGroup {
  std::string from, to;
  Wiring wiring = Wiring::all;
  std::vector<std::pair<int, int>> pairs;
  LinkKind kind = LinkKind::direct;
  Bandwidth bandwidth{};  ///< per direction
  Seconds latency{};
  std::string source;  ///< where bandwidth and latency come from
  Location where;
};

/// Every node (or every NIC of it) on one non-blocking switch.
struct StarNetwork {
  Bandwidth bandwidth{};
  Seconds latency{};  ///< of one link; a path has two
  /// A sender leaves its node by the NIC that the receiver's node is entered by, by whatever way there is inside its
  /// node. Of no file: a library's rule (NCCL's PXN).
  bool by_receivers_rail = false;
};
/// Nodes on a grid in row-major order (the last dimension varies fastest), dimension-ordered shortest routes,
/// the last dimension first; one dimension and `wrap` is a ring, no `wrap` a mesh. With several
/// network devices per node each has a grid of its own.
struct TorusNetwork {
  std::vector<int> dims;  ///< empty: one ring of all nodes with `wrap`, else the most square rectangle
  bool wrap = true;
  Bandwidth bandwidth{};
  Seconds latency{};
};
/// Two switch levels. `rail_optimized`: NIC r of every node of a pod on leaf r of the pod; else all NICs
/// of a node on one leaf. A leaf reaches every spine by one link of
/// (down bandwidth of the leaf)/(oversubscription * spines), where a leaf is built for all nodes_per_leaf
/// nodes, populated or not.
struct LeafSpineNetwork {
  bool rail_optimized = true;
  int nodes_per_leaf = 0;          ///< nodes of a pod
  int spines = 0;                  ///< 0: rails only, no way between leaves
  double oversubscription = 1.0;   ///< down bandwidth over up bandwidth of a leaf, >= 1 is usual
  Bandwidth bandwidth{};           ///< NIC to leaf
  Seconds latency{};               ///< NIC to leaf
  Seconds spine_latency{};         ///< leaf to spine
  bool by_receivers_rail = false;  ///< as of a star, also where spines join the rails
};
/// Ports on one leaf, where each node has so many.
double ports_of_leaf(const LeafSpineNetwork&, int of_node);
/// The most oversubscription with which a leaf carries upwards what its nodes send, and one link to a spine what a port
/// does. Of networks with spines.
double widest_oversubscription(const LeafSpineNetwork&, int ports_of_node);

using NetworkSpec = std::variant<std::monostate, StarNetwork, TorusNetwork, LeafSpineNetwork>;
/// Of the links that join the nodes to it, whatever its shape; 0, and left alone, where there is none.
Bandwidth network_rate(const NetworkSpec&);
void set_network_rate(NetworkSpec&, Bandwidth);

/// What NCCL's network plugin says of the NICs: not how they are, but what NCCL goes by; and whether there is one.
struct NetworkPlugin {
  Seconds latency{};      ///< of a message; AWS's plugin says 75 us on p4d and p5, most say 0
  bool gpudirect = true;  ///< RDMA between NICs and the memory of GPUs near enough; else all data pass the host
  bool sockets = false;   ///< none: NCCL's own sockets, whose rate and latency the network's links have
  bool collnet = false;   ///< it has CollNet: switches add up what NICs send (SHARP, by the nccl-rdma-sharp plugin)
  /// NCCL's variables and their values, as the plugin, or who provides the machine, sets them in jobs of several nodes
  /// that do not set them: AWS's plugin NCCL_PROTO=simple on p4d.
  std::vector<std::pair<std::string, std::string>> environment{};
  bool operator==(const NetworkPlugin&) const = default;
};

/// What measurements of NCCL on a machine say, as factors on what library nccl takes for all machines (docs/nccl.md).
struct NcclFactors {
  double launch = 1;                     ///< of the start of a collective
  double point_to_point_launch = 1;      ///< beyond that, of sends and receives
  double hop = 1, network_hop = 1;       ///< of latencies inside a node and between nodes
  double ll = 1, ll128 = 1, simple = 1;  ///< of what a node's links carry, by protocol
  double network = 1;                    ///< of what NICs carry
  double channel = 1;                    ///< of the start of each further channel of a call
  double simple_network_hop = 1;         ///< beyond network_hop, of hops between nodes under Simple
  double message_gap = 1;                ///< from message to message of a ring's proxy
  double host = 1;                       ///< of what a host takes to launch a call, which the GPUs' time hides or not
  double ll128_network_hop = 1;          ///< beyond network_hop, of hops between nodes under LL128
  double ll_proxy = 1;                   ///< of the rate at which a proxy looks through lines of LL
  double host_bridge = 1;   ///< of what PCIe carries between GPUs whose ways meet in the host's bridge, by any protocol
  double sockets = 1;       ///< beyond that, where they meet beyond the sockets' links
  bool takes_ll128 = true;  ///< no factor: false where NCCL was seen to take LL and Simple only
  /// Of the network's described rate what NICs are seen to have, which NCCL chooses by; `network` is beyond it.
  double nic_rate = 1;
};
inline constexpr const char* links_why =
    "to line rate: NVLink reaches 0.77 or 0.83 of it without a calibration, of PCIe NCCL may count a third; under a "
    "fifth is a fault";
/// What nic_rate may be: sockets over a port of 10 Gb/s in place of RDMA over one of 400 carry a fortieth.
inline constexpr double least_nic_rate = 0.01;
/// Below it a network is another one than the machine is described with, or has a fault.
inline constexpr double far_off_network = 0.2;
/// A factor by the name that files and reports have for it, with what it may be, in files and in fits, and why.
struct NcclFactor {
  const char* name;
  double NcclFactors::*value;
  double least, most;
  const char* why;
  bool by_links = false, by_nics = false;  ///< a fit stops at the data sheet's line rate of that machine's, too
};
inline constexpr std::array<NcclFactor, 16> nccl_factors{{
    {"launch", &NcclFactors::launch, 0.3, 8,
     "an empty kernel on an idle GPU takes 2 us; one process that launches on sixteen GPUs, one after the other, 50 "
     "us"},
    {"point_to_point_launch", &NcclFactors::point_to_point_launch, 0.3, 5,
     "a list of peers beside the launch, from almost nothing to tens of us"},
    {"hop", &NcclFactors::hop, 0.4, 6,
     "a store and a flag over NVLink take half a us; NCCL's own tuning never had a hop in a node above 28 us"},
    {"network_hop", &NcclFactors::network_hop, 0.3, 12,
     "an RDMA write and two proxies take 1 us; kernel sockets on both sides 40 us"},
    {"ll", &NcclFactors::ll, 0.2, 4, links_why, true},
    {"ll128", &NcclFactors::ll128, 0.2, 4, links_why, true},
    {"simple", &NcclFactors::simple, 0.2, 4, links_why, true},
    {"network", &NcclFactors::network, 0.01, 1.32,
     "to line rate: without a calibration NICs reach 0.975 of it, 0.76 over the host's bridge; under a fifth is a "
     "fault or another network, which the fit says",
     false, true},
    {"channel", &NcclFactors::channel, 0.1, 5, "a block starts in the shadow of others, or in 0.3 us"},
    {"simple_network_hop", &NcclFactors::simple_network_hop, 0.1, 10,
     "two proxies and a fence take 3 us; copies through the host's memory and sockets, each way, 340 us"},
    {"message_gap", &NcclFactors::message_gap, 0.2, 8,
     "a work request posted takes 0.3 us; a send through a socket or a progress engine 12 us"},
    {"host", &NcclFactors::host, 0.25, 15, "a launch costs a host 1 us at the least; with profilers and locks 60 us"},
    {"ll128_network_hop", &NcclFactors::ll128_network_hop, 0.1, 10, "as simple_network_hop, to 70 us"},
    {"ll_proxy", &NcclFactors::ll_proxy, 0.04, 5,
     "lines read from a cache come at 10 GB/s, from uncached memory over PCIe at 0.1 GB/s"},
    {"host_bridge", &NcclFactors::host_bridge, 0.03, 2,
     "a root complex passes what GPUs write to each other at the links' rate, or piece by piece at 1 GB/s", true},
    {"sockets", &NcclFactors::sockets, 0.03, 2,
     "as host_bridge; processors may pass what goes to another socket's PCIe at under 1 GB/s", true},
}};
/// A file that a machine was read from.
struct SourceFile {
  std::string file;
  Location extended_at = {};  ///< the `extends:` that led to it; empty: it was asked for
};

struct TopologySpec {
  std::string name;                  ///< as asked for with --topology
  std::string title;                 ///< one line for people
  std::vector<std::string> systems;  ///< published systems this file stands for
  /// By system: NCCL's version of its tables that do not say theirs.
  std::vector<std::pair<std::string, std::string>> nccl_versions;
  std::vector<std::string> sources;      ///< where the numbers come from
  std::string file;                      ///< as the user named it; for diagnostics
  std::vector<SourceFile> files;         ///< that one, then what it builds on, each extended by the one before
  bool teaching = false;                 ///< sized by --ranks, one endpoint per node
  bool calibrated = false;               ///< rates and latencies are an overlay's, not the file's
  bool interval_of_fitted_rows = false;  ///< the overlay's intervals have no row that its fit had not seen
  NcclFactors nccl;                      ///< an overlay's; all 1: none
  int default_nodes = 1;
  int max_nodes = 0;                 ///< 0: any
  GpuSpec gpu;                       ///< empty model: hosts only, no compute rates
  HostSpec host;                     ///< of a node
  std::vector<DeviceGroup> devices;  ///< of one node; exactly one group of kind gpu or host
  std::vector<LinkGroup> links;      ///< of one node
  std::string network_devices;       ///< device group that the network attaches to
  NetworkSpec network;
  std::string network_source;
  NetworkPlugin plugin;
  Location where;
  Origins origins;  ///< of each value by its path in the file ("network.attach"); a machine made otherwise has none
};

/// What the network is attached to, NICs or the endpoints themselves; null: no group is named so.
const DeviceGroup* network_group(const TopologySpec&);
DeviceGroup* network_group(TopologySpec&);
/// Devices of a node that the network is attached to; 0: there is no such group.
int network_ports(const TopologySpec&);

/// How far a place is from the user: -1 for what is in none of the files (an option), 0 for the first of them.
int depth(const std::vector<SourceFile>&, const Location&);
/// Of places that decide something together the one nearest to the user: an option, then what is in no file of the
/// machine, then the first of its files. Among equals the first; null ones are left out, one is known.
const Location& nearest_place(const std::vector<SourceFile>&, const std::vector<const Location*>&);
/// Errors in a base say in their hint who extends it: that is the file that a user edits.
Diagnostics with_extending_files(Diagnostics, const std::vector<SourceFile>&);

/// What can be said of a description that was not read in full: names that no device group has, and wirings that do
/// not fit. A group whose count is 0 and a link whose bandwidth is 0 could not be read, and are known by name only.
Diagnostics check_known_parts(const TopologySpec&);

}  // namespace collcast
