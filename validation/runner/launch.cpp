// Ranks as processes of this machine: started together, watched, and all gone when the measurement ends.
//
// Each rank is a fork of this process (nothing has threads yet), with a pipe to it. A rank that dies closes its
// pipe, so that is seen at once; then the others have a moment to say what they saw, and are ended. Ranks end
// with their parent. Rank 0 inherits the socket where the ranks meet, so no port is guessed.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "collcast/base/check.hpp"
#include "collcast/base/units.hpp"
#include "runner/communicator.hpp"
#include "runner/descriptor.hpp"
#include "runner/frames.hpp"
#include "runner/meeting.hpp"
#include "runner/messages.hpp"
#include "runner/silence.hpp"
#include "runner/store.hpp"
#include "runner/sweep.hpp"

namespace collcast {

namespace {

using namespace runner;

/// How long the other ranks may still speak once one has failed.
constexpr std::chrono::milliseconds last_words{250};

MeasureOutcome outcome_of(const Broken& broken) {
  // Whoever asked to stop knows why.
  if (broken.ending == Ending::stopped) return {broken.ending, {}, 0};
  return {broken.ending, {broken.what()}, 0, broken.library_busy};
}

/// Of what no layer below expected: better a message than a rank that aborts.
MeasureOutcome outcome_of(const std::exception& error) {
  return {Ending::broken, {fmt::format("unexpected failure: {}", error.what())}, 0};
}

/// Rank 0 listens at its address, or where its parent already does.
MeasureOutcome be_member(const MeasurePlan& plan, const Membership& self, const MeasureSink& sink,
                         Descriptor listening) {
  try {
    const auto backend = find_backend(plan.backend);
    check(backend && backend->start_rank != nullptr, "a plan's backend can be started rank by rank");
    int port = self.port;
    std::optional<StoreServer> server;
    if (self.rank == 0) {
      if (!listening.is_open()) {
        Listener own = listen_at({}, port);
        listening = std::move(own.socket);
        port = own.port;
      }
      server.emplace(std::move(listening));
    }
    Store store(self.rank == 0 ? "127.0.0.1" : self.host, port, plan.timeout);
    meet(plan, self, store);
    const auto group = backend->start_rank(plan, self, store);
    return sweep(plan, *backend, *group, self.ranks, sink);
  } catch (const Broken& broken) {
    return outcome_of(broken);
  } catch (const std::exception& error) {
    return outcome_of(error);
  }
}

/// Writes a frame to the parent. A parent that is gone takes its ranks with it, so failure needs no answer.
void tell(int pipe, const Message& message) {
  const std::string bytes = frame(encode(message));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(pipe, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno != EINTR) return;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
}

MeasureSink sink_into(int pipe) {
  return {[pipe](const MeasuredSystem& system) { tell(pipe, system); },
          [pipe](CollectiveKind kind, Bytes size) {
            tell(pipe, Began{kind, size});
          },
          [pipe](const MeasuredRow& row) {
            tell(pipe, row);
            return true;
          },
          [pipe](const std::string& note) { tell(pipe, Noted{note}); }};
}

MeasureSink silent_sink() {
  return {[](const MeasuredSystem&) {}, [](CollectiveKind, Bytes) {}, [](const MeasuredRow&) { return true; },
          [](const std::string&) {}};
}

/// Signals that end a measurement arrive as data while this lives.
class SignalsAsData {
 public:
  SignalsAsData() {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGHUP);
    ::pthread_sigmask(SIG_BLOCK, &wanted, &before_);
    source_ = Descriptor(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~SignalsAsData() { restore(); }
  SignalsAsData(const SignalsAsData&) = delete;
  SignalsAsData& operator=(const SignalsAsData&) = delete;

  int descriptor() const { return source_.number(); }
  int take() const {
    signalfd_siginfo info{};
    return ::read(source_.number(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }
  void restore() const { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
  Descriptor source_;
};

struct RankProcess {
  pid_t id = -1;
  Descriptor pipe;
  FrameReader reader;
  std::optional<MeasureOutcome> outcome;  ///< as it said
  std::string death;                      ///< why it ended without a word
};

std::string death_of(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("ended with code {} and said nothing", WEXITSTATUS(status));
}

/// The ranks of one measurement. What is left of them is ended with it.
class Ranks {
 public:
  Ranks(const MeasurePlan& plan, const MeasureSink& sink) : plan_(plan), sink_(sink) {}
  ~Ranks() { end_all(); }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  void start(int count) {
    Listener meeting_place = listen_at("127.0.0.1", 0);
    const pid_t parent = ::getpid();
    for (int rank = 0; rank < count; ++rank) {
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0) throw Broken(fmt::format("no pipe: {}", std::strerror(errno)));
      Descriptor reading(ends[0]), writing(ends[1]);
      const pid_t id = ::fork();
      if (id < 0) throw Broken(fmt::format("rank {} cannot be started: {}", rank, std::strerror(errno)));
      if (id == 0) {
        processes_.clear();
        signals_.restore();
        become(rank, count, parent, meeting_place, writing.number());
      }
      processes_.push_back({id, std::move(reading), {}, {}, {}});
    }
  }

  /// Until all have ended, or one has failed.
  MeasureOutcome watch() {
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

 private:
  /// What is thrown here must not reach the parent's code in this process.
  [[noreturn]] void become(int rank, int count, pid_t parent, Listener& meeting_place, int pipe) noexcept {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    // Ctrl-C reaches the whole group: the parent decides.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGPIPE, SIG_IGN);
    Membership self;
    self.rank = self.local_rank = rank;
    self.ranks = count;
    self.host = "127.0.0.1";
    self.port = meeting_place.port;
    Descriptor listening = std::move(meeting_place.socket);
    if (rank > 0) listening.close();
    tell(pipe, be_member(plan_, self, rank == 0 ? sink_into(pipe) : silent_sink(), std::move(listening)));
    // No destructors, no buffers of the parent's: this process is done.
    ::_exit(0);
  }

  /// False where the sink wants no more.
  bool hear(RankProcess& process) {
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
    int status = 0;
    while (::waitpid(process.id, &status, 0) < 0 && errno == EINTR) continue;
    process.id = -1;
    if (!process.outcome) process.death = death_of(status);
    return true;
  }

  bool pass_on(RankProcess& process, const Message& message) {
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

  bool failed() const {
    return std::any_of(processes_.begin(), processes_.end(),
                       [](const RankProcess& p) { return !p.death.empty() || (p.outcome && went_off(*p.outcome)); });
  }

  /// True where a rank did not come to the end of its sweep.
  static bool went_off(const MeasureOutcome& outcome) {
    return outcome.ending != Ending::finished && outcome.ending != Ending::wrong;
  }

  static MeasureOutcome stopped_by(int signal) {
    return {Ending::stopped, {fmt::format("stopped by signal {} ({})", signal, ::strsignal(signal))}, signal};
  }

  /// A rank that died is why the others failed; else one that was refused or lacks something is why they lost it;
  /// else the first of each kind of failure speaks for all.
  MeasureOutcome verdict() const {
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

  void end_all() {
    for (const RankProcess& p : processes_) {
      if (p.id > 0) ::kill(p.id, SIGKILL);
    }
    for (RankProcess& p : processes_) {
      int status = 0;
      while (p.id > 0 && ::waitpid(p.id, &status, 0) < 0 && errno == EINTR) continue;
      p.id = -1;
    }
  }

  const MeasurePlan& plan_;
  const MeasureSink& sink_;
  SignalsAsData signals_;
  std::vector<RankProcess> processes_;
  std::string doing_;
};

}  // namespace

bool one_process_drives_all(const MeasurePlan& plan) {
  const auto backend = find_backend(plan.backend);
  return backend && backend->start_all != nullptr && !plan.share_gpu;
}

MeasureOutcome launch(const MeasurePlan& plan, int ranks, const MeasureSink& sink) {
  try {
    if (!one_process_drives_all(plan)) {
      Ranks processes(plan, sink);
      processes.start(ranks);
      return processes.watch();
    }
    const auto backend = find_backend(plan.backend);
    const auto group = backend->start_all(plan, ranks);
    return sweep(plan, *backend, *group, ranks, sink);
  } catch (const Broken& broken) {
    return outcome_of(broken);
  } catch (const std::exception& error) {
    return outcome_of(error);
  }
}

MeasureOutcome run_rank(const MeasurePlan& plan, const Membership& self, const MeasureSink& sink) {
  return be_member(plan, self, self.rank == 0 ? sink : silent_sink(), {});
}

}  // namespace collcast
