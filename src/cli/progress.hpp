// A line of progress on a terminal, for work that takes longer than a second. Nothing of it reaches a result.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "cli/session.hpp"

namespace collcast::cli {

class Progress {
 public:
  Progress(const Session& session, std::size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The next piece of work begins.
  void begin(std::string_view what);

 private:
  const Session& session_;
  std::size_t total_;
  std::size_t begun_ = 0;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace collcast::cli
