#include "collcast/evaluate/spelled.hpp"

#include <algorithm>
#include <vector>

#include "collcast/engine/engine.hpp"

namespace collcast {

Seconds lower_bound(const Fabric& fabric, const Schedule& schedule) {
  std::vector<Volume> loads(fabric.links().size());
  std::vector<LinkId> route;
  for (std::size_t op = 0; op < schedule.size(); ++op) {
    const auto* transfer = std::get_if<Transfer>(&schedule.work(OpId(static_cast<std::uint32_t>(op))));
    if (transfer == nullptr) continue;
    route.clear();
    fabric.route(transfer->from, transfer->to, transfer->lane, route);
    for (const LinkId link : route) loads[link.value()] = loads[link.value()] + transfer->size;
  }
  Seconds out = to_seconds(critical_path(fabric, schedule));
  for (std::size_t link = 0; link < loads.size(); ++link)
    out = std::max(out, loads[link] / fabric.links()[link].bandwidth);
  return out;
}

}  // namespace collcast
