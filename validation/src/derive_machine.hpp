// A machine that no file describes, from what its sidecar says: the likest described node with its GPUs, NVLinks and
// NICs put right. What is said goes before what the likest has; what nobody said stays the likest's, and is listed.
#pragma once

#include <string>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/topology/spec.hpp"
#include "collcast/validation/machines.hpp"

namespace collcast {

struct DerivedMachine {
  TopologySpec spec;      ///< named after the likest and what was changed
  Derivation derivation;  ///< nothing changed: the likest as it is
};

/// Endpoints that a node of it has.
int endpoints_of(const TopologySpec&);

/// With so many NICs on each node, over which what carries them is spread evenly.
TopologySpec with_ports(const TopologySpec&, int ports);

/// The machine of a table on `per_node` ranks of each node, made of one of these; fails with what is not said where
/// nothing is like it.
Result<DerivedMachine> derive_machine(const std::vector<TopologySpec>&, const MeasuredFacts&, int per_node);

}  // namespace collcast
