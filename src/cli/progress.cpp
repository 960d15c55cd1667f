#include "cli/progress.hpp"

#include <fmt/format.h>

#include <ostream>

namespace collcast::cli {

namespace {
constexpr std::string_view clear_line = "\r\033[K";
}

Progress::Progress(const Session& session, std::size_t total)
    : session_(session), total_(total), start_(std::chrono::steady_clock::now()) {
  if (!session_.progress) return;
  clock_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!over_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; }))
      if (begun_ > 0) draw();
  });
}

Progress::~Progress() {
  if (!clock_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  over_.notify_one();
  clock_.join();
  if (shown_) session_.err << clear_line << std::flush;
}

void Progress::begin(std::string_view what) {
  const std::size_t done = begun_;  // only this thread sets it
  begin(what, done);
}

void Progress::begin(std::string_view what, std::size_t done) {
  if (!session_.progress) return;
  const std::lock_guard lock(mutex_);
  begun_ = done + 1;
  what_ = what;
  if (shown_) draw();
}

void Progress::draw() {
  constexpr std::size_t width = 20;
  const std::size_t done = total_ == 0 ? width : (begun_ - 1) * width / total_;
  const auto elapsed =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start_).count();
  shown_ = true;
  session_.err << clear_line
               << fmt::format("[{}{}] {}/{} {} ({} s)", std::string(done, '#'), std::string(width - done, '.'), begun_,
                              total_, what_, elapsed)
               << std::flush;
}

}  // namespace collcast::cli
