// The most that is not too many.
#pragma once

namespace collcast {

/// Of the numbers from `some` to below `too_many` the largest that `holds`, where each that holds has all below it
/// hold, as `some` is taken to.
template <class Holds>
int most_that(int some, int too_many, Holds holds) {
  while (some + 1 < too_many) {
    const int middle = some + (too_many - some) / 2;
    (holds(middle) ? some : too_many) = middle;
  }
  return some;
}

}  // namespace collcast
