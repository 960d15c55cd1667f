#include "cli/container_memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace collcast::cli {

namespace {

/// The kernel's names of both versions (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst).
struct MemoryFiles {
  const char *folder, *limit, *taken, *unused_files;
};
constexpr MemoryFiles versions[]{{"", "memory.max", "memory.current", "inactive_file"},
                                 {"memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}};

/// Nothing of "max", and where there is no such file.
std::optional<std::int64_t> number_in(const std::filesystem::path& file) {
  std::int64_t out = 0;
  if (!(std::ifstream(file) >> out)) return std::nullopt;
  return out;
}

std::int64_t named_in(const std::filesystem::path& file, const std::string& name) {
  std::ifstream in(file);
  std::string key;
  for (std::int64_t value = 0; in >> key >> value;)
    if (key == name) return value;
  return 0;
}

}  // namespace

Bytes room_in_container(const std::filesystem::path& groups) {
  Bytes room(std::numeric_limits<std::int64_t>::max());
  for (const MemoryFiles& names : versions) {
    const std::filesystem::path folder = groups / names.folder;
    const auto limit = number_in(folder / names.limit);
    if (!limit) continue;
    const std::int64_t unused = named_in(folder / "memory.stat", names.unused_files);
    const std::int64_t taken = std::max<std::int64_t>(0, number_in(folder / names.taken).value_or(0) - unused);
    room = std::min(room, Bytes(std::max<std::int64_t>(0, *limit - taken)));
  }
  return room;
}

}  // namespace collcast::cli
