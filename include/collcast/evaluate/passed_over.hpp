// What `auto` does not look at although it could do the collective, because its closed form would take too long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collcast/evaluate/evaluate.hpp"

namespace collcast {

struct PassedOver {
  std::string algorithm;
  std::int64_t links = 0;  ///< that its hops cross
  bool by_name = false;    ///< whether it is priced where it is asked for by its name
};

/// In the order of the catalogue; none where one algorithm is named.
std::vector<PassedOver> passed_over_by_auto(const Fabric&, const CollectiveRequest&, const CollectivePolicy&);

/// "auto did not look at what crosses more than 8.39 M links, ...: direct, whose hops cross 33.5 M links"; empty: of
/// none.
std::string to_text(const std::vector<PassedOver>&);

}  // namespace collcast
