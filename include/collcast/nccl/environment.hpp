// What NCCL's environment variables ask for, as far as a forecast depends on them.
//
// A variable that NCCL has and that changes nothing here is kept by name, so that a report can say so; a name that
// NCCL does not have, and a value that it would correct or pass over with a warning, is an error.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/collective/collective.hpp"
#include "collcast/nccl/graph.hpp"
#include "collcast/topology/spec.hpp"

namespace collcast::nccl {

/// In the order in which NCCL looks at them: of equal times the first is taken.
enum class Algorithm { tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat };
inline constexpr std::array<Algorithm, 7> algorithms{
    Algorithm::tree,      Algorithm::ring, Algorithm::collnet_direct, Algorithm::collnet_chain, Algorithm::nvls,
    Algorithm::nvls_tree, Algorithm::pat};
enum class Protocol { ll, ll128, simple };
inline constexpr std::array<Protocol, 3> protocols{Protocol::ll, Protocol::ll128, Protocol::simple};

std::string_view to_string(Algorithm);  ///< "nvls_tree"
std::string_view to_string(Protocol);   ///< "LL128"
std::optional<Algorithm> parse_algorithm(std::string_view);
std::vector<std::string> algorithm_names();

/// One variable as it was given.
struct Setting {
  std::string name, value;
  Location where;
};

/// What variables name by file; read by `exchange`.
struct Files {
  std::shared_ptr<const GraphFile> graphs;  ///< NCCL_GRAPH_FILE
  std::shared_ptr<const TunerFile> tuner;   ///< NCCL_TUNER_CONFIG_FILE
};

/// Whether a ring may leave a node by another NIC than it came in by: never, always, or where no other fits.
enum class CrossNic { never, always, if_needed };

/// What calls reduce, in the words of nccl-tests; empty: not said.
struct Reduced {
  std::string type, operation;
  bool by_nvswitch() const;  ///< NVSwitches can
  bool by_network() const;   ///< switches of the network can
};

std::string text_of(const Reduced&);  ///< "prod of float"

/// How a job was started and what it reduces, which no variable says.
struct Launch {
  int version = 0;           ///< of NCCL, as it counts (20804 is 2.8.4); 0: not known, as a current one
  bool one_process = false;  ///< the ranks of a node are threads or GPUs of one process
  Reduced reduced{};
};

struct Environment {
  std::vector<Setting> given;               ///< all of them
  std::vector<std::string> without_effect;  ///< names that NCCL has and that change no forecast
  std::vector<Setting> leave_nics;          ///< with which nodes are reached otherwise than by the described NICs
  std::vector<Setting> not_followed;        ///< that matter on some machines, and that no forecast follows

  /// NCCL_ALGO and NCCL_PROTO, of a collective.
  bool allows(CollectiveKind, Algorithm) const;
  bool allows(CollectiveKind, Protocol) const;
  bool names_protocols(CollectiveKind) const;  ///< NCCL_PROTO speaks of it
  /// A GPU passes on what others have for the NIC beside it (PXN, since 2.12).
  bool relays() const;
  /// GPUs without an NVLink between them send through one that has one to both (NVB, since 2.9).
  bool sends_through_gpus() const;
  /// One call starts the kernels of all GPUs of a process: so did NCCL before 2.9 where NCCL_LAUNCH_MODE did not say
  /// PARALLEL [src/init.cc, launchMode].
  bool launches_groups() const;

