#include "runner/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <poll.h>
#include <sys/wait.h>
#include <thread>

#include "collcast/base/check.hpp"
#include "collcast/base/units.hpp"
#include "runner/outcomes.hpp"
#include "runner/silence.hpp"

namespace collcast::runner {

namespace {

/// How long the other ranks may still speak once one has failed.
constexpr std::chrono::milliseconds last_words{250};

using Deadline = std::chrono::steady_clock::time_point;

/// Waits for a child's end; its status.
int ended(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

std::string death_of(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("ended with code {} and said nothing", WEXITSTATUS(status));
}

}  // namespace

Ranks::~Ranks() {
  for (const RankProcess& p : processes_) {
    if (p.id > 0) ::kill(p.id, SIGKILL);
  }
  for (const RankProcess& p : processes_) {
    if (p.id > 0) ended(p.id);
  }
}

MeasureOutcome Ranks::watch() {
  std::optional<Deadline> end;
  while (std::any_of(processes_.begin(), processes_.end(), [](const RankProcess& p) { return p.pipe.is_open(); })) {
    const auto left = end ? std::chrono::ceil<std::chrono::milliseconds>(*end - std::chrono::steady_clock::now())
                          : std::chrono::milliseconds(-1);
    if (end && left.count() <= 0) break;
    std::vector<pollfd> polls{{signals_.descriptor(), POLLIN, 0}};
    for (const RankProcess& p : processes_) polls.push_back({p.pipe.number(), POLLIN, 0});
    if (::poll(polls.data(), polls.size(), static_cast<int>(left.count())) < 0 && errno != EINTR)
      return {Ending::broken, {fmt::format("the ranks cannot be watched: {}", std::strerror(errno))}, 0};
    if (polls[0].revents != 0) return stopped_by(signals_.take());
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (polls[i + 1].revents != 0 && !hear(processes_[i])) return {Ending::stopped, {}, 0};
    }
    if (!end && failed()) end = std::chrono::steady_clock::now() + last_words;
  }
  return verdict();
}

/// False where the sink wants no more.
bool Ranks::hear(RankProcess& process) {
  char buffer[65536];
  const ssize_t got = ::read(process.pipe.number(), buffer, sizeof buffer);
  if (got < 0 && errno == EINTR) return true;
  if (got > 0) {
    process.reader.append(buffer, static_cast<std::size_t>(got));
    while (const auto bytes = process.reader.next()) {
      const auto message = decode(*bytes);
      check(message.has_value(), "a rank of ours speaks our language");
      if (!pass_on(process, *message)) return false;
    }
    if (process.reader.broken()) {
      process.death = fmt::format("sent a message of more than {}", format_bytes(Bytes(longest_frame)));
      process.pipe.close();
    }
    return true;
  }
  process.pipe.close();
  const std::string death = process.id > 0 ? death_of(ended(process.id)) : "ended and said nothing";
  process.id = -1;
  if (!process.outcome) process.death = death;
  return true;
}

bool Ranks::pass_on(RankProcess& process, const Message& message) {
  if (const auto* system = std::get_if<MeasuredSystem>(&message)) sink_.system(*system);
  if (const auto* row = std::get_if<MeasuredRow>(&message)) return sink_.row(*row);
  if (const auto* note = std::get_if<Noted>(&message)) sink_.note(note->text);
  if (const auto* outcome = std::get_if<MeasureOutcome>(&message)) process.outcome = *outcome;
  if (const auto* began = std::get_if<Began>(&message)) {
    doing_ = fmt::format("{} of {}", to_string(began->kind), format_bytes(began->size));
    sink_.begin(began->kind, began->size);
  }
  return true;
}

bool Ranks::failed() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const RankProcess& p) { return !p.death.empty() || (p.outcome && went_off(*p.outcome)); });
}

bool Ranks::any_died() const {
  return std::any_of(processes_.begin(), processes_.end(), [](const RankProcess& p) { return !p.death.empty(); });
}

/// A rank that died is why the others failed; else one that was refused or lacks something is why they lost it;
/// else the first of each kind of failure speaks for all.
MeasureOutcome Ranks::verdict() const {
  MeasureOutcome out{Ending::broken, {}, 0};
  const std::string during = doing_.empty() ? std::string() : " during " + doing_;
  for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
    if (!processes_[rank].death.empty())
      out.problems.push_back(fmt::format("rank {} {}{}", rank, processes_[rank].death, during));
  }
  if (!out.problems.empty()) return out;
  const auto cause = std::find_if(processes_.begin(), processes_.end(), [](const RankProcess& p) {
    return p.outcome && went_off(*p.outcome) && p.outcome->ending != Ending::broken;
  });
  if (cause != processes_.end()) out.ending = cause->outcome->ending;
  std::vector<std::size_t> silent;
  for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
    const auto& outcome = processes_[rank].outcome;
    if (!outcome) silent.push_back(rank);
    if (!outcome || !went_off(*outcome)) continue;
    if (out.ending != Ending::broken && outcome->ending == Ending::broken) continue;
    for (const std::string& problem : outcome->problems) {
      if (out.ending == Ending::broken) {
        out.problems.push_back(fmt::format("rank {}: {}", rank, problem));
      } else if (std::find(out.problems.begin(), out.problems.end(), problem) == out.problems.end()) {
        out.problems.push_back(problem);
      }
    }
  }
  if (out.problems.empty()) return *processes_.front().outcome;
  if (out.ending == Ending::broken && !silent.empty())
    out.problems.push_back(silence_text(silent, processes_.size(), std::thread::hardware_concurrency()));
  return out;
}

}  // namespace collcast::runner
