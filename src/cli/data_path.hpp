// Where the shipped topologies and scenarios are.
//
// $COLLCAST_DATA if it is set, else share/collcast beside the folder of the executable: there after an
// installation, and in a build tree, where CMake links it to the sources.
#pragma once

#include <optional>
#include <string>

#include "collcast/scenario/scenario.hpp"

namespace collcast::cli {

SearchPath data_search_path(const std::optional<std::string>& collcast_data, const std::string& executable);

/// The file that this process runs; empty if the system does not say.
std::string own_executable();

}  // namespace collcast::cli
