// Events in chains of small blocks, from one stock: what one chain gives back another one takes, so that memory is that
// of the most events that were ever pending, however they move between chains.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/event.hpp"

namespace collcast::engine {

class EventBlocks {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

 public:
  struct Chain {
    std::uint32_t first = none, last = none;  ///< blocks
    std::uint32_t count = 0;                  ///< events
  };

  void append(Chain& chain, const Event& event) {
    const std::uint32_t place = chain.count % per_block;
    if (place == 0) {
      const std::uint32_t block = take();
      (chain.count == 0 ? chain.first : next_[chain.last]) = block;
      chain.last = block;
    }
    at(chain.last)[place] = event;
    ++chain.count;
  }

  /// In the order in which they were appended.
  template <class Visit>
  void for_each(const Chain& chain, Visit&& visit) const {
    std::uint32_t left = chain.count;
    for (std::uint32_t block = chain.first; left > 0; block = next_[block]) {
      const std::uint32_t here = std::min(left, per_block);
      for (std::uint32_t i = 0; i < here; ++i) visit(at(block)[i]);
      left -= here;
    }
  }

  /// The same, and the chain is empty. `visit` may append to others.
  template <class Visit>
  void empty(Chain& chain, Visit&& visit) {
    std::uint32_t left = chain.count, block = chain.first;
    chain = {};
    while (left > 0) {
      const std::uint32_t here = std::min(left, per_block), next = next_[block];
      const Event* events = at(block);  // blocks stay where they are
      for (std::uint32_t i = 0; i < here; ++i) visit(events[i]);
      left -= here;
      next_[block] = free_;
      free_ = block;
      block = next;
    }
  }

 private:
  static constexpr std::uint32_t per_block = 8;  // two lines of the cache
  static constexpr std::uint32_t per_slab = 64;
  using Slab = std::array<Event, std::size_t{per_block} * per_slab>;

  Event* at(std::uint32_t block) {
    return slabs_[block / per_slab]->data() + std::size_t{block % per_slab} * per_block;
  }
  const Event* at(std::uint32_t block) const {
    return slabs_[block / per_slab]->data() + std::size_t{block % per_slab} * per_block;
  }

  std::uint32_t take() {
    if (free_ == none) add_slab();
    const std::uint32_t block = free_;
    free_ = next_[block];
    return block;
  }
  void add_slab() {
    const auto begin = static_cast<std::uint32_t>(next_.size());
    slabs_.push_back(std::make_unique<Slab>());
    for (std::uint32_t block = begin; block < begin + per_slab; ++block) next_.push_back(block + 1);
    next_.back() = none;
    free_ = begin;
  }

  std::vector<std::unique_ptr<Slab>> slabs_;
  std::vector<std::uint32_t> next_;  ///< by block: the next one of its chain, or of those that are free
  std::uint32_t free_ = none;
};

}  // namespace collcast::engine
