// Whose collectives are forecast.
#pragma once

#include <string_view>

#include "collcast/topology/spec.hpp"

namespace collcast {

enum class Library {
  ideal,  ///< the textbook's algorithms on the fabric
  nccl,   ///< NCCL as it runs
};
std::string_view to_string(Library);

/// What people run on such a machine: nccl where its GPUs are NVIDIA's, as far as nccl::compute_capability() knows them
/// by name; ideal on teaching machines and everywhere else.
Library usual_library(const TopologySpec&);

}  // namespace collcast
