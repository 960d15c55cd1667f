// Shipped machines, every algorithm and kind, numbers of chunks and sizes: the closed form beside the simulation.
#pragma once

#include <string>
#include <vector>

namespace collcast::test {

struct SweepPoint {
  std::string machine, algorithm, kind;
  int ranks = 0, chunks = 1;
  std::int64_t bytes = 0;
  bool shared = false;
  double estimate = 0, simulated = 0;

  double ratio() const { return simulated / estimate; }
  double distance() const;  ///< |log ratio|: too short and too long by the same factor are as far
  std::string text() const;
};

/// Whole machines in rank order, all that have at most `most_ranks` ranks.
std::vector<SweepPoint> sweep(int most_ranks);
/// Scrambled groups: on each machine of several nodes and up to 24 ranks, so many draws of some of its ranks in any
/// order, a size that nothing divides and a number of chunks. The same draws on every compiler.
std::vector<SweepPoint> scrambled_sweep(int draws);

/// Of the distances, as a factor minus one: 0.02 is 2 % off.
struct Spread {
  int points = 0;
  double median = 0, tenth = 0, worst = 0;  ///< tenth: nine in ten are nearer
  SweepPoint worst_point;
};
Spread spread(std::vector<SweepPoint> points);

}  // namespace collcast::test
