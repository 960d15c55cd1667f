#include "workload/sharded.hpp"

#include <algorithm>

namespace collcast::workload {

namespace {

/// What runs beside a pass.
Seconds beside(std::span<const ShardedPass> passes, std::size_t j) {
  Seconds time{};
  if (j > 0) time += passes[j - 1].reduce;
  if (j + 1 < passes.size()) time += passes[j + 1].gather;
  return time;
}

void slow(ShardedPass& pass, const std::vector<Stretch>& stretches, Seconds beside) {
  pass.slowed = end_of_pass(stretches, {}, beside).slowed;
  pass.compute += pass.slowed.total();
}

}  // namespace

std::vector<ShardedPass> sharded_passes(const StagePlan& stage, bool reshard, bool overlap) {
  std::vector<ShardedPass> passes;
  for (const Unit& unit : stage.units)
    passes.push_back({stage.work(unit).forward_time(), stage.work(unit).gather, {}, {}});
  for (auto unit = stage.units.rbegin(); unit != stage.units.rend(); ++unit) {
    const UnitWork& work = stage.work(*unit);
    const bool whole = !reshard || unit == stage.units.rbegin();
    passes.push_back({work.backward_time(), whole ? Seconds{} : work.gather_before(true), work.reduce, {}});
  }
  const std::size_t units = stage.units.size();
  for (std::size_t j = 0; j < passes.size() && overlap; ++j) {
    const UnitWork& work = stage.work(stage.units[j < units ? j : 2 * units - 1 - j]).in_detail();
    if (work.is_slowed()) slow(passes[j], j < units ? work.forward : work.backward, beside(passes, j));
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
  for (std::size_t j = 0; j < passes.size(); ++j)
    terms.waits += std::max(beside(passes, j) - passes[j].compute, Seconds{});
  terms.last = passes.back().reduce;
  return terms;
}

}  // namespace collcast::workload
