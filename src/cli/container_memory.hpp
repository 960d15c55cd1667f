// What a container's limit leaves: beyond it the kernel ends a process without a word.
#pragma once

#include <filesystem>

#include "collcast/base/quantity.hpp"

namespace collcast::cli {

/// Where the limits of the container that a process is in are seen from inside it.
inline constexpr const char* control_groups = "/sys/fs/cgroup";

/// What all processes in it may take together (cgroup v2 or v1), less what they have taken; files that they have read
/// and do not use count as free. Without a limit the most that a number holds.
Bytes room_in_container(const std::filesystem::path& groups = control_groups);

}  // namespace collcast::cli
