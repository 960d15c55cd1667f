// Bytes under way, counted exactly.
//
// What is left of a message is a whole number of grains of 2^-24 bytes/s * 1 ps = 2^-24 * 1e-12 bytes, a rate a whole
// number of grains per picosecond (2^-24 bytes/s; a fair share is rounded to the nearest). So what a flow moves in t
// picoseconds is rate * t without rounding, and how often its state is brought up to date, alone or with all flows of a
// link at once, changes nothing. 128 bits hold 2^62 bytes.
//
// A message has left when less than 2^-51 of it is still to go: the two units in the last place by which sizes
// and fair shares may be off, so that 1 GiB at a third of 10 GB/s does not gain a picosecond.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "engine/ticks.hpp"

namespace collcast::engine {

/// Grains, or grains per picosecond.
__extension__ using Grains = __int128;

namespace progress {

inline constexpr int fraction_bits = 24;
inline constexpr std::int64_t five_to_12 = 244'140'625;  // 1e12 = 5^12 * 2^12

/// value * 2^shift, to the nearest.
constexpr Grains shifted(Grains value, int shift) {
  if (shift >= 0) return value << shift;
  if (shift < -126) return 0;
  return (value + (Grains{1} << (-shift - 1))) >> -shift;
}

/// A double that is not negative nor infinite is mantissa * 2^exponent.
struct Parts {
  std::int64_t mantissa = 0;
  int exponent = 0;
};
inline Parts parts(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto fraction = static_cast<std::int64_t>(bits & ((std::uint64_t{1} << 52) - 1));
  const auto exponent = static_cast<int>(bits >> 52);
  return exponent == 0 ? Parts{fraction, -1074} : Parts{fraction | std::int64_t{1} << 52, exponent - 1075};
}

}  // namespace progress

/// Of a number of bytes that is not negative; to 2^-65 bytes, exactly from 2^16 bytes on. 1.5 * 2^62 and more are all
/// the same.
inline Grains grains(double bytes) {
  const progress::Parts p = progress::parts(bytes < 0x1p62 + 0x1p61 ? bytes : 0x1p62 + 0x1p61);
  return progress::shifted(Grains{p.mantissa} * progress::five_to_12, p.exponent + 12 + progress::fraction_bits);
}

/// What a message of that many bytes has to move before it has left; at least 1 if there are any.
inline Grains to_move(double bytes) {
  if (!(bytes > 0)) return 0;
  const Grains all = grains(bytes);
  const Grains most = all - (all >> 51);
  return most > 0 ? most : 1;
}

/// Of bytes per second, not negative. 2^100 and more, which no link has, are all the same.
inline Grains grains_per_tick(double rate) {
  const progress::Parts p = progress::parts(rate < 0x1p100 ? rate : 0x1p100);
  return progress::shifted(p.mantissa, p.exponent + progress::fraction_bits);
}

/// Until `left` grains have moved, rounded up; `never` if they do not within the clock.
constexpr Ticks ticks_to_move(Grains left, Grains rate) {
  if (left <= 0) return 0;
  if (rate <= 0) return never;
  const Grains ticks = (left + rate - 1) / rate;
  return ticks < Grains{never} ? static_cast<Ticks>(ticks) : never;
}

}  // namespace collcast::engine
