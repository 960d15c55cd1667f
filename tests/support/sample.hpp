// Which cases of an exhaustive test run under a sanitizer. There a forecast takes some twenty times longer, nearly all
// of it in allocations, and what a sanitizer looks for shows in any of many like cases: a share of them is enough.
// Without a sanitizer every case runs.
#pragma once

namespace collcast::test {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// Takes every case, or under a sanitizer one in `share`, the first among them. A prime share takes every value of
/// loops within loops by turns.
class Sample {
 public:
  explicit Sample(int share) : share_(sanitized ? share : 1) {}
  bool takes() { return next_++ % share_ == 0; }

 private:
  int share_, next_ = 0;
};

}  // namespace collcast::test
