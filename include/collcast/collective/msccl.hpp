// Algorithms that a user brings spelled out: every rank's thread blocks with their steps, as MSCCL's XML has them.
//
// A thread block runs its steps one after the other; it sends to at most one rank and receives from at most one, over
// a channel, in order. A step may also wait for a step of another thread block of its rank. Proved before it is timed:
// `prove` runs the steps on sets of contributions, `spell_out` makes them the engine's.
//
// The words and their meaning are those of microsoft/msccl and msccl-tools (Apache-2.0/MIT), release 0.7.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/collective/collective.hpp"
#include "collcast/schedule/group.hpp"
#include "collcast/schedule/spelled_out.hpp"

namespace collcast::msccl {

enum class StepKind : std::uint8_t {
  send,                      ///< s
  receive,                   ///< r
  receive_copy_send,         ///< rcs: what comes is kept and sent on
  receive_reduce_send,       ///< rrs: what comes and the source are summed and sent on, not kept
  receive_reduce_copy,       ///< rrc: the sum is kept
  receive_reduce_copy_send,  ///< rrcs: the sum is kept and sent on
  copy,                      ///< cpy
  reduce,                    ///< re: the source is added to the destination
  nop                        ///< waits only
};
std::string_view to_string(StepKind);
std::optional<StepKind> parse_step(std::string_view);
std::vector<std::string> step_words();
bool receives(StepKind);
bool sends(StepKind);
/// Sums: of the kinds that receive, the source is its second operand.
bool reduces(StepKind);

enum class Buffer : std::uint8_t { input, output, scratch };

/// `count` chunks of a buffer from `offset` on.
struct Place {
  Buffer buffer = Buffer::input;
  int offset = 0;
};

struct Step {
  StepKind kind = StepKind::nop;
  Place source, destination;
  int count = 0;
  int after_block = -1, after_step = -1;  ///< waits for that thread block's step, of the same rank; -1: for nothing
  Location where;
};

struct ThreadBlock {
  int send = -1, receive = -1;  ///< ranks; -1: none
  int channel = 0;
  std::vector<Step> steps;
  Location where;
};

struct Gpu {
  int input = 0, output = 0, scratch = 0;  ///< chunks that the file says its buffers have
  std::vector<ThreadBlock> blocks;
  Location where;
};

struct Algorithm {
  std::string name, protocol;
  CollectiveKind kind = CollectiveKind::all_reduce;
  int chunks = 1;  ///< that the size of a request (collective.hpp) is cut into
  int channels = 1;
  bool in_place = false;             ///< input and output are one buffer, as NCCL's in-place calls have it
  std::optional<Bytes> least, most;  ///< sizes that it is meant for
  std::vector<Gpu> gpus;             ///< by rank of the group
  Location where;
};

/// A step by its place: of rank `gpu`, its `block`-th thread block, that one's `step`-th.
struct StepRef {
  int gpu = 0, block = 0, step = 0;
};

/// An order in which every step can run; or why the algorithm is not what it says, with the places in its file: peers
/// that do not match, waits in a circle, data that is not there, sums that count a contribution twice, steps that touch
/// the same chunk with nothing that orders them, and ranks that do not end with what the collective promises, with
/// their bytes at `size`; these also where steps race, as they end in one of the orders. `root` as in
/// CollectiveRequest. Proved for every legal interleaving, for buffers between ranks that never fill.
/// `goes_on` is told how many steps have run, every thousand or so; false ends the proof, which is then none.
Result<std::vector<StepRef>> prove(const Algorithm&, Bytes size, int root = 0,
                                   const std::function<bool(std::size_t steps)>& goes_on = {});

/// The steps of a proved algorithm as the engine's rows: a thread block is a thread (its lane is the channel) and goes
/// on when the bytes that it sends have left; local copies and sums take no time. All of it is done `loops` times, each
/// with its part of every chunk, as MSCCL's interpreter does for chunks larger than its buffers.
SpelledOut spell_out(const Algorithm&, const Group&, Bytes size, int loops = 1);

}  // namespace collcast::msccl
