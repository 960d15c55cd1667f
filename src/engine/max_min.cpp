#include "engine/max_min.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace collcast::engine {

MaxMinLinks::MaxMinLinks(std::span<const Link> links, Connections& connections, Agenda& agenda)
    : connections_(connections), agenda_(agenda), links_(links.size()) {
  for (std::size_t i = 0; i < links.size(); ++i) links_[i].capacity = links[i].bandwidth.value();
}

void MaxMinLinks::settle() {
  flows_.resize(connections_.size());
  for (const std::uint32_t flow : agenda_.starting) join(flow);
  for (const std::uint32_t flow : agenda_.starting)
    if (flows_[flow].shared == 0) run_alone(flow);
  agenda_.starting.clear();
  if (!changed_.empty()) look_at_changes();
}

void MaxMinLinks::join(std::uint32_t id) {
  Connection& flow = connections_[id];
  flow.remaining = flow.to_move;
  flow.rate = 0;
  flow.since = flow.started = agenda_.now;
  int shared = 0;
  for (std::uint32_t i = flow.route; i < flow.route + flow.length; ++i) {
    list(id, i);
    const LinkState& link = links_[connections_.crossing(i).link];
    if (link.count < 2) continue;
    if (link.count == 2) share(lists_[link.block].flow, 1);
    ++shared;
    changed_.push_back(connections_.crossing(i).link);
  }
  share(id, shared);
}

void MaxMinLinks::list(std::uint32_t flow, std::uint32_t index) {
  Crossing& crossing = connections_.crossing(index);
  LinkState& link = links_[crossing.link];
  if (link.count == 0) link.busy -= agenda_.now;
  if (link.count == link.room) lists_.grow(link.block, link.room, link.count);
  crossing.place = link.count++;
  lists_[link.block + crossing.place] = {flow, index};
}

/// The flow shares so many more of its links, or fewer.
void MaxMinLinks::share(std::uint32_t id, int change) {
  FlowState& flow = flows_[id];
  const bool was_entangled = flow.shared > 1;
  flow.shared += static_cast<std::uint32_t>(change);
  const bool is_entangled = flow.shared > 1;
  if (is_entangled == was_entangled) return;
  for (const Crossing& crossing : connections_.crossings(connections_[id])) {
    LinkState& link = links_[crossing.link];
    link.entangled += is_entangled ? 1U : ~0U;
    if (is_entangled && link.pool != none) changed_.push_back(crossing.link);
  }
}

void MaxMinLinks::stop(std::uint32_t id) {
  if (flows_[id].pool != none) leave_pool(id);
  share(id, -static_cast<int>(flows_[id].shared));
  for (const Crossing& crossing : connections_.crossings(connections_[id])) unlist(crossing);
}

void MaxMinLinks::unlist(const Crossing& crossing) {
  LinkState& link = links_[crossing.link];
  --link.count;
  if (link.count == 0) {
    link.busy += agenda_.now;
    return;
  }
  changed_.push_back(crossing.link);
  const OnLink moved = lists_[link.block + link.count];
  lists_[link.block + crossing.place] = moved;
  connections_.crossing(moved.crossing).place = crossing.place;
  if (link.count == 1) share(lists_[link.block].flow, -1);
}

void MaxMinLinks::leave_pool(std::uint32_t id) {
  Pool& pool = pools_[flows_[id].pool];
  flows_[id].pool = none;
  if (pool.expected != id) return;  // taken out with the one that was
  pool.expected = none;
  pool.flows.drop_first();
  // Whoever else has left by now does so at this instant, and is seen together with the first.
  while (!pool.flows.empty() && pool.flows.to_go(agenda_.now) <= 0) {
    const std::uint32_t next = pool.flows.first();
    pool.flows.drop_first();
    agenda_.instant.push_back(Event::at(agenda_.now, EventKind::left, next, connections_[next].version));
  }
}

/// Takes pools apart, makes others, and has the rest solved.
void MaxMinLinks::look_at_changes() {
  ++instant_;
  for (const std::uint32_t id : changed_)  // first, since its flows may go into another
    if (links_[id].pool != none && !is_apart(links_[id])) take_apart(id);
  for (const std::uint32_t id : changed_) {
    LinkState& link = links_[id];
    if (link.looked_at == instant_) continue;
    link.looked_at = instant_;
    if (pool_up(id)) continue;
    if (link.pool != none) take_apart(id);
    if (link.count > 0) unsolved_.push_back(id);
  }
  changed_.clear();
  if (!unsolved_.empty()) solve();
  unsolved_.clear();
}

bool MaxMinLinks::pool_up(std::uint32_t id) {
  LinkState& link = links_[id];
  if (!is_apart(link)) return false;
  // Who is not in it yet has come at this instant, and is at the end of the list.
  const auto flows = lists_.block(link.block, link.count);
  const std::size_t inside = link.pool == none ? 0 : pools_[link.pool].flows.size();
  double others = link.pool == none ? std::numeric_limits<double>::infinity() : pools_[link.pool].others;
  for (const OnLink& on : flows.subspan(inside)) {
    if (connections_[on.flow].priority != connections_[flows[0].flow].priority) return false;
    others = std::min(others, smallest_other(connections_[on.flow], id));
  }
  if (link.capacity / link.count > others) return false;

  if (link.pool == none) {
    if (free_pools_.empty()) {
      free_pools_.push_back(static_cast<std::uint32_t>(pools_.size()));
      pools_.emplace_back();
    }
    link.pool = free_pools_.back();
    free_pools_.pop_back();
    pools_[link.pool].flows.begin(agenda_.now);
  }
  pools_[link.pool].others = others;
  for (const OnLink& on : flows.subspan(inside)) enter(link.pool, on.flow);
  set_pool_rate(id);
  return true;
}

