// How many ranks a log of nccl-tests had, beyond its own list of them.
//
// nccl-tests prints algbw = size / time and busbw = algbw times a factor that depends on the ranks alone (its
// PERFORMANCE.md): 2(n-1)/n of an all-reduce; (n-1)/n of all_gather, reduce_scatter, alltoall, gather and scatter; 1
// of the others, which say nothing. Figures are rounded as they are printed, so a row says between which n it was.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collcast/scenario/measured_facts.hpp"

namespace collcast {

/// Both rates of one placement, and how far their rounding may have moved them.
struct PrintedRates {
  double algbw = 0, busbw = 0;
  double rounding = 0;
};
/// Nothing where one of them is no number. Half a unit of the last digit counts as rounding.
std::optional<PrintedRates> read_rates(std::string_view algbw, std::string_view busbw);

/// The least and the most ranks that these rates can be of; nothing where they say no limit.
struct RankRange {
  int least = 0, most = 0;
};
std::optional<RankRange> ranks_of_rates(std::string_view collective, const PrintedRates&);

/// What a log says of its ranks in other places than its list, and of its collective in its rows.
struct RankEvidence {
  int highest = -1;                   ///< rank that it names
  int gpus_of_processes = 0;          ///< processes that it names times GPUs of each; 0: not said
  std::size_t groups = 0;             ///< that its ranks are in; 0: not said
  std::optional<PrintedRates> rates;  ///< of the row with the highest
  MeasuredFacts::Rows rows{};         ///< of it, and the operation of all rows
  bool mixed = false;                 ///< some rows reduce and some do not
  void add(const std::optional<PrintedRates>&, const Location&);
  void add_operation(std::string_view, const Location&);
};
/// The type of a row, of which a table may have several (nccl-tests -d all).
void add_type(MeasuredFacts&, std::string_view type);

/// Why `facts.ranks` cannot be right; empty where nothing speaks against it.
std::string doubt_of_ranks(const MeasuredFacts& facts, const RankEvidence&);

/// Why `facts.rows` cannot be of `facts.collective` with `facts.ranks`, and what they may be of; empty where nothing
/// speaks against it. Where the ranks are in doubt only the operation counts.
std::string collective_contradiction(const MeasuredFacts& facts);

}  // namespace collcast
