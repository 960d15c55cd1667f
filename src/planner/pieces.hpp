// The pieces that a search is cut into, and what one of them finds.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "collcast/planner/plan.hpp"

namespace collcast::planner {

/// A limit that a layout breaks, with its value.
struct BrokenLimit {
  Objection objection;
  GateResult by;
};
using NearestValues = std::map<Objection, GateResult>;

struct FamilyResult {
  bool done = false;
  std::vector<PlannedLayout> feasible;
  std::map<Objection, std::int64_t> rejected;
  NearestValues nearest_values;  ///< of limits
  std::optional<SmallestRejected> smallest;
  std::optional<NearestToLimits> nearest;
};

inline void keep_smaller(std::optional<SmallestRejected>& least, const SmallestRejected& other) {
  if (!least || other.memory.peak() < least->memory.peak() ||
      (other.memory.peak() == least->memory.peak() && other.choice < least->choice))
    least = other;
}
inline void keep_nearer(std::optional<NearestToLimits>& nearest, const NearestToLimits& other) {
  if (!nearest || other.excess < nearest->excess ||
      (other.excess == nearest->excess && other.layout.choice < nearest->layout.choice))
    nearest = other;
}

inline void keep_nearer(NearestValues& nearest, const BrokenLimit& other) {
  const auto [at, is_new] = nearest.try_emplace(other.objection, other.by);
  if (!is_new && other.by.margin() > at->second.margin()) at->second = other.by;
}

/// How far a search has come, and whether it is to stop: shared by all threads.
class SearchProgress {
 public:
  explicit SearchProgress(const PlanOptions& options) : options_(options) {}

  bool stopped() {
    if (options_.stop && options_.stop()) stopped_ = true;
    return stopped_;
  }
  void begin(const char* what, std::size_t total) {
    what_ = what;
    total_ = total;
    done_ = 0;
  }
  void step(std::size_t pieces = 1) {
    if (!options_.progress) return;
    const std::lock_guard lock(mutex_);
    done_ += pieces;
    options_.progress(what_, done_, total_);
  }

 private:
  const PlanOptions& options_;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  const char* what_ = "";
  std::size_t done_ = 0, total_ = 0;
};

/// Work that any thread may do: everything about some layouts; when stopped, as far as it has come.
struct SearchPiece {
  std::int64_t layouts = 0;
  std::function<FamilyResult(SearchProgress&)> search;
};

}  // namespace collcast::planner
