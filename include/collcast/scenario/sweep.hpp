// Values that a scenario is run with one after the other: `sweep` of its file, and --sweep.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"

namespace collcast {

/// A path of the scenario, and what is put there, each as one line of YAML.
struct SweepAxis {
  std::string path;
  std::vector<std::string> values;
  Location where{};                   ///< of the path
  std::vector<Location> places = {};  ///< of each value
};

/// Points that all axes have together, at most.
inline constexpr std::size_t most_sweep_points = 1000;
std::size_t points_of(const std::vector<SweepAxis>&);
/// More than that, and paths that are there twice.
Diagnostics check_sweep(const std::vector<SweepAxis>&);

/// "layout.tp=1,2,4,8" or "inference.batch=1:64:x2", as given to --sweep. A range counts whole numbers: FIRST:LAST:xK
/// multiplies by K, FIRST:LAST:+K adds K, up to LAST.
Result<SweepAxis> parse_sweep(std::string_view text);

/// "1,2,4", "1:64:x2" or one value, or what was expected.
Result<std::vector<std::string>> parse_sweep_values(std::string_view text);

}  // namespace collcast
