// Work that goes at its own rate or, while something slows it, at a lower one, exact to 2^-32 of a picosecond: what two
// runs that cut it at the same instants make of it is the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "collcast/base/quantity.hpp"

namespace collcast {

class SlowedWork {
 public:
  __extension__ using Wide = unsigned __int128;

  /// Units in a picosecond, and the rate of work that nothing slows: so many are done in each.
  static constexpr int bits = 32;
  static constexpr std::uint64_t one = std::uint64_t{1} << bits;
  /// Of a rate above 0, at most 1.
  static std::uint64_t rate_of(double rate) {
    return static_cast<std::uint64_t>(rate * static_cast<double>(one) + 0.5);
  }

  SlowedWork() = default;
  SlowedWork(Picoseconds time, std::uint64_t rate) : rate_(rate) { set_left(time); }

  void set_rate(std::uint64_t rate) { rate_ = rate; }
  void set_left(Picoseconds time) { left_ = static_cast<Wide>(time.count()) << bits; }
  /// At its own rate, rounded up.
  Picoseconds left() const { return Picoseconds(static_cast<std::int64_t>((left_ + one - 1) >> bits)); }
  /// At the present rate, rounded up.
  Picoseconds rest() const {
    constexpr auto most = static_cast<Wide>(std::numeric_limits<std::int64_t>::max());
    return Picoseconds(static_cast<std::int64_t>(std::min((left_ + rate_ - 1) / rate_, most)));
  }
  void go_on(Picoseconds time) {
    const auto passed = static_cast<Wide>(time.count());
    left_ -= std::min(passed * rate_, left_);
    lost_ += passed * (one - rate_);
  }
  /// By how much less has been done than at its own rate, rounded down.
  Picoseconds lost() const { return Picoseconds(static_cast<std::int64_t>(lost_ >> bits)); }

 private:
  Wide left_ = 0, lost_ = 0;
  std::uint64_t rate_ = one;
};

}  // namespace collcast
