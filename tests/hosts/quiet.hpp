// Whether the processors were there while something was timed.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace collcast::test {

/// From its construction until stop(): a thread on each processor asks to run every millisecond, as any program does,
/// and notes how late it is. It is late where a virtual machine's host took the processor, a control group's share is
/// used up, or other programs run: then links' buckets overflow unsent, the kernel passes packets on late, ranks wait.
class QuietWatch {
 public:
  QuietWatch();
  ~QuietWatch();
  QuietWatch(const QuietWatch&) = delete;
  QuietWatch& operator=(const QuietWatch&) = delete;

  /// The time that a processor was not there, of the one that was least, as a share of the time since the beginning.
  /// Wakes less than half a millisecond late count as none.
  double stop();

 private:
  void watch(int processor, double& lost_s) const;

  std::atomic<bool> done_{false};
  std::vector<double> lost_s_;
  std::vector<std::thread> threads_;
  double begin_s_;
};

}  // namespace collcast::test
