// Random variation of links: what a collective or a message takes whose link is slower or faster than on average.
//
// While one lasts, the link's bandwidth is divided by a factor of mean 1, drawn by seed, link, rank and name as those
// of kernels are. What it then takes is interpolated between three prices, with the link as it is and with its
// bandwidth divided by 1 + knot and 1 - knot: exact where the time is affine in the link's (alpha + size / beta with
// the same bottleneck throughout), so that a link which is not the bottleneck costs nothing and one of several equal
// ones gains nothing. Of several that jitter at one operation the slowest counts; where none is slower they all help.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collcast/topology/faults.hpp"
#include "workload/faults/jitter.hpp"

namespace collcast::workload {

struct LinkJitter {
  Jitter jitter;
  std::string link;
  double knot = 0;
  std::vector<int> slower;  ///< by period: which of the varied machines; the faster one follows; -1: it does not hold
};

/// The operations of a schedule that take other times where a link is slower or faster.
class LinkDraws {
 public:
  /// `mean` by period, `varied` by varied machine: all of this schedule's operations.
  LinkDraws(const StepSchedule&, const PeriodTimes& mean, const std::vector<std::vector<Picoseconds>>& varied,
            std::vector<LinkJitter>);
  /// Draws number `draw`, of the mean times, into `times`.
  void draw(PeriodTimes& times, int draw) const;

 private:
  struct Price {
    std::size_t jitter;
    Picoseconds slower, faster;  ///< beside the mean: how much more, how much less
  };
  struct Drawn {
    std::uint32_t op;
    std::size_t period;
    Rank rank;
    std::uint64_t name;
    Picoseconds mean;
    std::vector<Price> prices;
  };
  std::vector<LinkJitter> jitters_;
  std::vector<JitterDraw> draws_;
  std::vector<std::uint64_t> links_;  ///< hashes of their names
  std::vector<Drawn> ops_;
};

}  // namespace collcast::workload
