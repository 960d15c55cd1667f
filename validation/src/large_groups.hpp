// Groups of more than 128 ranks, whose closed forms take seconds: all sizes of a table at once.
//
// An algorithm's time over size is convex and made of few straight pieces (latency, then bandwidth). It is priced at
// both ends and where a bend between them would show most; where that lies on the line within 1 %, the sizes between
// are read off the line, else the halves are looked at alike. The fastest of all algorithms is taken per size.
//
// What cannot be the fastest of a size, because of the bytes over its busiest link or its longest chain of latencies,
// is not looked at: no price depends on that, only whether it is known.
#pragma once

#include <map>
#include <mutex>
#include <tuple>

#include "collcast/validation/validate.hpp"

namespace collcast {

class LargeGroups {
 public:
  /// `look_at_all`: also what cannot be the fastest; the answers are the same.
  explicit LargeGroups(bool look_at_all = false) : look_at_all_(look_at_all) {}
  static bool covers(const PlacedTable& place) { return place.algorithm == "auto" && place.group.size() > 128; }
  /// Of a size of the table's; the fabric must stay alive. From any thread; two that ask for one table both look at it.
  /// Fails, too, when it is ended, which is not remembered.
  Result<Predicted> fastest(const PlacedTable&, Bytes size, const GoesOn& = {});

 private:
  using Key = std::tuple<const Fabric*, CollectiveKind, int, const MeasuredTable*>;
  using Times = Result<std::map<Bytes, Predicted>>;
  const Times* find(const Key&);
  const Times* keep(const Key&, Times);

  bool look_at_all_;
  std::mutex mutex_;
  std::map<Key, Times> known_;
};

}  // namespace collcast
