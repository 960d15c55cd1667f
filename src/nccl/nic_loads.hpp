// How busy channels have their NICs where these do not have as many each: each node's go by what its own search found,
// but all run as many as the node that found fewest.
#pragma once

#include <optional>

#include "collcast/nccl/tuning.hpp"

namespace collcast::nccl {

/// Of a communicator that has its channels; nothing where all NICs of like nodes have as many, or NICs are not said.
std::optional<UnevenNics> uneven_nics(const Fabric&, const Group&, const Communicator&);
/// Of each channel's chunk, messages of trees by the NIC that has most: the mean of both trees where it has as many
/// channels of either, more where one tree has more.
double busiest_tree_messages(const Communicator&, const Plan&);
/// On the first tree, by the NIC that has most.
double first_tree_channels(const Communicator&, const Plan&);
/// Of a tree's rate over several nodes, what the busiest NIC leaves: fewer channels than NICs have one each, and those
/// of one tree alone have nodes that send more than the mean of both.
double tree_share(const Communicator&, const Plan&);

}  // namespace collcast::nccl
