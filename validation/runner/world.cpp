#include "runner/world.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <mutex>
#include <poll.h>
#include <sys/eventfd.h>
#include <thread>

#include "collcast/base/units.hpp"
#include "runner/inside.hpp"
#include "runner/meeting.hpp"
#include "runner/outcomes.hpp"
#include "runner/signals.hpp"
#include "runner/sweep.hpp"

namespace collcast::runner {

namespace {

/// How often the library's calls are looked at.
constexpr std::chrono::milliseconds look_every{50};

/// What both threads use; it lives as long as the longer of them.
class Measuring {
 public:
  Measuring(MeasurePlan plan, const Backend& backend, Membership self, MeasureSink sink)
      : plan_(std::move(plan)), backend_(backend), self_(std::move(self)), sink_(std::move(sink)) {}

  /// In the thread that calls the library.
  void measure() {
    MeasureOutcome outcome = outcome_of([&] {
      const auto group = backend_.join(self_, inside_);
      agree(plan_, *group);
      return sweep(plan_, backend_, *group, self_.ranks, gated());
    });
    const std::lock_guard lock(gate_);
    outcome_ = std::move(outcome);
    ::eventfd_write(done_.number(), 1);
  }

  int done() const { return done_.number(); }
  MeasureOutcome outcome() {
    const std::lock_guard lock(gate_);
    return outcome_;
  }
  bool overdue() const { return inside_.time() > plan_.timeout; }

  /// Nothing reaches the sink from here on.
  MeasureOutcome leave(MeasureOutcome why) {
    const std::lock_guard lock(gate_);
    left_ = true;
    why.library_busy = true;
    return why;
  }
  std::string silence() {
    const std::lock_guard lock(gate_);
    const std::string during = doing_.empty() ? "the ranks did not come together" : doing_ + ": no answer";
    return fmt::format("{} within {} s", during, static_cast<double>(plan_.timeout.count()) / 1000);
  }

 private:
  /// The sink while somebody listens to it; afterwards the sweep unwinds at the next word.
  MeasureSink gated() {
    const auto through = [this](auto&& speak) {
      const std::lock_guard lock(gate_);
      if (left_) throw Broken("left", Ending::stopped);
      return speak();
    };
    return {[=, this](const MeasuredSystem& system) { through([&] { sink_.system(system); }); },
            [=, this](CollectiveKind kind, Bytes size) {
              through([&] {
                doing_ = fmt::format("{} of {}", to_string(kind), format_bytes(size));
                sink_.begin(kind, size);
              });
            },
            [=, this](const MeasuredRow& row) { return through([&] { return sink_.row(row); }); },
            [=, this](const std::string& note) { through([&] { sink_.note(note); }); }};
  }

  const MeasurePlan plan_;
  const Backend backend_;
  const Membership self_;
  const MeasureSink sink_;
  Inside inside_;
  Descriptor done_{::eventfd(0, EFD_CLOEXEC)};
  std::mutex gate_;  ///< of what follows, and of the sink
  bool left_ = false;
  std::string doing_;
  MeasureOutcome outcome_;
};

/// Nothing where the sweep has come to its end; else why it is left alone.
std::optional<MeasureOutcome> wait(Measuring& measuring, const SignalsAsData& signals, int parent) {
  for (;;) {
    std::array<pollfd, 3> polls{{{measuring.done(), POLLIN, 0}, {signals.descriptor(), POLLIN, 0}, {parent, 0, 0}}};
    if (::poll(polls.data(), polls.size(), static_cast<int>(look_every.count())) < 0 && errno != EINTR)
      return MeasureOutcome{Ending::broken, {fmt::format("no watch over the library: {}", std::strerror(errno))}, 0};
    if (polls[0].revents != 0) return std::nullopt;
    if (polls[1].revents != 0) return stopped_by(signals.take());
    if (polls[2].revents != 0)
      return MeasureOutcome{Ending::stopped, {"the program that started this rank is gone"}, 0};
    if (measuring.overdue()) return MeasureOutcome{Ending::broken, {measuring.silence()}, 0};
  }
}

}  // namespace

MeasureOutcome be_joined(const MeasurePlan& plan, const Backend& backend, const Membership& self,
                         const MeasureSink& sink, int parent) {
  const SignalsAsData signals;
  const auto measuring = std::make_shared<Measuring>(plan, backend, self, sink);
  std::thread thread([measuring] { measuring->measure(); });
  if (auto left = wait(*measuring, signals, parent)) {
    thread.detach();
    return measuring->leave(std::move(*left));
  }
  thread.join();
  return measuring->outcome();
}

}  // namespace collcast::runner