  std::optional<int> min_channels, max_channels;  ///< NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS and their older names
  std::optional<int> min_blocks, max_blocks;      ///< NCCL_MIN_CTAS, NCCL_MAX_CTAS: of these channels and of NVLS
  std::optional<int> nvls_channels;               ///< NCCL_NVLS_NCHANNELS
  std::optional<int> threads;                     ///< NCCL_NTHREADS, of LL and Simple
  std::optional<int> ll128_threads;               ///< NCCL_LL128_NTHREADS
  std::optional<Seconds> net_overhead;            ///< NCCL_NET_OVERHEAD: what a message costs a host, as NCCL chooses
  std::optional<Bytes> pair_ll_limit;             ///< NCCL_P2P_LL_THRESHOLD: of a message for each channel
  bool pair_ll_between = false;                   ///< NCCL_ALLOC_P2P_NET_LL_BUFFERS: pairs on different nodes have LL
  /// NCCL_THREAD_THRESHOLDS, by protocol: bytes of a thread below which fewer threads and channels are taken.
  std::array<std::optional<std::int64_t>, 3> tree_thresholds = {}, ring_thresholds = {};
  bool nvls = true;                      ///< NCCL_NVLS_ENABLE
  bool collnet = false;                  ///< NCCL_COLLNET_ENABLE
  int collnet_nodes = 2;                 ///< NCCL_COLLNET_NODE_THRESHOLD: fewer have no CollNet
  std::optional<Bytes> nvls_chunk;       ///< NCCL_NVLS_CHUNKSIZE, of a head and channel: at most
  std::optional<Bytes> nvls_tree_chunk;  ///< NCCL_NVLSTREE_MAX_CHUNKSIZE, the same of a tree over nodes
  bool pat = true;                       ///< NCCL_PAT_ENABLE
  bool peer_access = true;               ///< neither NCCL_P2P_DISABLE=1 nor NCCL_P2P_LEVEL=LOC
  std::optional<PathType> peer_level;    ///< NCCL_P2P_LEVEL, another: what it changes is the machine's
  std::optional<int> min_p2p_channels, max_p2p_channels;  ///< NCCL_MIN_P2P_NCHANNELS, NCCL_MAX_P2P_NCHANNELS
  std::optional<int> net_peer_channels;                   ///< NCCL_NCHANNELS_PER_NET_PEER
  CrossNic cross_nic = CrossNic::if_needed;               ///< NCCL_CROSS_NIC
  bool bridges = true;                                    ///< NCCL_NVB_DISABLE is not set
  bool pxn = true;                                        ///< NCCL_PXN_DISABLE is not set
  bool pxn_of_pairs = true;                               ///< NCCL_P2P_PXN_LEVEL is not 0
  PathType gpudirect_level = PathType::pxb;  ///< NCCL_NET_GDR_LEVEL: how far NICs may be for GPUDirect RDMA
  Bytes simple_buffer{4 << 20};              ///< NCCL_BUFFSIZE, of one connection: eight slots
  Bytes ll_buffer{512 << 10};                ///< NCCL_LL_BUFFSIZE, of which half is payload
  Bytes ll128_buffer{4'915'200};             ///< NCCL_LL128_BUFFSIZE, of which 15/16 are payload

  bool parallel_launch = false;  ///< NCCL_LAUNCH_MODE is PARALLEL

  Files files;
  Launch launch;

  /// Bit sets by collective; absent: all.
  std::array<std::optional<unsigned>, collective_kinds> algorithm_sets, protocol_sets;
};

/// "NCCL_ALGO=RING NCCL_PROTO=LL": as it was given.
std::string text_of(const Environment&);

/// What no forecast follows, though it matters: between nodes NCCL_NET=Socket and NCCL_IB_DISABLE=1, but where the
/// network is sockets as it is described, and an NCCL_IB_HCA with fewer names than NICs; a level of NCCL_P2P_LEVEL that
/// some pairs of its GPUs are beyond; what not_modelled.hpp has. And that forecasts of CollNet are rough, where it is
/// taken.
/// `has_alltoall`: calls may be of it, whose order of sends and receives some variables change.
Diagnostics warnings(const Environment&, int nodes, const TopologySpec&, bool has_alltoall = true);
/// Names of variables that change nothing on that machine: `without_effect` but for such an NCCL_IB_HCA, those of
/// CollNet on one that has none, what versions of NCCL before have not, NCCL_NVB_DISABLE where no GPU sends through
/// another, NCCL_P2P_LEVEL where pairs reach each other as without, and on one node those of what is between nodes.
std::vector<std::string> unused(const Environment&, int nodes, const TopologySpec&);

/// With the files, which text_of() names too.
Environment with_files(Environment, const Files&);

/// With what a machine sets (NetworkPlugin::environment) of the variables that were not given, or what is wrong then.
Result<Environment> with_defaults(Environment, std::span<const std::pair<std::string, std::string>>);
/// As jobs on so many of the machine's nodes have it: it sets variables of those on several.
Result<Environment> of_job(Environment, const TopologySpec&, int nodes);

/// The variables, or everything that is wrong with them.
Result<Environment> read_environment(std::span<const Setting>);

}  // namespace collcast::nccl
