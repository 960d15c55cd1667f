// The price of every different collective, computed once by whichever thread needs it first.
#pragma once

#include <oneapi/tbb/concurrent_hash_map.h>

#include "collcast/evaluate/evaluate.hpp"

namespace collcast::planner {

class SharedPrices {
 public:
  /// `time` may be called by several threads at once.
  explicit SharedPrices(CollectiveTime time) : time_(std::move(time)) {}

  /// A thread that asks for what another is computing waits for it.
  Result<Seconds> operator()(const CollectiveRequest&);

 private:
  struct Compare {
    std::size_t hash(const CollectiveRequest&) const;
    bool equal(const CollectiveRequest&, const CollectiveRequest&) const;
  };
  CollectiveTime time_;
  tbb::concurrent_hash_map<CollectiveRequest, Result<Seconds>, Compare> known_;
};

}  // namespace collcast::planner
