// Groups, counts, sizes and differences as people read them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/quantity.hpp"
#include "collcast/report/documents.hpp"
#include "collcast/schedule/group.hpp"
#include "collcast/workload/memory_use.hpp"

namespace collcast {

/// "0-7", "0, 8 … 56" or "0, 3, 4, 9", as the ranks are regular or not; long lists are shortened, and say of how many.
std::string ranks_text(const Group&);
/// "14 ranks (0-13)".
std::string counted_ranks(const Group&);

/// "1 rank", "3 ranks".
std::string counted(std::int64_t count, const std::string& noun);

/// "layers", "expert layers without recomputation".
std::string plural(std::string noun);

/// "64 of the 72 GPUs of gb200-nvl72 (1 node)": what a job has of its machine; hosts have ranks.
std::string gpus_text(int gpus, const MachineSummary&);

/// "12.3%" of 0.123.
std::string percent(double share);

/// "64 MiB", "80 GB", "4.23 GiB": exact where that is short, binary unless it is whole only in decimal.
std::string size_text(Bytes);

/// The same as --size and --group take it, without rounding.
std::string size_argument(Bytes);
std::string ranks_argument(const Group&);

/// By how much `simulated` differs from `estimated`: "+1.9%"; empty where they agree to six digits.
std::string difference_text(Seconds simulated, Seconds estimated);

/// When a rank holds that: "in a backward".
std::string_view moment_text(MemoryMoment);

/// Why a curve over chunks has no best point, or falls and rises again.
inline constexpr const char* chunks_text =
    "a message has no cost of its own here and its latency overlaps the next one, so more chunks cost no time where "
    "every transfer has its links for itself; where some share a link, smaller chunks of one can hold up another, and "
    "a curve may rise again. --chunks auto takes the fewest (a power of two, to 4096 or one per byte) within 1 % of "
    "the least; of an algorithm that is sent whole, as direct is, one.";

/// The first of the rows; `when` ends the title.
Table link_table(const std::vector<LinkRow>&, std::string_view when);

}  // namespace collcast
