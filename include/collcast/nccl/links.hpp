// Links as NCCL counts them, for those who describe machines to it or read what it says.
#pragma once

#include "collcast/base/quantity.hpp"

namespace collcast::nccl {

/// One NVLink in one direction.
struct NvlinkSpeed {
  Bandwidth counted;     ///< as NCCL counts it
  Bandwidth data_sheet;  ///< as machine files have it
};
NvlinkSpeed nvlink_speed(int compute_capability);

}  // namespace collcast::nccl
