#include "rank_count.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "collcast/collective/collective.hpp"
#include "lines.hpp"
#include "values.hpp"

namespace collcast {

std::optional<PrintedRates> read_rates(std::string_view algbw, std::string_view busbw) {
  const auto a = read_printed(algbw), b = read_printed(busbw);
  if (!a || !b || a->value == 0 || b->value == 0) return std::nullopt;
  return PrintedRates{a->value, b->value, std::max(a->rounding, b->rounding)};
}

std::optional<RankRange> ranks_of_rates(std::string_view collective, const PrintedRates& rates) {
  const std::optional<CollectiveKind> kind = parse_collective(collective);
  const std::optional<double> weight = kind ? bus_weight(*kind) : std::nullopt;
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

void RankEvidence::add(const std::optional<PrintedRates>& more, const Location& where) {
  if (!more || (rates && more->algbw / more->rounding <= rates->algbw / rates->rounding)) return;
  rates = more;
  if (more->algbw <= more->rounding) return;
  rows.ratio = more->busbw / more->algbw;
  rows.least_ratio = (more->busbw - more->rounding) / (more->algbw + more->rounding);
  rows.most_ratio = (more->busbw + more->rounding) / (more->algbw - more->rounding);
  rows.where = where;
}

void RankEvidence::add_operation(std::string_view word, const Location& where) {
  if (mixed || !is_operation(word) || word == "N/A" || word == "all") return;
  if (rows.operation.empty()) {
    rows.operation = word;
    if (rows.ratio == 0) rows.where = where;
  } else if (rows.operation != "none" && word != "none" && rows.operation != word) {
    rows.operation = "several operations";
  }
  mixed = (rows.operation == "none") != (word == "none");
  if (mixed) rows.operation.clear();
}

void add_type(MeasuredFacts& facts, std::string_view type) {
  if (facts.datatype.empty())
    facts.datatype = type;
  else if (facts.datatype != type && !type.empty())
    facts.datatype = "several types";
}

std::string doubt_of_ranks(const MeasuredFacts& facts, const RankEvidence& evidence) {
  if (facts.ranks == 0) return {};
  const std::string listed = fmt::format("it lists {} rank{}", facts.ranks, facts.ranks == 1 ? "" : "s");
  if (evidence.highest >= facts.ranks) return fmt::format("{}, but rank {} is one of them", listed, evidence.highest);
  if (evidence.gpus_of_processes > facts.ranks)
    return fmt::format("{}, but its processes have {} GPUs together", listed, evidence.gpus_of_processes);
  if (evidence.groups > 1)
    return fmt::format("{}, but in {} groups, each of which ran a collective of its own", listed, evidence.groups);
  if (!evidence.rates) return {};
  const auto range = ranks_of_rates(facts.collective, *evidence.rates);
  if (!range || (range->least <= facts.ranks && facts.ranks <= range->most)) return {};
  return fmt::format("{}, but its bus bandwidths are those of {}", listed,
                     range->least == range->most ? fmt::format("{}", range->least)
                                                 : fmt::format("{} to {}", range->least, range->most));
}

std::string collective_contradiction(const MeasuredFacts& facts) {
  const MeasuredFacts::Rows& rows = facts.rows;
  const auto named = parse_collective(facts.collective);
  if (!named || facts.ranks < 2) return {};
  const bool rated = rows.ratio > 0 && facts.doubt.empty();
  const auto fits_ratio = [&](CollectiveKind kind) {
    constexpr double slack = 0.01;  // of tools that round before they multiply
    const auto is = [&](double factor) {
      return factor >= rows.least_ratio * (1 - slack) && factor <= rows.most_ratio * (1 + slack);
    };
    const double factor = bus_factor(kind, facts.ranks);
    // Tools that print no operation of a gather may print its one rate twice.
    return !rated || is(factor) || (rows.operation.empty() && factor < 1 && is(1));
  };
  const auto fits_operation = [&](CollectiveKind kind) {
    return rows.operation.empty() || reduces(kind) == (rows.operation != "none");
  };
  const bool other_ratio = !fits_ratio(*named), other_operation = !fits_operation(*named);
  if (!other_ratio && !other_operation) return {};
  std::vector<std::string> fitting;
  for (const std::string& name : collective_names())
    if (const auto kind = parse_collective(name); kind && fits_ratio(*kind) && fits_operation(*kind))
      fitting.push_back(name);
  std::string out;
  if (other_operation)
    out = rows.operation == "none"
              ? fmt::format("its rows reduce nothing, which {} does", facts.collective)
              : fmt::format("its rows reduce ({}), which {} does not", rows.operation, facts.collective);
  if (rated)
    out += fmt::format("{}busbw is {:.3g} times algbw, {} of {} ranks has {:.3g} times", out.empty() ? "its " : "; ",
                       rows.ratio, facts.collective, facts.ranks, bus_factor(*named, facts.ranks));
  const std::string of = rated ? fmt::format(" of {} ranks", facts.ranks) : "";
  return out + (fitting.empty() ? fmt::format(": no collective{} fits", of)
                                : fmt::format(": what fits is {}{}", fmt::join(fitting, " or "), of));
}

}  // namespace collcast
