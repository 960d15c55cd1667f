// What max-min fairness says of the rates that were just set; asserted in debug builds after every solution.
#include <algorithm>

#include "collcast/base/check.hpp"
#include "engine/max_min.hpp"

namespace collcast::engine {

namespace {
constexpr double over = 1e-12;      // of a capacity, by rounding
constexpr double under = 1e-9;      // a full link may look that much less so
constexpr std::uint32_t most = 64;  // flows of a link that is looked at: the check must not cost more than the run
}  // namespace

/// No link has more than its capacity, and the flow crosses a full link on which nobody has more for a weight of 1: it
/// could not have more without taking from one that has no more than it.
void MaxMinLinks::check_share(std::uint32_t flow) const {
  const auto per_weight = [this](std::uint32_t id) { return flows_[id].rate / links_.weight(id); };
  const double rate = per_weight(flow) * (1 + over);
  bool is_stopped = false, is_known = true;
  for (const Crossing& crossing : links_.links_of(flow)) {
    const LinkState& link = links_[crossing.link];
    if (link.pool != none || link.count > most) {
      is_known = false;
      continue;
    }
    double sum = 0, highest = 0;
    for (const SharedLinks::OnLink& on : links_.flows_on(link)) {
      is_known &= flows_[on.flow].pool == none && links_.priority(on.flow) == links_.priority(flow);
      sum += flows_[on.flow].rate;
      highest = std::max(highest, per_weight(on.flow));
    }
    check(!is_known || sum <= link.capacity * (1 + over), "flows share no more than a link has");
    is_stopped |= sum >= link.capacity * (1 - under) && rate >= highest;
  }
  check(!is_known || is_stopped, "a flow is stopped by a full link on which no other has more");
}

}  // namespace collcast::engine
