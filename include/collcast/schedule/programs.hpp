// Programs: what very many ranks do, said once for all that do the same.
//
// A program is what one kind of rank does (all of a pipeline stage, say): streams of instructions, each in its order,
// side by side with the others. A rank is the number of its program and how far it is: four bytes a stream, four a
// channel. With whom it communicates follows from its number and is stored nowhere:
//
//   GroupSet   the ranks that differ in one digit of their number are a group, or two such with the stage's twin
//   Collective a pattern among a group of a set: that of one group, moved to the others
//   Send       to the rank so many further on
//
// Execution rules. An instruction starts when the one before it on its stream is over; it is over
//   Spend      after its time. While an instruction of its rank that `slows` is under way it goes at its rate, and a
//              wait for launches is shorter by what the rank has been late by since its pass began
//   TakePart   when the rank's part of the exchange is (pattern.hpp); it takes part from the instruction's start on,
//              or of a collective that is done together from the last member's.
//              Members of a group mean the same exchange by the same number
//   Send       when the message has arrived; the receiver's channel then has one more
//   Receive    when so many messages have arrived on the channel
//   Await      when so many instructions of another stream of the rank are over
//   Meet       when all ranks have come to the meeting of that number; meetings are in the order of their numbers
// Source of the idea: Hoefler, Schneider, Lumsdaine, "LogGOPSim", 2010, whose programs are one per rank and stored.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "collcast/base/id.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/schedule/pattern.hpp"
#include "collcast/schedule/traffic_class.hpp"

namespace collcast {

/// The groups of one kind: rank = low + stride * (digit + size * high) with low < stride, and ranks of the same low and
/// high are a group. With `step` only those with digit 0, step, 2 step ... are in one: size - 1 makes groups of two,
/// the ends.
struct GroupSet {
  int stride = 1, size = 1, step = 1;
  /// By group, which of a collective's patterns it runs; empty: the first.
  std::vector<std::uint16_t> kind_of = {};
  /// Above 1: two such groups are one, by number of ranks, whose ranks have d and folded - 1 - d as another digit, of
  /// `folded` values (an even number).
  int fold_stride = 1, folded = 1;

  int members() const { return ((size - 1) / step + 1) * (folded > 1 ? 2 : 1); }
  std::uint32_t groups(std::uint32_t ranks) const {
    return ranks / static_cast<std::uint32_t>(size) / (folded > 1 ? 2 : 1);
  }
  bool has(Rank rank) const { return digit(rank) % static_cast<std::uint32_t>(step) == 0; }
  int member(Rank rank) const {
    const int alone = static_cast<int>(digit(rank)) / step;
    return folded > 1 ? folded_member(rank, alone) : alone;
  }
  std::uint32_t group_of(Rank rank) const {
    const auto low = static_cast<std::uint32_t>(stride);
    const std::uint32_t alone = rank.value() / (low * static_cast<std::uint32_t>(size)) * low + rank.value() % low;
    return folded > 1 ? folded_group(alone) : alone;
  }
  Group group(std::uint32_t index) const { return folded > 1 ? both_groups(index) : one_group(index); }

 private:
  std::uint32_t digit(Rank rank) const {
    return rank.value() / static_cast<std::uint32_t>(stride) % static_cast<std::uint32_t>(size);
  }
  Group one_group(std::uint32_t index) const {
    const auto low = static_cast<std::uint32_t>(stride);
    return Group::strided(Rank(index / low * low * static_cast<std::uint32_t>(size) + index % low), stride * step,
                          (size - 1) / step + 1);
  }
  int folded_member(Rank, int alone) const;
  std::uint32_t folded_group(std::uint32_t alone) const;
  Group both_groups(std::uint32_t index) const;
  /// Of the other digit, in the numbers of groups.
  std::uint32_t fold_stride_of_groups() const;
};

struct Collective {
  std::string name;                     ///< for people
  std::uint32_t set = 0;                ///< of Programs::sets
  std::vector<std::uint32_t> patterns;  ///< of Programs::patterns, by kind of group; each among any group of its kind
  TrafficClass traffic = {};
  bool together = false;  ///< nobody sends before all members have come
};

namespace instruction {

struct Spend {
  Picoseconds time{};
  double rate = 1;  ///< below 1: slowed, where it is on the first stream
  /// Of one that is slowed: so many instructions of another stream run beside it, and it is late by what it lasts
  /// longer than these only. No instructions: all of it.
  std::uint32_t beside = 0, instructions = 0;
  bool waits_for_launches = false;  ///< or for copies of activations: what ends so long after a pass began
};
struct TakePart {
  std::uint32_t collective = 0;
  std::uint32_t number = 0;
};
struct Send {
  std::int32_t offset = 0;
  std::uint32_t channel = 0;  ///< of the receiver
  Volume size{};
  TrafficClass traffic = {};
};
struct Receive {
  std::uint32_t channel = 0;
  std::uint32_t messages = 0;
};
struct Await {
  std::uint32_t stream = 0;
  std::uint32_t instructions = 0;
};
struct Meet {
  std::uint32_t number = 0;
};

}  // namespace instruction

struct Instruction {
  std::variant<instruction::Spend, instruction::TakePart, instruction::Send, instruction::Receive, instruction::Await,
               instruction::Meet>
      what;
  std::uint8_t account = 0;  ///< what its time counts as; of the first stream
  bool awaited = false;      ///< another stream waits for its end: Program::await
  bool slows = false;        ///< of a Spend or TakePart: from its start to its end, what the rank computes
  bool begins_pass = false;  ///< of a Spend or TakePart: the first of those that end with a wait for launches
};

struct Program {
  std::vector<std::vector<Instruction>> streams;

  /// The stream waits until so many instructions of another are over, which are there already.
  void await(std::size_t stream, std::size_t other, std::size_t instructions, std::uint8_t account = 0);
};

struct Programs {
  std::vector<GroupSet> sets;
  std::vector<Pattern> patterns;
  std::vector<Collective> collectives;
  std::vector<Program> programs;
  std::vector<std::uint16_t> of_rank;  ///< each rank's program
  std::uint32_t channels = 0;          ///< of every rank
  std::uint32_t accounts = 1;

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(of_rank.size()); }
  std::uint32_t streams() const;  ///< the most that a program has
  bool slows() const;             ///< anything
  const Pattern& pattern(const Collective&, std::uint32_t group) const;
};

/// Messages of all ranks, and the exchanges and single transfers that they are of.
struct ProgramTraffic {
  std::int64_t messages = 0, exchanges = 0, transfers = 0;
};
ProgramTraffic traffic(const Programs&);

}  // namespace collcast
