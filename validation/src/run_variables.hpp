// Variables that a measured run had.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collcast {

/// Those that a forecast or a calibration goes by. Images of containers set NCCL_VERSION.
inline bool is_of_nccl(std::string_view name) {
  constexpr std::array<std::string_view, 4> prefixes{"NCCL_", "FI_", "OFI_NCCL_", "UCX_"};
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view p) { return name.starts_with(p); }) &&
         name != "NCCL_VERSION" && !name.starts_with("NCCL_TESTS_");
}

/// The first of a name counts, as in C. Whether it has this value.
inline bool add_variable(std::vector<std::pair<std::string, std::string>>& all, std::string name, std::string value) {
  const auto known = std::ranges::find(all, name, &std::pair<std::string, std::string>::first);
  if (known != all.end()) return known->second == value;
  all.emplace_back(std::move(name), std::move(value));
  return true;
}

}  // namespace collcast
