// MSCCL's XML: algorithms that somebody brings.
#pragma once

#include <string>
#include <string_view>

#include "collcast/base/diagnostic.hpp"
#include "collcast/collective/msccl.hpp"

namespace collcast::exchange {

struct ReadMsccl {
  msccl::Algorithm algorithm;
  Diagnostics warnings;
};
/// As msccl-tools writes it and msccl's runtime reads it. What it says is not proved yet (msccl::prove).
Result<ReadMsccl> read_msccl(std::string_view text, const std::string& file);

}  // namespace collcast::exchange
