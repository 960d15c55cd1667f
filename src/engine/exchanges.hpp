// Walks exchanges without spelling them out: a few words per position, nothing per future message.
//
// A position of a lane is a *walker*. It knows its phase, how many of its messages there have left
// and come in; the Pattern's Shape is asked once per hop for the peer and the size. What has arrived
// is a count per receive (forwarding) or per phase (the other flows), kept for every phase from the
// exchange's start to its end, because a message may arrive before its receiver has entered the phase.
//
// State of a phase by flow (pattern.hpp has the rules):
//   circulating  one connection; message n = j*chunks + i may start once n has its turn and n - chunks + 1
//                messages have come in
//   forwarding   one connection per hop, each with its next chunk
//   sequential   one connection, moved on hop by hop
//   concurrent   one connection per hop, each with its next chunk
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/schedule/pattern.hpp"
#include "collcast/schedule/traffic_class.hpp"
#include "collcast/topology/fabric.hpp"
#include "engine/agenda.hpp"
#include "engine/block_pool.hpp"
#include "engine/connections.hpp"

namespace collcast::engine {

/// One run of a pattern.
struct Occasion {
  const Pattern* pattern = nullptr;
  std::uint32_t shift = 0;  ///< its ranks are those of the pattern's group, so many further on
  TrafficClass traffic;
  std::uint32_t first = 0, step = 1;  ///< EventKind::finished of participant i has the index first + i * step,
  bool by_rank = false;               ///< or by how many ranks it is further than participant 0, in the place of i
  /// By lane and position: the one that does for both what they do alike (fold.hpp). Null: each for itself.
  const std::vector<std::vector<std::uint32_t>>* stands_for = nullptr;
  std::uint32_t finished(int participant) const {
    if (!by_rank) return first + static_cast<std::uint32_t>(participant) * step;
    return first + (pattern->group[participant].value() - pattern->group[0].value()) * step;
  }
};

class Exchanges {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  /// What a pattern must be whose exchange has come to a standstill.
  static constexpr const char* unmatched = "the pattern's sends and receives do not match";

  Exchanges(Connections& connections, Agenda& agenda) : connections_(connections), agenda_(agenda) {}

  /// A number for the exchange, until its last participant has finished.
  std::uint32_t open(const Occasion& occasion);
  /// The participant takes part from now on.
  void ready(std::uint32_t exchange, int participant);
  /// The present message of an exchange's connection has left.
  void left(std::uint32_t connection);
  void arrived(std::uint32_t counter);
  /// Connections that are apart no longer: those whose message was to begin later, as it waits for one that is under
  /// way, wait for that in earnest.
  void not_begun(std::span<const std::uint32_t> joined);

  /// Of an event to come: what it touches first, and when that is there what it leads to.
  void prefetch(Due event) const {
    const std::uint32_t index = event.index();
    if (event.kind() == EventKind::left && index < sends_.size()) __builtin_prefetch(&sends_[index]);
    if (event.kind() == EventKind::arrived) __builtin_prefetch(&counters_[index]);
  }
  void prefetch_walker(Due event) const {
    const std::uint32_t index = event.index();
    if (event.kind() == EventKind::left && index < sends_.size()) __builtin_prefetch(&walkers_[sends_[index].walker]);
    if (event.kind() == EventKind::arrived) __builtin_prefetch(&walkers_[counters_[index].walker]);
  }

  /// Gives the memory of exchanges that are over back.
  void clear();

  /// What is finished with the participant whose receive a counter counts.
  std::uint32_t part_of(std::uint32_t counter) const;
  /// What a participant still waits for, for people; of an exchange that is not over.
  std::string waits_for(std::uint32_t exchange, int participant) const;
  /// A participant that is to send it a message which it waits for, and has not; none: nobody is.
  std::uint32_t awaits(std::uint32_t exchange, int participant) const;

