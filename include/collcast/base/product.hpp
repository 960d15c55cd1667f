// Products of counts that a user can choose, which 64 bits need not hold.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

namespace collcast {

/// The product of `factors`, none of which is below 0; nothing where the first of them have one above `most`.
inline std::optional<std::int64_t> product_within(std::initializer_list<std::int64_t> factors, std::int64_t most) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (factor > 0 && product > most / factor) return std::nullopt;
    product *= factor;
  }
  return product;
}

}  // namespace collcast
