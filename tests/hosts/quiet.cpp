#include "hosts/quiet.hpp"

#include <algorithm>
#include <pthread.h>
#include <sched.h>
#include <time.h>

namespace collcast::test {
namespace {

constexpr double period_s = 1e-3;

double now_s() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::vector<int> processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> out;
  for (int p = 0; p < CPU_SETSIZE; ++p)
    if (CPU_ISSET(p, &allowed)) out.push_back(p);
  return out;
}

}  // namespace

void LateWakes::add(double due_s, double woke_s) {
  constexpr double expected_s = 0.5e-3;
  if (woke_s - due_s > expected_s) lost_s_ += woke_s - due_s;
}

double share_lost(const std::vector<LateWakes>& threads, double since_s) {
  double most = 0;
  for (const LateWakes& one : threads) most = std::max(most, one.lost_s());
  return most / since_s;
}

QuietWatch::QuietWatch() : begin_s_(now_s()) {
  const std::vector<int> all = processors();
  late_.resize(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    threads_.emplace_back([this, p = all[i], &late = late_[i]] { watch(p, late); });
}

QuietWatch::~QuietWatch() { stop(); }

double QuietWatch::stop() {
  done_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  return share_lost(late_, now_s() - begin_s_);
}

void QuietWatch::watch(int processor, LateWakes& late) const {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  pthread_setaffinity_np(pthread_self(), sizeof one, &one);
  while (!done_) {
    const double due_s = now_s() + period_s;
    timespec until{};
    until.tv_sec = static_cast<time_t>(due_s);
    until.tv_nsec = static_cast<long>((due_s - static_cast<double>(until.tv_sec)) * 1e9);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    late.add(due_s, now_s());
  }
}

}  // namespace collcast::test
