// What a forecast asks about its collectives, each answer worked out once.
//
// A step asks for the same requests again and again: by closed form, by simulation, and which algorithm it was. What is
// chosen for a request is kept, and so is what the groups looked like when it was: a further size of theirs costs no
// routes. Requests that differ in which of the machine's equal nodes they use are one, and are worked out on those
// nodes alone (`Fabric::part`): a group of eight in a machine of a hundred thousand costs what it does in one of eight.
// The answers are those of fastest(), by_estimate() and by_simulation() on the whole machine, to the last bit.
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
  /// The fabric must outlive it. `goes_on` ends closed forms, as the engine's watch does simulations. Not for several
  /// threads at once.
  Prices(const Fabric&, CollectivePolicy, EngineOptions = {}, GoesOn goes_on = {});
  Prices(const Prices&) = delete;
  Prices& operator=(const Prices&) = delete;

  Result<Seconds> estimate(const CollectiveRequest&);
  Result<Seconds> simulate(const CollectiveRequest&);
  /// What is chosen, but for `node_of`; of library ideal.
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

  /// Links that all parts of the machine may have that are kept: 100 MB or so.
  static constexpr std::size_t most_kept_links = std::size_t{1} << 21;

 private:
  using Key = std::vector<std::int64_t>;
  struct Known {
    CollectiveOptions options;
    Seconds estimate{};
    std::optional<Seconds> simulated;
  };
  /// Groups where they are worked out.
  struct Asked {
    CollectiveRequest request;  ///< of the first size
    std::vector<int> nodes;     ///< whose ranks it names; empty: on the whole machine
    Key on;                     ///< how these lie
    Key groups;                 ///< this and the groups: told apart from others, whatever the size
  };
  const Asked& placed(const CollectiveRequest&);
  const Fabric& machine(const Asked&);
  Result<Known*> known(const CollectiveRequest&);
  Result<PreparedCollective> prepared(const Asked&, Bytes);

  const Fabric& fabric_;
  CollectivePolicy policy_;
  EngineOptions engine_;
  GoesOn goes_on_;
  CollectiveTime by_nccl_;
  std::map<Key, Asked> asked_;                  // by the groups as they were named
  std::map<Key, int> lanes_;                    // that patterns have, by groups but for the spines
  std::map<Key, Fabric> parts_;                 // by Asked::on
  std::map<Key, PreparedCollective> prepared_;  // by groups
  std::map<Key, Known> known_;                  // by groups and size
  std::map<Key, std::string> nccl_choices_;     // by groups and size
  std::size_t crossings_ = 0;                   // of all that is prepared
  std::size_t part_links_ = 0;                  // of all parts
  Counts counts_;
};

}  // namespace collcast
