// What a spelled-out algorithm's ranks hold: their buffers by kind of collective, and what is due at the end.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "collcast/collective/msccl.hpp"
#include "collective/contributions.hpp"

namespace collcast::msccl {

/// How long the buffers are, where they overlap, and what is due at the end.
class Layout {
 public:
  Layout(const Algorithm&, int root);

  /// Why the chunks cannot be shared out; empty: they can.
  std::string wrong() const;
  int inputs(int rank) const;   ///< chunks that hold something at first
  int outputs(int rank) const;  ///< chunks that are promised something
  /// A rank's chunk of its input, as Contributions count them.
  int contribution(int rank, int chunk) const { return rank * chunks_ + chunk; }
  /// Where the input begins in the output (below 0: the output in the input) of a call in place; nothing: they are
  /// apart.
  std::optional<int> input_in_output(int rank) const;
  /// What a chunk of a rank's output must be.
  Contributions due(int rank, int chunk) const;

 private:
  int parts() const;
  int each() const { return chunks_ / parts(); }

  CollectiveKind kind_;
  int ranks_, root_, chunks_;
  bool in_place_;
};

/// Who touched a chunk: a step of a thread block (counted over all ranks).
struct Access {
  int block = -1, step = -1;
  const Step* by = nullptr;  ///< nothing: nobody yet
};

struct Cell {
  Contributions value;
  Access written;
  std::vector<Access> read;  ///< since then
};

/// One rank's buffers.
class Memory {
 public:
  Memory(const Gpu&, const Layout&, int rank);

  int length(Buffer buffer) const { return lengths_[static_cast<std::size_t>(buffer)]; }
  Cell& at(Place place) {
    const int begin = begins_[static_cast<std::size_t>(place.buffer)];
    return cells_[static_cast<std::size_t>(begin) + static_cast<std::size_t>(place.offset)];
  }

 private:
  std::array<int, 3> lengths_, begins_{};
  std::vector<Cell> cells_;
};

/// "input", "output", "scratch".
std::string_view to_string(Buffer);

/// Peers, channels, waits and chunks that are not there.
Diagnostics check_structure(const Algorithm&, const Layout&);

}  // namespace collcast::msccl
