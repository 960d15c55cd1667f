// What ranks of programs compute while something slows it, and by how much that makes them late.
//
// A rank computes one thing at a time, on its first stream. While an instruction of the rank that slows is under way
// that goes at its rate: each time the first of these begins or the last of them ends, what is left is put off or
// brought forward, and the end that was announced before is outdated. Late is a rank by what it has lost of that while
// nothing else of its own ran beside it for as long.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collcast/engine/slowed_work.hpp"
#include "collcast/schedule/programs.hpp"
#include "engine/ticks.hpp"

namespace collcast::engine {

class RankKernels {
 public:
  explicit RankKernels(const Programs&);

  /// Where nothing slows anything, nothing else is asked.
  bool any() const { return !kernels_.empty(); }

  /// So long from now on, and by which version of it that is told from what was announced before.
  struct End {
    Ticks after = 0;
    std::uint32_t version = 0;
  };
  End begin(std::uint32_t rank, const instruction::Spend& spend, Ticks now);
  void end(std::uint32_t rank, bool beside_is_over, Ticks now);
  bool is_outdated(std::uint32_t rank, std::uint32_t version) const;
  /// One more, or one less, slows the rank; nothing: what it computes goes on as it did.
  std::optional<End> slow(std::uint32_t rank, bool more, Ticks now);
  /// So many instructions of a stream are over.
  void passed(std::uint32_t rank, std::uint32_t stream, std::uint32_t instructions, Ticks now);

  void begin_pass(std::uint32_t rank);
  Ticks left_to_wait(std::uint32_t rank, Ticks all) const;

  static Bytes bytes_per_rank() { return Bytes(sizeof(Kernel)); }

 private:
  struct Kernel {
    SlowedWork work;                              ///< from `since` on
    const instruction::Spend* present = nullptr;  ///< none: nothing that can be slowed
    Ticks since = 0, beside_over = 0;
    Ticks late = 0, late_before_pass = 0;
    std::uint32_t version = 0, slowed_by = 0;
  };

  static End announced(Kernel& kernel);
  static void go_on(Kernel& kernel, Ticks now);

  std::vector<Kernel> kernels_;  ///< by rank
};

}  // namespace collcast::engine
