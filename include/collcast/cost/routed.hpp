// Patterns whose routes are looked up once, for many estimates that differ in bytes and chunks alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "collcast/cost/estimate.hpp"

namespace collcast {

class Hops;

/// What these hold does not change, and may be read by several threads at once. The patterns that the functions below
/// are given are those that the routes were looked up for, but for `Lane::block` and `chunks`.
class RoutedPatterns {
 public:
  /// Links that hops cross, all told: of more nothing is kept, and routes are looked up whenever they are needed.
  static constexpr std::size_t most_kept = std::size_t{1} << 23;
  RoutedPatterns(const Fabric&, std::span<const Pattern>, std::size_t most = most_kept);
  const Hops& hops() const { return *hops_; }
  /// Those that are kept: some 20 bytes of memory each.
  std::size_t crossings() const;

 private:
  std::shared_ptr<const Hops> hops_;
};

/// What memory the closed form of patterns takes at least, before it takes it, from the number of their hops.
struct ClosedFormSize {
  Bytes kept{};    ///< by RoutedPatterns
  Bytes beside{};  ///< while an estimate is made: the positions and the links, and not all of what meets on these
};
/// `crossings`: links that the hops cross, all told.
ClosedFormSize closed_form_size(const Fabric&, std::span<const Pattern>, std::int64_t crossings,
                                std::size_t most = RoutedPatterns::most_kept);

Estimate estimate_first(const RoutedPatterns&, std::span<const Pattern>);
/// Nothing if it is ended.
std::optional<Estimate> estimate_first(const RoutedPatterns&, std::span<const Pattern>, const GoesOn&);

/// What least_time() is made of: it is the longest of them, or a rounding error less.
struct LeastTime {
  /// Of hops that wait for each other: their latencies, and what their bytes take on links of their own.
  struct Chain {
    Seconds latency{};  ///< whatever the bytes
    Seconds load{};     ///< in proportion to them
  };
  Seconds load{};          ///< of the busiest link, in proportion to the bytes
  Chain far{}, crowded{};  ///< that with the most latency, and that with the longest load
  Seconds at(double times_the_bytes) const;
};
LeastTime least_time(const RoutedPatterns&, std::span<const Pattern>);

}  // namespace collcast
