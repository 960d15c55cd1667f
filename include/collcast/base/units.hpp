// Quantities as people write them, and back: 256KiB, 300GB/s, 400Gb/s, 1.5us, 989.4TFLOP/s.
//
// GB = 10^9, GiB = 2^30, Gb = bits. A number without unit is an error, except for a size in bytes where
// parse_bytes_or_number() takes it (command-line sizes, `--size 8`).
#pragma once

#include <string>
#include <string_view>

#include "collcast/base/quantity.hpp"

namespace collcast {

/// A parsed quantity, or what was wrong with the text ("expected a size such as 256KiB").
template <class T>
struct Parsed {
  bool ok = false;
  T value{};
  std::string expected;
};

/// [0, 2^62] bytes: B kB MB GB TB KiB MiB GiB TiB, to the nearest whole byte, of B whole.
Parsed<Bytes> parse_bytes(std::string_view text);
/// The same, or a number without a unit, which is one of bytes.
Parsed<Bytes> parse_bytes_or_number(std::string_view text);
/// > 0: B/s kB/s MB/s GB/s TB/s, KiB/s ..., b/s kb/s Mb/s Gb/s Tb/s (also kbit/s ...).
Parsed<Bandwidth> parse_bandwidth(std::string_view text);
/// >= 0: s ms us ns ps.
Parsed<Seconds> parse_seconds(std::string_view text);
/// > 0: FLOP/s GFLOP/s TFLOP/s PFLOP/s (also FLOPS spellings).
Parsed<FlopRate> parse_flop_rate(std::string_view text);

/// >= 0, as a share: "40%" is 0.4.
Parsed<double> parse_percent(std::string_view text);
/// > 0: tokens/s.
Parsed<double> parse_token_rate(std::string_view text);

std::string format_bytes(Bytes);             ///< 1 GiB, 256 KiB, 1000 B: binary, exact where whole
std::string format_bytes(Volume);            ///< 1.50 GiB
std::string format_bandwidth(Bandwidth);     ///< 300 GB/s
std::string format_seconds(Seconds);         ///< 12.3 us: four significant digits
std::string format_range(const TimeRange&);  ///< 12.3 us .. 14.1 us
std::string format_flop_rate(FlopRate);      ///< 312 TFLOP/s
std::string format_count(double);            ///< 70.6 G, 1.25 M

}  // namespace collcast
