// The peer: the same hosts, links, routes and messages in SimGrid's S4U, as a SimGrid user would write them.
//
// Network model CM02 with all correction factors off, so that both tools solve the same problem: links shared max-min
// fairly, a message takes its route's latency and then its bytes over its rate. (CM02 weighs flows that share a link by
// their latencies; with equal latencies, or none, the shares are equal.)
#pragma once

#include <optional>
#include <vector>

namespace bench {

struct PeerLink {
  double bandwidth = 0;  ///< bytes/s, one direction
  double latency = 0;    ///< s
};
struct PeerRoute {
  int from = 0, to = 0;    ///< hosts
  std::vector<int> links;  ///< in order; one way
};
struct PeerMachine {
  int hosts = 0;
  std::vector<PeerLink> links;
  std::vector<PeerRoute> routes;
  double precision = 0;  ///< SimGrid's own precisions (of time and of shares) if 0
};

struct PeerMessage {
  int to = 0;
  double bytes = 0;  ///< SimGrid moves whole bytes
};
/// Sends its messages one after the other.
struct PeerSender {
  int host = 0;
  double start_s = 0;
  std::vector<PeerMessage> messages;
};
/// Members send to the next member, round after round: a round ends when the member has sent and received.
struct PeerRing {
  std::vector<int> hosts;
  int rounds = 0;
  double bytes = 0;  ///< of one message
};

struct PeerRun {
  double wall_s = 0;             ///< platform, actors and run
  double bytes = 0;              ///< resident memory that these took
  double simulated_s = 0;        ///< the time that SimGrid says the whole takes
  std::vector<double> finish_s;  ///< senders: of every message, sender by sender
};

/// In a process of its own, since SimGrid keeps one engine per process. Nothing if that process failed.
std::optional<PeerRun> simgrid_senders(const PeerMachine&, const std::vector<PeerSender>&);
std::optional<PeerRun> simgrid_ring(const PeerMachine&, const PeerRing&);

}  // namespace bench
