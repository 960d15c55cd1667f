// What a hop meets on a link that others cross at other moments.
//
// Fair shares: of n hops under way on a link each gets 1/n of it. So while a hop's first chunk is on its way one chunk
// of each that has begun goes too, and while the rest is on its way so does what these have left and what begins later,
// d chunk times before or after: with c chunks of tau each
//   first chunk  tau + sum over begun of tau                          (not more than they have left)
//   all          first + (c-1) tau + sum over begun of (c-1-d) tau + sum over later of (c-d) tau
// Three hops of one sender, one chunk apart, thus end 3c-3, 3c-1 and 3c chunk times after the first began, as they do.
// Sums over a window of moments are differences of running sums: a look-up costs two searches, however many meet.
#pragma once

#include <cstddef>
#include <vector>

namespace collcast {

/// The hops that cross one link, by the moment in which they begin if nobody is in their way.
class Crossings {
 public:
  /// In ascending moments. `duty`: share of the time in which a chunk is under way while the hop lasts, less than 1
  /// where its chunks come more slowly than it could send them.
  void add(double moment, double bytes, double duty);
  /// After the last add; then ask in ascending moments.
  void close();

  /// Other hops' bytes that a hop meets which has `chunks` chunks of `bytes`, each of which takes `pace` seconds.
  /// Of hops with larger chunks only as much counts as this one has: fair shares are equal until this one is done. All
  /// together, for sums of running sums cannot look at each: the smaller of what they have and as many of this size.
  struct Others {
    double begun = 0;    ///< while the first chunk is on its way: one of each that has begun and is not done
    double earlier = 0;  ///< after that of those: c-1-d chunks of each that began d paces before
    double later = 0;    ///< of those that begin d paces later: c-d chunks each
  };
  const Others& beside(double moment, double bytes, double pace, int chunks);

 private:
  struct Sums {
    double hops = 0, bytes = 0, busy = 0, hops_by_moment = 0, bytes_by_moment = 0;
  };

 public:
  static constexpr std::size_t bytes_per_moment = sizeof(double) + sizeof(Sums);

 private:
  Others answer(double moment, double bytes, double pace, int chunks);
  Sums between(std::size_t begin, std::size_t end) const;
  /// The first entry not before the time; looked for from where the last one like it was found.
  std::size_t from(double time, std::size_t& last) const;

  std::vector<double> moments_;
  std::vector<Sums> sums_;  // by moment; once closed, up to and with it
  std::size_t next_ = 0, going_ = 0, begun_ = 0, later_ = 0;
  struct Asked {
    double moment = -1, bytes = 0, pace = 0;
    int chunks = 0;
    bool operator==(const Asked&) const = default;
  };
  Asked asked_;  // last, and the answer
  Others answer_;
};

}  // namespace collcast
