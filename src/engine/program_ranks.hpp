// Where every rank is in its program, and what takes it on.
//
// A rank is how many instructions of each stream are over and how many messages have come on each channel; what it does
// now is the next instruction. Nothing is stored per instruction to come. An exchange of a group is looked up by its
// number from its first member's arrival to its last one's, in a list of the group's, which is as long as the group's
// fastest member is ahead of its slowest.
//
// Events: `finished` of (rank, stream) ends what the stream does now; `ready` has it look again whether what it waits
// for is there, which may be once too often and is then of no effect.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collcast/engine/programs.hpp"
#include "engine/agenda.hpp"
#include "engine/connections.hpp"
#include "engine/exchanges.hpp"

namespace collcast::engine {

class ProgramRanks {
 public:
  using Input = Programs;
  using Output = ProgramsTimeline;
  static constexpr const char* unmatched = "programs wait for each other, or for what nobody does";

  ProgramRanks(const Programs& programs, Connections& connections, Exchanges& exchanges, Agenda& agenda);

  void begin();
  void ready(std::uint32_t stream);
  /// The last byte of a rank's message has left.
  void left(std::uint32_t flow);
  void finished(std::uint32_t stream);

  bool all_finished() const { return unfinished_ == 0; }
  std::string describe(std::uint32_t stream) const;
  std::string left_over() const;
  Output output();

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// Exchanges of a group that some of its members have not come to.
  struct Forming {
    std::uint32_t number = 0, collective = 0;
    std::uint32_t exchange = 0;
    std::uint32_t joined = 0;
    std::uint32_t next = none;
  };
  struct Place {
    std::uint32_t rank = 0, stream = 0;
  };

  Place place(std::uint32_t stream) const { return {stream / streams_, stream % streams_}; }
  std::uint32_t program_of(std::uint32_t rank) const { return programs_.of_rank[rank]; }
  const std::vector<Instruction>& instructions(Place at) const {
    return programs_.programs[program_of(at.rank)].streams[at.stream];
  }
  /// Of a stream that is not at its end.
  const Instruction& present(std::uint32_t stream) const { return instructions(place(stream))[over_[stream]]; }

  /// Starts instruction after instruction until one takes time.
  void go_on(std::uint32_t stream);
  /// False if it is over at once.
  bool start(std::uint32_t stream, Place at, const Instruction& instruction);
  bool is_there(Place at, const Instruction& instruction) const;
  void pass(std::uint32_t stream, Place at, const Instruction& instruction);
  void look_again(Place at, std::uint32_t over);
  void deliver(Place from, const instruction::Send& send);
  void take_part(std::uint32_t stream, Place at, const instruction::TakePart& part);
  std::uint32_t forming(std::uint32_t group, Place at, std::uint32_t stream, const instruction::TakePart& part);
  void send(std::uint32_t stream, Place at, const instruction::Send& send);
  void meet(const instruction::Meet& meet);
  void end(Place at);
  /// Adds up the time of the first streams' instructions: less the start, later plus the end.
  void book(Place at, const Instruction& instruction, bool over);
  std::string waits_for(std::uint32_t stream) const;
  std::string text(Place at, const Instruction& instruction) const;

  const Programs& programs_;
  Connections& connections_;
  Exchanges& exchanges_;
  Agenda& agenda_;
  const std::uint32_t streams_;
  std::vector<std::uint32_t> over_;         ///< instructions, by stream: rank by rank
  std::vector<std::uint32_t> arrived_;      ///< messages, by rank and channel
  std::uint64_t unfinished_ = 0;            ///< streams
  std::vector<std::uint32_t> met_;          ///< ranks, by meeting
  std::vector<std::uint32_t> first_group_;  ///< by set, in forming_of_
  std::vector<std::uint32_t> forming_of_;   ///< by group: the first of its list
  std::vector<Forming> formings_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint64_t> accounts_;  ///< ticks, by program and account; sums may pass 2^64 on their way
  std::vector<ProgramTimes> times_;
  SimTime finish_{};
  std::int64_t opened_ = 0;
};

}  // namespace collcast::engine
