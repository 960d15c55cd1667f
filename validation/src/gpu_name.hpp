// Names of GPUs as people write them: "NVIDIA H100 80GB HBM3" and "H100-SXM5-80GB" are one.
#pragma once

#include <string>
#include <string_view>

namespace collcast {

/// In small letters; empty where the name has no word on it.
struct GpuName {
  std::string chip, memory;
  std::string form;    ///< "sxm" or "pci"
  std::string module;  ///< "sxm2", where it is numbered: boards of V100 differ by it
  int watts = 0;       ///< that it may draw; 0: no word on it
};
GpuName parse_gpu(std::string_view name);
/// Whether one can be the other; no word on memory or form fits any.
bool same_gpu(const GpuName&, const GpuName&);
/// The same, where sources round memory their own way: sizes a tenth apart are one.
bool like_gpu(const GpuName&, const GpuName&);
/// The same but for its memory: boards of one chip that go into the same nodes.
bool same_chip(const GpuName&, const GpuName&);
/// Whether both name a GPU and these are not one; "RTX2080Ti (PCIe gen3)" is an "RTX-2080-Ti".
bool other_gpu(std::string_view, std::string_view);

}  // namespace collcast
