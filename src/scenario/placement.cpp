// `placement:` of a scenario: which nodes of the machine the job has.
#include <fmt/format.h>

#include <set>

#include "scenario/files.hpp"

namespace collcast::input {

namespace {

/// `random`, or the numbers of nodes, each once.
struct AsNodes {
  static constexpr Holds holds = Holds::list;
  static constexpr int longest = 1'000'000;
  bool operator()(Reader& reader, const Node& node, const std::string& path, Placement& out) const {
    if (node.kind == Node::Kind::scalar && node.text == "random") {
      out.random = true;
      return true;
    }
    if (node.kind != Node::Kind::list) {
      mismatch(reader, node, path, expected());
      return false;
    }
    bool good = AsList<AsCount, int>{{0, max_count}, longest}(reader, node, path, out.nodes);
    if (good && out.nodes.empty()) {
      reader.error(node.at, fmt::format("{} is empty", path), fmt::format("expected {}", expected()));
      return false;
    }
    std::set<int> seen;
    for (std::size_t i = 0; good && i < out.nodes.size(); ++i)
      if (!seen.insert(out.nodes[i]).second) {
        reader.error(node.items[i].at, fmt::format("{} names node {} twice", path, out.nodes[i]),
                     "expected each node once");
        good = false;
      }
    return good;
  }
  std::string expected() const { return "random, or a list [...] of the machine's nodes, by number from 0 on"; }
};

}  // namespace

Placement read_placement(Reader& reader, const Node& node) {
  Placement out;
  Object o(reader, node, "placement");
  if (o.optional("nodes", out, AsNodes{})) out.where = node.find("nodes")->at.location();
  if (out.random)
    o.optional("seed", out.seed, AsCount{0, max_count});
  else
    o.refuse("seed", "nothing is drawn unless 'nodes' is random", "nodes");
  o.finish();
  return out;
}

}  // namespace collcast::input
