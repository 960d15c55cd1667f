// What the orders of a V have in common: two chunks a stage, the model's way down the stages and up again.
#pragma once

#include <array>
#include <deque>

#include "workload/schedules/order_walk.hpp"

namespace collcast::workload {

/// The turns of a stage one after the other: each the next micro-batch of its chunk. Of `all` those from
/// `micro_batches` on are left out.
class TurnsOfV {
 public:
  TurnsOfV(int all, int micro_batches) : all_(all), micro_batches_(micro_batches) {
    turns_.reserve(6 * static_cast<std::size_t>(micro_batches));
  }

  void forward(int chunk) {
    if (forwards_[at(chunk)] < all_) add(next_forward(chunk));
  }
  /// Without its weight gradients, which are then the last that wait.
  void backward(int chunk) {
    const Turn turn = next_backward(chunk);
    add(turn);
    waiting_.push_back({true, turn.micro_batch, chunk, true});
  }
  void whole_backward(int chunk) { add(whole(next_backward(chunk))); }
  /// A forward of one chunk and a whole backward of the other, together where both are there.
  void pair(int forward, int backward) {
    Turn first = next_forward(forward);
    const Turn second = whole(next_backward(backward));
    first.with_next = second.micro_batch < micro_batches_;
    add(first);
    add(second);
  }
  /// How both orders begin, on a stage with so many behind it and before it.
  void fill(int behind, int before) {
    for (int n = 0; n < 2 * behind; ++n) forward(0);
    for (int n = 0; n <= before; ++n) {
      forward(0);
      forward(1);
    }
    for (int n = 0; n < behind; ++n) {
      backward(1);
      weights();
      forward(1);
    }
  }
  /// Those that have waited longest.
  void weights() {
    add(waiting_.front());
    waiting_.pop_front();
  }
  bool waiting() const { return !waiting_.empty(); }
  std::vector<Turn> take() { return std::move(turns_); }

 private:
  static std::size_t at(int chunk) { return static_cast<std::size_t>(chunk); }
  Turn next_forward(int chunk) { return {false, forwards_[at(chunk)]++, chunk}; }
  Turn next_backward(int chunk) { return {true, backwards_[at(chunk)]++, chunk}; }
  static Turn whole(Turn turn) {
    turn.whole = true;
    return turn;
  }
  void add(const Turn& turn) {
    if (turn.micro_batch < micro_batches_) turns_.push_back(turn);
  }

  int all_, micro_batches_;
  std::array<int, 2> forwards_{}, backwards_{};
  std::deque<Turn> waiting_;  ///< for their weight gradients
  std::vector<Turn> turns_;
};

/// Sums that the closed forms are made of; blocking messages are part of their sender's turns.
class StagesOfV {
 public:
  explicit StagesOfV(const ChunkedStages&);

  /// Work, transfers and the stage that sets the pace.
  const PipelineTerms& terms() const { return terms_; }
  /// F, B and W of the others together.
  const StageTime& others() const { return others_; }

 private:
  PipelineTerms terms_;
  StageTime others_;
};

}  // namespace collcast::workload
