#include "collective/contributions.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace collcast {

Contributions Contributions::of(int rank) {
  Contributions one;
  one.words_.resize(static_cast<std::size_t>(rank) / 64 + 1);
  one.words_.back() = std::uint64_t{1} << (rank % 64);
  return one;
}

Contributions Contributions::all(int ranks) {
  Contributions every;
  every.words_.assign(static_cast<std::size_t>(ranks + 63) / 64, ~std::uint64_t{0});
  if (ranks % 64 != 0) every.words_.back() >>= 64 - ranks % 64;
  return every;
}

bool Contributions::empty() const {
  return std::all_of(words_.begin(), words_.end(), [](std::uint64_t w) { return w == 0; });
}

void Contributions::merge(const Contributions& other) {
  words_.resize(std::max(words_.size(), other.words_.size()));
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.word(i);
}

int Contributions::first_common(const Contributions& other) const {
  for (std::size_t i = 0; i < words_.size(); ++i)
    if (const std::uint64_t both = words_[i] & other.word(i); both != 0)
      return static_cast<int>(i * 64) + std::countr_zero(both);
  return -1;
}

int Contributions::first_difference(const Contributions& other) const {
  for (std::size_t i = 0; i < std::max(words_.size(), other.words_.size()); ++i)
    if (const std::uint64_t either = word(i) ^ other.word(i); either != 0)
      return static_cast<int>(i * 64) + std::countr_zero(either);
  return -1;
}

bool Contributions::contains(int rank) const {
  return (word(static_cast<std::size_t>(rank) / 64) >> (rank % 64) & 1) != 0;
}

Promise::Promise(const Lane& lane, CollectiveKind kind, int root, int ranks)
    : kind_(kind), root_(root), size_(ranks), blocks_(lane.blocks), order_(lane.order) {
  using enum CollectiveKind;
  if (order_.empty()) {
    order_.resize(static_cast<std::size_t>(ranks));
    std::iota(order_.begin(), order_.end(), 0);
  }
  std::vector<int> sorted = order_;
  std::sort(sorted.begin(), sorted.end());
  for (int i = 0; i < ranks; ++i)
    if (static_cast<int>(sorted.size()) != ranks || sorted[static_cast<std::size_t>(i)] != i)
      wrong_ = "the order is not a permutation of the group";
  const bool whole = kind == broadcast || kind == reduce || kind == all_reduce;
  const int unit = whole ? 1 : kind == alltoall ? ranks * ranks : ranks;
  if (lane.blocks < 1 || lane.blocks % unit != 0)
    wrong_ = std::to_string(lane.blocks) + " blocks are not a multiple of " + std::to_string(unit);
}

Holdings Promise::begin(Position v) const {
  using enum CollectiveKind;
  Holdings holdings(blocks_);
  const Contributions own = Contributions::of(participant(v));
  for (int b = 0; b < blocks_; ++b) {
    bool has = true;  // reduce, all_reduce, reduce_scatter: everyone contributes to everything
    if (kind_ == broadcast || kind_ == scatter) has = participant(v) == root_;
    if (kind_ == all_gather || kind_ == gather || kind_ == sendrecv) has = owner(b) == v;
    if (kind_ == alltoall) has = source(b) == v;
    if (has) holdings.block(b) = own;
  }
  return holdings;
}

bool Promise::promised(Position v, int block) const {
  using enum CollectiveKind;
  switch (kind_) {
    case reduce:
    case gather:
      return participant(v) == root_;
    case reduce_scatter:
    case scatter:
      return owner(block) == v;
    case alltoall:
      return target(block) == v;
    case sendrecv:
      return (participant(owner(block)) + 1) % size_ == participant(v);
    default:
      return true;
  }
}

Contributions Promise::due(int block) const {
  using enum CollectiveKind;
  switch (kind_) {
    case broadcast:
    case scatter:
      return Contributions::of(root_);
    case all_gather:
    case gather:
    case sendrecv:
      return Contributions::of(participant(owner(block)));
    case alltoall:
      return Contributions::of(participant(source(block)));
    default:
      return Contributions::all(size_);
  }
}

std::string Promise::broken(Position v, const Holdings& end) const {
  for (int b = 0; b < blocks_; ++b) {
    if (!promised(v, b)) continue;
    const Contributions expected = due(b);
    const int rank = end.block(b).first_difference(expected);
    if (rank < 0) continue;
    return "ends with block " + std::to_string(b) + (expected.contains(rank) ? " without" : " with") +
           " the contribution of rank " + std::to_string(rank) + (expected.contains(rank) ? "" : ", which is not due");
  }
  return {};
}

}  // namespace collcast
