// Ring, torus and mesh: sizes, and the numbering of their cables.
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

std::string Torus::switch_name(std::int64_t) const {
  check(false, "a torus has no switches");
  return {};
}

}  // namespace collcast::topology
