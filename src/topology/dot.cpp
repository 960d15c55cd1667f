// A Fabric as a Graphviz graph: a cluster per node, an edge per cable with its numbers in each direction.
//
// Graphviz knows devices by number; their names are labels, so no name needs to be unique or quoted twice.
#include <fmt/format.h>

#include <ostream>

#include "collcast/base/units.hpp"
#include "layout.hpp"

namespace collcast {

namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + '"';
}

std::string edge_label(const Link& link) {
  return fmt::format("{} {}, {}", to_string(link.kind), format_bandwidth(link.bandwidth), format_seconds(link.latency));
}

}  // namespace

void Fabric::write_dot(std::ostream& out) const {
  const auto per_node = static_cast<std::int64_t>(layout_->node.devices.size());
  out << "graph " << quoted(layout_->spec.name) << " {\n  node [shape=box];\n";
  const auto write_device = [&](std::string_view indent, topology::DeviceId device) {
    out << indent << 'd' << device << " [label=" << quoted(layout_->name(device)) << "];\n";
  };
  for (int in_part = 0; in_part < layout_->nodes; ++in_part) {
    const std::int64_t n = layout_->in_whole(in_part);
    out << "  subgraph cluster_" << n << " {\n    label=\"node" << n << "\";\n";
    for (std::int64_t d = 0; d < per_node; ++d) write_device("    ", n * per_node + d);
    out << "  }\n";
  }
  const std::int64_t switches = std::visit([](const auto& net) { return net.switches(); }, layout_->network);
  for (std::int64_t s = 0; s < switches; ++s) write_device("  ", layout_->whole_nodes() * per_node + s);
  for (std::uint32_t link = 0; link < layout_->first_drive(); link += 2) {
    const auto [from, to] = layout_->ends(LinkId(link));
    out << fmt::format("  d{} -- d{} [label=\"{}\"];\n", from, to, edge_label(layout_->links[link]));
  }
  out << "}\n";
}

}  // namespace collcast
