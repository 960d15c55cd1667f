#include "collcast/scenario/gemm_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

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

auto product(const GemmRow* row) { return std::tie(row->pass, row->shape.m, row->shape.n, row->shape.k); }

/// Of one product, in their order.
using Repeats = std::span<const GemmRow* const>;

std::optional<Diagnostic> unlike_repeats(Repeats rows, const std::string& dtype, const std::string& file) {
  const auto quicker = [](const GemmRow* a, const GemmRow* b) { return a->time < b->time; };
  const GemmRow* fastest = *std::min_element(rows.begin(), rows.end(), quicker);
  const GemmRow* slowest = *std::max_element(rows.begin(), rows.end(), quicker);
  if (slowest->time <= fastest->time * most_between_repeats) return std::nullopt;
  const bool slow_later = slowest->line > fastest->line;
  const GemmRow &later = slow_later ? *slowest : *fastest, &sooner = slow_later ? *fastest : *slowest;
  return Diagnostic{
      {file, later.line, later.column},
      fmt::format("latency_ms is '{}', and '{}' in line {}, of one product of {}", milliseconds(later.time),
                  milliseconds(sooner.time), sooner.line, dtype),
      fmt::format("expected repeats to differ by a factor of {:g} at most; keep the right one", most_between_repeats)};
}

}  // namespace

Diagnostics impossible_rows(const std::vector<GemmRow>& rows, const std::string& dtype, const MeasuredGpu& gpu,
                            const std::string& file, const std::string& path) {
  Diagnostics out;
  std::vector<const GemmRow*> possible;
  for (const GemmRow& row : rows) {
    if (row.dtype != dtype) continue;
    if (is_possible(row, gpu))
      possible.push_back(&row);
    else
      out.push_back(too_fast(row, gpu, file, path));
  }
  std::stable_sort(possible.begin(), possible.end(),
                   [](const GemmRow* a, const GemmRow* b) { return product(a) < product(b); });
  for (auto at = possible.begin(); at != possible.end();) {
    const auto end = std::find_if(at, possible.end(), [&](const GemmRow* row) { return product(row) != product(*at); });
    if (auto wrong = unlike_repeats({at, end}, dtype, file)) out.push_back(std::move(*wrong));
    at = end;
  }
  return out;
}

}  // namespace collcast
