#include "collcast/schedule/pattern.hpp"

namespace collcast {

Traffic traffic(const Pattern& pattern) {
  Traffic total;
  for (const Lane& lane : pattern.lanes)
    for (const Phase& phase : lane.phases)
      for (Position v = 0; v < pattern.size(); ++v)
        for (int j = 0, hops = phase.shape->sends(phase, v); j < hops; ++j) {
          total.messages += pattern.chunks;
          total.bytes += lane.block * static_cast<double>(phase.shape->send(phase, v, j).blocks);
        }
  return total;
}

}  // namespace collcast
