// Whether the processors were there while something was timed.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace collcast::test {

/// How late a thread was, that asked to run at times of a clock.
class LateWakes {
 public:
  /// Seconds: when it was to run, and when it ran. Less than half a millisecond late is what a timer does, and counts
  /// as none.
  void add(double due_s, double woke_s);
  double lost_s() const { return lost_s_; }

 private:
  double lost_s_ = 0;
};

/// Of the thread that lost most, as a share of the time since the beginning; 0 of none.
double share_lost(const std::vector<LateWakes>&, double since_s);

/// Of a millisecond's step, a fiftieth is what budgets leave beside what they rest on; a quiet machine's share is
/// 0.003.
inline constexpr double most_lost = 0.02;
inline bool is_quiet(double share_lost) { return share_lost <= most_lost; }

/// From its construction until stop(): a thread on each processor asks to run every millisecond, as any program does,
/// and notes how late it is. It is late where a virtual machine's host took the processor, a control group's share is
/// used up, or other programs run: then links' buckets overflow unsent, the kernel passes packets on late, ranks wait.
/// A rank that computes is preempted at a wake as any program; one that spins at a higher priority could not be told
/// from load. Those that are timed here wait for their messages asleep.
class QuietWatch {
 public:
  QuietWatch();
  ~QuietWatch();
  QuietWatch(const QuietWatch&) = delete;
  QuietWatch& operator=(const QuietWatch&) = delete;

  /// The time that a processor was not there, of the one that was least, as a share of the time since the beginning.
  double stop();

 private:
  void watch(int processor, LateWakes& late) const;

  std::atomic<bool> done_{false};
  std::vector<LateWakes> late_;
  std::vector<std::thread> threads_;
  double begin_s_;
};

}  // namespace collcast::test
