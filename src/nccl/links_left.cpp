#include "nccl/links_left.hpp"

#include <cstddef>

#include "nccl/search_speeds.hpp"

namespace collcast::nccl {

LinksLeft::LinksLeft(const System& system) {
  for (std::size_t device = 0; device < system.edges.size(); ++device)
    for (const System::Edge& edge : system.edges[device]) left_[{static_cast<int>(device), edge.to}] = edge.speed;
}

bool LinksLeft::book(const Way& way, double speed, double of_pcie) {
  const auto booked = [&](std::size_t hop) { return way.kinds[hop] == LinkKind::pcie ? speed * of_pcie : speed; };
  for (std::size_t h = 0; h < way.hops.size(); ++h)
    if (left_.at(way.hops[h]) < booked(h) - slack) return false;
  for (std::size_t h = 0; h < way.hops.size(); ++h) left_.at(way.hops[h]) -= booked(h);
  return true;
}

void LinksLeft::give_back(const Way& way, double speed) {
  for (const auto& hop : way.hops) left_.at(hop) += speed;
}

}  // namespace collcast::nccl
