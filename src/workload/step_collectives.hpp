// The collectives of a step as every rank takes part in them: sets of groups as descriptors, and for each kind of group
// (how it lies on nodes) a pattern by the algorithm that the policy chose.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "collcast/schedule/programs.hpp"
#include "collcast/workload/step.hpp"
#include "workload/forecast_prices.hpp"

namespace collcast::workload {

class StepCollectives {
 public:
  /// Adds to `programs`, which has its ranks.
  StepCollectives(const StepInputs&, const Fabric&, ForecastPrices&, Programs& programs);

  /// Of the groups of a stage's ranks that are in the set; `request` is that of one of them.
  Result<std::uint32_t> add(int stage, const GroupSet& set, const CollectiveRequest& request, const std::string& name,
                            TrafficClass traffic);

 private:
  using Key = std::tuple<std::uint32_t, CollectiveKind, std::int64_t, std::string, int, int, TrafficClass>;

  static constexpr std::uint32_t unmade = ~std::uint32_t{0};

  std::uint32_t set_of(GroupSet set);
  Diagnostics make_patterns(Collective& collective, int stage, const CollectiveRequest& request,
                            CollectiveOptions options);

  const StepInputs& in_;
  const Fabric& fabric_;
  ForecastPrices& prices_;
  Programs& programs_;
  std::map<Key, std::uint32_t> known_;
};

}  // namespace collcast::workload
