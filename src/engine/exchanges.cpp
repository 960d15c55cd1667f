#include "engine/exchanges.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "collcast/base/check.hpp"

namespace collcast::engine {

void Exchanges::left(std::uint32_t connection) {
  Send& send = sends_[connection];
  send.in_flight = 0;
  const std::uint32_t id = send.walker;
  Walker& walker = walkers_[id];
  ++walker.left;
  const Ticks latency = connections_[connection].latency;
  if (walker.kind != Flow::circulating || !receive_ahead(walker, send.counter, latency))
    agenda_.after(latency, EventKind::arrived, send.counter);
  switch (walker.kind) {
    case Flow::circulating:
    case Flow::sequential:
      send_in_turn(id);
      break;
    case Flow::forwarding:
      send_chunk(connection);
      if (send.next != none) send_chunk(send.next);
      break;
    case Flow::concurrent:
      send_chunk(connection);
      break;
  }
  leave_if_through(id);
}

bool Exchanges::receive_ahead(const Walker& sender, std::uint32_t counter, Ticks latency) {
  Walker& receiver = walkers_[counters_[counter].walker];
  if (counter - receiver.counters >= receiver.slots || receiver.first_hop == none) return false;
  Connection& flow = connections_[receiver.first_hop];
  if (!flow.apart || flow.immediate) return false;
  Send& send = sends_[receiver.first_hop];
  const Ticks there = later(agenda_.now, latency);
  const bool is_next = receiver.received + 1 == sender.left;  // none before it is under way
  if (send.in_flight == 0) {
    if (receiver.left == receiver.to_send || receiver.received + receiver.chunks != receiver.left || !is_next)
      return false;
    send.in_flight = 1;
    agenda_.send_apart(receiver.first_hop, flow, there);
  } else if (const Ticks over = later(flow.started, flow.alone); there > over) {
    // It is asked for when those that may be sent without it have left, or all.
    const std::uint32_t more = receiver.to_send - receiver.left - 1;
    const std::uint32_t may = std::min(more, receiver.received + receiver.chunks - receiver.left - 1);
    if (may == 0) {
      if (more == 0 || !is_next || send.gap != 0 || there - over > std::numeric_limits<std::uint32_t>::max())
        return false;
      send.gap = static_cast<std::uint32_t>(there - over);
    } else if ((there - over - 1) / flow.alone >= Ticks{may}) {
      return false;
    }
  }
  ++counters_[counter].count;
  ++receiver.received;
  return true;
}

void Exchanges::not_begun(std::span<const std::uint32_t> joined) {
  for (const std::uint32_t id : joined) {
    Connection& flow = connections_[id];
    if (!flow.is_unlisted || flow.apart || flow.started <= agenda_.now) continue;
    Send& send = sends_[id];
    send.in_flight = 0;
    flow.is_unlisted = false;
    ++flow.version;
    Walker& walker = walkers_[send.walker];
    take_back(walker, flow.started);
    if (const std::uint32_t gap = std::exchange(send.gap, 0U); gap > 0)
      take_back(walker, later(later(flow.started, flow.alone), gap));
  }
}

void Exchanges::arrived(std::uint32_t counter) {
  const std::uint32_t id = counters_[counter].walker;
  ++counters_[counter].count;
  Walker& walker = walkers_[id];
  const std::uint32_t slot = counter - walker.counters;
  if (slot >= walker.slots) return;  // ahead of its receiver: counted until that enters the phase
  ++walker.received;
  if (walker.kind == Flow::circulating && walker.first_hop != none) send_in_turn(id);
  if (walker.kind == Flow::forwarding)
    for (std::uint32_t hop = walker.first_hop; hop != none; hop = sends_[hop].next)
      if (sends_[hop].after > slot) send_chunk(hop);
  leave_if_through(id);
}

void Exchanges::leave_if_through(std::uint32_t id) {
  Walker& walker = walkers_[id];
  if (walker.left < walker.to_send || walker.received < walker.to_receive) return;
  close_phase(walker);
  enter(id, walker.phase + std::size_t{1});
}

void Exchanges::enter(std::uint32_t id, std::size_t index) {
  const LaneState& lane = lanes_[walkers_[id].lane];
  for (; index < lane.lane->phases.size(); ++index) {
    Walker& walker = walkers_[id];
    walker.phase = static_cast<std::uint32_t>(index) & most_phases;  // begin() holds it below
    open_phase(id);
    if (agenda_.failure || walker.left < walker.to_send || walker.received < walker.to_receive) return;
    close_phase(walker);
  }
  const std::uint32_t participant = static_cast<std::uint32_t>(lane.lane->participant(position(id)));
  if (--words_[running_[lane.exchange].participants + participant] == 0)
    finish_participant(lane.exchange, static_cast<int>(participant));
}

void Exchanges::open_phase(std::uint32_t id) {
  Walker& walker = walkers_[id];
  const Phase& phase = phase_of(walker);
  const Position v = position(id);
  const auto hops = static_cast<std::uint32_t>(phase.shape->sends(phase, v));
  const auto receives = static_cast<std::uint32_t>(phase.shape->receives(phase, v));
  if (std::uint64_t{std::max(hops, receives)} * walker.chunks > std::numeric_limits<std::uint32_t>::max()) {
    agenda_.failure = "a rank has more than 2^32 messages in one phase of " + lanes_[walker.lane].pattern->algorithm;
    return;
  }
  walker.kind = phase.flow;
  walker.left = walker.received = 0;
  walker.to_send = hops * walker.chunks;
  walker.to_receive = receives * walker.chunks;
  walker.counters = counter(lanes_[walker.lane], walker.phase, v, 0);
  walker.slots = phase.flow == Flow::forwarding ? receives : std::min(receives, 1U);
  for (const Counter& c : counters_.block(walker.counters, walker.slots)) walker.received += c.count;
  if (hops > 0) open_hops(id, hops);
}

void Exchanges::open_hops(std::uint32_t id, std::uint32_t hops) {
  Walker& walker = walkers_[id];
  if (sends_in_turn(walker.kind)) {
    walker.first_hop = open_hop(id, 0);
    send_in_turn(id);
    return;
  }
  std::uint32_t previous = none;
  for (std::uint32_t j = 0; j < hops; ++j) {
    const std::uint32_t hop = open_hop(id, j);
    if (previous == none)
      walker.first_hop = hop;
    else
      sends_[previous].next = hop;
    if (walker.kind == Flow::forwarding) sends_[hop].previous = previous;
    previous = hop;
  }
  for (std::uint32_t hop = walker.first_hop; hop != none; hop = sends_[hop].next) send_chunk(hop);
}

void Exchanges::close_phase(Walker& walker) {
  for (std::uint32_t hop = walker.first_hop; hop != none;) {
    const std::uint32_t next = sends_[hop].next;
    connections_.release(hop);
    hop = next;
  }
  walker.first_hop = none;
  walker.slots = 0;
}

std::uint32_t Exchanges::open_hop(std::uint32_t id, std::uint32_t hop) {
  const std::uint32_t connection = connections_.acquire();
  if (sends_.size() < connections_.size()) sends_.resize(connections_.size());
  sends_[connection] = Send{};
  sends_[connection].walker = id;
  connect(connection, hop);
  return connection;
}

void Exchanges::connect(std::uint32_t connection, std::uint32_t index) {
  Send& send = sends_[connection];
  const Walker& walker = walkers_[send.walker];
  const LaneState& lane = lanes_[walker.lane];
  const Phase& phase = phase_of(walker);
  const Position v = position(send.walker);
  const Hop hop = phase.shape->send(phase, v, static_cast<int>(index));
  send.counter = counter(lane, walker.phase, who_does(lane, hop.peer), hop.slot);
  send.after = phase.flow == Flow::forwarding ? static_cast<std::uint32_t>(hop.after) : 0;
  const Occasion& occasion = running_[lane.exchange].occasion;
  const auto rank = [&](Position at) { return Rank(lane.pattern->rank(*lane.lane, at).value() + occasion.shift); };
  const ConnectionName name{rank(v), rank(hop.peer), lane.lane->route_lane, part(send.walker), lane.index, index};
  connections_.connect(connection, name, lane.pattern->message(*lane.lane, hop), occasion.traffic);
  connections_[connection].transfer = false;
}

std::uint32_t Exchanges::counter(const LaneState& lane, std::uint32_t phase, Position receiver, int slot) const {
  const PhaseState& state = phases_[lane.phases + phase];
  const auto v = static_cast<std::uint32_t>(receiver);
  if (state.offsets == none) return state.counters + v;
  return state.counters + words_[state.offsets + v] + static_cast<std::uint32_t>(slot);
}

void Exchanges::send_in_turn(std::uint32_t id) {
  Walker& walker = walkers_[id];
  Send& send = sends_[walker.first_hop];
  if (send.in_flight != 0 || walker.left == walker.to_send) return;
  const std::uint32_t next = walker.left;  // all before it have left
  if (walker.kind == Flow::circulating) {
    if (next >= walker.chunks && walker.received <= next - walker.chunks) return;
  } else if (next > 0 && next % walker.chunks == 0) {
    connect(walker.first_hop, next / walker.chunks);
  }
  if (const std::uint32_t gap = walker.kind == Flow::circulating ? std::exchange(send.gap, 0U) : 0U; gap > 0)
    return wait_on(walker, gap);
  send.in_flight = 1;
  agenda_.send(walker.first_hop, connections_[walker.first_hop]);
}

void Exchanges::wait_on(Walker& walker, std::uint32_t gap) {
  Send& send = sends_[walker.first_hop];
  Connection& flow = connections_[walker.first_hop];
  // When it would have left had nobody been in its way.
  const Ticks there = later(later(flow.started, flow.alone), gap);
  if (there > agenda_.now && !flow.apart) return take_back(walker, there);
  send.in_flight = 1;
  if (flow.apart)
    agenda_.send_apart(walker.first_hop, flow, std::max(there, agenda_.now));
  else
    agenda_.send(walker.first_hop, flow);
}

void Exchanges::take_back(Walker& walker, Ticks there) {
  --walker.received;
  --counters_[walker.counters].count;
  agenda_.queue.push(Event::at(there, EventKind::arrived, walker.counters));
}

void Exchanges::send_chunk(std::uint32_t connection) {
  Send& send = sends_[connection];
  const Walker& walker = walkers_[send.walker];
  if (send.in_flight != 0 || send.chunk == walker.chunks) return;
  if (send.previous != none) {
    const Send& before = sends_[send.previous];
    if (before.chunk - before.in_flight <= send.chunk) return;
  }
  while (send.seen < send.after && counters_[walker.counters + send.seen].count > send.chunk) ++send.seen;
  if (send.seen < send.after) return;
  send.seen = 0;
  ++send.chunk;
  send.in_flight = 1;
  agenda_.send(connection, connections_[connection]);
}

}  // namespace collcast::engine
