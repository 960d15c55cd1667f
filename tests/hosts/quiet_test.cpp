// The watch over processors, on a clock of its own: what is load to it, and what is not.
#include "hosts/quiet.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <unistd.h>

using namespace collcast::test;

namespace {

/// What a watch of ten seconds says where a thread that is due at a time runs as `wake` says.
double share_where(const std::function<double(double due_s)>& wake) {
  constexpr double period_s = 1e-3, until_s = 10;
  LateWakes late;
  double now_s = 0;
  while (now_s < until_s) {
    const double due_s = now_s + period_s;
    now_s = wake(due_s);
    late.add(due_s, now_s);
  }
  return share_lost({late, {}}, now_s);
}

/// The processor is away for `away_s` of every `every_s`: then a thread runs when it is back.
std::function<double(double)> away(double away_s, double every_s) {
  return [=](double due_s) {
    const double begin_s = std::floor(due_s / every_s) * every_s;
    return std::max(due_s, begin_s + away_s) + 60e-6;  // as late as a timer is
  };
}

}  // namespace

TEST_CASE("processors that are there are quiet, with timers as late as they are and ranks that give way at a wake") {
  CHECK(share_where([](double due_s) { return due_s + 60e-6; }) == 0);
  // A rank that computes is preempted within a tick of a scheduler of 4 kHz.
  CHECK(is_quiet(share_where([](double due_s) { return due_s + 250e-6; })));
  CHECK(is_quiet(share_where(away(5e-3, 1.0))));  // five milliseconds of a second
}

TEST_CASE("processors that another program holds are not, in pieces that are longer than a timer's lateness") {
  for (const auto& [away_s, every_s] : {std::pair(3e-3, 6e-3), {2e-3, 20e-3}, {10e-3, 70e-3}, {20e-3, 50e-3}}) {
    const double share = share_where(away(away_s, every_s));
    CAPTURE(away_s, every_s, share);
    CHECK_FALSE(is_quiet(share));
    // It sleeps for a millisecond at a time: of each piece it misses as much at the most, and never sees more.
    CHECK(share <= away_s / every_s + 60e-6 / every_s);
    CHECK(share >= (away_s - 1.2e-3) / every_s);
  }
}

TEST_CASE("processors are as quiet as the one that lost most") {
  LateWakes busy;
  busy.add(1.0, 1.5);
  CHECK(share_lost({{}, busy, {}}, 10) == Approx(0.05));
  CHECK(share_lost({}, 10) == 0);
}

TEST_CASE("a watch over the processors that are here ends when it is told to, with a share of the time") {
  QuietWatch watch;
  ::usleep(20'000);
  const double share = watch.stop();
  CHECK(share >= 0);
  CHECK(share <= 1);  // whatever runs beside it
}
