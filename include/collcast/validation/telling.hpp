// How far a validation has come, as the command line shows it on a terminal.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string_view>

namespace collcast {

/// How far long work has come: first with 0 of its pieces done, then with more; one call at a time, from any thread.
using Telling = std::function<void(std::string_view what, std::size_t done, std::size_t total)>;

/// Counts the pieces of such work that any thread is through with. `tell` outlives it.
class PieceCount {
 public:
  PieceCount(const Telling& tell, std::string_view what, std::size_t total) : tell_(tell), what_(what), total_(total) {
    if (tell_) tell_(what_, 0, total_);
  }
  void step() {
    if (!tell_) return;
    const std::lock_guard lock(mutex_);
    tell_(what_, ++done_, total_);
  }

 private:
  const Telling& tell_;
  std::string_view what_;
  std::size_t total_;
  std::mutex mutex_;
  std::size_t done_ = 0;
};

}  // namespace collcast
