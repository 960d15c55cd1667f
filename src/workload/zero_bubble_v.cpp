#include "workload/zero_bubble_v.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

namespace collcast::workload {

namespace {

/// The turns of a stage one after the other.
class Order {
 public:
  Order(int all, int micro_batches) : all_(all), micro_batches_(micro_batches) {
    turns_.reserve(6 * static_cast<std::size_t>(micro_batches));
  }

  void forward(int chunk) {
    int& next = forwards_[at(chunk)];
    if (next < all_) add({false, next++, chunk});
  }
  void backward(int chunk) {
    const Turn turn{true, backwards_[at(chunk)]++, chunk};
    add(turn);
    waiting_.push_back({true, turn.micro_batch, chunk, true});
  }
  void weights() {
    add(waiting_.front());
    waiting_.pop_front();
  }
  bool waiting() const { return !waiting_.empty(); }
  std::vector<Turn> take() { return std::move(turns_); }

 private:
  static std::size_t at(int chunk) { return static_cast<std::size_t>(chunk); }
  void add(const Turn& turn) {
    if (turn.micro_batch < micro_batches_) turns_.push_back(turn);
  }

  int all_, micro_batches_;
  std::array<int, 2> forwards_{}, backwards_{};
  std::deque<Turn> waiting_;  ///< for their weight gradients
  std::vector<Turn> turns_;
};

int slices(int stages) { return 2 * stages; }

}  // namespace

std::vector<Turn> zero_bubble_v_order(int stages, int stage, int micro_batches) {
  const int all = std::max(micro_batches, slices(stages)), behind = stages - 1 - stage;
  Order order(all, micro_batches);
  for (int n = 0; n < 2 * behind; ++n) order.forward(0);
  for (int n = 0; n <= stage; ++n) {
    order.forward(0);
    order.forward(1);
  }
  for (int n = 0; n < behind; ++n) {
    order.backward(1);
    order.weights();
    order.forward(1);
  }
  for (int n = 0; n < all - stages; ++n) {
    order.backward(1);
    order.weights();
    order.forward(0);
    order.backward(0);
    order.weights();
    order.forward(1);
  }
  for (int n = 0; n <= stage; ++n) {
    order.backward(1);
    order.backward(0);
  }
  for (int n = 0; n < behind; ++n) {
    order.weights();
    order.backward(0);
  }
  while (order.waiting()) order.weights();
  return order.take();
}

std::optional<ChunkPlace> next_in_v(int stages, int stage, const Turn& turn) {
  const int slice = (turn.chunk == 0 ? stage : slices(stages) - 1 - stage) + (turn.backward ? -1 : 1);
  if (slice < 0 || slice == slices(stages)) return std::nullopt;
  return slice < stages ? ChunkPlace{slice, 0} : ChunkPlace{slices(stages) - 1 - slice, 1};
}

PipelineTerms zero_bubble_v_terms(const ChunkedStages& in, int micro_batches) {
  PipelineTerms terms;
  std::vector<StageTime> stages;
  for (int i = 0; i < in.stages; ++i) stages.push_back(in.of(i));
  Seconds c{};
  for (std::size_t i = 0; i < in.transfer.size(); ++i) {
    if (!in.blocking) {
      c += in.transfer[i];
      continue;
    }
    // Each of the two sends the other an activation and a gradient.
    for (StageTime* of : {&stages[i], &stages[i + 1]}) {
      of->forward += in.transfer[i];
      of->backward += in.transfer[i];
    }
  }
  const auto slowest = std::max_element(stages.begin(), stages.end(),
                                        [](const StageTime& a, const StageTime& b) { return a.whole() < b.whole(); });
  Seconds f{}, b{}, w{};
  for (const StageTime& s : stages) {
    terms.work += s.whole();
    if (&s == &*slowest) continue;
    f += s.forward;
    b += s.backward;
    w += s.weights;
  }
  terms.first = terms.last = static_cast<int>(slowest - stages.begin());
  terms.window_work = slowest->whole();
  // Down the stages, and up.
  terms.transfers = 2 * c;
  terms.ends = std::max({f / 2 + 5 * c, b / 2 + 5 * c, w / 2 + 3 * c, f - b / 2 + 3 * c, f - w + 4 * c,
                         (f + b) / 2 - w + 6 * c, b - w + 6 * c});
  terms.rest = micro_batches * terms.window_work + terms.ends - terms.work - 2 * terms.transfers;
  return terms;
}

}  // namespace collcast::workload
