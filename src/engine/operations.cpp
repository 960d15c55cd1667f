#include "engine/operations.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "collcast/base/check.hpp"
#include "engine/describe.hpp"
#include "engine/standstill.hpp"

namespace collcast::engine {

namespace {
SimTime at(Ticks t) { return SimTime(Picoseconds(t)); }
}  // namespace

Operations::Operations(const Schedule& schedule, Connections& connections, Exchanges& exchanges, Agenda& agenda)
    : schedule_(schedule),
      connections_(connections),
      exchanges_(exchanges),
      agenda_(agenda),
      waits_(schedule.size()),
      opened_(schedule.exchanges().size(), Exchanges::none),
      intervals_(schedule.size()),
      unfinished_(schedule.size()) {
  for (std::uint32_t op = 0; op < waits_.size(); ++op)
    waits_[op] = static_cast<std::uint32_t>(schedule.after(OpId(op)).size());
  list_followers();
}

void Operations::list_followers() {
  const auto count = static_cast<std::uint32_t>(waits_.size());
  std::vector<bool> is_transfer(count);
  for (std::uint32_t op = 0; op < count; ++op)
    is_transfer[op] = std::holds_alternative<Transfer>(schedule_.work(OpId(op)));
  const auto of = [&](const After& edge) -> Followers& {
    return edge.until == Until::left && is_transfer[edge.op.value()] ? on_left_ : on_finished_;
  };
  on_left_.begin.assign(count + std::size_t{1}, 0);
  on_finished_.begin.assign(count + std::size_t{1}, 0);
  for (std::uint32_t op = 0; op < count; ++op)
    for (const After& edge : schedule_.after(OpId(op))) ++of(edge).begin[edge.op.value()];
  for (Followers* rows : {&on_left_, &on_finished_}) {
    std::uint32_t end = 0;
    for (std::uint32_t& begin : rows->begin) end = begin += end;
    rows->ops.resize(end);
  }
  for (std::uint32_t op = count; op-- > 0;)
    for (const After& edge : schedule_.after(OpId(op))) {
      Followers& rows = of(edge);
      rows.ops[--rows.begin[edge.op.value()]] = op;
    }
}

void Operations::begin() {
  for (std::uint32_t op = 0; op < waits_.size(); ++op)
    if (waits_[op] == 0) agenda_.after(0, EventKind::ready, op);
}

void Operations::ready(std::uint32_t op) {
  intervals_[op].start = at(agenda_.now);
  const Work& work = schedule_.work(OpId(op));
  if (const auto* compute = std::get_if<Compute>(&work))
    agenda_.after(ticks(compute->duration), EventKind::finished, op);
  else if (const auto* delay = std::get_if<Delay>(&work))
    agenda_.after(ticks(delay->duration), EventKind::finished, op);
  else if (const auto* transfer = std::get_if<Transfer>(&work))
    start_transfer(op, *transfer);
  else
    take_part(std::get<Part>(work));
}

void Operations::take_part(const Part& part) {
  std::uint32_t& exchange = opened_[part.exchange.value()];
  if (exchange == Exchanges::none) {
    const Exchange& all = schedule_.exchanges()[part.exchange.value()];
    exchange = exchanges_.open({&all.pattern, 0, all.traffic, all.first.value(), 1});
  }
  exchanges_.ready(exchange, part.participant);
}

void Operations::start_transfer(std::uint32_t op, const Transfer& transfer) {
  const std::uint32_t flow = connections_.acquire();
  connections_.connect(flow, {transfer.from, transfer.to, transfer.lane, op, 0, 0}, transfer.size, transfer.traffic);
  connections_[flow].transfer = true;
  connections_[flow].started = agenda_.now;
  agenda_.send(flow, connections_[flow]);
}

void Operations::left(std::uint32_t id) {
  const std::uint32_t op = connections_.name(id).op;
  book_left(op, connections_[id]);
  connections_.release(id);
  release(on_left_, op);
}

void Operations::book_left(std::uint32_t op, const Connection& flow) {
  intervals_[op].start = at(flow.started);
  intervals_[op].left = at(agenda_.now);
  agenda_.after(flow.latency, EventKind::finished, op);
}

std::uint32_t Operations::next_on(std::uint32_t id) const {
  const std::uint32_t op = connections_.name(id).op;
  const Transfer& transfer = std::get<Transfer>(schedule_.work(OpId(op)));
  for (const Followers* rows : {&on_left_, &on_finished_}) {
    if (rows == &on_finished_ && connections_[id].latency > 0) break;
    if (rows->begin[op] == rows->begin[op + 1]) continue;
    if (const std::uint32_t first = rows->ops[rows->begin[op]]; is_next(first, transfer)) return first;
  }
  return none;
}

bool Operations::is_next(std::uint32_t follower, const Transfer& transfer) const {
  if (waits_[follower] != 1) return false;
  const auto* next = std::get_if<Transfer>(&schedule_.work(OpId(follower)));
  return next != nullptr && next->from == transfer.from && next->to == transfer.to && next->lane == transfer.lane &&
         next->traffic == transfer.traffic && next->size > Volume(0);
}

void Operations::goes_on(std::uint32_t id, std::uint32_t next) {
  const std::uint32_t op = connections_.name(id).op;
  book_left(op, connections_[id]);
  ++waits_[next];  // or it would begin once more when `op` is told to be over
  intervals_[next].start = at(agenda_.now);
  connections_.renew(id, next, std::get<Transfer>(schedule_.work(OpId(next))).size);
  release(on_left_, op);
}

void Operations::finished(std::uint32_t op) {
  check(!is_finished(op), "an operation finishes once");
  waits_[op] = over;
  --unfinished_;
  intervals_[op].finish = at(agenda_.now);
  if (!std::holds_alternative<Transfer>(schedule_.work(OpId(op)))) intervals_[op].left = intervals_[op].finish;
  release(on_finished_, op);
}

void Operations::release(const Followers& followers, std::uint32_t op) {
  for (std::uint32_t i = followers.begin[op]; i < followers.begin[op + 1]; ++i)
    if (--waits_[followers.ops[i]] == 0) agenda_.after(0, EventKind::ready, followers.ops[i]);
}

std::string Operations::describe(std::uint32_t op) const { return engine::describe(schedule_, OpId(op)); }

/// The operation that one waits for which has not begun, or whose message a part waits for; none: nobody knows.
std::uint32_t Operations::awaits(std::uint32_t op) const {
  for (const After& edge : schedule_.after(OpId(op)))
    if (!is_finished(edge.op.value()) && waits_[op] > 0) return edge.op.value();
  const auto* part = std::get_if<Part>(&schedule_.work(OpId(op)));
  if (part == nullptr || opened_[part->exchange.value()] == Exchanges::none) return none;
  const std::uint32_t other = exchanges_.awaits(opened_[part->exchange.value()], part->participant);
  return other == Exchanges::none ? none : schedule_.exchanges()[part->exchange.value()].first.value() + other;
}

/// Those that have begun and wait for messages, as the others wait for these alone; and a circle of them.
std::string Operations::left_over() const {
  std::string text;
  std::vector<std::uint32_t> circle;
  std::size_t begun = 0, behind = 0;
  for (std::uint32_t op = 0; op < waits_.size(); ++op) {
    if (is_finished(op)) continue;
    if (waits_[op] > 0) {
      ++behind;
      continue;
    }
    if (circle.empty() && begun < most_named)
      circle = circle_from(op, none, [this](std::uint32_t o) { return awaits(o); });
    if (begun++ >= most_named) continue;
    text += (text.empty() ? "" : "; ") + describe(op) + " never finished";
    if (const auto* part = std::get_if<Part>(&schedule_.work(OpId(op))))
      if (const std::uint32_t exchange = opened_[part->exchange.value()]; exchange != Exchanges::none)
        text += exchanges_.waits_for(exchange, part->participant);
  }
  if (begun > most_named) text += "; and " + std::to_string(begun - most_named) + " more";
  if (behind > 0) text += "; " + std::to_string(behind) + " operations behind them never began";
  if (!circle.empty()) {
    text += "; in a circle: ";
    for (const std::uint32_t op : circle) text += describe(op) + " waits for ";
    text += describe(circle.front());
  }
  return text;
}

Timeline Operations::output() {
  Timeline timeline;
  timeline.ops = std::move(intervals_);
  for (const Interval& op : timeline.ops) timeline.finish = std::max(timeline.finish, op.finish);
  return timeline;
}

}  // namespace collcast::engine
