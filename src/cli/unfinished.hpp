// Files that are being written under a temporary name: gone again if a signal ends the process meanwhile.
//
// SIGINT, SIGTERM and SIGHUP end it as they do without: by the signal. Left out: SIGKILL, and a fall of the machine,
// which leave FILE.PID.tmp behind.
#pragma once

#include <array>
#include <csignal>
#include <string>

namespace collcast::cli {

/// Of one command, while it delivers; one at a time. A signal that something else handles or ignores stays with that.
class Unfinished {
 public:
  Unfinished();
  ~Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  /// From now on until the end; by then it is in its place or gone. Of more than 64 the rest would stay.
  void add(const std::string& file);
  /// The one that was added last is not ours.
  void drop_last();

  /// As a handler may call it: removes them. Who ends the process in a handler of its own does so before.
  static void remove_all();

 private:
  static constexpr std::array signals_{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, signals_.size()> before_{};
};

}  // namespace collcast::cli
