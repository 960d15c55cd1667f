// Groups, counts, sizes and differences as people read them.
#pragma once

#include <string>

#include "collcast/base/quantity.hpp"
#include "collcast/schedule/group.hpp"

namespace collcast {

/// "0-7", "0, 8 … 56" or "0, 3, 4, 9", as the ranks are regular or not; long lists are shortened.
std::string ranks_text(const Group&);

/// "1 rank", "3 ranks".
std::string counted(std::int64_t count, const std::string& noun);

/// "64 MiB", "80 GB", "4.23 GiB": exact where that is short, binary unless it is whole only in decimal.
std::string size_text(Bytes);

/// By how much `simulated` differs from `estimated`: "+1.9%"; empty where they agree to six digits.
std::string difference_text(Seconds simulated, Seconds estimated);

}  // namespace collcast
