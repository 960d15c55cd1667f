#include "nccl/heads.hpp"

#include <algorithm>

namespace collcast::nccl {

std::vector<Head> heads_of(const System& system, const Nearest& near, double speed) {
  Room room = room_of(system, near);
  std::vector<Head> out;
  for (const auto& [nic, ways] : near.gpus) {
    if (room.nics.at(nic) < speed - slack) continue;
    for (const Nearest::Gpu& one : ways) {
      const bool taken = std::ranges::any_of(out, [&](const Head& head) { return head.gpu == one.gpu; });
      const bool by_host = one.by_host.has_value();
      const auto link = static_cast<std::size_t>(one.by_host.value_or(0));
      if (taken || room.ports.at(one.gpu) < speed - slack || (by_host && room.links[link] < speed - slack)) continue;
      if (by_host) room.links[link] -= speed;
      out.push_back({one.gpu, nic});
      break;
    }
  }
  return out;
}

}  // namespace collcast::nccl
