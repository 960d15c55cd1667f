// Work that somebody has spelled out, message by message: what no formula gives. Rows of 16 bytes.
//
// A thread does its steps one after the other, all of them `loops` times over. It sends to one thread at most, over one
// lane, and receives from one at most; messages arrive in the order in which they were sent. A step starts when the one
// before it on its thread is over and
//   - the step that it waits for, of another thread of its rank, is over in the same loop, and
//   - where it receives, one more message has arrived;
// it is over at once, or, where it sends, when the last byte of its message has left. Loops are not spelled out and
// nothing is stored for a message to come: how far a thread is are two numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "collcast/base/id.hpp"
#include "collcast/base/quantity.hpp"

namespace collcast {

struct SpelledStep {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::uint32_t after_thread = none;  ///< of SpelledOut::threads, of the same rank; none: waits for no step
  std::uint32_t after_step = 0;       ///< of that thread's
  std::uint32_t units = 0;            ///< of its message, where it sends
  bool receives = false, sends = false;
};
static_assert(sizeof(SpelledStep) == 16);

struct SpelledThread {
  Rank rank;
  std::uint32_t first = 0, count = 0;    ///< its steps, in SpelledOut::steps
  std::uint32_t to = SpelledStep::none;  ///< the thread that receives what it sends; none: it sends nothing
  int lane = 0;                          ///< of Fabric::route
};

struct SpelledOut {
  std::vector<SpelledStep> steps;  ///< thread by thread
  std::vector<SpelledThread> threads;
  Volume unit{};  ///< bytes
  std::uint32_t loops = 1;
};

}  // namespace collcast
