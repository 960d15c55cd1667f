#include "evaluate/place.hpp"

#include <algorithm>
#include <variant>

namespace collcast {
namespace {

std::vector<int> nodes_used(const CollectiveRequest& request, int per_node) {
  std::vector<int> nodes;
  const auto look = [&](const Group& group) {
    for (int i = 0; i < group.size(); ++i) {
      const int node = static_cast<int>(group[i].value()) / per_node;
      if (nodes.empty() || nodes.back() != node) nodes.push_back(node);
    }
  };
  look(request.group);
  for (const Group& group : request.alongside) look(group);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

CollectiveRequest on_machine(const Fabric& fabric, CollectiveRequest request) {
  const auto move = [&](Group& group) {
    std::vector<Rank> ranks = group.ranks();
    for (Rank& r : ranks) r = fabric.on_machine(r);
    group = Group::listed(std::move(ranks));
  };
  move(request.group);
  for (Group& group : request.alongside) move(group);
  return request;
}

bool has_all_ranks(const Fabric& fabric, const CollectiveRequest& request) {
  const auto has = [&](const Group& group) {
    for (int i = 0; i < group.size(); ++i)
      if (group[i].value() >= static_cast<std::uint32_t>(fabric.rank_count())) return false;
    return true;
  };
  return has(request.group) && std::all_of(request.alongside.begin(), request.alongside.end(), has);
}

/// Ranks by the nodes' new numbers.
class Renumber {
 public:
  Renumber(const std::vector<int>& nodes, int per_node) : nodes_(nodes), per_node_(per_node) {}

  Group operator()(const Group& group) const {
    std::vector<Rank> ranks = group.ranks();
    for (Rank& r : ranks) {
      const int node = static_cast<int>(r.value()) / per_node_;
      const auto number = std::lower_bound(nodes_.begin(), nodes_.end(), node) - nodes_.begin();
      r = Rank(static_cast<std::uint32_t>(number * per_node_ + static_cast<int>(r.value()) % per_node_));
    }
    return Group::listed(std::move(ranks));
  }

 private:
  const std::vector<int>& nodes_;
  int per_node_;
};

/// Appends to the key what ways between the nodes depend on.
struct DescribeNodes {
  const Fabric& fabric;
  Place& place;

  void operator()(const std::monostate&) const {}
  void operator()(const StarNetwork&) const {}
  void operator()(const TorusNetwork&) const {}  // one node
  void operator()(const LeafSpineNetwork& net) const {
    // Ports of a node on one leaf lie side by side there.
    const int ports = fabric.nics_per_node() > 0 ? fabric.nics_per_node() : fabric.ranks_per_node();
    const int on_leaf = net.rail_optimized ? 1 : ports;
    std::vector<int> places;
    int last = -1, pod = -1;
    for (const int node : place.nodes) {
      if (node / net.nodes_per_leaf != last) ++pod;
      last = node / net.nodes_per_leaf;
      place.on.push_back(pod);
      if (net.spines > 0) places.push_back(node % net.nodes_per_leaf * on_leaf % net.spines);
    }
    if (places.empty()) return;
    place.shift = *std::min_element(places.begin(), places.end());
    place.room = net.spines - *std::max_element(places.begin(), places.end()) - (on_leaf - 1);
    for (const int p : places) place.on.push_back(p - place.shift);
  }
};

}  // namespace

Place place_of(const Fabric& fabric, const CollectiveRequest& asked) {
  Place place{{}, asked, {}};
  if (fabric.is_placed() && !has_all_ranks(fabric, asked)) {
    place.on = {0};
    return place;
  }
  const CollectiveRequest request = fabric.is_placed() ? on_machine(fabric, asked) : asked;
  place.nodes = nodes_used(request, fabric.ranks_per_node());
  const bool is_on_torus = std::holds_alternative<TorusNetwork>(fabric.spec().network);
  if (!fabric.is_as_built() || place.nodes.empty() || place.nodes.back() >= fabric.nodes() ||
      place.nodes.size() == static_cast<std::size_t>(fabric.nodes()) || (is_on_torus && place.nodes.size() > 1)) {
    place.nodes.clear();
    place.on = {0};
    return place;
  }
  const Renumber renumber(place.nodes, fabric.ranks_per_node());
  place.request = {request.kind, renumber(request.group), request.size, request.root, {}};
  for (const Group& group : request.alongside) place.request.alongside.push_back(renumber(group));
  place.on = {static_cast<std::int64_t>(place.nodes.size())};
  std::visit(DescribeNodes{fabric, place}, fabric.spec().network);
  return place;
}

}  // namespace collcast
