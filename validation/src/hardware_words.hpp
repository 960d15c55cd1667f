// What the words of a sidecar say of a node's hardware: "NVLink3 (4 links per pair, no NVSwitch)", "8x IB NDR 400Gb/s".
// Sidecars come from many hands: what no rule here reads is as if it were not said.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collcast/base/quantity.hpp"
#include "gpu_name.hpp"

namespace collcast {

/// How the GPUs of a node are joined.
enum class GpuLinks {
  unsaid,
  pcie,      ///< no NVLink
  nvlink,    ///< NVLink, whether through a switch is not said
  straight,  ///< NVLink from GPU to GPU
  switched   ///< NVLink through NVSwitches
};

struct NvlinkWords {
  GpuLinks links = GpuLinks::unsaid;
  int generation = 0;                ///< of NVLink; 0: not said
  int count = 0;                     ///< of links; 0: not said
  bool per_pair = false;             ///< that count is of a pair of GPUs, else of a GPU
  std::optional<Bandwidth> per_gpu;  ///< per direction
  bool bridges = false;              ///< between cards
  int together = 0;         ///< GPUs that bridges join with each other: 2 of "pairs", 4 of "4-way"; 0: not said
  int pcie_generation = 0;  ///< 0: not said
};
NvlinkWords parse_nvlink(std::string_view);

/// Data-sheet rate per direction of one NVLink of a generation, 2 to 5.
std::optional<Bandwidth> nvlink_rate(int generation);
/// What a card has for bridges to its neighbours.
struct BridgedCard {
  const char* chip;
  int links;
  double link_rate;  ///< per direction
  bool has_modules;  ///< the chip comes as a module, too
};
/// Nothing: no data sheet that is known here has bridges for it.
std::optional<BridgedCard> bridged_card(const GpuName&);
/// Data-sheet rate per direction of a PCI Express slot of 16 lanes, generations 3 to 6.
std::optional<Bandwidth> pcie_rate(int generation);

struct NicWords {
  int count = 0;                  ///< 0: not said
  std::optional<Bandwidth> rate;  ///< of one
  std::string kind;               ///< infiniband, roce, efa, tcpx, slingshot, tcp, ethernet; empty: not said
  std::string contradiction;      ///< where a total is said that is not that of the NICs, which count
  bool any() const { return count > 0 || rate || !kind.empty(); }
};
NicWords parse_nics(std::string_view);

}  // namespace collcast
