#include "cli/interrupt.hpp"

#include <atomic>

namespace collcast::cli {

namespace {

/// The one variable of the process: a signal handler can reach nothing else.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch it");

}  // namespace

Interrupts::Interrupts() {
  interrupted = false;
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigaction(SIGINT, &action, &before_);
}

Interrupts::~Interrupts() { ::sigaction(SIGINT, &before_, nullptr); }

bool Interrupts::came() { return interrupted; }

}  // namespace collcast::cli
