// FNV-1a of 64 bits (http://www.isthe.com/chongo/tech/comp/fnv): the same on every machine. Tells apart, proves
// nothing.
#pragma once

#include <cstdint>
#include <string_view>

namespace collcast {

/// Of bytes that come in pieces.
class Fnv1a {
 public:
  constexpr void add(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3U; }
  constexpr void add(std::string_view text) {
    for (const char c : text) add(static_cast<unsigned char>(c));
  }
  constexpr std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

constexpr std::uint64_t fnv1a(std::string_view text) {
  Fnv1a hash;
  hash.add(text);
  return hash.value();
}

}  // namespace collcast
