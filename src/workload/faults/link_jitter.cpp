#include "workload/faults/link_jitter.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <variant>

#include "collcast/base/check.hpp"
#include "collcast/base/fnv1a.hpp"

namespace collcast::workload {

namespace {

/// price * (factor - 1) / knot, towards zero.
Picoseconds interpolated(Picoseconds price, std::int64_t above_one, double knot) {
  const double share = static_cast<double>(above_one) / static_cast<double>(one_factor) / knot;
  const double moved = static_cast<double>(price.count()) * share;
  constexpr double most = 4e18;  // below the clock's end
  return Picoseconds(static_cast<std::int64_t>(std::clamp(moved, -most, most)));
}

}  // namespace

LinkDraws::LinkDraws(const StepSchedule& step, const PeriodTimes& mean,
                     const std::vector<std::vector<Picoseconds>>& varied, std::vector<LinkJitter> jitters)
    : jitters_(std::move(jitters)) {
  for (const LinkJitter& one : jitters_) {
    draws_.emplace_back(one.jitter);
    links_.push_back(fnv1a(one.link));
  }
  std::unordered_map<std::uint64_t, std::uint64_t> seen;  // only looked up
  for (std::uint32_t op = 0; op < step.schedule.size(); ++op) {
    if (!std::holds_alternative<Delay>(step.schedule.work(OpId(op)))) continue;
    const auto stream = step.schedule.stream(OpId(op));
    const Rank rank = stream ? step.schedule.streams()[stream->value()].rank.value_or(Rank(0)) : Rank(0);
    const std::uint64_t name = fnv1a(step.schedule.name(OpId(op)));
    bool is_drawn = false;
    std::vector<Drawn> by_period;
    for (std::size_t p = 0; p < mean.of.size(); ++p) {
      Drawn drawn{op, p, rank, name, mean.of[p][op], {}};
      for (std::size_t j = 0; j < jitters_.size(); ++j) {
        if (jitters_[j].slower[p] < 0) continue;
        const auto machine = static_cast<std::size_t>(jitters_[j].slower[p]);
        const Picoseconds slower = std::max(Picoseconds{}, varied[machine][op] - drawn.mean);
        const Picoseconds faster = std::max(Picoseconds{}, drawn.mean - varied[machine + 1][op]);
        if (slower > Picoseconds{} || faster > Picoseconds{}) drawn.prices.push_back({j, slower, faster});
      }
      if (drawn.prices.empty()) continue;
      by_period.push_back(std::move(drawn));
      is_drawn = true;
    }
    if (!is_drawn) continue;
    // Of one name by their order.
    const std::uint64_t same = seen[name + (std::uint64_t{rank.value()} << 32)]++;
    for (Drawn& drawn : by_period) {
      drawn.name += same << 32;
      ops_.push_back(std::move(drawn));
    }
  }
}

void LinkDraws::draw(PeriodTimes& times, int draw) const {
  for (const Drawn& op : ops_) {
    Picoseconds slowest{}, help{};
    for (const Price& price : op.prices) {
      const std::uint64_t factor = draws_[price.jitter].factor(draw, op.rank, op.name ^ links_[price.jitter]);
      const std::int64_t above_one = static_cast<std::int64_t>(factor) - static_cast<std::int64_t>(one_factor);
      const double knot = jitters_[price.jitter].knot;
      if (above_one >= 0)
        slowest = std::max(slowest, interpolated(price.slower, above_one, knot));
      else
        help += interpolated(price.faster, above_one, knot);
    }
    const Picoseconds moved = slowest > Picoseconds{} ? slowest : help;
    times.of[op.period][op.op] = std::max(Picoseconds{}, op.mean + moved);
  }
}

}  // namespace collcast::workload
