#include "engine/water_filling.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "collcast/base/check.hpp"

namespace collcast::engine {

namespace {
constexpr double full = 1e-12;  // of a link's capacity; above the rounding of any sum of its rates
}

void WaterFilling::clear() {
  links_.clear();
  flows_.clear();
  crossings_.clear();
  has_weights_ = false;
}

std::uint32_t WaterFilling::add_link(double capacity) {
  Link link;
  link.capacity = link.left = capacity;
  links_.push_back(link);
  return static_cast<std::uint32_t>(links_.size() - 1);
}

void WaterFilling::add_flow(TrafficClass traffic) {
  constexpr double unlimited = std::numeric_limits<double>::infinity();
  check(traffic.weight > 0, "a flow has a weight");
  flows_.push_back({static_cast<std::uint32_t>(crossings_.size()), traffic, unlimited, unlimited, true});
  has_weights_ |= traffic.weight != 1;
}

std::uint32_t WaterFilling::end_of(std::size_t flow) const {
  return flow + 1 < flows_.size() ? flows_[flow + 1].first_crossing : static_cast<std::uint32_t>(crossings_.size());
}

void WaterFilling::list_flows_by_link() {
  for (const std::uint32_t link : crossings_) ++links_[link].first_flow;
  std::uint32_t end = 0;
  for (Link& link : links_) end = link.first_flow += end;
  on_link_.resize(crossings_.size());
  for (std::uint32_t flow = static_cast<std::uint32_t>(flows_.size()); flow-- > 0;)
    for (std::uint32_t i = flows_[flow].first_crossing, last = end_of(flow); i < last; ++i)
      on_link_[--links_[crossings_[i]].first_flow] = flow;
}

void WaterFilling::fill() {
  list_flows_by_link();
  priorities_.clear();
  for (const FlowState& flow : flows_)
    if (priorities_.empty() || priorities_.back() != flow.traffic.priority)
      priorities_.push_back(flow.traffic.priority);
  std::sort(priorities_.begin(), priorities_.end());
  priorities_.erase(std::unique(priorities_.begin(), priorities_.end()), priorities_.end());
  for (const int priority : priorities_) fill_class(priority);
}

void WaterFilling::fill_class(int priority) {
  levels_.clear();
  for (std::uint32_t id = 0; id < flows_.size(); ++id) {
    const FlowState& flow = flows_[id];
    if (flow.traffic.priority != priority) continue;
    for (std::uint32_t i = flow.first_crossing, last = end_of(id); i < last; ++i)
      links_[crossings_[i]].growing += flow.traffic.weight;
    if (flow.limit < std::numeric_limits<double>::infinity())
      levels_.push_back({flow.limit / flow.traffic.weight, id, true});
  }
  for (std::uint32_t id = 0; id < links_.size(); ++id) {
    Link& link = links_[id];
    if (link.growing == 0) continue;
    if (link.left < full * link.capacity) link.left = 0;
    link.share = link.left / static_cast<double>(link.growing);
    levels_.push_back({link.share, id, false});
  }
  std::make_heap(levels_.begin(), levels_.end(), Higher());

  while (has_bottleneck()) {
    const double share = levels_.front().share;
    while (has_bottleneck() && levels_.front().share == share) {
      const Level lowest = levels_.front();
      drop_lowest();
      if (lowest.is_flow)
        stop(lowest.index, share);
      else
        stop_flows_of(lowest.index, priority, share);
    }
    lower_capacities(share);
  }
}

bool WaterFilling::has_bottleneck() {
  while (!levels_.empty()) {
    const Level lowest = levels_.front();
    if (lowest.is_flow) {
      if (flows_[lowest.index].growing) return true;
      drop_lowest();
      continue;
    }
    const Link& link = links_[lowest.index];
    if (link.growing > 0 && link.share == lowest.share) return true;
    drop_lowest();
    if (link.growing == 0) continue;
    levels_.push_back({link.share, lowest.index, false});
    std::push_heap(levels_.begin(), levels_.end(), Higher());
  }
  return false;
}

void WaterFilling::drop_lowest() {
  std::pop_heap(levels_.begin(), levels_.end(), Higher());
  levels_.pop_back();
}

void WaterFilling::stop_flows_of(std::uint32_t bottleneck, int priority, double share) {
  links_[bottleneck].level = share;
  const std::uint32_t begin = links_[bottleneck].first_flow;
  const std::uint32_t end =
      bottleneck + 1 < links_.size() ? links_[bottleneck + 1].first_flow : static_cast<std::uint32_t>(on_link_.size());
  for (std::uint32_t k = begin; k < end; ++k)
    if (flows_[on_link_[k]].growing && flows_[on_link_[k]].traffic.priority == priority) stop(on_link_[k], share);
}

void WaterFilling::stop(std::uint32_t id, double share) {
  FlowState& flow = flows_[id];
  flow.growing = false;
  const double weight = flow.traffic.weight;
  flow.rate = flow.limit / weight == share ? flow.limit : share * weight;
  for (std::uint32_t i = flow.first_crossing, last = end_of(id); i < last; ++i)
    if (std::exchange(links_[crossings_[i]].stopping, links_[crossings_[i]].stopping + flow.traffic.weight) == 0)
      touched_.push_back(crossings_[i]);
}

void WaterFilling::lower_capacities(double share) {
  for (const std::uint32_t l : touched_) {
    Link& link = links_[l];
    link.left -= static_cast<double>(link.stopping) * share;
    link.growing -= link.stopping;
    link.stopping = 0;
    if (link.growing > 0) link.share = std::max(link.share, link.left / static_cast<double>(link.growing));
  }
  touched_.clear();
}

}  // namespace collcast::engine
