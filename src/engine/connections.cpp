#include "engine/connections.hpp"

#include "engine/route_timing.hpp"

namespace collcast::engine {

std::uint32_t Connections::acquire() {
  if (free_.empty()) {
    connections_.emplace_back();
    flowing_.emplace_back();
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

void Connections::connect(std::uint32_t id, const ConnectionName& name, Volume size, int priority) {
  close(id);
  const ConnectionName& before = names_[id];
  if (!flowing_[id].has_route || before.from != name.from || before.to != name.to || before.lane != name.lane)
    set_route(id, name);
  names_[id] = name;

  Connection& connection = connections_[id];
  Flowing& flowing = flowing_[id];
  flowing.priority = priority;
  if (flowing.size != size.value()) {
    flowing.size = size.value();
    const MessageTiming timing = time_message(flowing.bandwidth, size);
    flowing.to_move = timing.to_move;
    connection.alone = timing.alone;
  }
  connection.immediate = !(flowing.size > 0) || flowing.length == 0;
  open(id);
}

void Connections::set_route(std::uint32_t id, const ConnectionName& name) {
  Flowing& flowing = flowing_[id];
  crossings_.release(flowing.route, flowing.length);
  route_.clear();
  fabric_.route(name.from, name.to, name.lane, route_);
  flowing.length = static_cast<std::uint32_t>(route_.size());
  flowing.route = crossings_.allocate(route_.size());
  for (std::uint32_t i = 0; i < flowing.length; ++i) crossings_[flowing.route + i] = {route_[i].value(), 0};
  const RouteTiming timing = time_route(fabric_.links(), route_);
  flowing.bandwidth = timing.bandwidth;
  connections_[id].latency = timing.latency;
  flowing.size = -1;
  flowing.has_route = true;
}

void Connections::open(std::uint32_t id) {
  flowing_[id].is_open = true;
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
  Flowing& flowing = flowing_[id];
  if (!flowing.is_open) return;
  flowing.is_open = false;
  Connection& connection = connections_[id];
  const double bytes = flowing.size * static_cast<double>(connection.messages);
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
