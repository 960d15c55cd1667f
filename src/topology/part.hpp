// Some nodes of a machine as a machine of their own: what its numbers are in the whole.
//
// Nodes and the network's cables keep their order, so whoever goes by numbers sees the same machine with less in it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "network.hpp"

namespace collcast::topology {

struct Part {
  int of_nodes = 0;                    ///< that the whole has
  std::vector<int> nodes;              ///< of the whole, by the part's
  std::vector<std::uint32_t> cables;   ///< of the whole's network, by the part's
  std::vector<std::uint32_t> numbers;  ///< and back; of others anything

  std::int64_t link(std::int64_t of_whole) const {
    return 2 * static_cast<std::int64_t>(numbers[static_cast<std::size_t>(of_whole / 2)]) + of_whole % 2;
  }
};

/// With all cables of the network that a way between two of the nodes may take; null on a torus, whose ways pass
/// through other nodes.
std::shared_ptr<const Part> part_of(const Network&, std::vector<int> nodes, int of_nodes);

}  // namespace collcast::topology
