// The explicit part of a Schedule: which operation is ready, runs, is over.
//
// The Schedule stores what each operation waits for; here that is turned around once, into what becomes
// ready when an operation is over (or, for transfers, has left its sender). From then on an operation is
// a count of what it still waits for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collcast/engine/engine.hpp"
#include "engine/agenda.hpp"
#include "engine/connections.hpp"
#include "engine/exchanges.hpp"

namespace collcast::engine {

class Operations {
 public:
  using Input = Schedule;
  using Output = Timeline;
  static constexpr bool repeats = false;
  static constexpr bool slows = false;
  static constexpr bool chains = true;  ///< a flow goes on from one operation to the next: next_on, goes_on
  /// What it must be if work is left over.
  static constexpr const char* unmatched = Exchanges::unmatched;

  Operations(const Schedule& schedule, Connections& connections, Exchanges& exchanges, Agenda& agenda);

  /// Puts the operations that wait for nothing on the agenda.
  void begin();
  void ready(std::uint32_t op);
  /// The last byte of the transfer that owns the flow has left.
  void left(std::uint32_t flow);
  void finished(std::uint32_t op);
  /// The transfer that begins as the last byte of the flow's present one leaves, between the same ranks, with the same
  /// lane and traffic class; none if there is none to be seen.
  std::uint32_t next_on(std::uint32_t flow) const;
  /// The last byte has left, and the flow is now that of next_on.
  void goes_on(std::uint32_t flow, std::uint32_t next);
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  bool all_finished() const { return unfinished_ == 0; }
  /// For people: an operation, and one that never ended.
  std::string describe(std::uint32_t op) const;
  std::string left_over() const;
  /// Times alone.
  Timeline output();

 private:
  /// For every operation, those that wait for it: the rows of a matrix without its zeros.
  struct Followers {
    std::vector<std::uint32_t> begin, ops;
  };
  static constexpr std::uint32_t over = ~std::uint32_t{0};

  std::uint32_t awaits(std::uint32_t op) const;
  bool is_next(std::uint32_t follower, const Transfer& transfer) const;
  void book_left(std::uint32_t op, const Connection& flow);
  bool is_finished(std::uint32_t op) const { return waits_[op] == over; }
  void take_part(const Part& part);
  void list_followers();
  void release(const Followers& followers, std::uint32_t op);
  void start_transfer(std::uint32_t op, const Transfer& transfer);

  const Schedule& schedule_;
  Connections& connections_;
  Exchanges& exchanges_;
  Agenda& agenda_;
  std::vector<std::uint32_t> waits_;   ///< number of operations it still waits for; `over` once finished
  std::vector<std::uint32_t> opened_;  ///< by exchange; Exchanges::none: not begun
  Followers on_left_, on_finished_;
  std::vector<Interval> intervals_;
  std::size_t unfinished_ = 0;
};

}  // namespace collcast::engine
