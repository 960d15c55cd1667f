// What the benchmarks simulate, as ours and as the peer's.
#pragma once

#include <cstdint>
#include <vector>

#include "collcast/schedule/schedule.hpp"
#include "collcast/topology/fabric.hpp"
#include "simgrid_peer.hpp"
#include "support/dice.hpp"

namespace bench {

using collcast::test::Dice;

/// Hosts on one ring, each link as fast or, with `spread` > 0, slower by a factor drawn from [1, 1 + spread].
collcast::Fabric ring_machine(int hosts, double bandwidth, double latency, double spread = 0);
/// Hosts on one switch.
collcast::Fabric star_machine(int hosts, double bandwidth);
/// Leaves of 32 hosts under 8 spines, `oversubscription` : 1.
collcast::Fabric fat_tree(int hosts, double bandwidth, double oversubscription);
/// A tree of switches with the hosts anywhere on it, or that with further cables (a mesh); every link another rate.
collcast::Fabric random_machine(Dice& dice, int hosts);

/// A ring all-reduce's messages for `rounds` rounds (0: all) among `members`, host by host.
collcast::Pattern ring_pattern(const std::vector<int>& members, std::int64_t message_bytes, int rounds = 0);
/// Every sender's messages, one after the other from its start on. Host h has a weight of 1 + h modulo `weights`.
collcast::Schedule as_schedule(const std::vector<PeerSender>& senders, int weights = 1);

/// The machine with the routes that the senders, or the ring's members, use.
PeerMachine as_peer(const collcast::Fabric&, const std::vector<PeerSender>& senders);
PeerMachine as_peer(const collcast::Fabric&, const std::vector<int>& ring);

}  // namespace bench
