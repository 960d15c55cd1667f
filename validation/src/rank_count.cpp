#include "rank_count.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace collcast {

namespace {

/// Of the factor (n-1)/n; nothing for collectives whose factor is 1 whatever n is.
std::optional<double> weight_of(std::string_view collective) {
  if (collective == "all_reduce") return 2;
  for (const char* known : {"all_gather", "reduce_scatter", "alltoall", "gather", "scatter"})
    if (collective == known) return 1;
  return std::nullopt;
}

std::optional<double> read_rate(std::string_view text, double& rounding) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.find_first_of("eE") != std::string_view::npos) return std::nullopt;  // its last digit is none of the value's
  if (error != std::errc{} || end != text.data() + text.size() || !(value > 0) || !std::isfinite(value))
    return std::nullopt;
  const std::size_t point = text.find('.');
  const auto digits = point == std::string_view::npos ? 0 : static_cast<int>(text.size() - point - 1);
  rounding = std::max(rounding, 0.5 * std::pow(10.0, -digits));
  return value;
}

}  // namespace

std::optional<PrintedRates> read_rates(std::string_view algbw, std::string_view busbw) {
  PrintedRates out;
  const auto a = read_rate(algbw, out.rounding), b = read_rate(busbw, out.rounding);
  if (!a || !b) return std::nullopt;
  out.algbw = *a;
  out.busbw = *b;
  return out;
}

std::optional<RankRange> ranks_of_rates(std::string_view collective, const PrintedRates& rates) {
  const std::optional<double> weight = weight_of(collective);
  if (!weight || rates.algbw <= rates.rounding) return std::nullopt;
  // busbw/algbw = weight (1 - 1/n). A share of 1 or more is no (n-1)/n: an old tool, or too coarse a rounding.
  const double share_most = (rates.busbw + rates.rounding) / (rates.algbw - rates.rounding) / *weight;
  const double share_least = (rates.busbw - rates.rounding) / (rates.algbw + rates.rounding) / *weight;
  constexpr double most_ranks = 1'000'000;
  if (share_most >= 1 - 1 / most_ranks || share_least <= 0) return std::nullopt;
  const double least = 1 / (1 - share_least), most = 1 / (1 - share_most);
  const RankRange out{static_cast<int>(std::ceil(least - 1e-9)), static_cast<int>(std::floor(most + 1e-9))};
  if (out.least > out.most || out.most < 2) return std::nullopt;
  return out;
}

void RankEvidence::add(const std::optional<PrintedRates>& more) {
  if (more && (!rates || more->algbw / more->rounding > rates->algbw / rates->rounding)) rates = more;
}

std::string doubt_of_ranks(const MeasuredFacts& facts, const RankEvidence& evidence) {
  if (facts.ranks == 0) return {};
  const std::string listed = fmt::format("it lists {} rank{}", facts.ranks, facts.ranks == 1 ? "" : "s");
  if (evidence.highest >= facts.ranks) return fmt::format("{}, but rank {} is one of them", listed, evidence.highest);
  if (evidence.gpus_of_processes > facts.ranks)
    return fmt::format("{}, but its processes have {} GPUs together", listed, evidence.gpus_of_processes);
  if (!evidence.rates) return {};
  const auto range = ranks_of_rates(facts.collective, *evidence.rates);
  if (!range || (range->least <= facts.ranks && facts.ranks <= range->most)) return {};
  return fmt::format("{}, but its bus bandwidths are those of {}", listed,
                     range->least == range->most ? fmt::format("{}", range->least)
                                                 : fmt::format("{} to {}", range->least, range->most));
}

}  // namespace collcast
