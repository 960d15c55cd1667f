// What ends a command's simulations before they are through: Ctrl-C, and the limits of the command line.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

#include "cli/interrupt.hpp"
#include "cli/session.hpp"
#include "collcast/evaluate/evaluate.hpp"

namespace CLI {
class App;
}

namespace collcast::cli {

class Progress;

struct LimitArgs {
  std::string time, memory;  ///< empty: none
};
void add_limit_options(CLI::App&, LimitArgs&);

class Patience {
 public:
  /// From here on the clock runs, SIGINT is remembered, and memory beyond the limit is refused to the process.
  Patience(const LimitArgs&, Diagnostics& errors);

  /// May be asked by any thread.
  bool is_over() const;
  /// Some work has been ended by this: what failed may have failed by that.
  bool has_ended_work() const { return has_ended_; }
  /// Memory that the work may take: the limit's, or as much as the machine has to give.
  Bytes room() const { return memory_limit_.value_or(available_); }
  /// That of the machine and of the limits that the process has by now, less what it has taken.
  static Bytes room_now();
  std::optional<Bytes> memory_limit() const { return memory_limit_; }
  /// Closed forms take no time as a rule: they have a second more than the limit. May be asked by any thread.
  bool is_over_for_closed_forms() const;
  /// Ends closed forms once that is over.
  GoesOn goes_on() const;
  /// Ends what is done piece by piece, at the limit itself. May be asked by any thread.
  GoesOn pieces_go_on() const;
  /// So many threads, or as many as the process's memory limit has room for: one that cannot begin would end the
  /// process. 0: as many as there are cores.
  static int threads(int asked);
  /// Ends a simulation once it is over, and tells `progress` how far that has come.
  EngineWatch watch(Progress* progress = nullptr) const;
  /// "partial: the time limit of 2 s is over; " and what is known, said at once unless a page that is read says it.
  std::string tell_partial(const Session&, const std::string& known, bool page_is_read) const;
  /// "stopped by Ctrl-C" or "the time limit of 2 s is over".
  std::string reason() const;
  /// Of what was delivered well: interrupted after Ctrl-C.
  Exit exit(Exit delivered) const;
  /// Nothing was known by then: says so; interrupted after Ctrl-C, else bad_input, as the limit was too short.
  Exit give_up(const Session&, const std::string& what, const std::string& hint) const;

  /// Of what was refused since work had been ended: interrupted after Ctrl-C.
  Exit refused(Exit) const;

 private:
  bool is_over(Seconds grace) const;

  Interrupts interrupts_;
  std::optional<Seconds> limit_;
  std::optional<Bytes> memory_limit_;
  Bytes available_;
  std::chrono::steady_clock::time_point start_;
  mutable std::atomic<bool> has_ended_ = false;
};

}  // namespace collcast::cli
