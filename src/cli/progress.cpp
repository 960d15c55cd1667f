#include "cli/progress.hpp"

#include <fmt/format.h>

#include <ostream>

namespace collcast::cli {

namespace {
constexpr std::string_view clear_line = "\r\033[K";
}

Progress::Progress(const Session& session, std::size_t total)
    : session_(session), total_(total), start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (shown_) session_.err << clear_line << std::flush;
}

void Progress::begin(std::string_view what) {
  ++begun_;
  if (!session_.progress || std::chrono::steady_clock::now() - start_ < std::chrono::seconds(1)) return;
  shown_ = true;
  constexpr std::size_t width = 20;
  const std::size_t done = total_ == 0 ? width : (begun_ - 1) * width / total_;
  session_.err << clear_line
               << fmt::format("[{}{}] {}/{} {}", std::string(done, '#'), std::string(width - done, '.'), begun_, total_,
                              what)
               << std::flush;
}

}  // namespace collcast::cli
