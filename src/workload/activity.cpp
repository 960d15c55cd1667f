#include "workload/activity.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace collcast::workload {

namespace {

/// In the order in which they are charged.
constexpr std::array charges{&Breakdown::compute,    &Breakdown::optimizer,  &Breakdown::tp_exposed,
                             &Breakdown::cp_exposed, &Breakdown::ep_exposed, &Breakdown::pp_exposed,
                             &Breakdown::dp_exposed};

std::size_t charge_of(std::string_view name) {
  const std::optional<Category> category = parse_category(name);
  check(category.has_value(), "an operation of a step has a category");
  switch (*category) {
    case Category::compute:
    case Category::forward:
    case Category::backward:
    case Category::recompute:
      return 0;
    case Category::optimizer:
      return 1;
    case Category::tp:
      return 2;
    case Category::cp:
      return 3;
    case Category::ep:
      return 4;
    case Category::pp:
      return 5;
    case Category::dp:
      return 6;
  }
  check(false, "a known category");
  return 0;
}

/// An operation that begins (+1) or ends (-1).
struct Edge {
  SimTime at;
  std::size_t charge;
  int change;
};

}  // namespace

Breakdown break_down(const Schedule& schedule, const Timeline& timeline, std::span<const OpId> ops) {
  std::vector<Edge> edges;
  for (const OpId op : ops) {
    const Interval& interval = timeline.ops[op.value()];
    if (interval.start == interval.finish) continue;
    const std::size_t charge = charge_of(schedule.category(op));
    edges.push_back({interval.start, charge, 1});
    edges.push_back({interval.finish, charge, -1});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });

  std::array<int, charges.size()> running{};
  std::array<Picoseconds, charges.size()> charged{};
  Picoseconds idle{};
  SimTime now{};
  const auto pass = [&](SimTime until) {
    const auto busy = std::find_if(running.begin(), running.end(), [](int n) { return n > 0; });
    (busy == running.end() ? idle : charged[static_cast<std::size_t>(busy - running.begin())]) += until - now;
    now = until;
  };
  for (const Edge& e : edges) {
    pass(e.at);
    running[e.charge] += e.change;
  }
  pass(timeline.finish);

  Breakdown parts;
  for (std::size_t i = 0; i < charges.size(); ++i) parts.*charges[i] = to_seconds(charged[i]);
  parts.bubble = to_seconds(idle);
  return parts;
}

namespace {

/// By charge_of: computing that begins after a gap had to wait for a message or its turn.
constexpr std::array waits{&RankWaits::pipeline, &RankWaits::norm,     &RankWaits::tp,       &RankWaits::cp,
                           &RankWaits::ep,       &RankWaits::pipeline, &RankWaits::gradients};

}  // namespace

RankWaits waits_of(const Schedule& schedule, const Timeline& timeline, std::span<const OpId> ops) {
  std::vector<OpId> by_start;
  for (const OpId op : ops)
    if (timeline.ops[op.value()].start < timeline.ops[op.value()].finish) by_start.push_back(op);
  std::stable_sort(by_start.begin(), by_start.end(),
                   [&](OpId a, OpId b) { return timeline.ops[a.value()].start < timeline.ops[b.value()].start; });
  RankWaits out;
  SimTime busy_until{};
  for (const OpId op : by_start) {
    const Interval& interval = timeline.ops[op.value()];
    if (interval.start > busy_until)
      out.*waits[charge_of(schedule.category(op))] += to_seconds(interval.start - busy_until);
    busy_until = std::max(busy_until, interval.finish);
  }
  out.end = to_seconds(timeline.finish - busy_until);
  return out;
}

}  // namespace collcast::workload
