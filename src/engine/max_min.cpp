#include "engine/max_min.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "collcast/base/check.hpp"
#include "collcast/engine/engine.hpp"

namespace collcast::engine {

void MaxMinLinks::settle() {
  if (connections_.joined().empty() && agenda_.starting.empty() && changed_.empty()) return;
  if (links_.size() == 0) begin();
  if (flows_.size() < connections_.size()) flows_.resize(connections_.size());
  for (const std::uint32_t flow : connections_.joined())  // or closed and, at this instant, opened elsewhere
    if (connections_[flow].is_unlisted && !connections_[flow].apart) list_late(flow);
  for (const std::uint32_t flow : agenda_.starting) join(flow);

  for (const std::uint32_t flow : connections_.joined())
    if (flows_[flow].shared > 0) fresh_.push_back(flow);
  connections_.joined().clear();
  for (const std::uint32_t flow : agenda_.starting)
    if (flows_[flow].shared > 0)
      fresh_.push_back(flow);
    else
      run_alone(flow);
  agenda_.starting.clear();
  if (!changed_.empty()) look_at_changes();
}

void MaxMinLinks::begin() {
  links_.begin(given_);
  levels_.begin();
  reached_.resize(given_.size());
}

void MaxMinLinks::join(std::uint32_t id) {
  const ConnectionRoute& route = connections_.route(id);
  FlowState& flow = flows_[id];
  flow.remaining = to_move(route.size);
  flow.rate = 0;
  flow.since = connections_[id].started = agenda_.now;
  int shared = 0;
  for (std::uint32_t i = route.first; i < route.first + route.length; ++i) {
    const LinkState& link = links_.enter(id, i, agenda_.now);
    if (link.count < 2) continue;
    if (link.count == 2) share(links_.flows_on(link).front().flow, 1);
    ++shared;
    changed_.push_back(connections_.crossing(i).link);
  }
  share(id, shared);
}

/// A connection has got a link of the flow's, which has been alone there until now: as if it had been listed all along.
void MaxMinLinks::list_late(std::uint32_t id) {
  Connection& connection = connections_[id];
  connection.is_unlisted = false;
  const ConnectionRoute& route = connections_.route(id);
  FlowState& flow = flows_[id];
  flow.remaining = to_move(route.size);
  flow.rate = connections_.bandwidth(id);
  flow.since = connection.started;
  for (std::uint32_t i = route.first; i < route.first + route.length; ++i) links_.enter(id, i, connection.started);
}

/// The flow shares so many more of its links, or fewer.
void MaxMinLinks::share(std::uint32_t id, int change) {
  FlowState& flow = flows_[id];
  const bool was_entangled = flow.shared > 1;
  flow.shared += static_cast<std::uint32_t>(change);
  const bool is_entangled = flow.shared > 1;
  if (is_entangled == was_entangled) return;
  for (const Crossing& crossing : connections_.crossings(id)) {
    LinkState& link = links_[crossing.link];
    link.entangled += is_entangled ? 1U : ~0U;
    if (is_entangled && link.pool != none) changed_.push_back(crossing.link);
  }
}

void MaxMinLinks::unlist(std::uint32_t id) {
  if (flows_[id].pool != none) leave_pool(id);
  share(id, -static_cast<int>(flows_[id].shared));
  for (const Crossing& crossing : connections_.crossings(id)) {
    const LinkState& link = links_.leave(crossing, agenda_.now);
    if (link.count > 0) changed_.push_back(crossing.link);
    if (link.count == 1) share(links_.flows_on(link).front().flow, -1);
  }
}

void MaxMinLinks::leave_pool(std::uint32_t id) {
  Pool& pool = pools_[flows_[id].pool];
  flows_[id].pool = none;
  if (pool.expected != id) return;  // taken out with the one that was
  pool.expected = none;
  pool.flows.drop_first();
  take_out_those_that_left(pool);
}

void MaxMinLinks::go_on(std::uint32_t id) {
  Pool& pool = pools_[flows_[id].pool];
  pool.expected = none;
  flows_[id].since = connections_[id].started = agenda_.now;
  pool.flows.renew_first(to_move(connections_.route(id).size), agenda_.now);
  changed_.push_back(pool.link);
  take_out_those_that_left(pool);
}

void MaxMinLinks::take_out_those_that_left(Pool& pool) {
  // Whoever else has left by now does so at this instant, and is seen together with the first.
  while (!pool.flows.empty() && pool.flows.to_go(agenda_.now) <= 0) {
    const std::uint32_t next = pool.flows.first();
    pool.flows.drop_first();
    agenda_.following.push_back(Due::of(EventKind::left, next, connections_[next].version));
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
    unsolved_.push_back(id);
  }
  changed_.clear();
  if (!unsolved_.empty()) solve();
  unsolved_.clear();
  fresh_.clear();
}

bool MaxMinLinks::pool_up(std::uint32_t id) {
  LinkState& link = links_[id];
  if (!is_apart(link)) return false;
  std::size_t inside = 0;
  std::uint64_t weights = 0;
  for (std::uint32_t p = link.pool; p != none; p = pools_[p].next) {
    inside += pools_[p].flows.size();
    weights += pools_[p].flows.size() * pools_[p].weight;
  }
  if (inside == link.count && weights == pools_[link.pool].weights) {  // as it was
    set_pool_rates(id, pools_[link.pool].per_weight);
    return true;
  }
  // Who is not in one yet has come at this instant, and is at the end of the list.
  const auto flows = links_.flows_on(link);
  double others = link.pool == none ? std::numeric_limits<double>::infinity() : pools_[link.pool].others;
  for (const SharedLinks::OnLink& on : flows.subspan(inside)) {
    if (links_.priority(on.flow) != links_.priority(flows[0].flow)) return false;
    const std::uint16_t weight = links_.weight(on.flow);
    weights += weight;
    others = std::min(others, smallest_other(on.flow, id) / weight);
  }
  const double share = link.capacity / static_cast<double>(weights);
  // A flow of some weight that another link stops just there has that link's rate, not its weight in shares.
  if (share > others || (share == others && weights != link.count)) return false;

  for (const SharedLinks::OnLink& on : flows.subspan(inside)) {
    const std::uint32_t pool = pool_of(id, links_.weight(on.flow));
    if (pool == none) return false;
    enter(pool, on.flow);
  }
  Pool& first = pools_[link.pool];
  first.others = others;
  first.weights = weights;
  first.per_weight = share;
  set_pool_rates(id, share);
  return true;
}

/// The link's pool for flows of this weight, if need be a new one; none if it has too many.
std::uint32_t MaxMinLinks::pool_of(std::uint32_t id, std::uint16_t weight) {
  std::uint32_t last = none;
  int count = 0;
  for (std::uint32_t p = links_[id].pool; p != none; last = p, p = pools_[p].next, ++count)
    if (pools_[p].weight == weight) return p;
  if (count == most_weights) return none;
  const std::uint32_t pool = new_pool(id);
  pools_[pool].weight = weight;
  (last == none ? links_[id].pool : pools_[last].next) = pool;
  return pool;
}

std::uint32_t MaxMinLinks::new_pool(std::uint32_t link) {
  if (free_pools_.empty()) {
    free_pools_.push_back(static_cast<std::uint32_t>(pools_.size()));
    pools_.emplace_back();
  }
  const std::uint32_t id = free_pools_.back();
  free_pools_.pop_back();
  Pool& pool = pools_[id];
  pool.flows.begin(agenda_.now);
  pool.share = -1;
  pool.weights = 0;
  pool.link = link;
  pool.next = none;
  return id;
}

void MaxMinLinks::enter(std::uint32_t pool, std::uint32_t id) {
  FlowState& flow = flows_[id];
  const Ticks now = agenda_.now;
  pools_[pool].flows.add(id, flow.remaining - grains_per_tick(flow.rate) * (now - flow.since), now);
  flow.pool = pool;
  ++connections_[id].version;
}

void MaxMinLinks::take_apart(std::uint32_t id) {
  LinkState& link = links_[id];
  for (std::uint32_t p = link.pool; p != none; p = pools_[p].next) {
    Pool& pool = pools_[p];
    if (pool.expected != none) ++connections_[pool.expected].version;
    pool.expected = none;
    pool.flows.for_each(agenda_.now, [this](std::uint32_t member, Grains to_go) {
      FlowState& flow = flows_[member];
      flow.remaining = to_go;
      flow.since = agenda_.now;
      flow.rate = 0;
      flow.pool = none;
      fresh_.push_back(member);
    });
    free_pools_.push_back(p);
  }
  link.pool = none;
}

void MaxMinLinks::set_pool_rates(std::uint32_t id, double share) {
  for (std::uint32_t p = links_[id].pool; p != none; p = pools_[p].next) {
    Pool& pool = pools_[p];
    if (pool.flows.empty()) continue;
    const Grains rate = share == pool.share ? pool.flows.rate() : grains_per_tick(share * pool.weight);
    pool.share = share;
    const std::uint32_t first = pool.flows.first();
    if (first == pool.expected && rate == pool.flows.rate()) continue;
    pool.flows.set_rate(rate, agenda_.now);
    ++rate_updates_;
    if (pool.expected != none) ++connections_[pool.expected].version;
    pool.expected = first;
    const Ticks left = ticks_to_move(pool.flows.to_go(agenda_.now), rate);
    agenda_.queue.push(Event::at(later(agenda_.now, left), EventKind::left, first, connections_[first].version));
  }
}

double MaxMinLinks::smallest_other(std::uint32_t flow, std::uint32_t link) const {
  double smallest = std::numeric_limits<double>::infinity();
  for (const Crossing& crossing : links_.links_of(flow))
    if (crossing.link != link) smallest = std::min(smallest, links_[crossing.link].capacity);
  return smallest;
}

void MaxMinLinks::run_alone(std::uint32_t id) {
  flows_[id].rate = connections_.bandwidth(id);
  const Ticks left = later(agenda_.now, connections_.alone(id));
  agenda_.queue.push(Event::at(left, EventKind::left, id, connections_[id].version));
}

void MaxMinLinks::solve() {
  // Looking at a flow from a level costs about what adding it to a solution from nothing does, four times over; 64 so
  // that a handful of flows, of which some are looked at twice, are not given up on. Either way: the same rates.
  constexpr std::size_t few = 64, times = 4;
  if (!levels_.settle(unsolved_, few + times * flows_.size())) return solve_anew();
  for (const std::uint32_t flow : fresh_) bring_up_to_date(flow);
  for (const std::uint32_t flow : levels_.touched()) bring_up_to_date(flow);
#ifndef NDEBUG
  for (const std::uint32_t flow : fresh_) check_share(flow);
  for (const std::uint32_t flow : levels_.touched()) check_share(flow);
#endif
}

void MaxMinLinks::bring_up_to_date(std::uint32_t flow) {
  if (flows_[flow].pool != none) return;
  ++rate_updates_;
  set_rate(flow, levels_.rate(flow));
}

/// Everything that can be reached from the links that changed, from nothing.
void MaxMinLinks::solve_anew() {
  ++solution_;
  filling_.clear();
  reached_links_.clear();
  reached_flows_.clear();
  for (const std::uint32_t id : unsolved_) {
    const LinkState& link = links_[id];
    if (link.count < 2) levels_.set(id, link.capacity);
    if (link.count > 0 && flows_[links_.flows_on(link).front().flow].pool == none)
      reach(id);  // else it is the only flow there, and in a pool elsewhere
  }

  for (std::size_t i = 0; i < reached_links_.size(); ++i)
    for (const SharedLinks::OnLink& on : links_.flows_on(links_[reached_links_[i]])) add_flow(on.flow);
  filling_.fill();
  for (std::size_t i = 0; i < reached_flows_.size(); ++i) set_rate(reached_flows_[i], filling_.rate(i));
  for (const std::uint32_t id : reached_links_) {
    if (links_[id].count < 2) continue;
    if (!filling_.is_plain())
      levels_.forget(id);
    else
      levels_.set(id, filling_.level(reached_[id].number));
  }
  rate_updates_ += static_cast<std::int64_t>(reached_flows_.size());
#ifndef NDEBUG
  for (const std::uint32_t flow : reached_flows_) check_share(flow);
#endif
}

void MaxMinLinks::add_flow(std::uint32_t id) {
  if (flows_[id].solved == solution_) return;
  flows_[id].solved = solution_;
  reached_flows_.push_back(id);
  const std::uint16_t weight = links_.weight(id);
  filling_.add_flow({links_.priority(id), weight});
  double own = std::numeric_limits<double>::infinity();     // smallest of the links it has to itself
  double shared = std::numeric_limits<double>::infinity();  // and of the others
  for (const Crossing& crossing : links_.links_of(id)) {
    const LinkState& link = links_[crossing.link];
    if (link.count == 1) {
      own = std::min(own, link.capacity);
      continue;
    }
    shared = std::min(shared, link.capacity);
    reach(crossing.link);
    filling_.cross(reached_[crossing.link].number);
  }
  // Where both are the same it is the link alone that says so, to the bit.
  if (own < shared || (own == shared && weight != 1)) filling_.limit(own);
}

void MaxMinLinks::reach(std::uint32_t id) {
  if (reached_[id].solution == solution_) return;
  reached_[id] = {solution_, filling_.add_link(links_[id].capacity)};
  reached_links_.push_back(id);
}

void MaxMinLinks::set_rate(std::uint32_t id, double rate) {
  FlowState& flow = flows_[id];
  if (rate == flow.rate) return;
  const Ticks now = agenda_.now;
  flow.remaining -= grains_per_tick(flow.rate) * (now - flow.since);
  flow.since = now;
  flow.rate = rate;
  const std::uint32_t version = ++connections_[id].version;
  if (rate == 0) return;
  const Ticks left = ticks_to_move(flow.remaining, grains_per_tick(rate));
  agenda_.queue.push(Event::at(later(now, left), EventKind::left, id, version));
}

}  // namespace collcast::engine

namespace collcast {

void max_min_rates(std::span<const FlowDemand> flows, std::span<const Bandwidth> capacity, std::span<Bandwidth> rates) {
  check(flows.size() == rates.size(), "every flow gets a rate");
  engine::WaterFilling filling;
  for (const Bandwidth bandwidth : capacity) filling.add_link(bandwidth.value());
  for (const FlowDemand& flow : flows) {
    filling.add_flow(flow.traffic);
    for (const LinkId link : flow.links) filling.cross(link.value());
  }
  filling.fill();
  for (std::size_t i = 0; i < rates.size(); ++i) rates[i] = Bandwidth(filling.rate(i));
}

}  // namespace collcast
