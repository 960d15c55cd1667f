// Values that a scenario is run with one after the other: `sweep` of its file, and --sweep.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"

namespace collcast {

struct SweepValue {
  std::string yaml;   ///< what is set, as one line of YAML
  std::string label;  ///< how a row of the result is called
  Location where{};
};

/// A path of the scenario, and what is put there.
struct SweepAxis {
  std::string path;
  std::vector<SweepValue> values;
  Location where{};  ///< of the path
};

/// Points that all axes have together, at most.
inline constexpr std::size_t most_sweep_points = 1000;
std::size_t points_of(const std::vector<SweepAxis>&);
/// More than that, values that are there twice, and paths of which one is the other or within it.
Diagnostics check_sweep(const std::vector<SweepAxis>&);
/// One path is the other, or within it: setting both, one of them counts for nothing.
bool paths_meet(std::string_view a, std::string_view b);

/// "layout.tp=1,2,4,8" or "inference.batch=1:64:x2", as given to --sweep. A range counts whole numbers: FIRST:LAST:xK
/// multiplies by K, FIRST:LAST:+K adds K, up to LAST.
Result<SweepAxis> parse_sweep(std::string_view text);

/// "1,2,4", "1:64:x2" or one value, whose text begins at `where`, or what was expected.
Result<std::vector<SweepValue>> parse_sweep_values(std::string_view text, const Location& where = {});

}  // namespace collcast
