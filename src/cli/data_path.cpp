#include "cli/data_path.hpp"

#include <filesystem>
#include <system_error>

namespace collcast::cli {

namespace fs = std::filesystem;

SearchPath data_search_path(const std::optional<std::string>& collcast_data, const std::string& executable) {
  const fs::path data = collcast_data && !collcast_data->empty()
                            ? fs::path(*collcast_data)
                            : fs::path(executable).parent_path().parent_path() / "share" / "collcast";
  return {{(data / "topologies").string()},
          {(data / "scenarios").string()},
          {(data / "validation" / "data" / "nccl-tests").string()},
          {(data / "validation" / "data" / "training").string()},
          {(data / "validation" / "data" / "inference").string()}};
}

std::string own_executable() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? std::string() : self.string();
}

}  // namespace collcast::cli
