#include "engine/connections.hpp"

#include <algorithm>
#include <limits>

#include "collcast/base/check.hpp"
#include "engine/route_timing.hpp"

namespace collcast::engine {

std::uint32_t Connections::acquire() {
  if (free_ == none) {
    connections_.emplace_back();
    routes_.emplace_back();
    return static_cast<std::uint32_t>(connections_.size() - 1);
  }
  const std::uint32_t id = free_;
  free_ = static_cast<std::uint32_t>(connections_[id].started);
  --free_count_;
  return id;
}

void Connections::release(std::uint32_t id) {
  close(id);
  connections_[id].started = free_;
  free_ = id;
  ++free_count_;
}

void Connections::expect(std::size_t more) {
  if (more <= free_count_) return;
  const std::size_t needed = connections_.size() + more - free_count_;
  if (needed <= connections_.capacity()) return;
  const std::size_t room = std::max(needed, connections_.empty() ? needed : 2 * connections_.capacity());
  connections_.reserve(room);
  routes_.reserve(room);
}

void Connections::connect(std::uint32_t id, const ConnectionName& name, Volume size, TrafficClass traffic) {
  close(id);
  ConnectionRoute& route = routes_[id];
  const ConnectionName& before = route.name;
  if (!route.is_known || before.from != name.from || before.to != name.to || before.lane != name.lane)
    set_route(id, name);
  route.name = name;

  Connection& connection = connections_[id];
  check(traffic.weight > 0, "a message has a weight");
  route.priority = traffic.priority;
  route.weight = traffic.weight;
  set_size(id, size);
  open(id);
  if (connection.apart || !knows_apart_) alone(id);
}

Ticks Connections::alone(std::uint32_t id) {
  Ticks& alone = connections_[id].alone;
  if (alone == Connection::unknown) alone = time_alone(bandwidth(id), Volume(routes_[id].size));
  return alone;
}

void Connections::set_route(std::uint32_t id, const ConnectionName& name) {
  ConnectionRoute& route = routes_[id];
  crossings_.release(route.first, route.length);
  route_.clear();
  fabric_.route(name.from, name.to, name.lane, route_);
  if (route_.empty() && name.from != name.to) lost_ = name;
  route.length = static_cast<std::uint32_t>(route_.size());
  route.first = crossings_.allocate(route_.size());
  for (std::uint32_t i = 0; i < route.length; ++i) {
    const std::uint32_t link = route_[i].value();
    crossings_[route.first + i] = {stands_for_ == nullptr ? link : (*stands_for_)[link], 0};
  }
  connections_[id].latency = time_route(fabric_.links(), route_).latency;
  route.size = -1;
  route.is_known = true;
}

double Connections::bandwidth(std::uint32_t id) const {
  double smallest = std::numeric_limits<double>::infinity();
  for (const Crossing& crossing : crossings(id))
    smallest = std::min(smallest, fabric_.links()[crossing.link].bandwidth.value());
  return smallest;
}

void Connections::open(std::uint32_t id) {
  routes_[id].is_open = true;
  bool apart = knows_apart_;
  for (const Crossing& crossing : crossings(id)) {
    LinkState& link = links_[crossing.link];
    if (link.users > 0) apart = false;
    if (link.users == 1 && connections_[link.ids].apart) join(link.ids);
    ++link.users;
    link.ids ^= id;
  }
  connections_[id].apart = apart;
}

/// The connection is no longer apart.
void Connections::join(std::uint32_t id) {
  add_busy(id, connections_[id].messages);
  connections_[id].apart = false;
  joined_.push_back(id);
}

void Connections::add_busy(std::uint32_t id, std::uint32_t messages) {
  const Ticks busy = messages * connections_[id].alone;
  for (const Crossing& crossing : crossings(id)) links_[crossing.link].busy += busy;
}

void Connections::close(std::uint32_t id) {
  ConnectionRoute& route = routes_[id];
  if (!route.is_open) return;
  route.is_open = false;
  book_messages(id);
  for (const Crossing& crossing : crossings(id)) {
    LinkState& link = links_[crossing.link];
    --link.users;
    link.ids ^= id;
  }
}

void Connections::book_messages(std::uint32_t id) {
  Connection& connection = connections_[id];
  const double bytes = routes_[id].size * static_cast<double>(connection.messages);
  const Ticks unlisted = connection.apart ? connection.messages * connection.alone : 0;
  for (const Crossing& crossing : crossings(id)) {
    LinkState& link = links_[crossing.link];
    link.carried += bytes;
    link.busy += unlisted;
  }
  messages_ += connection.messages;
  connection.messages = 0;
}

void Connections::renew(std::uint32_t id, std::uint32_t op, Volume size) {
  ConnectionRoute& route = routes_[id];
  route.name.op = op;
  if (route.size == size.value()) return;
  book_messages(id);
  set_size(id, size);
  if (connections_[id].apart || !knows_apart_) alone(id);
}

void Connections::set_size(std::uint32_t id, Volume size) {
  ConnectionRoute& route = routes_[id];
  if (route.size != size.value()) {
    route.size = size.value();
    connections_[id].alone = Connection::unknown;
  }
  connections_[id].immediate = !(route.size > 0) || route.length == 0;
}

std::int64_t Connections::messages_so_far() const {
  std::int64_t sum = messages_;
  for (const Connection& connection : connections_) sum += connection.messages;
  return sum;
}

}  // namespace collcast::engine
