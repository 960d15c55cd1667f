// What a forecast asks about its collectives, each answer worked out once.
//
// A step asks for the same requests again and again: by closed form, by simulation, and which algorithm it was. What is
// chosen for a request is kept, and so is what the groups looked like when it was: a further size of theirs costs no
// routes. The answers are those of fastest(), by_estimate() and by_simulation(), to the last bit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collcast/evaluate/evaluate.hpp"
#include "collcast/evaluate/prepared.hpp"

namespace collcast {

class Prices {
 public:
  /// The fabric must outlive it. Not for several threads at once.
  Prices(const Fabric&, CollectivePolicy, EngineOptions = {});

  Result<Seconds> estimate(const CollectiveRequest&);
  Result<Seconds> simulate(const CollectiveRequest&);
  /// What is chosen; of library ideal.
  Result<CollectiveOptions> options(const CollectiveRequest&);
  /// In the library's words.
  Result<std::string> algorithm(const CollectiveRequest&);

  const CollectivePolicy& policy() const { return policy_; }

  /// Work done since the start.
  struct Counts {
    std::int64_t prepared = 0;   ///< groups whose routes were looked up
    std::int64_t chosen = 0;     ///< requests whose closed forms were computed
    std::int64_t simulated = 0;  ///< requests that were simulated
  };
  const Counts& counts() const { return counts_; }

 private:
  using Key = std::vector<std::int64_t>;
  struct Known {
    CollectiveOptions options;
    Seconds estimate{};
    std::optional<Seconds> simulated;
  };
  Result<Known*> known(const CollectiveRequest&);
  Result<PreparedCollective> prepared(const CollectiveRequest&, const Key& groups);

  const Fabric& fabric_;
  CollectivePolicy policy_;
  EngineOptions engine_;
  CollectiveTime by_nccl_;
  std::map<Key, PreparedCollective> prepared_;  // by groups
  std::map<Key, Known> known_;                  // by groups and size
  std::map<Key, std::string> nccl_choices_;     // by groups and size
  std::size_t crossings_ = 0;                   // of all that is prepared
  Counts counts_;
};

}  // namespace collcast
