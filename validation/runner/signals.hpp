// Signals that end a measurement arrive as data while one of these lives.
#pragma once

#include <fmt/format.h>

#include <csignal>
#include <cstring>
#include <sys/signalfd.h>

#include "collcast/runner/runner.hpp"
#include "runner/descriptor.hpp"

namespace collcast::runner {

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

inline MeasureOutcome stopped_by(int signal) {
  return {Ending::stopped, {fmt::format("stopped by signal {} ({})", signal, ::strsignal(signal))}, signal};
}

}  // namespace collcast::runner
