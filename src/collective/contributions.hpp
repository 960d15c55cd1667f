// Sets of contributions, what a position holds of each block, and what a collective promises about it.
//
// A contribution is a rank's original data; a block's value is the set of contributions summed into it. For
// kinds without a sum the one contribution is that of the rank that the block came from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collcast/collective/collective.hpp"

namespace collcast {

class Contributions {
 public:
  static Contributions of(int rank);
  static Contributions all(int ranks);

  bool empty() const;
  void merge(const Contributions& other);
  /// The smallest rank in both, or -1.
  int first_common(const Contributions& other) const;
  /// The smallest rank that is in exactly one of the two, or -1.
  int first_difference(const Contributions& other) const;
  bool contains(int rank) const;

 private:
  std::uint64_t word(std::size_t i) const { return i < words_.size() ? words_[i] : 0; }
  std::vector<std::uint64_t> words_;
};

/// All blocks of a lane at one position.
class Holdings {
 public:
  explicit Holdings(int blocks) : blocks_(static_cast<std::size_t>(blocks)) {}
  Contributions& block(int b) { return blocks_[static_cast<std::size_t>(b)]; }
  const Contributions& block(int b) const { return blocks_[static_cast<std::size_t>(b)]; }

 private:
  std::vector<Contributions> blocks_;
};

/// What positions have at first and must have at last; algorithm.hpp says how blocks are numbered. Blocks
/// that a position is promised nothing about may hold anything at the end (buffers of its own).
class Promise {
 public:
  Promise(const Lane&, CollectiveKind, int root, int ranks);

  /// Why the lane cannot be one of this kind: its order or its number of blocks. Empty: it can.
  const std::string& wrong() const { return wrong_; }
  Holdings begin(Position) const;
  /// How `end` breaks the promise to a position; empty: it does not.
  std::string broken(Position, const Holdings& end) const;

 private:
  int participant(Position v) const { return order_[static_cast<std::size_t>(v)]; }
  /// The position that a block belongs to (alltoall: comes from, goes to).
  Position owner(int block) const { return block / (blocks_ / size_); }
  Position source(int block) const { return block / (blocks_ / (size_ * size_)) / size_; }
  Position target(int block) const { return block / (blocks_ / (size_ * size_)) % size_; }
  bool promised(Position, int block) const;
  Contributions due(int block) const;

  CollectiveKind kind_;
  int root_, size_, blocks_;
  std::vector<int> order_;
  std::string wrong_;
};

}  // namespace collcast
