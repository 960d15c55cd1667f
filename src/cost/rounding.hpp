// Times that are the same but for the order of their sums.
#pragma once

#include <algorithm>
#include <cmath>

namespace collcast {

/// Sums of the same terms in another order differ in the last bits.
inline bool same_but_rounding(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(a, b); }

}  // namespace collcast
