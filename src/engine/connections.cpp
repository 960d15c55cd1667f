#include "engine/connections.hpp"

#include <algorithm>

#include "engine/route_timing.hpp"

namespace collcast::engine {

std::uint32_t Connections::acquire() {
  if (free_.empty()) {
    connections_.emplace_back();
    routes_.emplace_back();
    names_.emplace_back();
    return static_cast<std::uint32_t>(connections_.size() - 1);
  }
  const std::uint32_t id = free_.back();
  free_.pop_back();
  return id;
}

void Connections::release(std::uint32_t id) {
  close(id);
  free_.push_back(id);
}

void Connections::expect(std::size_t more) {
  if (more <= free_.size()) return;
  const std::size_t needed = connections_.size() + more - free_.size();
  if (needed <= connections_.capacity()) return;
  const std::size_t room = std::max(needed, connections_.empty() ? needed : 2 * connections_.capacity());
  connections_.reserve(room);
  routes_.reserve(room);
  names_.reserve(room);
}

void Connections::connect(std::uint32_t id, const ConnectionName& name, Volume size, int priority) {
  close(id);
  const ConnectionName& before = names_[id];
  if (!routes_[id].is_known || before.from != name.from || before.to != name.to || before.lane != name.lane)
    set_route(id, name);
  names_[id] = name;

  Connection& connection = connections_[id];
  ConnectionRoute& route = routes_[id];
  route.priority = priority;
  if (route.size != size.value()) {
    route.size = size.value();
    connection.alone = time_message(route.bandwidth, size).alone;
  }
  connection.immediate = !(route.size > 0) || route.length == 0;
  open(id);
}

void Connections::set_route(std::uint32_t id, const ConnectionName& name) {
  ConnectionRoute& route = routes_[id];
  crossings_.release(route.first, route.length);
  route_.clear();
  fabric_.route(name.from, name.to, name.lane, route_);
  route.length = static_cast<std::uint32_t>(route_.size());
  route.first = crossings_.allocate(route_.size());
  for (std::uint32_t i = 0; i < route.length; ++i) crossings_[route.first + i] = {route_[i].value(), 0};
  const RouteTiming timing = time_route(fabric_.links(), route_);
  route.bandwidth = timing.bandwidth;
  connections_[id].latency = timing.latency;
  route.size = -1;
  route.is_known = true;
}

void Connections::open(std::uint32_t id) {
  routes_[id].is_open = true;
  bool apart = knows_apart_;
  for (const Crossing& crossing : crossings(id)) {
    LinkState& link = links_[crossing.link];
    if (link.users > 0) apart = false;
    if (link.users == 1 && connections_[link.ids].apart) {
      connections_[link.ids].apart = false;
      joined_.push_back(link.ids);
    }
    ++link.users;
    link.ids ^= id;
  }
  connections_[id].apart = apart;
}

void Connections::close(std::uint32_t id) {
  ConnectionRoute& route = routes_[id];
  if (!route.is_open) return;
  route.is_open = false;
  Connection& connection = connections_[id];
  const double bytes = route.size * static_cast<double>(connection.messages);
  const Ticks unlisted = connection.unlisted * connection.alone;
  for (const Crossing& crossing : crossings(id)) {
    LinkState& link = links_[crossing.link];
    link.carried += bytes;
    link.busy += unlisted;
    --link.users;
    link.ids ^= id;
  }
  messages_ += connection.messages;
  connection.messages = connection.unlisted = 0;
}

std::int64_t Connections::messages_so_far() const {
  std::int64_t sum = messages_;
  for (const Connection& connection : connections_) sum += connection.messages;
  return sum;
}

}  // namespace collcast::engine
