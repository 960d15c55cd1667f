// Ring, torus and mesh: sizes, and the numbering of their cables.
#include <algorithm>

#include "network.hpp"

namespace collcast::topology {

namespace {

/// As stated, or one ring (wrap), or the most square rectangle.
std::vector<int> dimensions_of(const TorusNetwork& spec, int nodes) {
  if (!spec.dims.empty()) return spec.dims;
  if (spec.wrap) return {nodes};
  int rows = 1;
  for (int r = 1; std::int64_t{r} * r <= nodes; ++r)
    if (nodes % r == 0) rows = r;
  return {rows, nodes / rows};
}

}  // namespace

Torus::Torus(const TorusNetwork& spec, Attachment attachment) : spec_(spec), attachment_(attachment) {
  int stride = attachment_.nodes;
  std::int64_t cables_per_port = 0;
  for (const int size : dimensions_of(spec, attachment_.nodes)) {
    stride /= size;
    dimensions_.push_back({size, stride, cables_per_port});
    if (size > 1) cables_per_port += spec.wrap ? attachment_.nodes : attachment_.nodes / size * (size - 1);
  }
  cables_ = cables_per_port * attachment_.ports.count;
}

Ends Torus::ends(std::int64_t cable) const {
  const int port = static_cast<int>(cable % attachment_.ports.count);
  const std::int64_t of_port = cable / attachment_.ports.count;
  std::size_t d = dimensions_.size() - 1;
  while (dimensions_[d].first_cable > of_port) --d;
  const Dimension& dimension = dimensions_[d];
  int node = static_cast<int>(of_port - dimension.first_cable);
  // A line of n nodes without wrap has n-1 cables: one node number is left out per line.
  if (!spec_.wrap) node += node / (dimension.stride * (dimension.size - 1)) * dimension.stride;
  return {attachment_.device({node, port}), attachment_.device({neighbour(node, dimension, true), port})};
}

std::vector<std::int64_t> Torus::around(Port from, Port to, const std::function<bool(std::int64_t)>& usable) const {
  struct Arrival {
    std::int64_t link = -1;
    int from = 0;
  };
  std::vector<Arrival> arrivals(static_cast<std::size_t>(attachment_.nodes));
  std::vector<int> reached{from.node};
  const auto step = [&](int node, const Dimension& d, bool up) {
    const int at = coordinate(node, d);
    if (d.size == 1 || (!spec_.wrap && at == (up ? d.size - 1 : 0))) return;
    const int next = neighbour(node, d, up);
    const std::int64_t link = up ? 2 * cable_up_from(node, d, from.index) : 2 * cable_up_from(next, d, from.index) + 1;
    Arrival& arrival = arrivals[static_cast<std::size_t>(next)];
    if (next == from.node || arrival.link >= 0 || !usable(link)) return;
    arrival = {link, node};
    reached.push_back(next);
  };
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const int node = reached[i];
    for (std::size_t d = dimensions_.size(); d-- > 0;)
      for (const bool up : {true, false}) step(node, dimensions_[d], up);
  }
  std::vector<std::int64_t> way;
  for (int at = to.node; at != from.node; at = arrivals[static_cast<std::size_t>(at)].from) {
    if (arrivals[static_cast<std::size_t>(at)].link < 0) return {};
    way.push_back(arrivals[static_cast<std::size_t>(at)].link);
  }
  std::reverse(way.begin(), way.end());
  return way;
}

std::string Torus::switch_name(std::int64_t) const {
  check(false, "a torus has no switches");
  return {};
}

}  // namespace collcast::topology
