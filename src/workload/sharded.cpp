#include "workload/sharded.hpp"

#include <algorithm>

namespace collcast::workload {

std::vector<ShardedPass> sharded_passes(const StagePlan& stage, bool reshard) {
  std::vector<ShardedPass> passes;
  for (const Unit& unit : stage.units) passes.push_back({stage.work(unit).forward_time(), stage.work(unit).gather, {}});
  for (auto unit = stage.units.rbegin(); unit != stage.units.rend(); ++unit) {
    const UnitWork& work = stage.work(*unit);
    const bool whole = !reshard || unit == stage.units.rbegin();
    passes.push_back({work.backward_time(), whole ? Seconds{} : work.gather, work.reduce});
  }
  return passes;
}

ShardingTerms sharding_terms(std::span<const ShardedPass> passes, bool overlap) {
  ShardingTerms terms;
  if (!overlap) {
    for (const ShardedPass& pass : passes) terms.waits += pass.gather + pass.reduce;
    return terms;
  }
  terms.first = passes.front().gather;
  for (std::size_t j = 0; j < passes.size(); ++j) {
    Seconds beside{};
    if (j > 0) beside += passes[j - 1].reduce;
    if (j + 1 < passes.size()) beside += passes[j + 1].gather;
    terms.waits += std::max(beside - passes[j].compute, Seconds{});
  }
  terms.last = passes.back().reduce;
  return terms;
}

}  // namespace collcast::workload
