// Dijkstra inside one node. See node_routes.hpp for the cost and the rule for ties.
#include "node_routes.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>

#include <algorithm>
#include <compare>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace collcast::topology {

namespace {

/// The message whose time a way is chosen by.
constexpr Bytes reference_message{1 << 20};

struct Cost {
  std::int64_t picoseconds = 0;
  int hops = 0;
  friend auto operator<=>(const Cost&, const Cost&) = default;
};

constexpr Cost unreachable{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<int>::max()};

/// Saturates below `unreachable`: a link of a byte per second is slow, not absent.
Cost operator+(Cost a, Cost b) {
  if (a == unreachable || b == unreachable) return unreachable;
  const std::int64_t most = unreachable.picoseconds - 1;
  return {a.picoseconds > most - b.picoseconds ? most : a.picoseconds + b.picoseconds, a.hops + b.hops};
}

Cost cost_of(const Link& link) {
  const Picoseconds time = to_picoseconds(link.latency + reference_message / link.bandwidth);
  return {std::min(time.count(), unreachable.picoseconds - 1), 1};
}

struct Edge {
  Cost cost;
  NodeLink link = 0;
};
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, Device, Edge>;
using Vertex = boost::graph_traits<Graph>::vertex_descriptor;

/// Keeps the links that may be used by what starts at `start`: out of it, and out of transit devices.
struct LeavesStartOrTransit {
  const Graph* graph = nullptr;
  Vertex start = 0;
  bool operator()(const boost::graph_traits<Graph>::edge_descriptor& edge) const {
    const Vertex from = source(edge, *graph);
    return from == start || is_transit((*graph)[from].kind);
  }
};

Graph graph_of(const NodePlan& node, const Failures& failures) {
  Graph graph(node.devices.size());
  for (std::size_t d = 0; d < node.devices.size(); ++d) graph[d] = node.devices[d];
  for (std::size_t c = 0; c < node.cables.size(); ++c) {
    if (failures.cable(c)) continue;
    const Cable& cable = node.cables[c];
    const auto from = static_cast<Vertex>(cable.from), to = static_cast<Vertex>(cable.to);
    const auto link = static_cast<NodeLink>(2 * c);
    add_edge(from, to, Edge{cost_of(cable.link), link}, graph);
    add_edge(to, from, Edge{cost_of(cable.link), link + 1}, graph);
  }
  return graph;
}

/// The ways out of one device, to every other.
class WaysFrom {
 public:
  WaysFrom(const Graph& graph, int start)
      : start_(static_cast<Vertex>(start)),
        usable_(graph, LeavesStartOrTransit{&graph, start_}),
        cost_(num_vertices(graph), unreachable) {
    const auto cost = boost::make_iterator_property_map(cost_.begin(), get(boost::vertex_index, graph));
    boost::dijkstra_shortest_paths(usable_, start_,
                                   boost::distance_map(cost)
                                       .weight_map(get(&Edge::cost, usable_))
                                       .distance_compare(std::less<Cost>())
                                       .distance_combine([](Cost a, Cost b) { return a + b; })
                                       .distance_inf(unreachable)
                                       .distance_zero(Cost{}));
  }

  Cost cost(int device) const { return cost_[static_cast<std::size_t>(device)]; }

  /// Overwrites `way`; empty where there is none.
  void to(int device, std::vector<NodeLink>& way) const {
    way.clear();
    auto at = static_cast<Vertex>(device);
    if (cost_[at] == unreachable) return;
    while (at != start_) {
      const auto edge = last_hop(at);
      way.push_back(usable_[edge].link);
      at = source(edge, usable_);
    }
    std::reverse(way.begin(), way.end());
  }

 private:
  using EdgeId = boost::graph_traits<Graph>::edge_descriptor;

  /// Of the cheapest ways' last hops into `at`, the one from the lowest device; two devices are joined once.
  EdgeId last_hop(Vertex at) const {
    std::optional<EdgeId> best;
    for (auto [e, end] = in_edges(at, usable_); e != end; ++e) {
      if (cost_[source(*e, usable_)] + usable_[*e].cost != cost_[at]) continue;
      if (!best || source(*e, usable_) < source(*best, usable_)) best = *e;
    }
    check(best.has_value(), "a device with a cost has a last hop");
    return *best;
  }

  Vertex start_;
  boost::filtered_graph<Graph, LeavesStartOrTransit> usable_;
  std::vector<Cost> cost_;
};

/// Ports of least cost from one endpoint, ascending; none if none is reachable.
std::vector<int> nearest_ports(const WaysFrom& ways, DeviceRange ports, const Failures& failures) {
  std::vector<int> nearest;
  Cost least = unreachable;
  for (int p = 0; p < ports.count; ++p) {
    const Cost cost = ways.cost(ports.first + p);
    if (cost == unreachable || cost > least || failures.port(p)) continue;
    if (cost < least) nearest.clear();
    least = cost;
    nearest.push_back(p);
  }
  return nearest;
}

NearestPorts spread_over(const std::vector<std::vector<int>>& nearest_of_endpoint) {
  struct Sharers {
    int set = 0;
    std::int64_t count = 0, turns = 0;
  };
  NearestPorts result;
  std::map<std::vector<int>, Sharers> sharers;
  for (const std::vector<int>& set : nearest_of_endpoint) {
    const auto [entry, added] = sharers.try_emplace(set, Sharers{static_cast<int>(result.sets.size())});
    if (added) result.sets.push_back(set);
    ++entry->second.count;
  }
  for (const std::vector<int>& set : nearest_of_endpoint) {
    Sharers& s = sharers.at(set);
    result.of_endpoint.push_back(
        {s.set, static_cast<int>(s.turns++ * static_cast<std::int64_t>(set.size()) / s.count)});
  }
  return result;
}

}  // namespace

