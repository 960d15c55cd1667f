// Connections: who sends over which links, in a slab that is reused.
//
// An explicit transfer has a connection for its one message, an exchange has one for all
// messages of a hop. Route, latency, bandwidth and the time a message takes alone are worked out once,
// when it is connected; each message then only sets it going again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collcast/engine/engine.hpp"
#include "engine/block_pool.hpp"
#include "engine/progress.hpp"

namespace collcast::engine {

/// One link of a flow's route, and where the flow stands in the list of that link.
struct Crossing {
  std::uint32_t link = 0;
  std::uint32_t place = 0;
};

struct Connection {
  Grains remaining = 0;  ///< as of `since`
  Grains to_move = 0;    ///< of one message
  double rate = 0;       ///< bytes per second from `since` on; 0: not flowing
  Ticks since = 0;
  Ticks alone = 0;            ///< time of one message with the links to itself
  double size = 0;            ///< bytes of one message
  double bandwidth = 0;       ///< smallest of its links
  std::uint32_t route = 0;    ///< first crossing
  std::uint32_t length = 0;   ///< number of crossings
  std::uint32_t version = 0;  ///< of its event in the queue
  std::int32_t priority = 0;
  Ticks latency = 0;
  Ticks started = 0;          ///< when its present message got the links
  std::int64_t messages = 0;  ///< that have left since it was connected
  bool transfer = false;      ///< of an operation; else of an exchange
  bool immediate = false;     ///< no bytes or no links: leaves as soon as it may start
};

/// Who a connection belongs to. Also what orders flows that ask for a link at the same instant.
struct ConnectionName {
  Rank from, to;
  int lane = 0;                           ///< of Fabric::route
  std::uint32_t op = 0;                   ///< the Transfer, or the sender's Part
  std::uint32_t lane_index = 0, hop = 0;  ///< within an exchange
};

class Connections {
 public:
  explicit Connections(const Fabric& fabric) : fabric_(fabric), carried_(fabric.links().size(), 0.0) {}

  std::uint32_t acquire();
  void release(std::uint32_t id);
  /// Gives the connection a route and a message size; what it was before is closed.
  void connect(std::uint32_t id, const ConnectionName& name, Volume size, int priority);

  Connection& operator[](std::uint32_t id) { return connections_[id]; }
  const Connection& operator[](std::uint32_t id) const { return connections_[id]; }
  const ConnectionName& name(std::uint32_t id) const { return names_[id]; }
  std::size_t size() const { return connections_.size(); }
  std::span<Crossing> crossings(const Connection& connection) {
    return crossings_.block(connection.route, connection.length);
  }
  Crossing& crossing(std::uint32_t index) { return crossings_[index]; }

  void prefetch(std::uint32_t id) const {
    const auto* at = reinterpret_cast<const char*>(&connections_[id]);
    __builtin_prefetch(at);
    __builtin_prefetch(at + 64);
  }
  void prefetch_crossings(std::uint32_t id) const {
    if (connections_[id].length > 0) __builtin_prefetch(&crossings_[connections_[id].route]);
  }

  /// Bytes over each link and number of messages, by connections that are closed.
  std::span<const double> carried() const { return carried_; }
  std::int64_t messages() const { return messages_; }
  /// Number of messages that have left by now, over connections open and closed.
  std::int64_t messages_so_far() const;

 private:
  void close(Connection& connection);

  const Fabric& fabric_;
  std::vector<Connection> connections_;
  std::vector<ConnectionName> names_;
  std::vector<std::uint32_t> free_;
  BlockPool<Crossing> crossings_;
  std::vector<LinkId> route_;  ///< scratch
  std::vector<double> carried_;
  std::int64_t messages_ = 0;
};

}  // namespace collcast::engine
