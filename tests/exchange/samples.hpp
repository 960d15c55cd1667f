// Files of others, shipped machines, and what is said about either.
#pragma once

#include <string>

#include "collcast/exchange/machine.hpp"
#include "collcast/nccl/channels.hpp"
#include "collcast/scenario/scenario.hpp"

namespace collcast::test {

/// Of tests/exchange/data.
std::string data_file(const std::string& name);
TopologySpec shipped_machine(const std::string& name);
/// The file of tests/exchange/data, completed by a shipped machine, written as a file and read back.
TopologySpec imported(const std::string& file, const std::string& like, Bandwidth nic_rate = {});
/// As NCCL_DEBUG=INFO prints the channels of all GPUs of so many nodes.
std::vector<std::string> channels(const TopologySpec&, int nodes);

/// "f:line:column: message" of each error.
std::vector<std::string> messages_of(const Diagnostics&);

}  // namespace collcast::test
