// Speeds in GB/s that NCCL's search tries, fastest first, by generation, inside and between nodes [search.cc,
// speedArray*].
#pragma once

#include <array>
#include <span>

namespace collcast::nccl {

inline constexpr double slack = 1e-9;  ///< of sums of speeds

inline constexpr std::array inside_volta{40., 30., 20., 18., 15., 12., 10., 9., 7., 6., 5., 4., 3.};
inline constexpr std::array inside_hopper{60., 50., 40., 30., 24., 20., 15., 12., 11., 6., 3.};
inline constexpr std::array inside_blackwell{90., 80., 70., 60., 50., 40., 30., 24., 20., 19., 18.};
inline constexpr std::array between_volta{48., 30., 28., 24., 20., 18., 15., 12., 10., 9.,
                                          7.,  6.,  5.,  4.,  3.,  2.4, 1.2, .24, .12};
inline constexpr std::array between_hopper{48., 45., 42., 40., 30., 24., 22., 20., 17.5,
                                           15., 12., 6.,  3.,  2.4, 1.2, .24, .12};
inline constexpr std::array between_blackwell{96.,  48., 45.1, 42., 40., 30., 24., 22., 20.,
                                              17.5, 15., 12.,  6.,  3.,  2.4, 1.2, .24, .12};

inline std::span<const double> speeds(int compute_capability, bool between) {
  if (compute_capability >= 100) return between ? std::span<const double>(between_blackwell) : inside_blackwell;
  if (compute_capability >= 90) return between ? std::span<const double>(between_hopper) : inside_hopper;
  return between ? std::span<const double>(between_volta) : inside_volta;
}

/// The largest speed of a list that does not pass `most`; 0: none.
inline double largest(std::span<const double> list, double most) {
  for (const double speed : list)
    if (speed <= most + slack) return speed;
  return 0;
}

}  // namespace collcast::nccl
