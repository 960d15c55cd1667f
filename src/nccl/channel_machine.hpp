// The machine as the channels of a run see it: what every simulation of library nccl runs on.
#pragma once

#include <limits>
#include <optional>
#include <set>

#include "collcast/nccl/program.hpp"
#include "nccl/limits.hpp"

namespace collcast::nccl {

/// What the machine carries for a run; bytes of payload per second, seconds.
struct Rates {
  double drive = 0;                ///< of a channel's threads on what they send; 0: they do not bound it
  double between = 0;              ///< of a tree's channel, to each other node; 0: as inside the node, together
  int ways = 1;                    ///< with that: modulo which no node sends to two of the same number
  double port = unlimited;         ///< of a GPU's links together, each direction
  double nic = unlimited;          ///< of one
  double of_line = 1;              ///< payload of what lines of the network carry
  double nvlink = 1, pcie = 1;     ///< reached of what the machine's file says
  double hop = 0;                  ///< from GPU to GPU in a node
  double beyond = 0;               ///< of a hop between nodes, beyond that and the network's own latency
  double network = 1;              ///< factor on the network's latency
  double way = 0;                  ///< seconds from NIC to NIC that the closed form counts: a longer way is cut to it
  bool by_receivers_rail = false;  ///< a node is left by the NIC of the receiver's rail, over NVLink to a GPU beside it
  int nics_beside = 1;             ///< with that: each is reached by a GPU of its own, where routes take the first
  int nics_of_gpu = std::numeric_limits<int>::max();  ///< of those that its pairs go by in turn
  std::optional<std::set<int>> nvlinks_of;  ///< GPUs of a node that keep the straight NVLinks between them; none: all
  bool through_gpus = true;                 ///< these pass on what others send, where that is the way
  int switch_members = 0;                   ///< further ranks of every node, on its switch
  double switch_link = 0;                   ///< seconds to or from one of those
  bool reduces = false;  ///< the network adds up: a further rank of every node behind each of its NICs
};

/// What the builders need of the question.
struct Question {
  const Fabric& fabric;
  const Group& group;
  const Communicator& c;
  CollectiveKind kind;
  Bytes size;
  const Plan& plan;
  int root;
  double bytes() const { return static_cast<double>(size.value()); }
};

/// For a run whose longest message is `chunk` bytes.
Rates rates_of(const Question&, const Limits&, double chunk);
/// The machine as channels see it.
Result<Fabric> machine_of_channels(const Question&, const Rates&);
/// The pattern on that machine; `start`: seconds of a call before its first byte. Fails where it has too many messages.
Result<Program> assembled(const Question&, const Rates&, Pattern, double start);

}  // namespace collcast::nccl
