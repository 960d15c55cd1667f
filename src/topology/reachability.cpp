#include "reachability.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "check_spec.hpp"

namespace collcast::topology {

namespace {

/// The first gap of a kind, and how many there are.
struct Gap {
  int first = -1, second = -1, count = 0;
  void add(int a, int b) {
    if (count++ == 0) first = a, second = b;
  }
  std::string others() const { return count > 1 ? fmt::format(" (and {} more)", count - 1) : std::string(); }
};

class Reachability {
 public:
  Reachability(const TopologySpec& spec, const NodePlan& node, const NodeRoutes& routes, bool rails_apart)
      : spec_(spec), node_(node), routes_(routes), rails_apart_(rails_apart) {}

  /// Endpoints without a port, ports without an endpoint.
  void check_ports() {
    Gap endpoints, ports;
    std::vector<bool> reached(static_cast<std::size_t>(node_.ports.count));
    for (int e = 0; e < node_.endpoints.count; ++e) {
      if (routes_.nearest.of(e).empty()) endpoints.add(e, -1);
      for (int p = 0; p < node_.ports.count; ++p)
        if (routes_.reaches(e, p)) reached[static_cast<std::size_t>(p)] = true;
    }
    for (int p = 0; p < node_.ports.count; ++p)
      if (!reached[static_cast<std::size_t>(p)]) ports.add(p, -1);
    if (endpoints.count > 0)
      report(node_.endpoints,
             fmt::format("{} reaches none of '{}', which the network attaches to{}", endpoint(0, endpoints.first),
                         spec_.network_devices, endpoints.others()),
             "links from it to them, directly or through switches and sockets");
    if (ports.count > 0)
      report(node_.ports, fmt::format("no endpoint reaches {}{}", name(0, node_.ports, ports.first), ports.others()),
             "links to it from the endpoints, directly or through switches and sockets");
  }

  /// Pairs in one node: joined inside it, or through the network by two different ports.
  void check_inside() {
    Gap pairs;
    for (int a = 0; a < node_.endpoints.count; ++a)
      for (int b = 0; b < node_.endpoints.count; ++b)
        if (!routes_.joined(a, b) && !leave_by_different_ports(a, b)) pairs.add(a, b);
    if (pairs.count > 0)
      report(node_.endpoints,
             fmt::format("{} cannot reach {}{}: nothing joins them inside the node or through the network",
                         endpoint(0, pairs.first), endpoint(0, pairs.second), pairs.others()),
             "links between them through switches or sockets; GPUs, hosts and NICs pass no traffic on");
  }

  /// Pairs in two nodes, where the sender must take the port of the receiver's rail.
  void check_across() {
    if (!rails_apart_) return;
    Gap pairs;
    for (int a = 0; a < node_.endpoints.count; ++a)
      for (int b = 0; b < node_.endpoints.count; ++b) {
        const auto ports = routes_.nearest.of(b);
        if (!std::all_of(ports.begin(), ports.end(), [&](int p) { return routes_.reaches(a, p); })) pairs.add(a, b);
      }
    if (pairs.count > 0)
      out_.push_back(
          {*spines_place(),
           fmt::format("{} cannot reach {}{}: the network keeps rails apart, and {} does not reach the rail of {}",
                       endpoint(0, pairs.first), endpoint(1, pairs.second), pairs.others(), endpoint(0, pairs.first),
                       endpoint(0, pairs.second)),
           "spines that join the rails, or links inside the node to every one of them"});
  }

  Diagnostics take() { return std::move(out_); }

 private:
  /// On every lane. A lane moves endpoints with the same ports on alike, so they differ on all lanes or on none.
  bool leave_by_different_ports(int a, int b) const {
    if (rails_apart_) return false;
    const auto ports_a = routes_.nearest.of(a), ports_b = routes_.nearest.of(b);
    if (std::equal(ports_a.begin(), ports_a.end(), ports_b.begin(), ports_b.end()))
      return !ports_a.empty() && routes_.nearest.pick(a, 0) != routes_.nearest.pick(b, 0);
    return !ports_a.empty() && !ports_b.empty() && std::none_of(ports_a.begin(), ports_a.end(), [&](int p) {
      return std::binary_search(ports_b.begin(), ports_b.end(), p);
    });
  }

  const Location* spines_place() const {
    for (const char* path : {"network.spines", "network"})
      if (const Location* place = written(spec_, path)) return place;
    return &spec_.where;
  }
  void report(DeviceRange about, std::string message, std::string hint) {
    const Device& device = node_.devices[static_cast<std::size_t>(about.first)];
    out_.push_back({spec_.devices[static_cast<std::size_t>(device.group)].where, std::move(message), std::move(hint)});
  }
  std::string name(int node, DeviceRange range, int index) const {
    return device_name(spec_, node_, node, range.first + index);
  }
  std::string endpoint(int node, int index) const { return name(node, node_.endpoints, index); }

  const TopologySpec& spec_;
  const NodePlan& node_;
  const NodeRoutes& routes_;
  bool rails_apart_;
  Diagnostics out_;
};

}  // namespace

std::string device_name(const TopologySpec& spec, const NodePlan& node, int node_number, int device) {
  const Device& d = node.devices[static_cast<std::size_t>(device)];
  const std::string& group = spec.devices[static_cast<std::size_t>(d.group)].name;
  if (node.devices.size() == 1) return fmt::format("{}{}", group, node_number);
  return fmt::format("node{}.{}{}", node_number, group, d.index);
}

Diagnostics check_reachable(const TopologySpec& spec, const NodePlan& node, const NodeRoutes& routes,
                            const Network& network, int nodes) {
  const bool rails_apart = std::visit([](const auto& n) { return n.rails_apart(); }, network);
  Reachability reachability(spec, node, routes, rails_apart);
  if (node.ports.count > 0) reachability.check_ports();
  reachability.check_inside();
  if (nodes > 1) reachability.check_across();
  return reachability.take();
}

}  // namespace collcast::topology
