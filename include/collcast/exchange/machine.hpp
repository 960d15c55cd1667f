// Machines as others describe them: NCCL's topology XML and `nvidia-smi topo -m`, in and out.
//
// A foreign description says how one node is wired and nothing of what its GPUs can compute, how long a hop takes or
// how nodes are joined. What it does not say is taken from a machine that is named (`like`), and the result says of
// every figure which of the two it is from. docs/importing.md has what is read and how.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/topology/spec.hpp"

namespace collcast::exchange {

/// A place of the PCIe tree: a switch or a socket.
struct Up {
  bool is_switch = false;
  int index = 0;
  bool operator==(const Up&) const = default;
};

/// A device and its link upward. A rate of 0 is not said, `said` is where one comes from.
struct Attached {
  Up up;
  LinkKind kind = LinkKind::pcie;
  Bandwidth rate{};
  std::string said;
  Bandwidth c2c{};  ///< of a GPU below a switch: NVLink-C2C to its socket besides
};

/// How the GPUs of a node are joined by NVLink, if that is said.
struct Nvlinks {
  enum class Shape { unsaid, none, to_switch, straight } shape = Shape::unsaid;
  int links = 0;                         ///< to the switch, of each GPU
  std::vector<std::vector<int>> counts;  ///< straight: between each two GPUs
  std::string said;
};

/// What a foreign file says about one node.
struct ForeignNode {
  std::string file;    ///< without its folder
  std::string format;  ///< "NCCL topology XML"
  Location where;
  int sockets = 1;
  CpuFamily cpu = CpuFamily::unknown;
  std::string cpu_said;
  std::vector<Attached> switches, gpus, nics;
  std::string gpu_model;                  ///< by its PCI id; empty: not said or not known
  std::vector<unsigned> unknown_gpus;     ///< PCI ids that are said and not known, each once
  std::optional<int> compute_capability;  ///< stated
  Location gpu_where;
  Nvlinks nvlinks;
  Bandwidth nic_rate{};  ///< line rate of one; 0: not said
  std::string nic_said;
  std::optional<Seconds> nic_latency;  ///< that NCCL's network plugin says
  std::optional<bool> gpudirect;
  std::optional<bool> collnet;  ///< that the plugin of every NIC has it
  Diagnostics warnings;
};

enum class MachineFormat { nccl_xml, nvidia_smi };
/// By content; nothing where it is neither.
std::optional<MachineFormat> machine_format(std::string_view text);

/// A full dump or the skeleton of a virtual machine (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE).
Result<ForeignNode> read_nccl_topology(std::string_view text, const std::string& file);
/// What `nvidia-smi topo -m` prints.
Result<ForeignNode> read_nvidia_smi(std::string_view text, const std::string& file);

struct ImportedMachine {
  TopologySpec spec;
  std::vector<std::string> remarks;  ///< what is from where, for the top of a file
  Diagnostics warnings;
};
/// `like` is a machine with GPUs; `nic_rate`, if above 0, goes before what either says.
Result<ImportedMachine> complete(const ForeignNode&, const TopologySpec& like, const std::string& name,
                                 Bandwidth nic_rate = {});

struct WrittenTopology {
  std::string text;
  Diagnostics warnings;  ///< links that the file has no place for
};
/// One node as NCCL_TOPO_DUMP_FILE has it, or why NCCL cannot have such a node.
Result<WrittenTopology> nccl_topology_xml(const TopologySpec&);

}  // namespace collcast::exchange
