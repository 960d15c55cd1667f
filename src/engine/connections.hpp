// Connections: who sends over which links, in a slab that is reused.
//
// An explicit transfer has a connection for its one message, an exchange has one for all
// messages of a hop. Route, latency and bandwidth are worked out once, when it is connected, the time a message takes
// alone when it is first asked for; each message then only sets it going again. A connection that is opened anew
// between the ranks it joined before keeps its route.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collcast/base/quantity.hpp"
#include "collcast/schedule/traffic_class.hpp"
#include "collcast/topology/fabric.hpp"
#include "engine/block_pool.hpp"
#include "engine/progress.hpp"

namespace collcast::engine {

/// One link of a flow's route, and where the flow stands in the list of that link.
struct Crossing {
  std::uint32_t link = 0;
  std::uint32_t place = 0;
};

/// What each message reads.
struct Connection {
  static constexpr Ticks unknown = -1;

  Ticks alone = unknown;       ///< time of one message with the links to itself; known where it is apart
  Ticks latency = 0;           ///< of its route
  Ticks started = 0;           ///< when its present message got the links
  std::uint32_t messages = 0;  ///< that have left since it was connected
  std::uint32_t version : 28;  ///< of its event in the queue
  bool transfer : 1;           ///< of an operation; else of an exchange
  bool immediate : 1;          ///< no bytes or no links: leaves as soon as it may start
  bool apart : 1;              ///< no other connection has any of its links: no need to be listed there
  bool is_unlisted : 1;        ///< a message is under way that is on no list

  Connection() : version(0), transfer(false), immediate(false), apart(false), is_unlisted(false) {}
};

/// Who a connection belongs to. Also what orders flows that ask for a link at the same instant.
struct ConnectionName {
  Rank from, to;
  int lane = 0;                           ///< of Fabric::route
  std::uint32_t op = 0;                   ///< the Transfer, or the sender's Part
  std::uint32_t lane_index = 0, hop = 0;  ///< within an exchange
};

/// What is read when a connection is opened or closed.
struct ConnectionRoute {
  double size = -1;  ///< bytes of one message
  ConnectionName name;
  std::uint32_t first = 0;   ///< crossing
  std::uint32_t length = 0;  ///< number of crossings
  std::int32_t priority = 0;
  std::uint16_t weight = 1;
  bool is_known = false;
  bool is_open = false;
};

class Connections {
 public:
  /// `knows_apart`: whether those that share no link with another are marked.
  Connections(const Fabric& fabric, bool knows_apart)
      : fabric_(fabric), knows_apart_(knows_apart), links_(fabric.links().size()) {}

  /// By link, the one that messages cross in its place (fold.hpp); it lasts as long as they do.
  void stand_for(const std::vector<std::uint32_t>& links) { stands_for_ = &links; }
  /// Room for so many more: nothing but memory that is not taken twice.
  void expect(std::size_t more);
  std::uint32_t acquire();
  void release(std::uint32_t id);
  /// Gives the connection a route and a message size; what it was before is closed.
  void connect(std::uint32_t id, const ConnectionName& name, Volume size, TrafficClass traffic);

  /// The same ranks and links for another operation's message of this size. None is under way.
  void renew(std::uint32_t id, std::uint32_t op, Volume size);

  Connection& operator[](std::uint32_t id) { return connections_[id]; }
  const Connection& operator[](std::uint32_t id) const { return connections_[id]; }
  const ConnectionRoute& route(std::uint32_t id) const { return routes_[id]; }
  const ConnectionName& name(std::uint32_t id) const { return routes_[id].name; }
  /// Time of one message with the links to itself.
  Ticks alone(std::uint32_t id);
  /// Smallest of its links.
  double bandwidth(std::uint32_t id) const;
  std::size_t size() const { return connections_.size(); }
  std::span<Crossing> crossings(std::uint32_t id) { return crossings_.block(routes_[id].first, routes_[id].length); }
  std::span<const Crossing> crossings(std::uint32_t id) const {
    return crossings_.block(routes_[id].first, routes_[id].length);
  }
  Crossing& crossing(std::uint32_t index) { return crossings_[index]; }

  void prefetch(std::uint32_t id) const {
    const auto* at = reinterpret_cast<const char*>(&connections_[id]);
    __builtin_prefetch(at);
    __builtin_prefetch(at + sizeof(Connection) - 1);
  }

  /// Whose messages would go between ranks that nothing joins.
  const std::optional<ConnectionName>& lost() const { return lost_; }
  /// A message of a connection that is apart no longer has left, and was on no list.
  void left_unlisted(std::uint32_t id) { add_busy(id, 1); }
  /// Connections that are apart no longer, since others have got a link of theirs; in the order in which that happened.
  std::vector<std::uint32_t>& joined() { return joined_; }

  /// Of a link by connections that are closed: bytes, and time of messages that were on no list.
  double carried(std::size_t link) const { return links_[link].carried; }
  Ticks busy_unlisted(std::size_t link) const { return links_[link].busy; }
  /// Number of messages, by connections that are closed.
  std::int64_t messages() const { return messages_; }
  /// Number of messages that have left by now, over connections open and closed.
  std::int64_t messages_so_far() const;

 private:
  struct LinkState {
    double carried = 0;
    Ticks busy = 0;
    std::uint32_t users = 0;  ///< open connections
    std::uint32_t ids = 0;    ///< of these, their ids added bit by bit without carry: of the only one, its id
  };

  void set_route(std::uint32_t id, const ConnectionName& name);
  void set_size(std::uint32_t id, Volume size);
  void open(std::uint32_t id);
  void join(std::uint32_t id);
  /// To its links, the time of so many messages that were on no list.
  void add_busy(std::uint32_t id, std::uint32_t messages);
  void close(std::uint32_t id);
  /// To the connection's links and the total, what its messages have carried so far.
  void book_messages(std::uint32_t id);

  const Fabric& fabric_;
  bool knows_apart_;
  const std::vector<std::uint32_t>* stands_for_ = nullptr;
  std::vector<Connection> connections_;
  std::vector<ConnectionRoute> routes_;
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  std::uint32_t free_ = none;  ///< the first of those that are closed; each has the next one in `started`
  std::size_t free_count_ = 0;
  BlockPool<Crossing> crossings_;
  std::vector<LinkId> route_;  ///< scratch
  std::vector<LinkState> links_;
  std::vector<std::uint32_t> joined_;
  std::optional<ConnectionName> lost_;
  std::int64_t messages_ = 0;

 public:
  static constexpr std::size_t bytes_per_link = sizeof(LinkState);
};

}  // namespace collcast::engine
