// Where every rank is in its program, and what takes it on.
//
// A rank is how many instructions of each stream are over and how many messages have come on each channel; what it does
// now is the next instruction. Nothing is stored per instruction to come. An exchange of a group is looked up by its
// number from its first member's arrival to its last one's, in a list of the group's, which is as long as the group's
// fastest member is ahead of its slowest. A group with links of its own whose members all come at one instant does not
// walk again what it has walked before (repeats.hpp): until the end of that instant it is held.
//
// Events: `finished` of (rank, stream) ends what the stream does now, and beyond these numbers, by group, what
// all members of a group do; `ready` has it look again whether what it waits
// for is there, which may be once too often and is then of no effect.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collcast/engine/programs.hpp"
#include "engine/agenda.hpp"
#include "engine/connections.hpp"
#include "engine/exchanges.hpp"
#include "engine/rank_kernels.hpp"
#include "engine/repeats.hpp"

namespace collcast::engine {

class ProgramRanks {
 public:
  using Input = Programs;
  using Output = ProgramsTimeline;
  static constexpr bool repeats = true;
  static constexpr bool slows = true;  ///< what is to be over may be put off: is_outdated
  static constexpr bool chains = false;
  static constexpr const char* unmatched = "programs wait for each other, or for what nobody does";

  ProgramRanks(const Programs& programs, Connections& connections, Exchanges& exchanges, Agenda& agenda);

  /// Lets groups with links of their own repeat what they have done; `busy` as in LinkUse, of a link, now.
  void repeat(const Fabric& fabric, Repeats::BusyOf busy);

  void begin();
  void ready(std::uint32_t stream);
  /// The last byte of a rank's message has left.
  void left(std::uint32_t flow);
  void finished(std::uint32_t index);
  /// The end of what a rank computes that is put off or brought forward meanwhile.
  bool is_outdated(std::uint32_t index, std::uint32_t version) const {
    return version != 0 && kernels_.is_outdated(place(index).rank, version);
  }
  /// At the end of an instant: begins what was held in it. False if nothing was.
  bool begin_held();
  /// Messages that were not walked.
  std::int64_t repeated() const { return repeats_.messages(); }
  void add_repeated(std::span<LinkUse> links) const { repeats_.add_to(links); }

  bool all_finished() const { return unfinished_ == 0; }
  std::string describe(std::uint32_t index) const;
  std::string left_over() const;
  Output output();

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// Exchanges of a group that some of its members have not come to.
  struct Forming {
    std::uint32_t number = 0, collective = 0;
    std::uint32_t exchange = Exchanges::none;  ///< none: held
    std::uint32_t joined = 0;
    std::uint32_t next = none;
  };
  struct Place {
    std::uint32_t rank = 0, stream = 0;
  };
  /// A group that has come to an exchange at this instant, or a part of it.
  struct Held {
    std::uint32_t set = 0, group = 0, stream = 0, forming = 0;
  };

  struct Repeating {
    Group ranks;
    std::uint32_t stream = 0;
  };

  Place place(std::uint32_t stream) const { return {stream / streams_, stream % streams_}; }
  std::uint32_t program_of(std::uint32_t rank) const { return programs_.of_rank[rank]; }
  const std::vector<Instruction>& instructions(Place at) const {
    return programs_.programs[program_of(at.rank)].streams[at.stream];
  }
  /// Of a stream that is not at its end.
  const Instruction& present(std::uint32_t stream) const { return instructions(place(stream))[over_[stream]]; }
  std::uint32_t all_streams() const { return programs_.ranks() * streams_; }
  std::uint32_t numbered(std::uint32_t set, std::uint32_t group) const { return first_group_[set] + group; }

  /// Starts instruction after instruction until one takes time.
  void go_on(std::uint32_t stream);
  /// False if it is over at once.
  bool start(std::uint32_t stream, Place at, const Instruction& instruction);
  bool spend(std::uint32_t stream, Place at, const instruction::Spend& spend);
  /// One instruction more, or less, that slows what the rank computes.
  void slow(std::uint32_t rank, bool more);
  bool is_there(Place at, const Instruction& instruction) const;
  void pass(std::uint32_t stream, Place at, const Instruction& instruction);
  void look_again(Place at, std::uint32_t over);
  void deliver(Place from, const instruction::Send& send);
  void take_part(std::uint32_t stream, Place at, const instruction::TakePart& part);
  std::uint32_t new_forming(const instruction::TakePart& part, std::uint32_t next);
  std::uint32_t open(std::uint32_t collective, std::uint32_t group, std::uint32_t stream);
  /// All members have come.
  void formed(std::uint32_t numbered_group, std::uint32_t forming);
  void begin_walking(const Held& held);
  void over(std::uint32_t stream);
  void over_for_all(std::uint32_t numbered_group);
  /// Of a group that repeats what it does.
  Repeating repeating(std::uint32_t numbered_group) const;
  void send(std::uint32_t stream, Place at, const instruction::Send& send);
  void meet(const instruction::Meet& meet);
  void end(Place at);
  /// Adds up the time of the first streams' instructions: less the start, later plus the end.
  void book(Place at, const Instruction& instruction, bool over);
  bool has_come(std::uint32_t rank, const instruction::TakePart& part) const;
  std::string who_lacks(const Group& group, const instruction::TakePart& part) const;
  std::string waits_for(std::uint32_t stream) const;
  std::uint32_t unfinished_stream_of(std::uint32_t rank) const;
  std::uint32_t sender_to(std::uint32_t rank, std::uint32_t channel) const;
  std::uint32_t awaits(std::uint32_t stream) const;
  std::string text(Place at, const Instruction& instruction) const;

  const Programs& programs_;
  Connections& connections_;
  Exchanges& exchanges_;
  Agenda& agenda_;
  const std::uint32_t streams_;             ///< of a rank
  std::vector<std::uint32_t> over_;         ///< instructions, by stream: rank by rank
  std::vector<std::uint32_t> arrived_;      ///< messages, by rank and channel
  std::uint64_t unfinished_ = 0;            ///< streams
  std::vector<std::uint32_t> met_;          ///< ranks, by meeting
  std::vector<std::uint32_t> first_group_;  ///< by set, in forming_of_
  std::vector<std::uint32_t> forming_of_;   ///< by group: the first of its list
  std::vector<Forming> formings_;
  std::vector<std::uint32_t> free_;
  RankKernels kernels_;
  Repeats repeats_;
  std::vector<Held> held_;
  std::vector<std::uint32_t> stream_of_;  ///< by set: on which stream its groups do what they repeat
  std::vector<std::uint64_t> accounts_;   ///< ticks, by program and account; sums may pass 2^64 on their way
  std::vector<ProgramTimes> times_;
  std::vector<std::uint32_t> ended_;  ///< by program: ranks that are through
  SimTime finish_{};
  std::int64_t opened_ = 0;
};

}  // namespace collcast::engine
