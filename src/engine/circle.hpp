// The recurrence of a circulating phase: row by row, and without rows once these repeat.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/wire.hpp"

namespace collcast::engine {

/// One ring: its hops in the order in which each passes on what the one before sends, and the flat rows that its times
/// are worked out in.
class Circle {
 public:
  Circle(std::vector<Wire*> wires, std::size_t chunks, std::size_t messages)
      : wires_(std::move(wires)), chunks_(chunks), messages_(messages), left_((chunks + 1) * wires_.size()) {
    for (const Wire* w : wires_) {
      alone_.push_back(w->alone);
      latency_.push_back(w->latency);
    }
    keep_at_ = std::max<std::size_t>(1, chunks_ - 1);
  }

  /// After every `asked_every` messages `goes_on` is told how many messages there were, and where the first wire has
  /// come to; false ends it. Returns the number of messages that were not worked out.
  std::int64_t run(std::span<const Ticks> entry, std::size_t asked_every,
                   const std::function<bool(std::int64_t, Ticks)>& goes_on) {
    for (std::size_t i = 0; i < wires_.size(); ++i)
      row(0)[i] = entry[static_cast<std::size_t>(wires_[i]->from)] + alone_[i];
    const std::size_t ring = wires_.size();
    const std::size_t rows = std::max<std::size_t>(1, asked_every / ring);
    std::size_t stepped = 1, jumped = 0;
    for (std::size_t n = 1; n < messages_;) {
      const std::size_t begin = n, end = std::min(messages_, n + rows);
      for (; n < end && jumped == 0; ++n) {
        step(n);
        jumped = look_for_repetition(n);
      }
      stepped += n - begin;
      n += jumped;
      if (jumped > 0) compare_at_ = keep_at_ = 0;
      jumped = 0;
      if (!goes_on(static_cast<std::int64_t>((n - begin) * ring), row(n - 1)[0])) return 0;
    }
    for (std::size_t i = 0; i < wires_.size(); ++i) wires_[i]->left = row(messages_ - 1)[i];
    return static_cast<std::int64_t>((messages_ - stepped) * ring);
  }

  /// What it takes: the rows, those kept, and the flat arrays that they are worked out from.
  static constexpr double bytes_per_wire(int chunks) {
    return 2.0 * sizeof(void*) + (2.0 * chunks + 1 + 2) * sizeof(Ticks);
  }

 private:
  Ticks* row(std::size_t n) { return left_.data() + (n - moved_) % (chunks_ + 1) * wires_.size(); }

  void step(std::size_t n) {
    if (n < chunks_)
      send_own(n);
    else
      pass_on(n);
  }

  /// After row n. The next row follows from the last `chunks_`: if these are the ones kept, all later by the same,
  /// every further `chunks_` rows are later by that again. Returns how many rows it has gone on by.
  std::size_t look_for_repetition(std::size_t n) {
    if (n == compare_at_) {
      if (const auto later = repetition(n)) return go_on(n, *later);
      compare_at_ = 0;
      keep_at_ = n + std::max(chunks_, n / 4);
    }
    if (n == keep_at_) {
      kept_.clear();
      kept_.reserve(chunks_ * wires_.size());
      for (std::size_t r = n + 1 - chunks_; r <= n; ++r) kept_.insert(kept_.end(), row(r), row(r) + wires_.size());
      compare_at_ = n + chunks_;
    }
    return 0;
  }

  std::optional<Ticks> repetition(std::size_t n) {
    const Ticks later = row(n + 1 - chunks_)[0] - kept_.front();
    const Ticks* kept = kept_.data();
    for (std::size_t r = n + 1 - chunks_; r <= n; ++r, kept += wires_.size())
      for (std::size_t i = 0; i < wires_.size(); ++i)
        if (row(r)[i] - kept[i] != later) return std::nullopt;
    return later;
  }

  std::size_t go_on(std::size_t n, Ticks later) {
    const std::size_t times = (messages_ - 1 - n) / chunks_;
    for (std::size_t r = n + 1 - chunks_; r <= n; ++r)
      for (std::size_t i = 0; i < wires_.size(); ++i) row(r)[i] += static_cast<Ticks>(times) * later;
    moved_ += times * chunks_;
    return times * chunks_;
  }

  void send_own(std::size_t n) {
    for (std::size_t i = 0; i < wires_.size(); ++i) row(n)[i] = row(n - 1)[i] + alone_[i];
  }
  /// The hot loop: flat arrays, so that it runs at the rate of the memory that they lie in.
  void pass_on(std::size_t n) {
    Ticks* const now = row(n);
    const Ticks* const before = row(n - 1);
    const Ticks* const round_before = row(n - chunks_);
    const std::size_t last = wires_.size() - 1;
    now[0] = std::max(before[0], round_before[last] + latency_[last]) + alone_[0];
    for (std::size_t i = 1; i <= last; ++i)
      now[i] = std::max(before[i], round_before[i - 1] + latency_[i - 1]) + alone_[i];
  }

  std::vector<Wire*> wires_;
  std::size_t chunks_, messages_;
  std::size_t moved_ = 0;                     ///< rows that were gone on by
  std::size_t keep_at_ = 0, compare_at_ = 0;  ///< rows
  std::vector<Ticks> kept_;
  std::vector<Ticks> alone_, latency_;
  std::vector<Ticks> left_;  ///< chunks + 1 rows: of the last messages
};

}  // namespace collcast::engine
