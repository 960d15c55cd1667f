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
  for (const std::uint32_t flow : agenda_.starting) join(flow);
  for (const std::uint32_t id : agenda_.starting) {
    const Connection& flow = connections_[id];
    if (is_alone(flow))
      run_alone(id);
    else
      changed_.push_back(connections_.crossing(flow.route).link);
  }
  agenda_.starting.clear();
  if (!changed_.empty()) solve();
}

void MaxMinLinks::join(std::uint32_t id) {
  Connection& flow = connections_[id];
  flow.remaining = flow.size;
  flow.rate = 0;
  flow.since = flow.started = agenda_.now;
  for (std::uint32_t i = flow.route; i < flow.route + flow.length; ++i) {
    Crossing& crossing = connections_.crossing(i);
    LinkState& link = links_[crossing.link];
    if (link.count == 0) link.busy -= agenda_.now;
    if (link.count == link.room) {
      const std::uint32_t room = std::max<std::uint32_t>(1, 2 * link.room);
      const std::uint32_t block = lists_.allocate(room);
      std::ranges::copy(lists_.block(link.block, link.count), lists_.block(block, room).begin());
      lists_.release(link.block, link.room);
      link.block = block;
      link.room = room;
    }
    crossing.place = link.count++;
    lists_[link.block + crossing.place] = {id, i};
  }
}

void MaxMinLinks::stop(std::uint32_t id) {
  for (const Crossing& crossing : connections_.crossings(connections_[id])) {
    LinkState& link = links_[crossing.link];
    --link.count;
    if (link.count == 0) {
      link.busy += agenda_.now;
      continue;
    }
    changed_.push_back(crossing.link);
    const OnLink moved = lists_[link.block + link.count];
    lists_[link.block + crossing.place] = moved;
    connections_.crossing(moved.crossing).place = crossing.place;
  }
}

bool MaxMinLinks::is_alone(const Connection& flow) const {
  for (std::uint32_t i = flow.route; i < flow.route + flow.length; ++i)
    if (links_[connections_.crossing(i).link].count > 1) return false;
  return true;
}

void MaxMinLinks::run_alone(std::uint32_t id) {
  Connection& flow = connections_[id];
  flow.rate = flow.bandwidth;
  agenda_.queue.push(Event::at(later(agenda_.now, flow.alone), EventKind::left, id, flow.version));
}

void MaxMinLinks::solve() {
  ++solution_;
  flow_solved_.resize(connections_.size(), 0);
  filling_.clear();
  reached_links_.clear();
  reached_flows_.clear();
  for (const std::uint32_t link : changed_) reach(link);
  changed_.clear();

  for (std::size_t i = 0; i < reached_links_.size(); ++i) {
    const LinkState link = links_[reached_links_[i]];
    for (std::uint32_t k = 0; k < link.count; ++k) add_flow(lists_[link.block + k].flow);
  }
  filling_.fill();
  for (std::size_t i = 0; i < reached_flows_.size(); ++i) set_rate(reached_flows_[i], filling_.rate(i));
  rate_updates_ += static_cast<std::int64_t>(reached_flows_.size());
}

void MaxMinLinks::add_flow(std::uint32_t id) {
  if (flow_solved_[id] == solution_) return;
  flow_solved_[id] = solution_;
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
  flow.remaining = std::max(0.0, flow.remaining - flow.rate * seconds(now - flow.since));
  flow.since = now;
  flow.rate = rate;
  ++flow.version;
  if (rate == 0) return;
  const Ticks left = ticks(Volume(flow.remaining) / Bandwidth(rate));
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
