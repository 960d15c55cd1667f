// `--tolerance`: "step_s=2%", "peak_bytes=1GiB", "mean_ape=2points", "3%".
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "collcast/base/units.hpp"
#include "collcast/report/comparison.hpp"
#include "report/metrics.hpp"

namespace collcast {

namespace {

/// Percentage points of a share: "2points", "1 point".
std::optional<double> parse_points(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (error != std::errc{} || !std::isfinite(value) || value < 0 || (unit != "points" && unit != "point"))
    return std::nullopt;
  return value / 100;
}

template <class T, class Value>
std::optional<double> amount_of(const Parsed<T>& parsed, Value value) {
  return parsed.ok ? std::optional<double>(value(parsed.value)) : std::nullopt;
}

/// In the figure's unit.
std::optional<double> parse_amount(std::string_view figure, std::string_view text) {
  switch (unit_of(figure)) {
    case Unit::seconds:
      return amount_of(parse_seconds(text), [](Seconds s) { return s.count(); });
    case Unit::bytes:
      return amount_of(parse_bytes(text), [](Bytes b) { return static_cast<double>(b.value()); });
    case Unit::bytes_per_s:
      return amount_of(parse_bandwidth(text), [](Bandwidth b) { return b.value(); });
    case Unit::flops_per_s:
      return amount_of(parse_flop_rate(text), [](FlopRate f) { return f.value(); });
    case Unit::tokens_per_s:
      return amount_of(parse_token_rate(text), [](double rate) { return rate; });
    case Unit::share:
      return parse_points(text);
    case Unit::count:
      break;
  }
  return std::nullopt;
}

const char* example(std::string_view figure) {
  switch (unit_of(figure)) {
    case Unit::seconds:
      return "2% or 50ms";
    case Unit::bytes:
      return "2% or 512MiB";
    case Unit::bytes_per_s:
      return "2% or 1GB/s";
    case Unit::flops_per_s:
      return "2% or 5TFLOP/s";
    case Unit::tokens_per_s:
      return "2% or 10tokens/s";
    case Unit::share:
      return "2% of the base or 1points, which are percentage points";
    case Unit::count:
      break;
  }
  return "2%";
}

/// There are more than expected_one_of lists; a figure cannot be told from another without all of them.
std::string one_of_all(std::string_view word, const std::vector<std::string>& known) {
  const auto near = nearest_word(word, known);
  return fmt::format("{}expected one of: {}", near ? fmt::format("did you mean '{}'? ", *near) : "",
                     fmt::join(known, ", "));
}

}  // namespace

std::vector<std::string> gated_figures() {
  return {"step_s",
          "tokens_per_s_per_gpu",
          "model_flops_per_s_per_gpu",
          "mfu",
          "peak_bytes",
          "over_capacity_bytes",
          "estimate_s",
          "simulate_s",
          "busbw_bytes_per_s",
          "ttft_s",
          "tpot_s",
          "ttft.p50_s",
          "ttft.p90_s",
          "ttft.p99_s",
          "ttft.longest_s",
          "tpot.p50_s",
          "tpot.p90_s",
          "tpot.p99_s",
          "tpot.longest_s",
          "tokens_per_s",
          "mean_ape",
          "median_ape",
          "ape"};
}

Result<std::pair<std::string, Tolerance>> parse_tolerance(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string figure(equals == std::string_view::npos ? std::string_view() : text.substr(0, equals));
  const std::string_view amount = equals == std::string_view::npos ? text : text.substr(equals + 1);
  const std::vector<std::string> known = gated_figures();
  if (equals != std::string_view::npos && std::find(known.begin(), known.end(), figure) == known.end())
    return Diagnostic{{}, fmt::format("'{}' is no figure with a tolerance", figure), one_of_all(figure, known)};
  if (const Parsed<double> percent = parse_percent(amount); percent.ok)
    return std::pair{figure, Tolerance{percent.value, true}};
  if (!figure.empty()) {
    if (const auto own = parse_amount(figure, amount)) return std::pair{figure, Tolerance{*own, false}};
  }
  return Diagnostic{{},
                    fmt::format("'{}' is no tolerance", amount),
                    figure.empty() ? "expected a percentage of the base for all figures, such as 2%, or FIGURE=AMOUNT"
                                   : fmt::format("expected {}", example(figure))};
}

}  // namespace collcast
