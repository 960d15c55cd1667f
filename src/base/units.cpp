#include "collcast/base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "collcast/base/words.hpp"

namespace collcast {

namespace {

struct Unit {
  std::string_view name;
  double scale;
};

constexpr double kilo = 1e3, mega = 1e6, giga = 1e9, tera = 1e12, peta = 1e15;
constexpr double kibi = 1024.0, mebi = kibi * kibi, gibi = mebi * kibi, tebi = gibi * kibi, pebi = tebi * kibi,
                 exbi = pebi * kibi;

constexpr std::array byte_units{Unit{"B", 1},      Unit{"kB", kilo},  Unit{"KB", kilo},  Unit{"MB", mega},
                                Unit{"GB", giga},  Unit{"TB", tera},  Unit{"PB", peta},  Unit{"KiB", kibi},
                                Unit{"MiB", mebi}, Unit{"GiB", gibi}, Unit{"TiB", tebi}, Unit{"PiB", pebi},
                                Unit{"EiB", exbi}};
constexpr std::array bandwidth_units{
    Unit{"B/s", 1},           Unit{"kB/s", kilo},       Unit{"MB/s", mega},       Unit{"GB/s", giga},
    Unit{"TB/s", tera},       Unit{"KiB/s", kibi},      Unit{"MiB/s", mebi},      Unit{"GiB/s", gibi},
    Unit{"TiB/s", tebi},      Unit{"b/s", 1. / 8},      Unit{"kb/s", kilo / 8},   Unit{"Mb/s", mega / 8},
    Unit{"Gb/s", giga / 8},   Unit{"Tb/s", tera / 8},   Unit{"bit/s", 1. / 8},    Unit{"kbit/s", kilo / 8},
    Unit{"Mbit/s", mega / 8}, Unit{"Gbit/s", giga / 8}, Unit{"Tbit/s", tera / 8}, Unit{"Gbps", giga / 8}};
constexpr std::array time_units{Unit{"s", 1},     Unit{"ms", 1e-3}, Unit{"us", 1e-6},
                                Unit{"µs", 1e-6}, Unit{"ns", 1e-9}, Unit{"ps", 1e-12}};
constexpr std::array flop_units{Unit{"FLOP/s", 1},     Unit{"GFLOP/s", giga}, Unit{"TFLOP/s", tera},
                                Unit{"PFLOP/s", peta}, Unit{"GFLOPS", giga},  Unit{"TFLOPS", tera},
                                Unit{"PFLOPS", peta}};

struct Number {
  double value;
  std::string_view unit;
};

/// A decimal number and what follows it, blanks between them dropped.
std::optional<Number> split_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  return Number{value, unit};
}

std::optional<double> scaled(std::string_view text, std::span<const Unit> units) {
  const auto number = split_number(text);
  if (!number) return std::nullopt;
  for (const Unit& unit : units) {
    if (unit.name == number->unit) {
      // Time units are negative powers of ten: dividing by the inverse keeps 500ns exactly 5e-7.
      if (unit.scale < 1 && unit.scale > 0 && unit.name.back() == 's' && unit.name.find('/') == std::string_view::npos)
        return number->value / std::round(1 / unit.scale);
      return number->value * unit.scale;
    }
  }
  return std::nullopt;
}

/// The whole number from 0 that `text` begins with; takes it, and spaces behind it, off its front.
std::optional<std::int64_t> take_count(std::string_view& text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || count < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return count;
}

/// A whole number of a whole unit, which a double does not hold above 2^53; nothing where either is not, or beyond
/// 64 bits.
std::optional<std::int64_t> whole_bytes(std::string_view text) {
  const std::optional<std::int64_t> count = take_count(text);
  if (!count) return std::nullopt;
  for (const Unit& unit : byte_units) {
    const auto scale = static_cast<std::int64_t>(unit.scale);
    if (unit.name != text) continue;
    if (unit.scale < 1 || *count > std::numeric_limits<std::int64_t>::max() / scale) return std::nullopt;
    return *count * scale;
  }
  return std::nullopt;
}

/// "; did you mean 'MiB'?" where only the case of a unit is wrong; where two units differ by it, both.
std::string unit_in_other_case(std::string_view text, std::span<const Unit> units) {
  const auto number = split_number(text);
  if (!number || number->unit.empty()) return "";
  std::string found;
  double last = 0;
  for (const Unit& unit : units) {
    if (unit.name == number->unit) return "";
    if (unit.scale == last || lower(unit.name) != lower(number->unit)) continue;
    found += fmt::format("{}'{}'", found.empty() ? "" : " or ", unit.name);
    last = unit.scale;
  }
  return found.empty() ? "" : fmt::format("; did you mean {}?", found);
}

constexpr const char* expected_size =
    "a size from 0 to 4 EiB with its unit, such as 8B, 256KiB, 1GB (10^9) or 1GiB (2^30)";

/// `exact` goes before `bytes` where it is known.
Parsed<Bytes> size_of(double bytes, std::optional<std::int64_t> exact) {
  // 2^62: far above any buffer, and sums of a few such sizes still fit.
  if (bytes > 0x1p62 || (exact && *exact > std::int64_t{1} << 62))
    return {false, {}, std::string(expected_size) + "; this is too large, 4 EiB is the most"};
  if (!(bytes >= 0) || bytes != std::floor(bytes)) return {false, {}, expected_size};
  return {true, Bytes(exact.value_or(static_cast<std::int64_t>(bytes))), {}};
}

}  // namespace

