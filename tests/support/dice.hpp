// Random numbers that are the same on every compiler (the distributions of <random> need not be).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace collcast::test {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  /// 0 ... sides-1
  int roll(int sides) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(sides)); }
  /// From `low` on, below `high`.
  double between(double low, double high) {
    return low + (high - low) * 0x1p-53 * static_cast<double>(engine_() >> 11);
  }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[roll(static_cast<int>(choices.size()))];
  }
  /// 0 ... size-1 in any order.
  std::vector<int> permutation(int size) {
    std::vector<int> order(static_cast<std::size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    for (int i = size - 1; i > 0; --i)
      std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(roll(i + 1))]);
    return order;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace collcast::test
