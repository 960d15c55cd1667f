#include "collcast/scenario/gemm_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "collcast/base/units.hpp"

namespace collcast {

namespace {

/// Of a rate of the data sheet. GPUs boost beyond the clock of that sheet, an H100 to 1980 MHz of 1830 (1.08); the
/// fastest of 10,000 published products of five GPUs ran at 0.89 of it.
constexpr double most_of_sheet = 1.25;
/// A product that is repeated finds its operands in the caches, of which the largest are of 256 MB (MI300X), and
/// which are up to five times as fast as memory (RTX 4090).
constexpr double largest_cache = 256e6;
constexpr double most_of_memory_from_cache = 6;
/// Of one product's times. Those of the shipped tables, a weight gradient with its sum and without, differ by 1.4.
constexpr double most_between_repeats = 2;
/// Seconds that were taken for milliseconds miss by about a thousand, less what the product loses against the sheet.
constexpr double slip_of_units = 1000, least_slip = 20;

struct Least {
  Seconds time{};
  bool computes = true;
};

Least least_time(const GemmRow& row, const MeasuredGpu& gpu) {
  const Seconds compute = Flops(2 * row.shape.m * row.shape.n * row.shape.k) / gpu.peak;
  const Seconds memory = row.bytes() / gpu.memory_bandwidth;
  return compute > memory ? Least{compute, true} : Least{memory, false};
}

bool is_possible(const GemmRow& row, const MeasuredGpu& gpu) {
  const Seconds compute = Flops(2 * row.shape.m * row.shape.n * row.shape.k) / gpu.peak;
  const double of_memory = row.bytes().value() > largest_cache ? most_of_sheet : most_of_memory_from_cache;
  return row.time * most_of_sheet >= compute && row.time * of_memory >= row.bytes() / gpu.memory_bandwidth;
}

std::string milliseconds(Seconds time) { return fmt::format("{:.6g}", time.count() * 1e3); }

Diagnostic too_fast(const GemmRow& row, const MeasuredGpu& gpu, const std::string& file, const std::string& path) {
  const Least least = least_time(row, gpu);
  const std::string rate = least.computes ? "peak of " + format_flop_rate(gpu.peak)
                                          : "memory_bandwidth of " + format_bandwidth(gpu.memory_bandwidth);
  const bool slip = row.time * least_slip < least.time && row.time * slip_of_units >= least.time;
  return {{file, row.line, row.column},
          fmt::format("latency_ms is '{}', and at the {}.{} this product takes {} ms at least", milliseconds(row.time),
                      path, rate, milliseconds(least.time)),
          slip ? fmt::format("expected milliseconds; if these are seconds, write {}",
                             milliseconds(row.time * slip_of_units))
               : fmt::format("expected milliseconds, and rates of the GPU that was measured; is {}.{} too low?", path,
                             least.computes ? "peak" : "memory_bandwidth")};
}

using Product = std::tuple<std::optional<GemmPass>, double, double, double>;

struct Repeats {
  const GemmRow* fastest;
  const GemmRow* slowest;
};

}  // namespace

Diagnostics impossible_rows(const std::vector<GemmRow>& rows, const std::string& dtype, const MeasuredGpu& gpu,
                            const std::string& file, const std::string& path) {
  Diagnostics out;
  std::map<Product, Repeats> products;
  for (const GemmRow& row : rows) {
    if (row.dtype != dtype) continue;
    if (!is_possible(row, gpu)) {
      out.push_back(too_fast(row, gpu, file, path));
      continue;
    }
    auto [of, is_new] = products.try_emplace({row.pass, row.shape.m, row.shape.n, row.shape.k}, Repeats{&row, &row});
    if (row.time < of->second.fastest->time) of->second.fastest = &row;
    if (row.time > of->second.slowest->time) of->second.slowest = &row;
  }
  for (const auto& [product, of] : products) {
    if (of.slowest->time <= of.fastest->time * most_between_repeats) continue;
    const bool slow_later = of.slowest->line > of.fastest->line;
    const GemmRow &later = slow_later ? *of.slowest : *of.fastest, &sooner = slow_later ? *of.fastest : *of.slowest;
    out.push_back({{file, later.line, later.column},
                   fmt::format("latency_ms is '{}', and '{}' in line {}, of one product of {}",
                               milliseconds(later.time), milliseconds(sooner.time), sooner.line, dtype),
                   fmt::format("expected repeats to differ by a factor of {:g} at most; keep the right one",
                               most_between_repeats)});
  }
  return out;
}

}  // namespace collcast
