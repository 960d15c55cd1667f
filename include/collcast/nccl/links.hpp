// Links as NCCL counts them, for those who describe machines to it or read what it says.
#pragma once

#include "collcast/base/quantity.hpp"
#include "collcast/topology/spec.hpp"

namespace collcast::nccl {

/// One NVLink in one direction.
struct NvlinkSpeed {
  Bandwidth counted;     ///< as NCCL counts it
  Bandwidth data_sheet;  ///< as machine files have it
};
NvlinkSpeed nvlink_speed(int compute_capability);

/// What NCCL counts for a PCIe port of a data sheet's rate, and for what joins two sockets.
Bandwidth pcie_speed(Bandwidth data_sheet);
Bandwidth socket_speed(CpuFamily);

}  // namespace collcast::nccl
