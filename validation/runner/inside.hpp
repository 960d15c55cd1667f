// How long a thread has been inside a library's call that knows no deadline. Others may look.
#pragma once

#include <atomic>
#include <chrono>

namespace collcast::runner {

class Inside {
 public:
  using Clock = std::chrono::steady_clock;

  /// A call, from its beginning to its end.
  class Call {
   public:
    explicit Call(Inside& inside) : inside_(inside) { inside_.since_ = Clock::now().time_since_epoch(); }
    ~Call() { inside_.since_ = Clock::duration::zero(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Inside& inside_;
  };

  /// Zero: outside.
  Clock::duration time() const {
    const Clock::duration since = since_;
    return since == Clock::duration::zero() ? since : Clock::now().time_since_epoch() - since;
  }

 private:
  std::atomic<Clock::duration> since_{Clock::duration::zero()};
};

}  // namespace collcast::runner
