// Threads of a SpelledOut: where each is, what it waits for, what takes it on.
//
// A thread's connection is opened once for all its messages. A thread that waits for another's step is on a list of
// that one's, so that a step that is over looks at nobody else.
//
// Events: `ready` has a thread look again whether what it waits for is there; `finished` is a message that has arrived
// at a thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collcast/engine/engine.hpp"
#include "engine/agenda.hpp"
#include "engine/connections.hpp"
#include "engine/exchanges.hpp"

namespace collcast::engine {

class SpelledThreads {
 public:
  using Input = SpelledOut;
  using Output = Timeline;
  static constexpr bool repeats = false;
  static constexpr bool slows = false;
  static constexpr bool chains = false;
  static constexpr const char* unmatched = "threads wait for each other, or for what nobody sends or receives";

  SpelledThreads(const SpelledOut& spelled, Connections& connections, Exchanges& /*exchanges*/, Agenda& agenda);

  void begin();
  void ready(std::uint32_t thread) { go_on(thread); }
  /// The last byte of the message of the thread that owns the flow has left.
  void left(std::uint32_t flow);
  /// One more message for the thread is there.
  void finished(std::uint32_t thread);

  bool all_finished() const { return unfinished_ == 0 && unread_ == 0; }
  std::string describe(std::uint32_t thread) const;
  std::string left_over() const;
  /// Times alone; an operation is a thread.
  Timeline output();

 private:
  static constexpr std::uint32_t none = SpelledStep::none;

  struct State {
    std::uint32_t loop = 0, step = 0;  ///< that it is at
    std::uint32_t flow = none;         ///< its connection
    std::uint32_t waiters = none;      ///< the first of the threads that wait for a step of it
    std::uint32_t next = none;         ///< beside it in such a list
    bool is_waiting = false;           ///< it is in one
    bool is_sending = false;
    std::uint64_t arrived = 0;  ///< messages that it has not received yet
    Ticks finish = 0;
  };

  const SpelledStep& row(std::uint32_t thread) const {
    return spelled_.steps[spelled_.threads[thread].first + states_[thread].step];
  }
  bool is_through(std::uint32_t thread) const { return states_[thread].loop == spelled_.loops; }
  bool is_over(std::uint32_t thread, std::uint32_t loop, std::uint32_t step) const {
    const State& state = states_[thread];
    return state.loop > loop || (state.loop == loop && state.step > step);
  }
  void go_on(std::uint32_t thread);
  /// False if the step has to wait.
  bool may_start(std::uint32_t thread, const SpelledStep& step);
  std::string waits_for(std::uint32_t thread) const;
  std::uint32_t sender_to(std::uint32_t thread) const;
  void wait_for(std::uint32_t other, std::uint32_t thread);
  void send(std::uint32_t thread, const SpelledStep& step);
  void step_over(std::uint32_t thread);

  const SpelledOut& spelled_;
  Connections& connections_;
  Agenda& agenda_;
  std::vector<State> states_;   ///< by thread
  std::size_t unfinished_ = 0;  ///< threads
  std::uint64_t unread_ = 0;    ///< messages that have left and are not received
};

}  // namespace collcast::engine
