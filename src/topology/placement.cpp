#include "collcast/topology/placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace collcast {

namespace {

/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// The permutation of that seed (Fisher and Yates), the same on every machine.
std::vector<int> shuffled(int nodes, int seed) {
  std::vector<int> out(static_cast<std::size_t>(nodes));
  std::iota(out.begin(), out.end(), 0);
  std::uint64_t state = mixed(static_cast<std::uint64_t>(seed));
  for (std::size_t left = out.size(); left > 1; --left) {
    state += 0x9e3779b97f4a7c15U;
    std::swap(out[left - 1], out[static_cast<std::size_t>(mixed(state) % left)]);
  }
  return out;
}

Diagnostics check_nodes(const Placement& placement, int there_are, int needed) {
  Diagnostics wrong;
  std::vector<bool> named(static_cast<std::size_t>(there_are));
  for (const int node : placement.nodes) {
    const auto place = static_cast<std::size_t>(node);
    if (node < 0 || node >= there_are)
      wrong.push_back({placement.where, fmt::format("node {} is not of this machine, which has {}", node, there_are),
                       fmt::format("expected nodes from 0 to {}", there_are - 1)});
    else if (named[place])
      wrong.push_back({placement.where, fmt::format("node {} is placed twice", node), "expected each node once"});
    else
      named[place] = true;
  }
  if (const auto given = static_cast<int>(placement.nodes.size()); given < needed)
    wrong.push_back({placement.where, fmt::format("{} nodes are placed, the job needs {}", given, needed),
                     fmt::format("expected at least {} nodes", needed)});
  return wrong;
}

}  // namespace

std::string to_text(const Placement& placement) {
  if (placement.random) return fmt::format("random nodes, seed {}", placement.seed);
  constexpr std::size_t most = 16;
  const std::size_t shown = std::min(most, placement.nodes.size());
  std::string out = fmt::format(
      "nodes {}",
      fmt::join(placement.nodes.begin(), placement.nodes.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < placement.nodes.size()) out += fmt::format(" ... ({} nodes)", placement.nodes.size());
  return out;
}

Result<Fabric> with_placement(const Fabric& fabric, const Placement& placement, int needed) {
  if (placement.random) return fabric.placed(shuffled(fabric.nodes(), placement.seed));
  if (placement.nodes.empty()) return fabric;
  if (Diagnostics wrong = check_nodes(placement, fabric.nodes(), needed); !wrong.empty()) return wrong;
  return fabric.placed(placement.nodes);
}

}  // namespace collcast