void WayTable::add(Way way) {
  links_.insert(links_.end(), way.begin(), way.end());
  ends_.push_back(static_cast<std::uint32_t>(links_.size()));
}

NodeRoutes route_node(const NodePlan& node, const Failures& failures) {
  const Graph graph = graph_of(node, failures);
  const DeviceRange endpoints = node.endpoints, ports = node.ports;
  NodeRoutes routes{WayTable(endpoints.count),
                    WayTable(ports.count),
                    WayTable(endpoints.count),
                    {},
                    ports.count > 0 && ports.first == endpoints.first};
  std::vector<NodeLink> way;
  const auto add_all = [&way](const WaysFrom& ways, DeviceRange targets, WayTable& table) {
    for (int i = 0; i < targets.count; ++i) {
      ways.to(targets.first + i, way);
      table.add(way);
    }
  };
  std::vector<std::vector<int>> nearest_of_endpoint;
  for (int e = 0; e < endpoints.count; ++e) {
    const WaysFrom ways(graph, endpoints.first + e);
    add_all(ways, endpoints, routes.between);
    if (routes.ports_are_endpoints) {
      nearest_of_endpoint.push_back({e});
    } else {
      add_all(ways, ports, routes.out);
      nearest_of_endpoint.push_back(nearest_ports(ways, ports, failures));
    }
  }
  if (!routes.ports_are_endpoints) {
    for (int p = 0; p < ports.count; ++p) add_all(WaysFrom(graph, ports.first + p), endpoints, routes.in);
  }
  routes.nearest = spread_over(nearest_of_endpoint);
  return routes;
}

namespace {

/// The two links of a cable are numbered 2c and 2c + 1.
bool goes_back(NodeLink there, NodeLink next) { return (there ^ 1U) == next; }

/// One way behind the other, without what goes there and back where they meet.
std::vector<NodeLink> joined(Way first, Way second) {
  if (first.empty() || second.empty()) return {};
  while (!first.empty() && !second.empty() && goes_back(first.back(), second.front())) {
    first = first.first(first.size() - 1);
    second = second.subspan(1);
  }
  std::vector<NodeLink> out(first.begin(), first.end());
  out.insert(out.end(), second.begin(), second.end());
  return out;
}

/// Into the memory at the processor that is nearest to `from`, and out of it.
std::vector<NodeLink> by_host(const NodePlan& node, int from, int to) {
  const Graph graph = graph_of(node, {});
  const WaysFrom up(graph, node.endpoints.first + from);
  std::optional<int> host;
  for (int device = 0; device < static_cast<int>(node.devices.size()); ++device)
    if (node.devices[static_cast<std::size_t>(device)].kind == DeviceKind::cpu && up.cost(device) != unreachable)
      if (!host || up.cost(device) < up.cost(*host)) host = device;
  if (!host) return {};
  std::vector<NodeLink> out, down;
  up.to(*host, out);
  WaysFrom(graph, *host).to(node.endpoints.first + to, down);
  if (down.empty()) return {};
  out.insert(out.end(), down.begin(), down.end());
  return out;
}

WayTable without_nvlinks(const NodePlan& node) {
  Failures nvlinks;
  for (const Cable& cable : node.cables) nvlinks.cables.push_back(cable.link.kind == LinkKind::nvlink);
  return route_node(node, nvlinks).between;
}

}  // namespace

void take_ways(const NodePlan& node, std::span<const Fabric::WayInNode> ways, NodeRoutes& routes) {
  std::map<std::pair<int, int>, std::vector<NodeLink>> said;
  std::optional<WayTable> no_nvlinks;
  for (const Fabric::WayInNode& one : ways) {
    std::vector<NodeLink> way;
    if (one.through >= 0) {
      way = joined(routes.between.at(one.from, one.through), routes.between.at(one.through, one.to));
    } else if (one.through == -2) {
      way = by_host(node, one.from, one.to);
    } else {
      if (!no_nvlinks) no_nvlinks = without_nvlinks(node);
      const Way found = no_nvlinks->at(one.from, one.to);
      way.assign(found.begin(), found.end());
    }
    if (!way.empty()) said[{one.from, one.to}] = std::move(way);
  }
  WayTable between(node.endpoints.count);
  for (int from = 0; from < node.endpoints.count; ++from)
    for (int to = 0; to < node.endpoints.count; ++to) {
      const auto found = said.find({from, to});
      between.add(found == said.end() ? routes.between.at(from, to) : Way(found->second));
    }
  routes.between = std::move(between);
}

}  // namespace collcast::topology
