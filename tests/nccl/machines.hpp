// Shipped machines and communicators on them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collcast/nccl/run.hpp"
#include "collcast/scenario/scenario.hpp"

namespace collcast::test {

const SearchPath& source_tree();
TopologySpec shipped(const std::string& name);
/// Names of all shipped ones with GPUs, of whose nodes there may be several.
std::vector<std::string> machines_of_gpus();
/// With `sets` as of --set.
Fabric built(const std::string& name, int nodes, const std::vector<std::string>& sets = {});

/// A machine whose NICs each have a PCIe switch of their own, without one of them.
Fabric without_nic(const std::string& name, int nic, int nodes);

/// The first `per_node` GPUs of each node (0: all).
nccl::Communicator communicator(const std::string& name, int nodes, int per_node = 0,
                                const nccl::Environment& environment = {});
nccl::Environment environment(const std::vector<std::pair<std::string, std::string>>& variables);
double us(Seconds);
/// What NCCL would run if this were taken; it is available.
nccl::Plan planned_as(const nccl::Communicator&, CollectiveKind, Bytes, nccl::Algorithm, nccl::Protocol);
/// Ring and, of an all_reduce, tree under each protocol, and what NVLS the communicator has.
std::vector<std::pair<nccl::Algorithm, nccl::Protocol>> choices(const nccl::Communicator&, CollectiveKind);
/// So many bytes by closed form, as that plan, or as NCCL would run them (with one algorithm alone).
nccl::Run ran(const nccl::Communicator&, CollectiveKind, std::int64_t bytes, nccl::Algorithm, nccl::Protocol);
nccl::Run ran(const nccl::Communicator&, CollectiveKind, std::int64_t bytes, std::optional<nccl::Algorithm> = {});

/// Numbers of ranks on up to five nodes, from one to three each, not all alike.
std::vector<std::vector<int>> unlike_nodes();
std::string words(const std::vector<int>&);
/// The first so many GPUs of each node.
Group first_of_nodes(const Fabric&, const std::vector<int>& gpus);

/// That plan's simulation, which it has, among the machine's first ranks.
Seconds simulated(const Fabric&, const nccl::Communicator&, CollectiveKind, Bytes, const nccl::Plan&);

}  // namespace collcast::test
