#include "cli/patience.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include "cli/container_memory.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/values.hpp"
#include "collcast/base/text.hpp"
#include "collcast/base/units.hpp"

namespace collcast::cli {

namespace {

/// The program itself needs some tens of megabytes.
constexpr Bytes least_memory{std::int64_t{64} << 20};
/// A thread's stack (4 to 8 MiB), its part of the heap and what it works with: planning llama3-70b-64xh100 takes 95 MiB
/// with one thread, 157 with two, 234 with four.
constexpr Bytes memory_of_thread{std::int64_t{64} << 20};

std::optional<Seconds> parse_time(const std::string& text, Diagnostics& errors) {
  if (text.empty()) return std::nullopt;
  const Parsed<Seconds> read = parse_seconds(text);
  if (read.ok && read.value > Seconds(0)) return read.value;
  errors.push_back({typed("--time-limit", text), fmt::format("'{}' is no time to wait", shown(text)),
                    "expected a time above 0, such as 60s"});
  return std::nullopt;
}

/// MemAvailable of Linux; where it cannot be read, no limit.
Bytes available_memory() {
  std::ifstream in("/proc/meminfo");
  std::string key;
  std::int64_t kibibytes = 0;
  for (std::string rest; in >> key >> kibibytes; std::getline(in, rest))
    if (key == "MemAvailable:") return Bytes(kibibytes << 10);
  return Bytes(std::numeric_limits<std::int64_t>::max());
}

/// What the process may take by limits that it was begun with (ulimit).
Bytes allowed_memory() {
  Bytes allowed(std::numeric_limits<std::int64_t>::max());
  for (const auto which : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (::getrlimit(which, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      allowed = std::min(allowed, Bytes(static_cast<std::int64_t>(limit.rlim_cur)));
  }
  return allowed;
}

/// Of this process: data and stack, which is what limits count.
Bytes taken_memory() {
  std::int64_t total = 0, resident = 0, shared = 0, text = 0, library = 0, data = 0;
  std::ifstream("/proc/self/statm") >> total >> resident >> shared >> text >> library >> data;
  return Bytes(data * ::sysconf(_SC_PAGESIZE));
}

/// Of the program and its libraries: resident, and no data. So far, and what is read later: seen were 1.5 MiB more.
Bytes file_memory() {
  constexpr std::int64_t read_later = std::int64_t{4} << 20;
  std::int64_t total = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> total >> resident >> shared;
  return Bytes(shared * ::sysconf(_SC_PAGESIZE) + read_later);
}

std::optional<Bytes> limit_memory(const std::string& text, Diagnostics& errors) {
  if (text.empty()) return std::nullopt;
  const Parsed<Bytes> read = parse_bytes(text);
  if (!read.ok || read.value < least_memory) {
    errors.push_back({typed("--memory-limit", text), fmt::format("'{}' is no limit to work in", shown(text)),
                      "expected a size from 64MiB, such as 4GiB"});
    return std::nullopt;
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>((read.value - file_memory()).value()));
  ::setrlimit(RLIMIT_DATA, &limit);
  return read.value;
}

}  // namespace

void add_limit_options(CLI::App& app, LimitArgs& args) {
  app.add_option("--time-limit", args.time, "stop simulating after TIME, and print what is known; marked partial")
      ->type_name("TIME")
      ->group("Limits");
  app.add_option("--memory-limit", args.memory,
                 "take no more memory than SIZE: leave out what needs more, or give up with exit 3")
      ->type_name("SIZE")
      ->group("Limits");
}

Patience::Patience(const LimitArgs& args, Diagnostics& errors)
    : limit_(parse_time(args.time, errors)),
      available_(std::min({available_memory(), room_in_container(), allowed_memory()})),
      start_(std::chrono::steady_clock::now()) {
  memory_limit_ = limit_memory(args.memory, errors);
}

bool Patience::is_over(Seconds grace) const {
  if (Interrupts::came()) return true;
  return limit_ && Seconds(std::chrono::steady_clock::now() - start_) > *limit_ + grace;
}

bool Patience::is_over() const { return is_over(Seconds(0)); }
bool Patience::is_over_for_closed_forms() const { return is_over(Seconds(1)); }

int Patience::threads(int asked) {
  rlim_t least = RLIM_INFINITY;
  for (const auto kind : {RLIMIT_DATA, RLIMIT_AS}) {
    rlimit limit{};
    if (::getrlimit(kind, &limit) == 0) least = std::min(least, limit.rlim_cur);
  }
  if (asked <= 0) asked = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (least == RLIM_INFINITY) return asked;
  const rlim_t pieces = least / static_cast<rlim_t>(memory_of_thread.value());
  const rlim_t held = pieces > 1 ? pieces - 1 : 1;  // one is the program's
  return static_cast<int>(std::clamp<rlim_t>(held, 1, static_cast<rlim_t>(asked)));
}

Bytes Patience::room_now() {
  return std::max(Bytes(0), std::min({available_memory(), room_in_container(), allowed_memory() - taken_memory()}));
}

EngineWatch Patience::watch(Progress* progress) const {
  return [this, progress](const EngineProgress& done) {
    if (progress != nullptr) progress->tell(done.messages);
    if (!is_over()) return true;
    has_ended_ = true;
    return false;
  };
}

GoesOn Patience::goes_on() const {
  return {[this] {
            if (!is_over_for_closed_forms()) return true;
            has_ended_ = true;
            return false;
          },
          room_now};
}

GoesOn Patience::pieces_go_on() const {
  return {[this] {
            if (!is_over()) return true;
            has_ended_ = true;
            return false;
          },
          room_now};
}

std::string Patience::tell_partial(const Session& session, const std::string& known, bool page_is_read) const {
  std::string text = fmt::format("partial: {}; {}", reason(), known);
  if (!page_is_read) say(session, {text});
  return text;
}

std::string Patience::reason() const {
  return Interrupts::came() || !limit_ ? "stopped by Ctrl-C"
                                       : fmt::format("the time limit of {} is over", format_seconds(*limit_));
}

Exit Patience::exit(Exit delivered) const {
  return delivered == Exit::ok && Interrupts::came() ? Exit::interrupted : delivered;
}

Exit Patience::give_up(const Session& session, const std::string& what, const std::string& hint) const {
  return refused(refuse(session, {{command_line, fmt::format("{}: {}", reason(), what), hint}}));
}

Exit Patience::refused(Exit exit) const { return Interrupts::came() ? Exit::interrupted : exit; }

}  // namespace collcast::cli
