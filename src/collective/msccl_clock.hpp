// What a thread block knows of the others: of each, how many of its steps are over. Most know of few, so those are
// listed; who knows of many has a place for each. Every-to-every among 128 ranks has 16,384 thread blocks that know of
// two others each: places for all would be a gigabyte.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace collcast::msccl {

class Clock {
  using Known = std::pair<std::uint32_t, int>;

  template <class List>
  static auto find(List& list, std::size_t block) {
    return std::lower_bound(list.begin(), list.end(), block,
                            [](const Known& known, std::size_t at) { return known.first < at; });
  }

 public:
  explicit Clock(std::size_t blocks) : blocks_(blocks) {}

  int of(std::size_t block) const {
    if (!places_.empty()) return places_[block];
    const auto found = find(known_, block);
    return found != known_.end() && found->first == block ? found->second : 0;
  }
  /// Never fewer than before.
  void set(std::size_t block, int steps) {
    if (!places_.empty()) {
      places_[block] = std::max(places_[block], steps);
      return;
    }
    const auto found = find(known_, block);
    if (found != known_.end() && found->first == block)
      found->second = std::max(found->second, steps);
    else
      known_.insert(found, {static_cast<std::uint32_t>(block), steps});
    if (known_.size() * few > blocks_) spread();
  }
  void learn(const Clock& other) {
    if (!other.places_.empty()) {
      if (places_.empty()) spread();
      for (std::size_t i = 0; i < blocks_; ++i) places_[i] = std::max(places_[i], other.places_[i]);
      return;
    }
    for (const auto& [block, steps] : other.known_) set(block, steps);
  }

 private:
  static constexpr std::size_t few = 16;  ///< a list of more than the 16th part would be slower, and 8 bytes each

  void spread() {
    places_.assign(blocks_, 0);
    for (const auto& [block, steps] : known_) places_[block] = steps;
    known_ = {};
  }

  std::size_t blocks_;
  std::vector<Known> known_;  ///< by block; none once there are places
  std::vector<int> places_;
};

}  // namespace collcast::msccl
