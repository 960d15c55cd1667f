// A block of the fake GPU's memory: zeros that take none until something else is written there.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>

struct Block {
  explicit Block(std::size_t bytes) : at(static_cast<std::byte*>(std::calloc(bytes, 1))), size(bytes) {}

  struct Released {
    void operator()(void* block) const { std::free(block); }
  };
  std::unique_ptr<std::byte, Released> at;
  std::size_t size;
  /// Whether it may be other than zeros; collectives, which no device clock is asked about, write where they like.
  bool written = std::getenv("FAKE_CLOCK") == nullptr;

  void write() {
    written = true;
    known_.reset();
  }
  /// Each byte as fp8 (E4M3): both signs, nothing that is no number or zero. Looked at once after it was written.
  bool is_of_both_signs() {
    if (known_) return *known_;
    bool negative = false, positive = false, fine = true;
    for (const std::byte byte : std::span(at.get(), size)) {
      const auto bits = std::to_integer<unsigned>(byte);
      ((bits & 0x80U) != 0 ? negative : positive) = true;
      fine = fine && (bits & 0x7fU) != 0x7fU && (bits & 0x7fU) != 0;
    }
    known_ = negative && positive && fine;
    return *known_;
  }

 private:
  std::optional<bool> known_;
};
