#include "engine/levels.hpp"

#include <algorithm>
#include <limits>

namespace collcast::engine {

namespace {
constexpr double unlimited = std::numeric_limits<double>::infinity();
}

void Levels::begin() {
  states_.resize(links_.size());
  reached_.resize(links_.size());
  for (std::uint32_t l = 0; l < links_.size(); ++l) set(l, links_[l].capacity);
}

bool Levels::settle(std::span<const std::uint32_t> changed, std::size_t visits) {
  ++settling_;
  touched_.clear();
  visits_left_ = visits;
  gives_up_ = false;
  for (const std::uint32_t link : changed) reconsider(link);
  while (!heap_.empty() && !gives_up_) {
    const Waiting first = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    const State& state = states_[first.link];
    if (first.key == std::min(state.told, state.right) && state.told != state.right) tell(first.link);
  }
  drop_what_waits();
  return !gives_up_;
}

void Levels::drop_what_waits() {
  for (const Waiting& waiting : heap_) states_[waiting.link].right = states_[waiting.link].told;
  heap_.clear();
}

double Levels::rate(std::uint32_t flow) const {
  double least = unlimited;
  for (const Crossing& crossing : links_.links_of(flow)) least = std::min(least, states_[crossing.link].told);
  return least;
}

void Levels::reconsider(std::uint32_t link) {
  if (!work_out(link)) {
    gives_up_ = true;
    return;
  }
  const State& state = states_[link];
  if (state.told == state.right) return;
  heap_.push_back({std::min(state.told, state.right), link});
  std::push_heap(heap_.begin(), heap_.end());
}

/// Its right level; false if that cannot be said.
bool Levels::work_out(std::uint32_t id) {
  const SharedLinks::LinkState& link = links_[id];
  if (link.count <= 1) {
    states_[id].right = link.capacity;
    return true;
  }
  if (link.count > visits_left_) return false;
  visits_left_ -= link.count;
  others_.clear();
  const auto flows = links_.flows_on(link);
  const int priority = links_.priority(flows.front().flow);
  for (const SharedLinks::OnLink& on : flows) {
    if (links_.priority(on.flow) != priority || links_.weight(on.flow) != 1) return false;
    double least = unlimited;
    for (const Crossing& crossing : links_.links_of(on.flow))
      if (crossing.link != id) least = std::min(least, states_[crossing.link].told);
    if (least == unknown) return false;
    others_.push_back(least);
  }
  states_[id].right = level_by_others(link.capacity);
  return true;
}

double Levels::level_by_others(double capacity) {
  std::sort(others_.begin(), others_.end());
  double left = capacity, share = capacity / static_cast<double>(others_.size());
  for (std::size_t i = 0; i < others_.size();) {
    const double lowest = others_[i];
    if (lowest >= share) return share;
    std::size_t end = i + 1;
    while (end < others_.size() && others_[end] == lowest) ++end;
    left -= static_cast<double>(end - i) * lowest;
    i = end;
    if (i < others_.size()) share = std::max(share, left / static_cast<double>(others_.size() - i));
  }
  return unlimited;
}

void Levels::tell(std::uint32_t id) {
  State& state = states_[id];
  const double lower = std::min(state.told, state.right);
  state.told = state.right;
  ++telling_;
  to_reconsider_.clear();
  for (const SharedLinks::OnLink& on : links_.flows_on(links_[id])) tell_flow(on.flow, id, lower);
  for (const std::uint32_t link : to_reconsider_) reconsider(link);
}

/// The level of `link` on the flow's route was `lower` and is more, or the other way round.
void Levels::tell_flow(std::uint32_t flow, std::uint32_t link, double lower) {
  const auto route = links_.links_of(flow);
  double least = unlimited, second = unlimited;  // of the others
  for (const Crossing& crossing : route) {
    if (crossing.link == link) continue;
    const double level = states_[crossing.link].told;
    second = std::min(second, std::max(least, level));
    least = std::min(least, level);
  }
  if (least == unknown) gives_up_ = true;
  if (least > lower) touch(flow);
  for (const Crossing& crossing : route) {
    if (crossing.link == link || !links_[crossing.link].is_solved()) continue;
    const State& other = states_[crossing.link];
    const double rest = other.told == least ? second : least;
    if (rest <= lower || lower >= other.right) continue;
    if (reached_[crossing.link] == telling_) continue;
    reached_[crossing.link] = telling_;
    to_reconsider_.push_back(crossing.link);
  }
}

void Levels::touch(std::uint32_t flow) {
  if (touched_at_.size() <= flow) touched_at_.resize(flow + std::size_t{1});
  if (touched_at_[flow] == settling_) return;
  touched_at_[flow] = settling_;
  touched_.push_back(flow);
}

}  // namespace collcast::engine
