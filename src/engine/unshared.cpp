#include "engine/unshared.hpp"

namespace collcast::engine {

void UnsharedLinks::settle() {
  for (const std::uint32_t id : agenda_.starting) {
    Connection& flow = connections_[id];
    flow.started = agenda_.now;
    for (const Crossing& crossing : connections_.crossings(id))
      if (links_[crossing.link].count++ == 0) links_[crossing.link].busy -= agenda_.now;
    agenda_.queue.push(Event::at(later(agenda_.now, flow.alone), EventKind::left, id, flow.version));
  }
  agenda_.starting.clear();
}

void UnsharedLinks::stop(std::uint32_t flow) {
  for (const Crossing& crossing : connections_.crossings(flow))
    if (--links_[crossing.link].count == 0) links_[crossing.link].busy += agenda_.now;
}

}  // namespace collcast::engine
