#include "cli/unfinished.hpp"

#include <climits>

#include <algorithm>
#include <atomic>
#include <unistd.h>

namespace collcast::cli {

namespace {

/// State of the process, as a handler can reach nothing else: names in their places before they are counted.
constexpr std::size_t most_files = 64;
std::array<std::array<char, PATH_MAX>, most_files> names{};
std::atomic<std::size_t> count = 0;
static_assert(std::atomic<std::size_t>::is_always_lock_free, "a signal handler reads it");

void on_end(int signal) {
  Unfinished::remove_all();
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(signal, &usual, nullptr);
  ::raise(signal);  // delivered as this handler returns
}

}  // namespace

Unfinished::Unfinished() {
  for (std::size_t i = 0; i < signals_.size(); ++i) {
    ::sigaction(signals_[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_handler = on_end;
    ::sigaction(signals_[i], &action, nullptr);
  }
}

Unfinished::~Unfinished() {
  count = 0;
  for (std::size_t i = 0; i < signals_.size(); ++i)
    if (before_[i].sa_handler == SIG_DFL) ::sigaction(signals_[i], &before_[i], nullptr);
}

void Unfinished::add(const std::string& file) {
  const std::size_t at = count;
  if (at == most_files || file.size() >= PATH_MAX) return;
  *std::ranges::copy(file, names[at].begin()).out = '\0';
  count = at + 1;
}

void Unfinished::drop_last() {
  if (count > 0) count = count - 1;
}

void Unfinished::remove_all() {
  const std::size_t files = count;
  for (std::size_t i = 0; i < files; ++i) ::unlink(names[i].data());
}

}  // namespace collcast::cli
