#include "report/wording.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "collcast/base/units.hpp"

namespace collcast {

std::string ranks_text(const Group& group) {
  const int size = group.size();
  if (size == 0) return "none";
  const auto rank = [&](int i) { return group[i].value(); };
  if (size > 2 && group.is_strided() && group.stride() == 1) return fmt::format("{}-{}", rank(0), rank(size - 1));
  constexpr int most_listed = 8;
  if (size > 3 && group.is_strided()) return fmt::format("{}, {} … {}", rank(0), rank(1), rank(size - 1));
  std::string out;
  for (int i = 0; i < size && i < most_listed; ++i) out += fmt::format("{}{}", i == 0 ? "" : ", ", rank(i));
  if (size > most_listed) out += fmt::format(" … {} ({} ranks)", rank(size - 1), size);
  return out;
}

std::string counted(std::int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string size_text(Bytes bytes) {
  using Units = std::array<std::pair<const char*, std::int64_t>, 4>;
  constexpr Units binary{{{"TiB", 1LL << 40}, {"GiB", 1LL << 30}, {"MiB", 1LL << 20}, {"KiB", 1LL << 10}}};
  constexpr Units decimal{{{"TB", 1'000'000'000'000}, {"GB", 1'000'000'000}, {"MB", 1'000'000}, {"kB", 1'000}}};
  constexpr std::int64_t short_enough = 10'000;
  const auto whole = [&](const Units& units) -> std::optional<std::string> {
    for (const auto& [name, unit] : units) {
      if (bytes.value() >= unit && bytes.value() % unit == 0 && bytes.value() / unit < short_enough)
        return fmt::format("{} {}", bytes.value() / unit, name);
    }
    return std::nullopt;
  };
  if (const auto text = whole(binary)) return *text;
  if (bytes.value() < short_enough) return fmt::format("{} B", bytes.value());
  if (const auto text = whole(decimal)) return *text;
  return format_bytes(volume(bytes));
}

std::string difference_text(Seconds simulated, Seconds estimated) {
  if (!(estimated.count() > 0)) return "";
  const double relative = simulated.count() / estimated.count() - 1;
  if (std::abs(relative) < 1e-6) return "";
  const double percent = 100 * relative;
  return std::abs(percent) < 100 ? fmt::format("{:+.2g}%", percent) : fmt::format("{:+.0f}%", percent);
}

}  // namespace collcast
