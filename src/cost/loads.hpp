// What the hops put on the links of a fabric, moment by moment and phase by phase, and who may meet whom.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "cost/crossings.hpp"
#include "cost/histories.hpp"
#include "cost/hops.hpp"

namespace collcast {

/// One sender of one lane. What it sends in different phases never meets; within a phase only if `pipelined`
/// (it may begin with the next peer before the last chunk for this one has left).
struct Connection {
  int pattern = 0;
  int lane = 0;  ///< among all lanes of all patterns
  int phase = 0;
  int from = 0, to = 0;
  bool pipelined = false;
};

/// What a hop sends: `chunks` chunks, over and over in a ring.
struct Load {
  Volume chunk{};
  int chunks = 1;
  double repeats = 1;
  bool whole = false;    ///< passed on in one piece
  bool at_once = false;  ///< in one piece, beside all else that its sender has to send
};

/// What messages that come in one piece leave for a later one to wait for: the bytes that a link has not yet sent.
class Backlog {
 public:
  /// `key` is moment(start), so that starts that differ by rounding are one.
  void add(double key, double start, double bytes, double bandwidth);
  /// At `time`, with what begins then.
  double at(double key, double time, double bandwidth) const;
  /// Of one message.
  double largest() const { return largest_; }

 private:
  struct Arrival {
    double key = 0, start = 0, bytes = 0;
    double done = 0;  // when the link has sent this and all before
  };
  std::vector<Arrival> arrivals_;  // by start
  double largest_ = 0;
};

class Loads {
 public:
  /// The first `watched` patterns can be asked about afterwards.
  Loads(const Hops&, std::size_t watched);

  /// First of all, where hops of different moments can meet: each of them, in ascending moments.
  void announce(const Sent&, double moment, Volume chunk, double duty);
  void close_announcements();

  void begin_moment();
  /// A hop of this moment; nothing of it before `start`.
  void add(const Connection&, const Sent&, const Load&, double start);

  /// Seconds until the first chunk has left, and all; after all hops of the moment are known.
  struct Spell {
    double first = 0, last = 0;
  };
  Spell spell(const Sent&, double moment, const Load&, double start);
  /// Seconds that a chunk takes if the links are free.
  static double alone(const Sent& sent, Volume chunk) { return chunk.value() / sent.bandwidth; }

  struct Busiest {
    std::optional<LinkId> link;
    Volume bytes{};
    Seconds time{};  ///< from time 0: when its first byte can start, all its bytes, and the least latency
  };
  /// Of the links that the pattern uses in the phase, with all that crosses them in it.
  Busiest busiest(std::size_t pattern, std::size_t phase) const;
  /// Two transfers may have met on a link that the pattern uses.
  bool shared(std::size_t pattern) const;

 private:
  struct Tally {  // of one link in one phase
    double bytes = 0;
    double first_start = std::numeric_limits<double>::infinity();
    double least_latency = std::numeric_limits<double>::infinity();
  };
  struct State {
    double bytes = 0;  // of this moment: a chunk of each hop
    double busy_until = 0;
    int hops = 0;
    bool shared = false;
    bool pieces = false;  // something on it comes in chunks
    Connection last{-1, -1, -1, -1, -1, false};
  };

 public:
  static constexpr std::size_t bytes_per_link = sizeof(State), bytes_per_link_and_phase = sizeof(Tally);

 private:
  Crossings& crossings(std::uint32_t link) { return crossings_[histories_ ? histories_->by_link()[link] : link]; }
  std::size_t place(std::size_t pattern, std::size_t phase) const {
    return (pattern * phases_ + phase) * links_.size();
  }

  std::span<const Hops::LinkInfo> links_;
  std::size_t phases_;
  std::vector<State> states_;
  std::vector<Tally> tallies_;  // by phase and link
  std::vector<char> used_;      // by watched pattern, phase and link
  bool announced_ = false;
  std::optional<Histories> histories_;  // of kept hops; others' links have crossings of their own
  std::vector<Crossings> crossings_;
  std::vector<Backlog> backlogs_;  // none: nothing comes in one piece
  std::vector<std::uint32_t> of_moment_;
};

}  // namespace collcast
