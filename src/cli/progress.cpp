#include "cli/progress.hpp"

#include <fmt/format.h>

#include <cmath>
#include <ostream>
#include <system_error>

#include "collcast/base/units.hpp"

namespace collcast::cli {

namespace {
constexpr std::string_view clear_line = "\r\033[K";
}

Progress::Progress(const Session& session, std::size_t total)
    : session_(session), total_(total), start_(std::chrono::steady_clock::now()) {
  if (!session_.progress) return;
  try {
    clock_ = std::thread([this] {
      std::unique_lock lock(mutex_);
      while (!over_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; }))
        if (begun_ > 0) draw();
    });
  } catch (const std::system_error&) {
    // Too little memory for a thread is no reason to do without the work.
  }
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
  messages_ = of_messages_ = before_ = 0;
  piece_start_ = std::chrono::steady_clock::now();
  if (shown_) draw();
}

void Progress::expect(std::int64_t messages) {
  if (!session_.progress) return;
  const std::lock_guard lock(mutex_);
  of_messages_ = messages;
}

void Progress::tell(std::int64_t messages) {
  if (!session_.progress) return;
  const std::lock_guard lock(mutex_);
  // A piece of work may be several simulations, each of which counts from none on.
  if (before_ + messages < messages_) before_ = messages_;
  messages_ = before_ + messages;
}

std::int64_t Progress::messages() {
  const std::lock_guard lock(mutex_);
  return messages_;
}

void PhasesProgress::operator()(std::string_view what, std::size_t done, std::size_t total) {
  if (done == 0) bar_.emplace(session_, total);
  if (bar_ && done < total) bar_->begin(what, done);
}

std::string progress_text(std::int64_t messages, std::int64_t of_messages, double seconds) {
  if (messages <= 0 || seconds <= 0) return {};
  const double rate = static_cast<double>(messages) / seconds;
  std::string out = fmt::format(", {} messages, {}/s", format_count(static_cast<double>(messages)), format_count(rate));
  if (of_messages > messages)
    out += fmt::format(", {:.0f} s left", std::ceil(static_cast<double>(of_messages - messages) / rate));
  return out;
}

std::string pieces_text(std::size_t done, std::size_t total, double seconds) {
  if (done < 2 || done >= total || seconds <= 0) return {};
  const double rate = static_cast<double>(done) / seconds;
  return fmt::format(", {}/s, {:.0f} s left", format_count(rate), std::ceil(static_cast<double>(total - done) / rate));
}

void Progress::draw() {
  constexpr std::size_t width = 20;
  const std::size_t done = total_ == 0 ? width : (begun_ - 1) * width / total_;
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double of_piece = std::chrono::duration<double>(std::chrono::steady_clock::now() - piece_start_).count();
  shown_ = true;
  session_.err << clear_line
               << fmt::format("[{}{}] {}/{} {} ({:.0f} s{})", std::string(done, '#'), std::string(width - done, '.'),
                              begun_, total_, what_, std::floor(elapsed),
                              messages_ > 0 ? progress_text(messages_, of_messages_, of_piece)
                                            : pieces_text(begun_ - 1, total_, elapsed))
               << std::flush;
}

}  // namespace collcast::cli
