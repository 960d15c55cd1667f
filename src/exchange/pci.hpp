// PCI Express and NVLink by their numbers: speeds, models of GPUs, Broadcom's switches.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collcast/base/quantity.hpp"

namespace collcast::exchange {

/// One direction of a link as its data sheet has it: 16 GT/s x 16 is 31.5 GB/s.
Bandwidth pcie_rate(double gigatransfers, int width);

/// A link of a rate, as sysfs writes speed and width.
struct PcieLink {
  std::string speed;  ///< "16.0 GT/s PCIe"
  int width = 16;
};
/// That of the nearest rate.
PcieLink pcie_link(Bandwidth);

/// "8 GT/s", "16.0 GT/s PCIe" -> 8, 16; nothing for other texts.
std::optional<double> parse_gigatransfers(std::string_view);

/// As machine files name it, by PCI device id of vendor 0x10de; empty where it is not known.
std::string_view gpu_model_of(unsigned device);
std::optional<unsigned> device_of(std::string_view gpu_model);

}  // namespace collcast::exchange