void MaxMinLinks::enter(std::uint32_t pool, std::uint32_t id) {
  Connection& flow = connections_[id];
  const Ticks now = agenda_.now;
  pools_[pool].flows.add(id, flow.remaining - grains_per_tick(flow.rate) * (now - flow.since), now);
  flows_[id].pool = pool;
  ++flow.version;
}

void MaxMinLinks::take_apart(std::uint32_t id) {
  LinkState& link = links_[id];
  Pool& pool = pools_[link.pool];
  if (pool.expected != none) ++connections_[pool.expected].version;
  pool.expected = none;
  pool.flows.for_each(agenda_.now, [this](std::uint32_t member, Grains to_go) {
    Connection& flow = connections_[member];
    flow.remaining = to_go;
    flow.since = agenda_.now;
    flow.rate = 0;
    flows_[member].pool = none;
  });
  free_pools_.push_back(link.pool);
  link.pool = none;
}

void MaxMinLinks::set_pool_rate(std::uint32_t id) {
  const LinkState& link = links_[id];
  Pool& pool = pools_[link.pool];
  const Grains rate = grains_per_tick(link.capacity / link.count);
  const std::uint32_t first = pool.flows.first();
  if (first == pool.expected && rate == pool.flows.rate()) return;
  pool.flows.set_rate(rate, agenda_.now);
  ++rate_updates_;
  if (pool.expected != none) ++connections_[pool.expected].version;
  pool.expected = first;
  const Ticks left = ticks_to_move(pool.flows.to_go(agenda_.now), rate);
  agenda_.queue.push(Event::at(later(agenda_.now, left), EventKind::left, first, connections_[first].version));
}

double MaxMinLinks::smallest_other(const Connection& flow, std::uint32_t link) const {
  double smallest = std::numeric_limits<double>::infinity();
  for (std::uint32_t i = flow.route; i < flow.route + flow.length; ++i)
    if (const std::uint32_t other = connections_.crossing(i).link; other != link)
      smallest = std::min(smallest, links_[other].capacity);
  return smallest;
}

void MaxMinLinks::run_alone(std::uint32_t id) {
  Connection& flow = connections_[id];
  flow.rate = flow.bandwidth;
  agenda_.queue.push(Event::at(later(agenda_.now, flow.alone), EventKind::left, id, flow.version));
}

void MaxMinLinks::solve() {
  ++solution_;
  filling_.clear();
  reached_links_.clear();
  reached_flows_.clear();
  for (const std::uint32_t id : unsolved_) {
    const LinkState& link = links_[id];
    if (flows_[lists_[link.block].flow].pool == none)
      reach(id);  // else it is the only flow there, and in a pool elsewhere
  }

  for (std::size_t i = 0; i < reached_links_.size(); ++i) {
    const LinkState link = links_[reached_links_[i]];
    for (std::uint32_t k = 0; k < link.count; ++k) add_flow(lists_[link.block + k].flow);
  }
  filling_.fill();
  for (std::size_t i = 0; i < reached_flows_.size(); ++i) set_rate(reached_flows_[i], filling_.rate(i));
  rate_updates_ += static_cast<std::int64_t>(reached_flows_.size());
}

void MaxMinLinks::add_flow(std::uint32_t id) {
  if (flows_[id].solved == solution_) return;
  flows_[id].solved = solution_;
  reached_flows_.push_back(id);
  const Connection& flow = connections_[id];
  filling_.add_flow(flow.priority);
  double own = std::numeric_limits<double>::infinity();     // smallest of the links it has to itself
  double shared = std::numeric_limits<double>::infinity();  // and of the others
  for (const Crossing& crossing : connections_.crossings(flow)) {
    const LinkState& link = links_[crossing.link];
    if (link.count == 1) {
      own = std::min(own, link.capacity);
      continue;
    }
    shared = std::min(shared, link.capacity);
    reach(crossing.link);
    filling_.cross(link.number);
  }
  if (own < shared) filling_.limit(own);
}

void MaxMinLinks::reach(std::uint32_t id) {
  LinkState& link = links_[id];
  if (link.solved == solution_) return;
  link.solved = solution_;
  link.number = filling_.add_link(link.capacity);
  reached_links_.push_back(id);
}

void MaxMinLinks::set_rate(std::uint32_t id, double rate) {
  Connection& flow = connections_[id];
  if (rate == flow.rate) return;
  const Ticks now = agenda_.now;
  flow.remaining -= grains_per_tick(flow.rate) * (now - flow.since);
  flow.since = now;
  flow.rate = rate;
  ++flow.version;
  if (rate == 0) return;
  const Ticks left = ticks_to_move(flow.remaining, grains_per_tick(rate));
  agenda_.queue.push(Event::at(later(now, left), EventKind::left, id, flow.version));
}

}  // namespace collcast::engine

namespace collcast {

void max_min_rates(std::span<const FlowDemand> flows, std::span<const Bandwidth> capacity, std::span<Bandwidth> rates) {
  check(flows.size() == rates.size(), "every flow gets a rate");
  engine::WaterFilling filling;
  for (const Bandwidth bandwidth : capacity) filling.add_link(bandwidth.value());
  for (const FlowDemand& flow : flows) {
    filling.add_flow(flow.priority);
    for (const LinkId link : flow.links) filling.cross(link.value());
  }
  filling.fill();
  for (std::size_t i = 0; i < rates.size(); ++i) rates[i] = Bandwidth(filling.rate(i));
}

}  // namespace collcast
