#include "collcast/schedule/pattern.hpp"

namespace collcast {

Traffic traffic(const Pattern& pattern) {
  Traffic total;
  for (const Lane& lane : pattern.lanes)
    for (const Phase& phase : lane.phases)
      for (Position v = 0; v < pattern.size(); ++v)
        for (int j = 0, ways = phase.ways(v); j < ways; ++j) {
          const int alike = phase.flow == Flow::circulating ? phase.shape->sends(phase, v) : 1;
          total.messages += std::int64_t{pattern.chunks} * alike;
          total.bytes += lane.block * (static_cast<double>(phase.shape->send(phase, v, j).blocks) * alike);
        }
  return total;
}

}  // namespace collcast
