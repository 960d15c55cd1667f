#include "engine/connections.hpp"

#include "engine/route_timing.hpp"

namespace collcast::engine {

std::uint32_t Connections::acquire() {
  if (free_.empty()) {
    connections_.emplace_back();
    names_.emplace_back();
    return static_cast<std::uint32_t>(connections_.size() - 1);
  }
  const std::uint32_t id = free_.back();
  free_.pop_back();
  return id;
}

void Connections::release(std::uint32_t id) {
  close(connections_[id]);
  free_.push_back(id);
}

void Connections::close(Connection& connection) {
  const double bytes = connection.size * static_cast<double>(connection.messages);
  for (const Crossing& crossing : crossings(connection)) carried_[crossing.link] += bytes;
  messages_ += connection.messages;
  crossings_.release(connection.route, connection.length);
  connection.messages = 0;
  connection.length = 0;
}

void Connections::connect(std::uint32_t id, const ConnectionName& name, Volume size, int priority) {
  Connection& connection = connections_[id];
  close(connection);
  route_.clear();
  fabric_.route(name.from, name.to, name.lane, route_);

  connection.length = static_cast<std::uint32_t>(route_.size());
  connection.route = crossings_.allocate(route_.size());
  for (std::uint32_t i = 0; i < connection.length; ++i) crossings_[connection.route + i] = {route_[i].value(), 0};
  const RouteTiming timing = time_route(fabric_.links(), route_, size);
  connection.bandwidth = timing.bandwidth;
  connection.latency = timing.latency;
  connection.alone = timing.alone;
  connection.to_move = timing.to_move;
  connection.size = size.value();
  connection.priority = priority;
  connection.immediate = !(connection.size > 0) || connection.length == 0;
  names_[id] = name;
}

std::int64_t Connections::messages_so_far() const {
  std::int64_t sum = messages_;
  for (std::uint32_t i = 0; i < size(); ++i) sum += (*this)[i].messages;
  return sum;
}

}  // namespace collcast::engine
