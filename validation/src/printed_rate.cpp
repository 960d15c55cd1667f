#include "printed_rate.hpp"

#include <fmt/format.h>

#include <limits>

#include "lines.hpp"
#include "values.hpp"

namespace collcast {

std::optional<Diagnostic> rate_contradiction(Location where, Bytes size, std::string_view time, std::string_view unit,
                                             std::string_view algbw) {
  const auto t = read_printed(time), rate = read_printed(algbw);
  if (!t || !rate) return std::nullopt;
  // Bytes per microsecond are megabytes per second.
  const double gigabytes = static_cast<double>(size.value()) * 1e-3 / (unit == "ms" ? 1e3 : 1);
  const double least = gigabytes / t->most();
  const double most = t->least() > 0 ? gigabytes / t->least() : std::numeric_limits<double>::infinity();
  if (least <= rate->most() * most_rate_factor && most * most_rate_factor >= rate->least()) return std::nullopt;
  return Diagnostic{
      std::move(where),
      fmt::format("{} B in {} {} are {:.3g} GB/s, but its algbw is {} GB/s: this row is left out", size.value(),
                  printable(time), unit, gigabytes / ((t->least() + t->most()) / 2), printable(algbw)),
      "is the time in another unit than its heading says, or the line damaged?"};
}

std::optional<Diagnostic> count_contradiction(Location where, Bytes size, std::string_view count, std::string_view type,
                                              int ranks, const std::optional<PrintedRates>& rates) {
  const auto elements = read_size(count);
  const int width = width_of(type);
  if (!elements || *elements == Bytes(0) || size == Bytes(0) || width == 0) return std::nullopt;
  const std::int64_t n = elements->value(), of_size = size.value() / width;
  // Gathers and their kin count what one rank sends; all of it together is as many times as much. A list that lost a
  // rank is told by the rates, and its rows are kept for who says how many there were.
  const std::int64_t times = size.value() % width == 0 && of_size % n == 0 ? of_size / n : 0;
  const auto of_rates = rates ? ranks_of_rates("all_gather", *rates) : std::nullopt;
  const bool fits = n == of_size || (ranks > 0 ? n == of_size / ranks : times > 0) ||
                    (of_rates && of_rates->least <= times && times <= of_rates->most);
  if (fits) return std::nullopt;
  return Diagnostic{
      std::move(where),
      fmt::format("{} B are not {} elements of {}: this row is left out", size.value(), n, printable(type)),
      "is the line damaged?"};
}

}  // namespace collcast
