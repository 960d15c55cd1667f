// Where tests of validation find what is shipped.
#pragma once

#include <string>

#include "collcast/scenario/scenario.hpp"

namespace collcast::test {

inline const SearchPath machine_files{{COLLCAST_SOURCE_DIR "/topologies"}, {}};
/// And the measured tables of nccl-tests.
inline const SearchPath source_tree{
    {COLLCAST_SOURCE_DIR "/topologies"}, {}, {COLLCAST_SOURCE_DIR "/validation/data/nccl-tests"}};

/// Before a command that is to find them.
inline const std::string with_data = "export COLLCAST_DATA=" COLLCAST_SOURCE_DIR "; ";

}  // namespace collcast::test