Parsed<Bytes> parse_bytes(std::string_view text) {
  const std::optional<double> bytes = scaled(text, byte_units);
  if (!bytes) return {false, {}, expected_size + unit_in_other_case(text, byte_units)};
  // 28.3GiB are the nearest whole byte, as people copy them from a page; 0.5B are none.
  const bool rounds = *bytes >= 1 && split_number(text)->unit != "B";
  return size_of(rounds ? std::round(*bytes) : *bytes, whole_bytes(text));
}

Parsed<Bytes> parse_bytes_or_number(std::string_view text) {
  const auto number = split_number(text);
  if (!number || !number->unit.empty()) return parse_bytes(text);
  const std::optional<std::int64_t> count = take_count(text);
  return size_of(number->value, text.empty() ? count : std::nullopt);
}

Parsed<Bandwidth> parse_bandwidth(std::string_view text) {
  const auto rate = scaled(text, bandwidth_units);
  if (!rate || !(*rate > 0))
    return {false,
            {},
            "a positive rate with its unit, such as 300GB/s (bytes) or 400Gb/s (bits)" +
                unit_in_other_case(text, bandwidth_units)};
  return {true, Bandwidth(*rate), {}};
}

Parsed<Seconds> parse_seconds(std::string_view text) {
  const auto seconds = scaled(text, time_units);
  if (!seconds || !(*seconds >= 0))
    return {false,
            {},
            "a time of 0 or more with its unit, such as 500ns, 1.5us or 2ms" + unit_in_other_case(text, time_units)};
  return {true, Seconds(*seconds), {}};
}

Parsed<FlopRate> parse_flop_rate(std::string_view text) {
  const auto rate = scaled(text, flop_units);
  if (!rate || !(*rate > 0)) return {false, {}, "a positive compute rate with its unit, such as 312TFLOP/s"};
  return {true, FlopRate(*rate), {}};
}

Parsed<double> parse_percent(std::string_view text) {
  const auto number = split_number(text);
  if (!number || number->unit != "%" || !(number->value >= 0)) return {false, {}, "a percentage, such as 40%"};
  return {true, number->value / 100, {}};
}

Parsed<double> parse_token_rate(std::string_view text) {
  const auto number = split_number(text);
  if (!number || number->unit != "tokens/s" || !(number->value > 0))
    return {false, {}, "a positive rate of tokens with its unit, such as 900tokens/s"};
  return {true, number->value, {}};
}

namespace {

/// `value` with four significant digits and the largest unit not above it.
std::string scale_to(double value, std::span<const Unit> ascending) {
  const Unit* unit = &ascending.front();
  for (const Unit& candidate : ascending) {
    if (std::abs(value) >= candidate.scale * 0.99995) unit = &candidate;
  }
  const double scaled = value / unit->scale;
  // Beyond the largest unit, 9999.5 and more would be written as 1e+04.
  return std::abs(scaled) >= 9999.5 && std::abs(scaled) < 1e15 ? fmt::format("{:.0f} {}", scaled, unit->name)
                                                               : fmt::format("{:.4g} {}", scaled, unit->name);
}

}  // namespace

std::string format_bytes(Bytes bytes) {
  const std::int64_t value = bytes.value();
  constexpr std::array units{Unit{"EiB", exbi}, Unit{"PiB", pebi}, Unit{"TiB", tebi},
                             Unit{"GiB", gibi}, Unit{"MiB", mebi}, Unit{"KiB", kibi}};
  for (const Unit& unit : units) {
    const auto scale = static_cast<std::int64_t>(unit.scale);
    if (value >= scale && value % scale == 0 && value / scale < 10'000)
      return fmt::format("{} {}", value / scale, unit.name);
  }
  if (value < 10'000) return fmt::format("{} B", value);
  return format_bytes(volume(bytes));
}

std::string format_bytes(Volume v) {
  constexpr std::array units{Unit{"B", 1},      Unit{"KiB", kibi}, Unit{"MiB", mebi}, Unit{"GiB", gibi},
                             Unit{"TiB", tebi}, Unit{"PiB", pebi}, Unit{"EiB", exbi}};
  return scale_to(v.value(), units);
}

std::string format_bandwidth(Bandwidth b) {
  constexpr std::array units{Unit{"B/s", 1}, Unit{"kB/s", kilo}, Unit{"MB/s", mega}, Unit{"GB/s", giga},
                             Unit{"TB/s", tera}};
  return scale_to(b.value(), units);
}

std::string format_seconds(Seconds s) {
  constexpr std::array units{Unit{"ps", 1e-12}, Unit{"ns", 1e-9}, Unit{"us", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1}};
  if (s.count() == 0) return "0 s";
  return scale_to(s.count(), units);
}

std::string format_range(const TimeRange& range) {
  return format_seconds(range.low) + " .. " + format_seconds(range.high);
}

std::string format_flop_rate(FlopRate r) {
  constexpr std::array units{Unit{"FLOP/s", 1}, Unit{"GFLOP/s", giga}, Unit{"TFLOP/s", tera}, Unit{"PFLOP/s", peta}};
  return scale_to(r.value(), units);
}

std::string format_count(double value) {
  constexpr std::array units{Unit{"", 1},     Unit{"k", kilo}, Unit{"M", mega}, Unit{"G", giga},
                             Unit{"T", tera}, Unit{"P", peta}, Unit{"E", 1e18}};
  std::string text = scale_to(value, units);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace collcast
