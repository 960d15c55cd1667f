// What a simulation's time is made of: the chain of operations that ends last.
#include <algorithm>

#include "collcast/engine/engine.hpp"

namespace collcast {

namespace {

SimTime end_of(const Timeline& timeline, const After& edge) {
  const Interval& op = timeline.ops[edge.op.value()];
  return edge.until == Until::left ? op.left : op.finish;
}

/// The operation of `edges` that was over last, the first added of equals; nothing if there are none.
const After* last_of(const Timeline& timeline, std::span<const After> edges) {
  const After* last = nullptr;
  for (const After& edge : edges)
    if (last == nullptr || end_of(timeline, *last) < end_of(timeline, edge) ||
        (end_of(timeline, *last) == end_of(timeline, edge) && edge.op < last->op))
      last = &edge;
  return last;
}

/// A collective cannot end before its last participant takes part, so that participant is where the chain
/// goes on. An approximation for one that does not make everybody wait for everybody (a broadcast's root).
OpId last_to_take_part(const Schedule& schedule, const Timeline& timeline, OpId op, const Part& part) {
  const Exchange& exchange = schedule.exchanges()[part.exchange.value()];
  OpId last = op;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(exchange.pattern.size()); ++i) {
    const OpId other(exchange.first.value() + i);
    const SimTime start = timeline.ops[other.value()].start;
    if (start > timeline.ops[last.value()].start && start <= timeline.ops[op.value()].finish) last = other;
  }
  return last;
}

}  // namespace

SimTime critical_path(const Fabric& fabric, const Schedule& schedule) {
  const Result<Timeline> timeline = simulate(fabric, schedule, {Sharing::none});
  return timeline ? timeline->finish : SimTime::max();
}

std::vector<OpId> critical_operations(const Schedule& schedule, const Timeline& timeline) {
  if (timeline.ops.empty()) return {};
  OpId op(0);  // of those that end last the one added last: it may be a join that waits for the others
  for (std::uint32_t i = 1; i < timeline.ops.size(); ++i)
    if (timeline.ops[i].finish >= timeline.ops[op.value()].finish) op = OpId(i);
  std::vector<OpId> chain{op};
  for (;;) {
    if (const auto* part = std::get_if<Part>(&schedule.work(op))) {
      op = last_to_take_part(schedule, timeline, op, *part);
      if (op != chain.back()) chain.push_back(op);
    }
    const After* before = last_of(timeline, schedule.after(op));
    if (before == nullptr) break;
    op = before->op;
    chain.push_back(op);
  }
  std::ranges::reverse(chain);
  return chain;
}

}  // namespace collcast
