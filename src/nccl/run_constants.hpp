// What a run depends on and neither NCCL's sources nor data sheets state.
//
// Fitted in November 2026 on 140 published nccl-tests tables of 32 systems, V100 to GB300, that their sources call
// sound: one value for all machines (some: per GPU generation, Volta to Blackwell), so that the median error of each
// size band on one node and on several is least, as they are and with each table left out of its system's calibration;
// rounded. docs/validation.md has the errors, also of machines without a file of their own. Times are microseconds,
// rates GB/s; protocols in the order LL, LL128, Simple.
#pragma once

#include <array>

namespace collcast::nccl::fitted {

/// Launching a kernel on every GPU and leaving it again, by generation; of Hopper's hosts two launch in 4, others in 9.
inline constexpr std::array<double, 4> launch{7.0, 7.2, 4.2, 7.0};
/// What a host takes for a call: it is seen where the GPUs are done before. Calibrations say; here it never is.
inline constexpr double host = 4;
/// Of a process that starts the kernels of all its GPUs by one call, as NCCL did before 2.9: beside a part for each
/// GPU; of sends and receives, which are put together peer by peer, beside a part for each peer. The one system with
/// such tables is of 2.7.3: 8.5, 14.4 and 22.6 us on 2, 4 and 8 A100, an alltoall 16.2 on two and 50 on eight.
inline constexpr double group_launch = 4, group_launch_per_gpu = 2.4;
inline constexpr double group_pairs = 3.7, group_pairs_per_peer = 3.3;
/// A protocol's start beyond that: setting up its connections' slots and flags.
inline constexpr std::array<double, 3> start{0, 1.3, 5.6};

/// Of LL's first pass, 8 bytes of each thread, what a hop inside the node has already, and one through a NIC.
inline constexpr double ll_within_hop = 0.5;
inline constexpr double ll_within_network_hop = 0.1;

/// A chain's block under LL with few threads: from one pass to the next, by generation; one system each of V100 and
/// A100, newer ones as these.
inline constexpr std::array<double, 4> ll_pass{0.85, 0.45, 0.45, 0.45};

/// For each channel that a call starts, and the same before NCCL 2.9 under LL and LL128, seen as 2.7.3 and 2.8.4 on
/// A100 and V100: 1.0 to 1.3 for every further channel while a call has up to 24, which 2.27 does not show on the same
/// GPUs, nor do chains of Simple of either (A100, four and eight ranks, 1 to 64 MiB: 0.4 to 0.6 times 24 too much with
/// it).
inline constexpr double channel_start = 0.06;
inline constexpr double old_channel_start = 1.2;
inline constexpr int first_quick_version = 20900;

/// From a step to the next one's on another GPU: writing, flag, fence, reading. LL, LL128; Simple by generation.
inline constexpr std::array<double, 2> nvlink_hop{1.35, 2.3};
inline constexpr std::array<double, 4> nvlink_simple_hop{5.0, 9.2, 4.6, 9.7};
inline constexpr std::array<double, 3> pcie_hop{0.8, 2.5, 4.0};
/// The same through two proxies and NICs, beyond the network's own latency.
inline constexpr std::array<double, 3> network_hop{2.2, 9, 36};
/// Bytes of a chunk from which Simple's is whole; what a smaller one takes beyond LL's, and beyond a hop inside a node,
/// is in proportion to it. 64 KiB of 32 to 256; rests on AWS's p4de and p3dn, where NCCL takes Simple for every size.
inline constexpr double whole_hop_chunk = 65536;
/// Of trees' hops to rings': NCCL's tuning has 5.0 to 2.7 under LL, 8.5 to 4.0 under LL128, and one value under Simple;
/// measured trees of Simple (ABCI, Polaris) have about twice a ring's there too. Those of LL128 are apart: 1.1 fits two
/// systems of A100 (ABCI, a DGX cluster), 1.8 two others (Azure, AWS).
inline constexpr std::array<double, 3> tree_to_ring_hop{1.8, 1.4, 1.8};

/// What a channel's threads move per second and operation, by generation; Volta to Blackwell.
inline constexpr std::array<double, 4> simple_channel{10.5, 12.4, 20.7, 22};
/// Of a channel under Simple into its rank's own buffer: what follows the last receipt, when no link is in use.
inline constexpr double own_copy = 43;
/// Of a ring's latency under Simple, what its data does not hide: on one node by generation; over several.
inline constexpr std::array<double, 4> first_round{1, 1, 1, 0.1};
inline constexpr double first_round_between = 0.5;
/// Of a slice's time on a link, how much is seen before a ring's first one has arrived.
inline constexpr double first_slice = 0.3;
/// The same under LL128.
inline constexpr std::array<double, 4> ll128_channel{7.3, 7.0, 14.5, 16.5};
/// LL as a multiple of NCCL's cap on all channels that a node of the generation has.
inline constexpr double ll_multiple = 1.4;
inline constexpr std::array<double, 4> channels_of_a_node{12, 24, 24, 32};

/// Of data-sheet rates: what collectives reach; NVLink by generation.
inline constexpr std::array<double, 4> nvlink_efficiency{0.77, 0.77, 0.83, 0.77};
inline constexpr double nic_efficiency = 0.975;
/// The same where the way between GPU and NIC is over the host's bridge. Rests on two systems, Polaris and AWS p3dn.
inline constexpr double nic_over_host = 0.76;
/// The same of sends and receives: chunks of 128 KiB. Rests on two clusters, of ConnectX-7.
inline constexpr double p2p_nic_efficiency = 0.88;
/// Of the search's channels x speed over PCIe.
inline constexpr double pcie_efficiency = 0.8;
/// Of NCCL's own number for trees, and of its cap on their channels.
inline constexpr double tree_efficiency = 0.65;
/// The same of Simple between two nodes: of what the search booked, and of the cap by generation. Rests on three
/// systems: p4de's A100, which the cap does not hold, add 2 GiB in 51 ms, 42 GB/s of 44 and 0.90 of the cap; Alps'
/// GH200, which it holds, 64 MiB in 0.83 ms, 81 of 83; it holds a DGX-1's V100 with RoCE, too, 2 GiB in 176 ms, 12.2 of
/// 18.5. Ampere's is taken to be Hopper's. Of three nodes nothing is known.
inline constexpr double tree_efficiency_of_two = 0.98;
inline constexpr std::array<double, 4> tree_cap_of_two{0.65, 0.98, 0.98, 0.98};
/// Payload of LL in a NIC's rate: half, less what flags cost.
inline constexpr double ll_nic_payload = 0.45;
/// A proxy looks through every line of LL for its flag before it posts: per channel.
inline constexpr double ll_network_channel = 2.0;
/// What a proxy takes for a message through a NIC beside its GPU, beyond those that fit in the slots; calibrations say.
inline constexpr double message_gap = 1.5;
/// The same where the way between GPU and NIC is over the host's bridge; there a proxy's channels wait for each other.
/// Rests on Polaris, whose all_gather takes this long for each message of each channel on 8, 128 and 540 nodes:
/// 1.30, 22.7 and 97 ms, as 2 messages x 4 channels x (R - 2) steps of R = 31, 511 and 2159 are 5.6, 5.6 and 5.6 us.
inline constexpr double message_gap_over_host = 5.6;
/// Of them, those of LL: 3.85 and 16.95 ms of one channel's 503 and 2151 messages there.
inline constexpr double ll_message = 1.35;
/// The same of sends and receives: alltoall of 1024 and of 2160 ranks of that system.
inline constexpr double p2p_message_gap = 5.0;
inline constexpr double slots = 8;
/// Hops that a call of a chain waits for its neighbours' kernels under Simple, which write to each other's buffers.
inline constexpr double chain_hops = 4;

/// NVLS: before the first chunk; how many loops fill the pipe, of scattering, reducing and gathering; what a loop's
/// flags take of each head, which is in NCCL's rate for whole chunks and is seen where they are smaller (H100 and B200
/// of 8 GPUs: a channel's loop of 128, 64, 32 and 16 KiB a head takes 61, 32, 19.5 and 12 us, and 52, 29, 20.5 and 14).
inline constexpr double nvls_start = 10;
inline constexpr double nvls_fill = 1.8;
inline constexpr std::array<double, 4> nvls_flags{0.5, 0.5, 0.5, 0.9};
/// Of its tree over nodes: before the first chunk; per level and direction, of which what is beyond LL's hop is
/// Simple's; of one loop's data, per level.
inline constexpr double nvls_tree_start = 23;
/// Heads of the nodes that this was fitted on, whose flags it has.
inline constexpr double nvls_tree_heads = 8;
inline constexpr double nvls_tree_hop = 8.8;
inline constexpr double nvls_tree_fill = 3.9;
/// Over more than two nodes NCCL's cap on a head counts for so many at most: 20 racks of GB200, whose search finds 32
/// heads, reach 217 GB/s, half of what one and two racks do. Rests on that one system; boxes have eight heads.
inline constexpr double most_nvls_tree_heads = 10;
/// A chunk's message. Hidden over InfiniBand (10 nodes of H100: chunks of 64 KiB take 1.1 us or less); over EFA they
/// take 4.7 us, and a calibration says so.
inline constexpr double nvls_tree_message_gap = 1.0;
/// Until then a chunk may be a whole slot, 512 KiB, where it is large enough: seen as 2.20.3 and 2.22.3 on p5, whose
/// time beyond its data goes from 0.5 ms to 1 ms where 2 GiB allow it. A guess by version: the log of 2.22.3 says that
/// Amazon's plugin set NCCL_NVLS_CHUNKSIZE and NCCL_NVLSTREE_MAX_CHUNKSIZE to 512 KiB; NCCL's own are 128 KiB.
inline constexpr int first_small_nvls_tree_chunk = 22300;

/// CollNet: of a NIC's line rate. Nothing was measured here; an author of NCCL counts on 20 GB/s of an HDR NIC's 25
/// (github.com/NVIDIA/nccl, issue 320, January 2023).
inline constexpr double collnet_nic = 0.8;

/// Point to point: preparation beyond the launch, and per peer.
inline constexpr double p2p_launch = 2.3;
inline constexpr double p2p_per_peer = 0.45;
inline constexpr double p2p_simple = 2.0;
/// A channel's last piece, up to a slot, into its place.
inline constexpr double p2p_own_copy = 35;
/// Of what rings reach, with several peers: each on channels of its own, or all on shared ones.
inline constexpr double p2p_apart = 0.85;
inline constexpr double p2p_shared = 0.93;
/// A channel to a peer over NVLink, by generation; how much longer it takes while a rank copies its own part as well; a
/// channel to another node.
inline constexpr std::array<double, 4> p2p_channel{10, 12.5, 21, 26.5};
inline constexpr double p2p_own_part = 1.25;
inline constexpr double p2p_network_channel = 15.2;
/// What each further one adds, as a share of the first: pairs of H100 over ConnectX-7 have 15.2 with one channel and
/// 24.9 to 26.2 with two.
inline constexpr double p2p_network_further = 0.7;

}  // namespace collcast::nccl::fitted
