// Quantities with their unit in the type: bytes, fluid bytes, rates, times.
//
// Values are held in base units (bytes, bytes per second, floating-point operations, seconds);
// only printers scale them. Arithmetic that makes no sense (bytes + seconds) does not compile.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>

namespace collcast {

template <class Tag, class Rep>
class Quantity {
 public:
  using rep = Rep;
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return Quantity(a.value_ * k); }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return Quantity(k * a.value_); }
  friend constexpr Quantity operator/(Quantity a, Rep k) { return Quantity(a.value_ / k); }
  constexpr Quantity& operator+=(Quantity b) {
    value_ += b.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity b) {
    value_ -= b.value_;
    return *this;
  }

 private:
  Rep value_{};
};

/// Whole bytes, as a user states a buffer or a memory.
using Bytes = Quantity<struct BytesTag, std::int64_t>;
/// Bytes on the wire. Fractional: a chunk is exactly N/(k*S), as in the textbook
/// (docs/decisions/0003-fluid-chunks.md).
using Volume = Quantity<struct VolumeTag, double>;
/// Bytes per second, one direction.
using Bandwidth = Quantity<struct BandwidthTag, double>;
/// Floating-point operations; a multiply-add counts 2.
using Flops = Quantity<struct FlopsTag, double>;
/// Floating-point operations per second.
using FlopRate = Quantity<struct FlopRateTag, double>;

using Seconds = std::chrono::duration<double>;                       // models
using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;  // engine
struct SimClock {
  using rep = std::int64_t;
  using period = std::pico;
  using duration = Picoseconds;
  using time_point = std::chrono::time_point<SimClock, Picoseconds>;
  static constexpr bool is_steady = true;
};
using SimTime = SimClock::time_point;

constexpr Volume volume(Bytes b) { return Volume(static_cast<double>(b.value())); }
constexpr Seconds operator/(Volume v, Bandwidth b) { return Seconds(v.value() / b.value()); }
constexpr Seconds operator/(Bytes v, Bandwidth b) { return volume(v) / b; }
constexpr Seconds operator/(Flops f, FlopRate r) { return Seconds(f.value() / r.value()); }
constexpr Volume operator*(Bandwidth b, Seconds t) { return Volume(b.value() * t.count()); }

/// The double nearest to the time: divided, as a product with 1e-12, which no double is, has a last digit of its own
/// (0.049999999999999996).
constexpr Seconds to_seconds(Picoseconds p) { return Seconds(static_cast<double>(p.count()) / 1e12); }
constexpr Seconds to_seconds(SimTime t) { return to_seconds(t.time_since_epoch()); }

/// The only crossing from model time to engine time: rounds up to the next picosecond, except that a
/// value within two units in the last place of a whole picosecond is that picosecond (so that
/// 1 GiB at 10 GB/s does not gain one from the division). Saturates at the largest representable
/// time; negative and NaN become 0.
constexpr Picoseconds to_picoseconds(Seconds s) {
  const double x = s.count() * 1e12;
  if (!(x > 0)) return Picoseconds(0);
  if (x >= 9.2e18) return Picoseconds(std::numeric_limits<std::int64_t>::max());
  const auto whole = static_cast<std::int64_t>(x);
  const double above = x - static_cast<double>(whole);
  const double slack = x * 4.5e-16;
  if (above <= slack) return Picoseconds(whole);
  return Picoseconds(whole + 1);
}

/// From the shortest that a time may be to the longest.
struct TimeRange {
  Seconds low{}, high{};
};

}  // namespace collcast
