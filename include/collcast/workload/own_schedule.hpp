// A pipeline schedule that a user brings: what each stage does, turn by turn, and what can be wrong with that.
//
// Right is an order in which each stage does the forward and the backward of every micro-batch in each of its chunks
// once, the backward after the forward, weight gradients that are a turn of their own after their backward, and in
// which no stage waits for what cannot come. How a file says it: docs/formats.md, "Pipeline schedules".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/workload/config.hpp"

namespace collcast {

/// One piece of a stage's work: the forward or the backward of one micro-batch, with chunks through one of them.
struct Turn {
  bool backward = false;
  int micro_batch = 0;
  int chunk = 0;
  bool weights = false;  ///< zero bubble: the weight gradients, which its backward leaves out
  bool whole = false;    ///< zero bubble: a backward that does not leave them out
  /// Together with the turn behind it: it begins with the input of both, and what both send leaves when both are over.
  bool with_next = false;
  friend bool operator==(const Turn&, const Turn&) = default;
};
/// The turns of each stage.
using Orders = std::vector<std::vector<Turn>>;

/// "F3", "B3", "W3", of a whole backward among others without weight gradients "BW3"; with chunks "F3.1".
std::string to_text(const Turn&, int chunks);

struct OwnSchedule {
  std::string name, file = {};
  int micro_batches = 1;
  int chunks = 1;     ///< of a stage; in a V two
  bool in_v = false;  ///< chunk 1 of a stage is on the model's way back up the stages; else chunks go round
  Orders orders;      ///< by stage

  bool splits() const;     ///< some backward leaves out its weight gradients
  bool has_whole() const;  ///< and some other does not
  PipelineSchedule kind() const;
  /// Where no backward leaves anything out, none is called whole: of orders that come from elsewhere.
  void call_whole_plain();
};

/// What a file may have.
inline constexpr int most_own_micro_batches = 100'000, most_own_chunks = 1'000;

/// The same number for the same orders, whatever their name and file; FNV-1a over the turns.
std::uint64_t digest(const OwnSchedule&);

/// Everything wrong with an order of work; `place` is that of a turn, without one that of a stage's list. Of a stage
/// some turn of which could not be read (`unread`) it is not said what it never does, and then nothing of who waits for
/// whom.
using TurnPlace = std::function<Location(std::size_t stage, std::optional<std::size_t> turn)>;
Diagnostics check_order(const OwnSchedule&, const TurnPlace& place, const std::vector<bool>& unread = {});

}  // namespace collcast
