// What the thread sanitizer cannot see: the order between a parallel loop's bodies and what stands before and behind
// it.
//
// libtbb comes without the sanitizer's instrumentation, so a thread's body would seem to race with the writes before
// the loop, and the reads behind it with the body's. Said here for each loop; without the sanitizer nothing is left of
// it.
//
//   tbb::parallel_for(std::size_t{0}, n, LoopOrder([&](std::size_t i) { ... }));
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COLLCAST_THREAD_SANITIZER 1
#endif
#endif
#ifdef COLLCAST_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace collcast {

/// Lives as long as its loop, and no longer.
template <class Body>
class LoopOrder {
 public:
  explicit LoopOrder(Body body) : body_(static_cast<Body&&>(body)) { release(&begun_); }
  LoopOrder(const LoopOrder&) = delete;
  LoopOrder& operator=(const LoopOrder&) = delete;
  ~LoopOrder() { acquire(&ended_); }

  void operator()(std::size_t i) const {
    acquire(&begun_);
    body_(i);
    release(&ended_);
  }

 private:
#ifdef COLLCAST_THREAD_SANITIZER
  static void release(void* at) { __tsan_release(at); }
  static void acquire(void* at) { __tsan_acquire(at); }
#else
  static void release(void*) {}
  static void acquire(void*) {}
#endif

  // Of all loops: their addresses are known without a look at the loop, which would be the first race.
  inline static char begun_ = 0, ended_ = 0;
  Body body_;
};

}  // namespace collcast
