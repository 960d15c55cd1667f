// Ranks as processes of this machine: started together, watched, and all gone when the measurement ends.
//
// Each rank is a fork of this process (nothing has threads yet), with a pipe to it. A rank that dies closes its
// pipe, so that is seen at once; then the others have a moment to say what they saw, and are ended. Ranks end
// with their parent. Rank 0 inherits the socket where the ranks meet, so no port is guessed.
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "collcast/base/check.hpp"
#include "runner/communicator.hpp"
#include "runner/descriptor.hpp"
#include "runner/meeting.hpp"
#include "runner/outcomes.hpp"
#include "runner/ranks.hpp"
#include "runner/sinks.hpp"
#include "runner/starter.hpp"
#include "runner/store.hpp"
#include "runner/sweep.hpp"
#include "runner/world.hpp"

namespace collcast {

namespace {

using namespace runner;

/// Rank 0 listens at its address, or where its parent already does.
MeasureOutcome be_member(const MeasurePlan& plan, const Membership& self, const MeasureSink& sink,
                         Descriptor listening) {
  return outcome_of([&] {
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
  });
}

/// What is thrown here must not reach the parent's code in this process.
[[noreturn]] void become(const MeasurePlan& plan, int rank, int count, pid_t parent, Listener& meeting_place,
                         int pipe) noexcept {
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
  tell(pipe, be_member(plan, self, rank == 0 ? sink_into(pipe) : silent_sink(), std::move(listening)));
  // No destructors, no buffers of the parent's: this process is done.
  ::_exit(0);
}

void fork_all(const MeasurePlan& plan, int count, Ranks& processes, const SignalsAsData& signals) {
  Listener meeting_place = listen_at("127.0.0.1", 0);
  const pid_t parent = ::getpid();
  for (int rank = 0; rank < count; ++rank) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw Broken(fmt::format("no pipe: {}", std::strerror(errno)));
    Descriptor reading(ends[0]), writing(ends[1]);
    const pid_t id = ::fork();
    if (id < 0) throw Broken(fmt::format("rank {} cannot be started: {}", rank, std::strerror(errno)));
    if (id == 0) {
      processes.forget();
      signals.restore();
      become(plan, rank, count, parent, meeting_place, writing.number());
    }
    processes.add({id, std::move(reading)});
  }
}

}  // namespace

bool one_process_drives_all(const MeasurePlan& plan) {
  const auto backend = find_backend(plan.backend);
  return backend && backend->start_all != nullptr && !plan.share_gpu;
}

MeasureOutcome launch(const MeasurePlan& plan, int ranks, const MeasureSink& sink) {
  return outcome_of([&] {
    const auto backend = find_backend(plan.backend);
    check(backend.has_value(), "a plan's backend is known");
    if (backend->starter != nullptr) return measure_under_starter(plan, *backend, ranks, sink);
    if (!one_process_drives_all(plan)) {
      const SignalsAsData signals;
      Ranks processes(sink, signals);
      fork_all(plan, ranks, processes, signals);
      return processes.watch();
    }
    const auto group = backend->start_all(plan, ranks);
    return sweep(plan, *backend, *group, ranks, sink);
  });
}

MeasureOutcome run_rank(const MeasurePlan& plan, const Membership& self, const MeasureSink& sink) {
  const MeasureSink own = self.rank == 0 ? sink : silent_sink();
  const auto backend = find_backend(plan.backend);
  if (backend && backend->join != nullptr) return be_joined(plan, *backend, self, own, -1);
  return be_member(plan, self, own, {});
}

MeasureOutcome report_rank(const MeasurePlan& plan, const Membership& self, const std::string& where) {
  return outcome_of([&] {
    const auto backend = find_backend(plan.backend);
    check(backend && backend->join != nullptr, "a starter starts ranks that find each other");
    const Descriptor parent = reach_parent(where, self.rank);
    const int pipe = parent.number();
    MeasureOutcome out = be_joined(plan, *backend, self, self.rank == 0 ? sink_into(pipe) : silent_sink(), pipe);
    tell(pipe, out);
    // A rank that ends makes its starter end the others: first the parent hears what those have to say.
    if (went_off(out)) await_end(parent, std::chrono::seconds(2));
    return out;
  });
}

}  // namespace collcast
