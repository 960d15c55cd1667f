#include "detours.hpp"

#include <algorithm>

namespace collcast::topology {

namespace {

bool has_failed(std::span<const Link> links, std::int64_t cable) {
  const auto first = static_cast<std::size_t>(2 * cable);
  return !(links[first].bandwidth.value() > 0 && links[first + 1].bandwidth.value() > 0);
}

/// Lanes after which the ways between two ports repeat.
struct DistinctLanes {
  template <class Other>
  int operator()(const Other&) const {
    return 1;
  }
  int operator()(const Torus&) const { return 2; }
  int operator()(const LeafSpine& net) const { return static_cast<int>(std::max<std::int64_t>(1, net.spines())); }
};

}  // namespace

Detours::Detours(const NodePlan& node, const Network& network, int nodes, std::span<const Link> links)
    : network_(network),
      endpoints_(node.endpoints),
      ports_(node.ports.count),
      links_per_node_(2 * static_cast<std::int64_t>(node.cables.size())),
      first_network_link_(nodes * links_per_node_) {
  const auto per_node = static_cast<std::int64_t>(node.cables.size());
  for (std::int64_t c = 0; c < nodes * per_node; ++c) {
    if (!has_failed(links, c)) continue;
    Failures& of_node = failures_[static_cast<int>(c / per_node)];
    of_node.cables.resize(node.cables.size());
    of_node.cables[static_cast<std::size_t>(c % per_node)] = true;
  }
  const std::int64_t between = std::visit([](const auto& net) { return net.cables(); }, network);
  for (std::int64_t c = 0; c < between; ++c) failed_.push_back(has_failed(links, first_network_link_ / 2 + c));
  // On a star and with leaves a port has one cable, and their numbers are those of the ports.
  const std::int64_t of_ports = std::holds_alternative<Torus>(network) ? 0 : std::int64_t{nodes} * ports_;
  for (std::int64_t c = 0; c < std::min(of_ports, between); ++c) {
    if (!failed_[static_cast<std::size_t>(c)]) continue;
    Failures& of_node = failures_[static_cast<int>(c / ports_)];
    of_node.ports.resize(static_cast<std::size_t>(ports_));
    of_node.ports[static_cast<std::size_t>(c % ports_)] = true;
  }
  for (const auto& [number, failures] : failures_) routes_.emplace(number, route_node(node, failures));
}

Detours::End Detours::end_of(const NodeRoutes& healthy, Rank rank) const {
  const auto per_node = static_cast<std::uint32_t>(endpoints_.count);
  const int node = static_cast<int>(rank.value() / per_node);
  const auto found = routes_.find(node);
  return {node, static_cast<int>(rank.value() % per_node), found == routes_.end() ? &healthy : &found->second};
}

std::vector<int> Detours::ports_of(const End& end, int lane) const {
  if (end.routes->ports_are_endpoints) return {end.endpoint};
  std::vector<int> ports;
  const auto nearest = static_cast<int>(end.routes->nearest.of(end.endpoint).size());
  const int turn = static_cast<int>(end.routes->nearest.of_endpoint.size());
  const auto add = [&](int port) {
    if (std::find(ports.begin(), ports.end(), port) == ports.end()) ports.push_back(port);
  };
  for (int i = 0; i < nearest; ++i) add(end.routes->nearest.pick(end.endpoint, lane % (turn * nearest) + i * turn));
  for (int port = 0; port < ports_; ++port) add(port);
  return ports;
}

bool Detours::leaves(const End& from, int port) const {
  const auto failures = failures_.find(from.node);
  if (failures != failures_.end() && failures->second.port(port)) return false;
  return from.routes->reaches(from.endpoint, port);
}

bool Detours::enters(const End& to, int port) const {
  const auto failures = failures_.find(to.node);
  if (failures != failures_.end() && failures->second.port(port)) return false;
  return to.routes->ports_are_endpoints ? to.endpoint == port : !to.routes->in.at(port, to.endpoint).empty();
}

std::vector<std::int64_t> Detours::between(Port from, Port to, int lane) const {
  std::vector<std::int64_t> way;
  const auto is_whole = [&] {
    return !way.empty() && std::none_of(way.begin(), way.end(), [&](std::int64_t link) { return fails(link); });
  };
  const int lanes = std::visit(DistinctLanes{}, network_);
  for (int more = 0; more < lanes; ++more) {
    way.clear();
    std::visit(
        [&](const auto& net) { net.walk(from, to, lane % lanes + more, [&](std::int64_t l) { way.push_back(l); }); },
        network_);
    if (is_whole()) return way;
  }
  if (const auto* torus = std::get_if<Torus>(&network_))
    return torus->around(from, to, [&](std::int64_t link) { return !fails(link); });
  return {};
}

void Detours::inside(int node, Way way, std::vector<LinkId>& out) const {
  for (const NodeLink link : way) out.emplace_back(static_cast<std::uint32_t>(node * links_per_node_ + link));
}

void Detours::way(const NodeRoutes& healthy, Rank from, Rank to, int lane, std::vector<LinkId>& out) const {
  const End sender = end_of(healthy, from), receiver = end_of(healthy, to);
  if (sender.node == receiver.node && sender.routes->joined(sender.endpoint, receiver.endpoint))
    return inside(sender.node, sender.routes->between.at(sender.endpoint, receiver.endpoint), out);
  if (std::holds_alternative<NoNetwork>(network_)) return;

  const bool rails_apart = std::visit([](const auto& net) { return net.rails_apart(); }, network_);
  const std::vector<int> leaving = ports_of(sender, lane);
  for (const int port_in : ports_of(receiver, lane)) {
    if (!enters(receiver, port_in)) continue;
    for (const int port_out : rails_apart ? std::vector<int>{port_in} : leaving) {
      if (!leaves(sender, port_out) || (sender.node == receiver.node && port_out == port_in)) continue;
      const std::vector<std::int64_t> way = between({sender.node, port_out}, {receiver.node, port_in}, lane);
      if (way.empty()) continue;
      if (!sender.routes->ports_are_endpoints)
        inside(sender.node, sender.routes->out.at(sender.endpoint, port_out), out);
      for (const std::int64_t link : way) out.emplace_back(static_cast<std::uint32_t>(first_network_link_ + link));
      if (!receiver.routes->ports_are_endpoints)
        inside(receiver.node, receiver.routes->in.at(port_in, receiver.endpoint), out);
      return;
    }
  }
}

}  // namespace collcast::topology
