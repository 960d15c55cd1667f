// Random variation of computing times: a factor of mean 1 for every operation, by its seed, rank and name (and number,
// of a name that is there twice).
//
// Draws are counted, not generated: a hash of (seed, rank, operation) is the randomness, so that neither the order of
// events nor other ranks have a say. From there on it is integers (fixed point of 32 binary places), as logarithms of
// libraries differ in their last bits between machines; a time is rounded to the nearest picosecond.
//
//   exponential  1 + p (E - 1), E = -ln U        never below 1 - p, no end above
//   lognormal    exp(s Z - s^2 / 2), s^2 = ln(1 + p^2)
//   normal       1 + p Z, cut off at 0 and, so that the mean stays, at 2
//
// p is the standard deviation (of the last less than p where it is cut off: from p = 30 % on more than 0.5 % less).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collcast/topology/faults.hpp"
#include "workload/faults/period_run.hpp"

namespace collcast::workload {

/// 2^-32.
inline constexpr std::uint64_t one_factor = std::uint64_t{1} << 32;

/// Draws of one jitter: what of its numbers is the same for all.
class JitterDraw {
 public:
  explicit JitterDraw(const Jitter&);
  /// In units of 2^-32. `seed`: added to the jitter's.
  std::uint64_t factor(int seed, Rank rank, std::uint64_t operation) const;

 private:
  JitterShape shape_;
  std::uint64_t seed_;
  std::uint64_t spread_;    ///< p
  std::uint64_t variance_;  ///< s^2, in units of 2^-64
  std::uint64_t sigma_;     ///< s
};

/// A time of a factor, to the nearest picosecond.
Picoseconds times_factor(Picoseconds, std::uint64_t factor);

/// Jitter of some ranks in some periods.
struct RankJitter {
  Jitter jitter;
  std::vector<bool> ranks, periods;
};

/// The operations of a schedule that are drawn: kernels, not waits for launches, the host's.
class StepDraws {
 public:
  StepDraws(const StepSchedule&, std::vector<RankJitter>);
  /// `mean` as drawn number `draw`.
  PeriodTimes drawn(const PeriodTimes& mean, int draw) const;

 private:
  struct Drawn {
    std::uint32_t op;
    Rank rank;
    std::uint64_t name;
  };
  std::vector<RankJitter> jitters_;
  std::vector<JitterDraw> draws_;
  std::vector<Drawn> ops_;
};

}  // namespace collcast::workload
