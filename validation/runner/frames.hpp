// Length-prefixed messages over a socket or a pipe.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace collcast::runner {

/// No message of ours is longer; a longer one is not ours.
inline constexpr std::uint32_t longest_frame = 1 << 20;

inline std::string frame(std::string_view payload) {
  const auto length = static_cast<std::uint32_t>(payload.size());
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out.append(payload);
}

/// What arrives in pieces, cut into frames again.
class FrameReader {
 public:
  void append(const char* data, std::size_t size) { pending_.append(data, size); }
  /// The next whole frame. `broken` once what came cannot be a frame of ours.
  std::optional<std::string> next() {
    std::uint32_t length = 0;
    if (pending_.size() < sizeof length) return std::nullopt;
    std::memcpy(&length, pending_.data(), sizeof length);
    broken_ = broken_ || length > longest_frame;
    if (broken_ || pending_.size() < sizeof length + length) return std::nullopt;
    std::string out = pending_.substr(sizeof length, length);
    pending_.erase(0, sizeof length + length);
    return out;
  }
  bool broken() const { return broken_; }

 private:
  std::string pending_;
  bool broken_ = false;
};

/// Strings in one: each with its length before it, so that they may hold anything.
inline void pack(std::string& out, std::string_view text) { out += frame(text); }
/// The next string of a packed message; empty where there is none.
inline std::string unpack(std::string_view& rest) {
  std::uint32_t length = 0;
  if (rest.size() < sizeof length) return {};
  std::memcpy(&length, rest.data(), sizeof length);
  rest.remove_prefix(sizeof length);
  const std::string out(rest.substr(0, length));
  rest.remove_prefix(out.size());
  return out;
}

}  // namespace collcast::runner
