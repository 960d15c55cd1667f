#include "cli/interrupt.hpp"

#include <atomic>
#include <cstdint>
#include <ctime>

#include "cli/unfinished.hpp"

namespace collcast::cli {

namespace {

/// When the first signal came, on the clock below; 0: none did. State of the process, as unfinished.cpp's: a signal
/// handler can reach nothing else.
std::atomic<std::int64_t> interrupted_ns = 0;
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "a signal handler may touch it");

/// A wrapper that passes a signal on sends it to the process and to its group (timeout(1) does): what comes within
/// this time of the first is the same Ctrl-C. Nobody presses twice so fast to end what has just been asked to end.
constexpr std::int64_t same_press_ns = 250'000'000;

/// Nanoseconds of a clock that never goes back, at least 1. May be called in a signal handler, as POSIX lists it.
std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec + 1;
}

void on_interrupt(int signal) {
  const std::int64_t now = now_ns();
  std::int64_t first = 0;
  if (interrupted_ns.compare_exchange_strong(first, now) || now - first < same_press_ns) return;
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(signal, &usual, nullptr);
  Unfinished::remove_all();
  ::raise(signal);  // delivered as this handler returns
}

}  // namespace

Interrupts::Interrupts() {
  interrupted_ns = 0;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &before_);
}

Interrupts::~Interrupts() { ::sigaction(SIGINT, &before_, nullptr); }

bool Interrupts::came() { return interrupted_ns != 0; }

}  // namespace collcast::cli
