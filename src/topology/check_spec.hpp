// What can be wrong with a TopologySpec before any route is looked for: names, counts, wirings, numbers, sizes.
// Each mistake is one Diagnostic at the value that makes it, wherever that was written: in the file, in one that it
// extends, in an option, in a variant of a scenario. Where several decide together it is the one nearest to the user.
// What follows from a mistake is not reported again.
#pragma once

#include "collcast/base/diagnostic.hpp"
#include "node_plan.hpp"

namespace collcast::topology {

/// All mistakes of the form of `spec` on `nodes` nodes; empty if it can be built.
Diagnostics check_form(const TopologySpec& spec, int nodes, const Location& nodes_asked_at);

/// Its part about the network.
void check_network(const TopologySpec& spec, int nodes, const Location& nodes_asked_at, Diagnostics& out);

/// Where the network attaches.
void check_attachment(const TopologySpec& spec, Diagnostics& out);

/// Where the value of a path was written; null: nowhere.
const Location* written(const TopologySpec&, const std::string& path);

/// A bandwidth and a latency that a link can have; `what` names the link.
void check_link_numbers(const std::string& what, Bandwidth, Seconds, const Location&, Diagnostics& out);

const DeviceGroup* find_group(const TopologySpec&, const std::string& name);
std::vector<std::string> group_names(const TopologySpec&);

}  // namespace collcast::topology
