// Whose collectives are forecast.
#pragma once

#include <string_view>

namespace collcast {

enum class Library {
  ideal,  ///< the textbook's algorithms on the fabric
  nccl,   ///< NCCL as it runs
};
std::string_view to_string(Library);

}  // namespace collcast