 private:
  struct Running {
    Occasion occasion;
    std::uint32_t lanes = none;         ///< block of LaneState
    std::uint32_t participants = none;  ///< block of words_: positions still under way, by participant
    std::uint32_t unfinished = 0;       ///< participants
  };
  struct LaneState {
    const Pattern* pattern = nullptr;
    const Lane* lane = nullptr;
    std::uint32_t exchange = 0;
    std::uint32_t index = 0;         ///< of the lane in its pattern
    std::uint32_t walkers = 0;       ///< block: by position
    std::uint32_t positions = none;  ///< block of words_: participant -> position; none: the same number
    std::uint32_t phases = 0;        ///< block of PhaseState
  };
  struct PhaseState {
    std::uint32_t counters = 0, counter_count = 0;
    std::uint32_t offsets = none;  ///< block of words_: first counter by position; none: one each
  };
  struct Counter {
    std::uint32_t count = 0;
    std::uint32_t walker = 0;
  };
  static constexpr std::size_t most_phases = (1 << 24) - 1;  ///< of a lane
  struct Walker {
    std::uint32_t lane = 0;
    std::uint32_t counters = 0;           ///< its receives of the phase it is in
    std::uint32_t slots = 0;              ///< how many counters these are; 0: not in a phase
    std::uint32_t first_hop = none;       ///< its (first) connection
    std::uint32_t left = 0, to_send = 0;  ///< messages of the phase
    std::uint32_t received = 0, to_receive = 0;
    std::uint32_t chunks = 1;
    std::uint32_t phase : 24 = 0;
    Flow kind : 8 = Flow::forwarding;
  };
  struct Send {  ///< what the walker knows of a connection
    std::uint32_t walker = 0;
    std::uint32_t counter = 0;                   ///< where its messages are counted
    std::uint32_t previous = none, next = none;  ///< hop of the position
    std::uint32_t chunk : 31 = 0;                ///< to start next
    std::uint32_t in_flight : 1 = 0;
    std::uint32_t after = 0;  ///< receives it waits for
    union {
      std::uint32_t seen = 0;  ///< of those, how many are known to have the chunk
      std::uint32_t gap;       ///< circulating: from its message's end till one is there that the next waits for; or 0
    };
  };

  void begin_phase(const LaneState& lane, std::uint32_t index);
  void leave_out_those_done_for(std::uint32_t exchange);
  void finish_participant(std::uint32_t exchange, int participant);
  void end(std::uint32_t exchange);

  void enter(std::uint32_t walker, std::size_t phase);
  void open_phase(std::uint32_t walker);
  void open_hops(std::uint32_t walker, std::uint32_t hops);
  std::uint32_t open_hop(std::uint32_t walker, std::uint32_t hop);
  void connect(std::uint32_t connection, std::uint32_t hop);
  void close_phase(Walker& walker);
  void leave_if_through(std::uint32_t walker);

  /// circulating: counts a message that has just left as received before it is there, which saves an event, if nobody
  /// asks before then: the receiver has its links to itself, so that it is known how long it sends without it, and
  /// that it will wait for just this one. False: an event has to tell.
  bool receive_ahead(const Walker& sender, std::uint32_t counter, Ticks latency);

  /// The walker's next message may start when one is there that is counted already, so long after the last has left.
  void wait_on(Walker& walker, std::uint32_t gap);
  /// Of a message that is counted, but is there later only: an event will tell.
  void take_back(Walker& walker, Ticks there);

  /// circulating, sequential: the walker's next message, if it may start.
  void send_in_turn(std::uint32_t walker);
  /// forwarding, concurrent: the hop's next chunk, if it may start.
  void send_chunk(std::uint32_t connection);

  /// The position that does it; the same, but where positions are folded.
  Position who_does(const LaneState& lane, Position v) const {
    const auto* stands_for = running_[lane.exchange].occasion.stands_for;
    return stands_for == nullptr ? v : static_cast<Position>((*stands_for)[lane.index][static_cast<std::size_t>(v)]);
  }
  const Phase& phase_of(const Walker& walker) const { return lanes_[walker.lane].lane->phases[walker.phase]; }
  Position position(std::uint32_t walker) const {
    return static_cast<Position>(walker - lanes_[walkers_[walker].lane].walkers);
  }
  std::uint32_t part(std::uint32_t walker) const;
  std::uint32_t walker_of(const LaneState& lane, int participant) const;
  std::uint32_t counter(const LaneState& lane, std::uint32_t phase, Position receiver, int slot) const;
  bool lacks(const LaneState& lane, std::uint32_t sender, std::uint32_t receiver) const;

  Connections& connections_;
  Agenda& agenda_;
  std::vector<Running> running_;  ///< by exchange
  std::vector<std::uint32_t> free_;
  BlockPool<LaneState> lanes_;
  BlockPool<PhaseState> phases_;
  BlockPool<Counter> counters_;
  BlockPool<Walker> walkers_;
  BlockPool<std::uint32_t> words_;
  std::vector<Send> sends_;  ///< by connection

 public:
  static constexpr std::size_t bytes_per_walker = sizeof(Walker), bytes_per_counter = sizeof(Counter),
                               bytes_per_send = sizeof(Send);
};

}  // namespace collcast::engine
