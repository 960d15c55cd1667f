// Ctrl-C while a command works: a question that work may ask, instead of the end of the process.
#pragma once

#include <csignal>

namespace collcast::cli {

/// From construction to destruction SIGINT is remembered. A second one, a quarter of a second later or more, ends
/// the process as usual; sooner it is the first, passed on twice.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// May be asked by any thread.
  static bool came();

 private:
  struct sigaction before_ {};
};

}  // namespace collcast::cli
