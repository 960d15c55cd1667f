#include "engine/fifo.hpp"

#include <algorithm>
#include <tuple>

namespace collcast::engine {

bool FifoLinks::before(std::uint32_t a, std::uint32_t b) const {
  const auto turn = [this](std::uint32_t id) {
    const ConnectionRoute& flow = connections_.route(id);
    const ConnectionName& name = connections_.name(id);
    return std::tuple(flow.priority, requests_[id].asked, name.from, name.to, name.lane, flow.size, name.op,
                      name.lane_index, name.hop);
  };
  return turn(a) < turn(b);
}

void FifoLinks::settle() {
  requests_.resize(connections_.size());
  for (const std::uint32_t flow : agenda_.starting) ask(flow);
  agenda_.starting.clear();
  for (const std::uint32_t flow : candidates_) start_if_first(flow);
  candidates_.clear();
}

void FifoLinks::ask(std::uint32_t id) {
  requests_[id] = {agenda_.now, true};
  for (const Crossing& crossing : connections_.crossings(id)) {
    LinkState& link = links_[crossing.link];
    if (link.waiting == link.room) heaps_.grow(link.block, link.room, link.waiting);
    heaps_[link.block + link.waiting++] = id;
    const auto heap = heaps_.block(link.block, link.waiting);
    std::push_heap(heap.begin(), heap.end(), [this](std::uint32_t a, std::uint32_t b) { return before(b, a); });
  }
  candidates_.push_back(id);
}

void FifoLinks::start_if_first(std::uint32_t id) {
  if (!requests_[id].waits) return;
  Connection& flow = connections_[id];
  for (const Crossing& crossing : connections_.crossings(id)) {
    const LinkState& link = links_[crossing.link];
    if (link.taken || first(link) != id) return;
  }
  for (const Crossing& crossing : connections_.crossings(id)) {
    LinkState& link = links_[crossing.link];
    const auto heap = heaps_.block(link.block, link.waiting--);
    std::pop_heap(heap.begin(), heap.end(), [this](std::uint32_t a, std::uint32_t b) { return before(b, a); });
    link.taken = true;
    link.busy -= agenda_.now;
  }
  requests_[id].waits = false;
  flow.started = agenda_.now;
  agenda_.queue.push(Event::at(later(agenda_.now, flow.alone), EventKind::left, id, flow.version));
}

void FifoLinks::stop(std::uint32_t id) {
  for (const Crossing& crossing : connections_.crossings(id)) {
    LinkState& link = links_[crossing.link];
    link.taken = false;
    link.busy += agenda_.now;
    if (link.waiting > 0) candidates_.push_back(first(link));
  }
}

}  // namespace collcast::engine
