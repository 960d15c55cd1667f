// A line of progress on a terminal, for work that takes longer than a second: drawn anew each second while a piece of
// work goes on, however long that is. Nothing of it reaches a result.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "cli/session.hpp"

namespace collcast::cli {

/// ", 12.3 M messages, 4.1 M/s, 35 s left" of a piece of work that has taken so long; empty before the first message.
std::string progress_text(std::int64_t messages, std::int64_t of_messages, double seconds);

/// ", 8.1/s, 35 s left" of so many pieces of work, where several are done and some are not; else empty.
std::string pieces_text(std::size_t done, std::size_t total, double seconds);

class Progress {
 public:
  Progress(const Session& session, std::size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The next piece of work begins, the first after so many.
  void begin(std::string_view what, std::size_t done);
  /// The next, one after the last.
  void begin(std::string_view what);
  /// It has so many messages; 0: nobody knows.
  void expect(std::int64_t messages);
  /// So many of them are done, by the simulation that tells; fewer than before: by the next one.
  void tell(std::int64_t messages);
  /// Of the piece of work, so far.
  std::int64_t messages();

 private:
  void draw();  ///< with mutex_ held

  const Session& session_;
  const std::size_t total_;
  const std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;  ///< over what follows
  std::condition_variable over_;
  std::string what_;
  std::size_t begun_ = 0;
  std::int64_t messages_ = 0, of_messages_ = 0;  ///< of the piece of work
  std::int64_t before_ = 0;                      ///< of its simulations that are over
  std::chrono::steady_clock::time_point piece_start_;
  bool done_ = false, shown_ = false;
  std::thread clock_;  ///< last: it uses all the others; only on a terminal
};

/// A bar for each phase of some work: a phase begins with none of its pieces done.
class PhasesProgress {
 public:
  explicit PhasesProgress(const Session& session) : session_(session) {}
  void operator()(std::string_view what, std::size_t done, std::size_t total);

 private:
  const Session& session_;
  std::optional<Progress> bar_;
};

/// What `work` gives, which is told how to show how far it has come and calls that as PhasesProgress says.
template <class Work>
auto with_progress(const Session& session, const Work& work) {
  PhasesProgress progress(session);
  return work([&progress](std::string_view what, std::size_t done, std::size_t total) { progress(what, done, total); });
}

}  // namespace collcast::cli
