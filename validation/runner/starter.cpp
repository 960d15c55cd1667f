#include "runner/starter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <random>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>

#include "collcast/base/check.hpp"
#include "runner/descriptor.hpp"
#include "runner/ranks.hpp"
#include "runner/silence.hpp"

namespace collcast::runner {

namespace {

using Clock = std::chrono::steady_clock;

/// How long a starter whose ranks are done, or which was asked to end, may take before it is killed.
constexpr std::chrono::seconds patience{3};

sockaddr_un abstract_name(const std::string& name, socklen_t& size) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  check(name.size() + 1 < sizeof out.sun_path, "a socket's name is short");
  std::memcpy(out.sun_path + 1, name.data(), name.size());  // behind a zero: no file
  size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return out;
}

Descriptor listen_by_name(const std::string& name, int backlog) {
  Descriptor out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t size = 0;
  const sockaddr_un address = abstract_name(name, size);
  if (::bind(out.number(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(out.number(), backlog) != 0)
    throw Broken(fmt::format("no socket for the ranks to report to: {}", std::strerror(errno)));
  return out;
}

bool is_own_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

/// What the starter and the ranks' library say: passed on to standard error until this is over, or what follows is
/// only the noise of an end that is known already.
class Relay {
 public:
  Relay() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw Broken(fmt::format("no pipe: {}", std::strerror(errno)));
    reading_ = Descriptor(ends[0]);
    writing_ = Descriptor(ends[1]);
  }
  ~Relay() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int writing() const { return writing_.number(); }
  /// Once the other end is another process's.
  void begin() {
    writing_.close();
    thread_ = std::thread([this] { pass_on(); });
  }
  void silence() { silent_ = true; }

 private:
  /// To the end; once it is over, to what has come by then: a rank that is stuck may hold the other end for good.
  void pass_on() const {
    char buffer[4096];
    for (;;) {
      pollfd polled{reading_.number(), POLLIN, 0};
      const bool over = over_;
      const int ready = ::poll(&polled, 1, 50);
      if (ready < 0 && errno != EINTR) return;
      if (ready == 0 && over) return;
      if (ready <= 0) continue;
      const ssize_t got = ::read(reading_.number(), buffer, sizeof buffer);
      if (got <= 0) return;
      if (!silent_ && ::write(STDERR_FILENO, buffer, static_cast<std::size_t>(got)) < 0) return;
    }
  }

  Descriptor reading_, writing_;
  std::atomic<bool> silent_ = false, over_ = false;
  std::thread thread_;
};

/// The program that starts the ranks. It and what it started are gone when this is.
class Starter {
 public:
  Starter(const std::vector<std::string>& command, const std::string& socket, int said) : name_(command.front()) {
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const pid_t parent = ::getpid();
    // What it leaves behind comes to here, not to a first process that may not care.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    id_ = ::fork();
    if (id_ < 0) throw Broken(fmt::format("{} cannot be started: {}", name_, std::strerror(errno)));
    if (id_ == 0) become(words, socket, said, parent);
  }
  ~Starter() {
    end();
    const auto deadline = Clock::now() + patience;
    for (pid_t left = 0; (left = ::waitpid(-1, nullptr, WNOHANG)) >= 0 && Clock::now() < deadline;) {
      if (left == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  /// True once it has ended by itself.
  bool has_ended() {
    if (id_ > 0 && ::waitpid(id_, &status_, WNOHANG) == id_) id_ = -1;
    return id_ < 0;
  }
  void stop() const { ::kill(id_, SIGTERM); }
  bool ends_by(Clock::time_point deadline) {
    while (!has_ended() && Clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return has_ended();
  }
  std::string death() const {
    return WIFSIGNALED(status_) ? fmt::format("was killed by signal {}", WTERMSIG(status_))
                                : fmt::format("ended with code {}", WEXITSTATUS(status_));
  }

 private:
  /// A group of its own: Ctrl-C reaches this program alone, which decides.
  [[noreturn]] static void become(const std::vector<char*>& words, const std::string& socket, int said, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
    ::setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
    std::signal(SIGPIPE, SIG_DFL);
    const Descriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
    ::dup2(nothing.number(), STDIN_FILENO);
    ::dup2(said, STDOUT_FILENO);
    ::dup2(said, STDERR_FILENO);
    ::setenv(reporting_variable, socket.c_str(), 1);
    ::execv(words.front(), words.data());
    ::_exit(127);
  }

  /// Asked when its ranks are gone, so it mostly ends by itself: Open MPI's mpirun, asked meanwhile, may crash.
  void end() {
    if (ends_by(Clock::now() + patience)) return;
    stop();
    if (ends_by(Clock::now() + patience)) return;
    ::kill(-id_, SIGKILL);
    while (::waitpid(id_, &status_, 0) < 0 && errno == EINTR) continue;
    id_ = -1;
  }

  std::string name_;
  pid_t id_ = -1;
  int status_ = 0;
};

/// Which rank it is, the first that it says. Nothing where it says nothing, or is a stranger.
std::optional<int> greeting(int socket, int ranks) {
  const timeval second{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
  std::int32_t rank = -1;
  const bool heard = is_own_user(socket) && ::recv(socket, &rank, sizeof rank, MSG_WAITALL) == sizeof rank;
  return heard && rank >= 0 && rank < ranks ? std::optional<int>(rank) : std::nullopt;
}

/// Where the ranks report to, and who starts them.
struct Meeting {
  const MeasurePlan& plan;
  const SignalsAsData& signals;
  const Descriptor& listening;
  Starter& starter;
  std::string program;
};

/// Fills in every rank's socket; or why that ended.
std::optional<MeasureOutcome> accept_all(std::vector<Descriptor>& sockets, const Meeting& meeting) {
  const auto missing = [&] {
    std::vector<std::size_t> out;
    for (std::size_t rank = 0; rank < sockets.size(); ++rank) {
      if (!sockets[rank].is_open()) out.push_back(rank);
    }
    return out;
  };
  const auto failed = [](const std::string& why) { return MeasureOutcome{Ending::broken, {why}, 0}; };
  const auto deadline = Clock::now() + meeting.plan.timeout;
  while (!missing().empty()) {
    std::array<pollfd, 2> polls{{{meeting.signals.descriptor(), POLLIN, 0}, {meeting.listening.number(), POLLIN, 0}}};
    ::poll(polls.data(), polls.size(), 50);
    if (polls[0].revents != 0) return stopped_by(meeting.signals.take());
    if (polls[1].revents != 0) {
      Descriptor socket(::accept4(meeting.listening.number(), nullptr, nullptr, SOCK_CLOEXEC));
      const auto rank = greeting(socket.number(), static_cast<int>(sockets.size()));
      if (rank && !sockets[static_cast<std::size_t>(*rank)].is_open())
        sockets[static_cast<std::size_t>(*rank)] = std::move(socket);
    } else if (meeting.starter.has_ended()) {
      return failed(fmt::format("{} {} before its ranks were there; why, it said itself", meeting.program,
                                meeting.starter.death()));
    } else if (Clock::now() > deadline) {
      return failed(silence_text(missing(), sockets.size(), std::thread::hardware_concurrency()));
    }
  }
  return std::nullopt;
}

/// Nobody else knows it.
std::string new_socket_name() {
  std::random_device chance;
  return fmt::format("collcast-{}-{:08x}{:08x}", ::getpid(), chance(), chance());
}

}  // namespace

MeasureOutcome measure_under_starter(const MeasurePlan& plan, const Backend& backend, int ranks,
                                     const MeasureSink& sink) {
  check(!plan.words.empty(), "who starts ranks says with which words");
  std::vector<std::string> command = backend.starter(ranks);
  const std::string program = std::filesystem::path(command.front()).filename().string();
  command.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  command.insert(command.end(), plan.words.begin(), plan.words.end());

  const SignalsAsData signals;
  const std::string name = new_socket_name();
  const Descriptor listening = listen_by_name(name, ranks);
  Relay said;
  Starter starter(command, name, said.writing());
  said.begin();
  std::vector<Descriptor> sockets(static_cast<std::size_t>(ranks));
  if (auto ended = accept_all(sockets, {plan, signals, listening, starter, program})) {
    if (ended->ending == Ending::stopped) said.silence();
    if (!starter.has_ended()) starter.stop();
    return *ended;
  }
  // All ranks are there from here on.
  Ranks processes(sink, signals);
  for (Descriptor& socket : sockets) processes.add({-1, std::move(socket)});
  MeasureOutcome out = processes.watch();
  // How a rank died its starter knows; all else has been said.
  if (processes.any_died())
    starter.ends_by(Clock::now() + patience);
  else
    said.silence();
  return out;
}

Descriptor reach_parent(const std::string& name, int rank) {
  Descriptor out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t size = 0;
  const sockaddr_un address = abstract_name(name, size);
  if (::connect(out.number(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    throw Broken(fmt::format("rank {} cannot reach the collcast that started it ({}): ranks that are started so are of "
                             "one machine; start them with mpirun or srun yourself",
                             rank, std::strerror(errno)),
                 Ending::refused);
  const std::int32_t hello = rank;
  if (::send(out.number(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
    throw Broken(fmt::format("rank {} cannot say who it is: {}", rank, std::strerror(errno)));
  return out;
}

void await_end(const Descriptor& parent, std::chrono::milliseconds most) {
  pollfd polled{parent.number(), 0, 0};  // hears of its end only
  ::poll(&polled, 1, static_cast<int>(most.count()));
}

std::string find_program(const std::vector<std::string>& names) {
  const char* path = std::getenv("PATH");
  const std::string folders = path == nullptr ? "" : path;
  for (const std::string& name : names) {
    for (std::size_t from = 0; from < folders.size();) {
      const std::size_t colon = std::min(folders.find(':', from), folders.size());
      const std::string file = folders.substr(from, colon - from) + "/" + name;
      from = colon + 1;
      if (::access(file.c_str(), X_OK) == 0) return file;
    }
  }
  return {};
}

}  // namespace collcast::runner
