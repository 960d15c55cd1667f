#include "report/wording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "collcast/base/units.hpp"
#include "report/metrics.hpp"

namespace collcast {

namespace {

constexpr int most_listed = 8;

/// Short for more than eight ranks without a pattern.
std::string listed_ranks(const Group& group) {
  const int size = group.size();
  if (size == 0) return "none";
  const auto rank = [&](int i) { return group[i].value(); };
  if (size > 2 && group.is_strided() && group.stride() == 1) return fmt::format("{}-{}", rank(0), rank(size - 1));
  if (size > 3 && group.is_strided()) return fmt::format("{}, {} … {}", rank(0), rank(1), rank(size - 1));
  std::string out;
  for (int i = 0; i < size && i < most_listed; ++i) out += fmt::format("{}{}", i == 0 ? "" : ", ", rank(i));
  if (size > most_listed) out += fmt::format(" … {}", rank(size - 1));
  return out;
}

}  // namespace

std::string_view moment_text(MemoryMoment moment) {
  constexpr std::array texts{"at the end of a forward", "in a backward", "at the optimizer's step"};
  return texts[static_cast<std::size_t>(moment)];
}

std::string ranks_text(const Group& group) {
  const bool says_how_many = group.size() <= most_listed || group.is_strided();
  return listed_ranks(group) + (says_how_many ? "" : fmt::format(" ({} ranks)", group.size()));
}

std::string counted_ranks(const Group& group) {
  return fmt::format("{} ({})", counted(group.size(), "rank"), listed_ranks(group));
}

std::string percent(double share) { return fmt::format("{:.1f}%", share * 100); }

std::string counted(std::int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string plural(std::string noun) {
  const std::size_t layer = noun.find("layer");
  return noun.insert(layer == std::string::npos ? noun.size() : layer + 5, "s");
}

std::string gpus_text(int gpus, const MachineSummary& machine) {
  const char* what = machine.gpu.empty() ? "rank" : "GPU";
  const std::string count =
      gpus < machine.ranks ? fmt::format("{} of the {}", gpus, counted(machine.ranks, what)) : counted(gpus, what);
  return fmt::format("{} of {}{} ({})", count, machine.topology, machine.calibrated ? ", calibrated" : "",
                     counted(machine.nodes, "node"));
}

namespace {

struct ByteUnit {
  const char* name;
  std::int64_t bytes;
};
constexpr std::array binary_units{ByteUnit{"EiB", 1LL << 60}, ByteUnit{"PiB", 1LL << 50}, ByteUnit{"TiB", 1LL << 40},
                                  ByteUnit{"GiB", 1LL << 30}, ByteUnit{"MiB", 1LL << 20}, ByteUnit{"KiB", 1LL << 10}};
constexpr std::array decimal_units{ByteUnit{"PB", 1'000'000'000'000'000}, ByteUnit{"TB", 1'000'000'000'000},
                                   ByteUnit{"GB", 1'000'000'000}, ByteUnit{"MB", 1'000'000}, ByteUnit{"kB", 1'000}};
constexpr std::int64_t short_enough = 10'000;

/// "64 MiB", with `blank` between, if that is exact and short.
std::optional<std::string> whole(Bytes bytes, std::span<const ByteUnit> units, const char* blank) {
  for (const auto& [name, unit] : units) {
    if (bytes.value() >= unit && bytes.value() % unit == 0 && bytes.value() / unit < short_enough)
      return fmt::format("{}{}{}", bytes.value() / unit, blank, name);
  }
  return std::nullopt;
}

}  // namespace

std::string size_text(Bytes bytes) {
  if (const auto text = whole(bytes, binary_units, " ")) return *text;
  if (bytes.value() < short_enough) return fmt::format("{} B", bytes.value());
  if (const auto text = whole(bytes, decimal_units, " ")) return *text;
  return format_bytes(volume(bytes));
}

std::string size_argument(Bytes bytes) {
  for (const std::span<const ByteUnit> units :
       {std::span<const ByteUnit>(binary_units), std::span<const ByteUnit>(decimal_units)})
    if (const auto text = whole(bytes, units, "")) return *text;
  return fmt::format("{}", bytes.value());
}

std::string ranks_argument(const Group& group) {
  const int size = group.size();
  const auto rank = [&](int i) { return group[i].value(); };
  if (size > 2 && group.is_strided() && group.stride() == 1) return fmt::format("{}-{}", rank(0), rank(size - 1));
  if (size > 2 && group.is_strided() && group.stride() > 1)
    return fmt::format("{}-{}:{}", rank(0), rank(size - 1), group.stride());
  std::string out;
  for (int i = 0; i < size; ++i) out += fmt::format("{}{}", i == 0 ? "" : ",", rank(i));
  return out;
}

std::string difference_text(Seconds simulated, Seconds estimated) {
  if (!(estimated.count() > 0)) return "";
  if (std::abs(simulated / estimated - 1) < 1e-6) return "";
  return relative_text(estimated.count(), simulated.count());
}

Table link_table(const std::vector<LinkRow>& rows, std::string_view when) {
  constexpr std::size_t most_links = 8;
  Table table{fmt::format("busiest of {} {}", counted(static_cast<std::int64_t>(rows.size()), "link"), when),
              {{"link", "", Align::left},
               {"bytes", "", Align::right},
               {"busy", "", Align::right},
               {"utilisation", "", Align::right}},
              {}};
  for (std::size_t i = 0; i < std::min(rows.size(), most_links); ++i)
    table.rows.push_back({rows[i].link, format_bytes(rows[i].carried), format_seconds(rows[i].busy),
                          fmt::format("{:.1f}%", 100 * rows[i].utilisation)});
  return table;
}

}  // namespace collcast
