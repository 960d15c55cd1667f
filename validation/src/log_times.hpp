// How far a forecast is from many measurements at once: the sum of |log(forecast / measured)|, or of what counts less
// and less of it, over times with weights, in steps that grow with the logarithm of their number.
//
// Logarithms of times lie in order in a tree of halves. Of a half that the forecast is not within, and that is short
// beside its distance, the terms of log(1 + y) are summed with the half's moments (the sums of weight x^k about its
// middle), as multipole methods do (Greengard and Rokhlin, J. Comput. Phys. 73, 1987, 325); else its two halves are
// asked, down to a few times that are summed one by one. No model is left out: the sum is that of the terms one by one
// to about 1e-13, which is what another order of adding them makes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collcast/base/quantity.hpp"

namespace collcast {

/// Of an error's logarithm: up to about `full` it counts in full, beyond it less and less. Infinite: always in full.
double weighed(double error, double full);

class LogTimes {
 public:
  /// Equal times are one, of their weights together.
  void add(Seconds measured, double weight) { times_.push_back({measured.count(), weight}); }
  /// Everything has been added.
  void build();

  /// Sum over the times of weight x weighed(log(predicted / measured), full).
  double sum(Seconds predicted, double full) const;
  /// The same, with how many halves and single times it took.
  struct Counted {
    double sum = 0;
    std::size_t steps = 0;
  };
  Counted counted_sum(Seconds predicted, double full) const;

 private:
  struct Time {
    double value = 0, weight = 0;  ///< the time, its logarithm once built
  };
  /// Moments of it; both halves follow: the first behind it, the second at `second`; 0: no halves.
  struct Half {
    std::uint32_t begin = 0, end = 0, second = 0;
    double middle = 0, reach = 0;
    std::array<double, 9> moments{};
  };
  void split(std::uint32_t begin, std::uint32_t end);
  void add_to(Counted&, std::uint32_t half, double at, double full) const;
  void add_one_by_one(Counted&, std::size_t begin, std::size_t end, double at, double full) const;

  std::vector<Time> times_;
  std::vector<Half> halves_;  ///< none of a few times
};

}  // namespace collcast
