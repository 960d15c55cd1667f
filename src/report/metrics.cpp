#include "report/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "collcast/base/units.hpp"

namespace collcast {

namespace {

constexpr std::array<std::string_view, 5> shares{"mfu", "hfu", "ape", "mean_ape", "median_ape"};

bool is_one_of(std::string_view name, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), name) != words.end();
}

}  // namespace

Unit unit_of(std::string_view figure) {
  // Of "breakdown.compute_s" and "small.mean_ape" the last part.
  figure = figure.substr(figure.rfind('.') + 1);
  if (is_one_of(figure, shares)) return Unit::share;
  if (figure.starts_with("tokens_per_s")) return Unit::tokens_per_s;
  if (figure.find("flops_per_s") != std::string_view::npos) return Unit::flops_per_s;
  if (figure.ends_with("_bytes_per_s")) return Unit::bytes_per_s;
  if (figure.ends_with("_bytes")) return Unit::bytes;
  return figure.ends_with("_s") ? Unit::seconds : Unit::count;
}

std::string figure_text(double value) {
  return std::abs(value) >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::string value_text(double value, Unit unit) {
  switch (unit) {
    case Unit::seconds:
      return format_seconds(Seconds(value));
    case Unit::bytes:
      return format_bytes(Volume(value));
    case Unit::bytes_per_s:
      return format_bandwidth(Bandwidth(value));
    case Unit::flops_per_s:
      return format_flop_rate(FlopRate(value));
    case Unit::tokens_per_s:
      return figure_text(value) + " tokens/s";
    case Unit::share:
      return figure_text(100 * value) + "%";
    case Unit::count:
      break;
  }
  return value == std::floor(value) ? fmt::format("{:.0f}", value) : figure_text(value);
}

std::string change_text(double change, Unit unit) {
  const std::string_view sign = change < 0 ? "-" : "+";
  // A percentage of a percentage would be misread.
  if (unit == Unit::share) return fmt::format("{}{:.3g} points", sign, 100 * std::abs(change));
  return fmt::format("{}{}", sign, value_text(std::abs(change), unit));
}

std::string relative_text(double base, double now) {
  if (base == 0) return {};
  const double percent = 100 * (now - base) / std::abs(base);
  if (now == base) return "0%";
  // 99.5 would be written as 1e+02.
  return std::abs(percent) < 99.5 ? fmt::format("{:+.2g}%", percent) : fmt::format("{:+.0f}%", percent);
}

std::string term_text(std::string name) {
  for (const std::string_view unit : {"_bytes", "_s"}) {
    if (name.ends_with(unit)) name.resize(name.size() - unit.size());
  }
  for (const std::string_view group : {"tp_", "pp_", "cp_", "ep_", "dp_"}) {
    if (name.starts_with(group)) name = fmt::format("{}P {}", static_cast<char>(name[0] - 'a' + 'A'), name.substr(3));
  }
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

Better better(std::string_view figure) {
  constexpr std::array<std::string_view, 13> lower{
      "p50_s",  "p90_s",  "p99_s",    "longest_s",  "step_s",     "peak_bytes", "over_capacity_bytes",
      "ttft_s", "tpot_s", "mean_ape", "median_ape", "estimate_s", "simulate_s"};
  constexpr std::array<std::string_view, 5> higher{"tokens_per_s_per_gpu", "tokens_per_s", "model_flops_per_s_per_gpu",
                                                   "mfu", "busbw_bytes_per_s"};
  figure = figure.substr(figure.rfind('.') + 1);
  if (figure == "ape" || is_one_of(figure, lower)) return Better::lower;
  return is_one_of(figure, higher) ? Better::higher : Better::neither;
}

bool follows_method(std::string_view figure) {
  constexpr std::array<std::string_view, 9> of_time{
      "step_s", "ttft_s", "tpot_s",           "tokens_per_s", "tokens_per_s_per_gpu", "model_flops_per_s_per_gpu",
      "mfu",    "hfu",    "busbw_bytes_per_s"};
  return is_one_of(figure, of_time) || figure.starts_with("ttft.") || figure.starts_with("tpot.");
}

std::string_view to_string(Better direction) {
  return direction == Better::lower ? "lower" : direction == Better::higher ? "higher" : "neither";
}

}  // namespace collcast
