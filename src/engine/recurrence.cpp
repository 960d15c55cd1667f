// A pattern's time without events, where no link is ever used by two messages at once.
//
// Then every message takes the time worked out from its route, and the execution rules of pattern.hpp are
// a recurrence in (max, +):
//   circulating  left(v, n) = max(left(v, n-1), left(u, n-c) + latency(u)) + alone(v),  u sends to v,
//                n = j*c + i, c chunks: c + 1 rows of one time per position
//   forwarding   left(v, j, i) = max(left(v, j-1, i), left(v, j, i-1), arrived(v, s, i) for s < after)
//                                + alone(v, j): chunk by chunk, hops in round order
//   sequential   a running sum per position;    concurrent  a sum per hop
// Where what happens repeats it is not worked out again. Circulating: if the last c rows are those of c rows before,
// all later by the same, so are the next ones. Forwarding: a hop whose winning terms grow by as much per chunk as the
// hop itself, and whose other terms grow by no more, goes on like that. A position enters the next phase at the largest
// of its last sends' and receives' times. Integer picoseconds, the same roundings as the engine, hence the same result.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "collcast/base/check.hpp"
#include "collcast/engine/beside.hpp"
#include "engine/circle.hpp"
#include "engine/exclusive_links.hpp"
#include "engine/forwarding.hpp"
#include "engine/route_timing.hpp"

namespace collcast {

namespace {

using engine::Circle;
using engine::Forwarding;
using engine::Ticks;
using engine::Wire;

/// Messages from one question of the watch to the next.
constexpr std::int64_t ask_every = 1 << 20;

class Evaluation {
 public:
  Evaluation(const Fabric& fabric, const Pattern& pattern, const EngineWatch& watch)
      : fabric_(fabric), pattern_(pattern), watch_(watch), exclusive_(fabric.links().size()) {}

  /// Nothing if a link may be shared, if the clock might not reach, or if the watch ends it.
  std::optional<Recurrence> finish();
  bool is_possible();
  /// Whether the other never uses a link of this one's; after is_possible().
  bool is_apart_from(const Pattern& other);

 private:
  std::size_t positions() const { return static_cast<std::size_t>(pattern_.size()); }
  bool wire(const Lane& lane, int lane_index, int phase_index);
  void circulate(const Phase& phase);
  void forward(const Phase& phase);
  void send_freely(const Phase& phase);

  /// Whether the watch lets it go on; `time` is where the messages counted since the last question have come to.
  bool goes_on(std::int64_t messages, Ticks time);

  const Fabric& fabric_;
  const Pattern& pattern_;
  const EngineWatch& watch_;
  std::int64_t messages_ = 0, skipped_ = 0, asked_at_ = -ask_every;
  bool ended_ = false;
  engine::ExclusiveLinks exclusive_;
  std::vector<LinkId> route_;
  std::vector<Wire> wires_;          ///< of the phase; circulating: one per position that sends, which all have one
  std::vector<Ticks> entry_, exit_;  ///< of the phase, by position
  std::vector<std::size_t> slots_;   ///< forwarding: first receive by position
  double longest_ = 0;               ///< all messages one after the other: no time is larger
};

std::optional<Recurrence> Evaluation::finish() {
  Ticks finish = 0;
  longest_ = 0;
  for (int l = 0; l < static_cast<int>(pattern_.lanes.size()); ++l) {
    const Lane& lane = pattern_.lanes[static_cast<std::size_t>(l)];
    entry_.assign(positions(), 0);
    for (int p = 0; p < static_cast<int>(lane.phases.size()); ++p) {
      const Phase& phase = lane.phases[static_cast<std::size_t>(p)];
      if (!wire(lane, l, p)) return std::nullopt;
      exit_ = entry_;
      if (phase.flow == Flow::circulating) circulate(phase);
      if (phase.flow == Flow::forwarding) forward(phase);
      if (phase.flow == Flow::sequential || phase.flow == Flow::concurrent) send_freely(phase);
      if (ended_) return std::nullopt;
      entry_.swap(exit_);
    }
    for (const Ticks t : entry_) finish = std::max(finish, t);
  }
  return Recurrence{SimTime(Picoseconds(finish)), messages_ + skipped_, messages_};
}

bool Evaluation::goes_on(std::int64_t messages, Ticks time) {
  messages_ += messages;
  if (watch_ && messages_ - asked_at_ >= ask_every) {
    asked_at_ = messages_;
    ended_ = !watch_({messages_, SimTime(Picoseconds(time))});
  }
  return !ended_;
}

bool Evaluation::is_apart_from(const Pattern& other) {
  for (const Lane& lane : other.lanes)
    for (const Phase& phase : lane.phases)
      for (Position v = 0; v < other.size(); ++v)
        for (int j = 0, ways = phase.ways(v); j < ways; ++j) {
          const Position peer = phase.shape->send(phase, v, j).peer;
          route_.clear();
          fabric_.route(other.rank(lane, v), other.rank(lane, peer), lane.route_lane, route_);
          if (!exclusive_.is_free(route_)) return false;
        }
  return true;
}

bool Evaluation::is_possible() {
  longest_ = 0;
  for (int l = 0; l < static_cast<int>(pattern_.lanes.size()); ++l) {
    const Lane& lane = pattern_.lanes[static_cast<std::size_t>(l)];
    for (int p = 0; p < static_cast<int>(lane.phases.size()); ++p)
      if (!wire(lane, l, p)) return false;
  }
  return true;
}

bool Evaluation::wire(const Lane& lane, int lane_index, int phase_index) {
  const Phase& phase = lane.phases[static_cast<std::size_t>(phase_index)];
  wires_.clear();
  for (Position v = 0; v < pattern_.size(); ++v) {
    const int hops = phase.shape->sends(phase, v);
    for (int j = 0, ways = phase.ways(v); j < ways; ++j) {
      Wire w{v, phase.shape->send(phase, v, j)};
      route_.clear();
      fabric_.route(pattern_.rank(lane, v), pattern_.rank(lane, w.hop.peer), lane.route_lane, route_);
      if (route_.empty() && pattern_.rank(lane, v) != pattern_.rank(lane, w.hop.peer)) return false;
      if (!exclusive_.claim(route_, {lane_index, v, phase_index, sends_in_turn(phase.flow) ? 0 : j})) return false;
      const engine::RouteTiming timing = engine::time_route(fabric_.links(), route_);
      w.alone = engine::time_alone(timing.bandwidth, pattern_.message(lane, w.hop));
      w.latency = timing.latency;
      const double messages = static_cast<double>(pattern_.chunks) * (phase.flow == Flow::circulating ? hops : 1);
      longest_ += messages * (static_cast<double>(w.alone) + static_cast<double>(w.latency));
      wires_.push_back(w);
    }
  }
  return longest_ < 0.5 * static_cast<double>(engine::never);
}

void Evaluation::circulate(const Phase& phase) {
  const auto chunks = static_cast<std::size_t>(pattern_.chunks);
  std::vector<Wire*> of(positions(), nullptr);  // by sender
  for (Wire& w : wires_) of[static_cast<std::size_t>(w.from)] = &w;
  for (Wire& first : wires_) {
    if (of[static_cast<std::size_t>(first.from)] == nullptr) continue;
    const auto messages = chunks * static_cast<std::size_t>(phase.shape->sends(phase, first.from));
    std::vector<Wire*> ring;
    const auto take = [&](Position v) { return std::exchange(of[static_cast<std::size_t>(v)], nullptr); };
    for (Wire* w = take(first.from); w != nullptr; w = take(w->hop.peer)) {
      check(chunks * static_cast<std::size_t>(phase.shape->sends(phase, w->from)) == messages,
            "the hops of a ring have equally many rounds");
      ring.push_back(w);
    }
    check(ring.back()->hop.peer == first.from, "a circulating hop passes on what its position receives");
    const auto ring_size = static_cast<std::int64_t>(ring.size());
    const std::int64_t skipped =
        Circle(std::move(ring), chunks, messages).run(entry_, ask_every, [this](std::int64_t n, Ticks t) {
          return goes_on(n, t);
        });
    messages_ += ring_size - skipped;  // of the first row nobody was told
    skipped_ += skipped;
    if (ended_) return;
  }
  for (const Wire& w : wires_) {
    Ticks& sender = exit_[static_cast<std::size_t>(w.from)];
    Ticks& receiver = exit_[static_cast<std::size_t>(w.hop.peer)];
    sender = std::max(sender, w.left);
    receiver = std::max(receiver, w.left + w.latency);
  }
}

void Evaluation::forward(const Phase& phase) {
  slots_.assign(positions() + 1, 0);
  for (Position v = 0; v < pattern_.size(); ++v)
    slots_[static_cast<std::size_t>(v) + 1] =
        slots_[static_cast<std::size_t>(v)] + static_cast<std::size_t>(phase.shape->receives(phase, v));
  std::stable_sort(wires_.begin(), wires_.end(),
                   [](const Wire& a, const Wire& b) { return a.hop.round < b.hop.round; });
  Forwarding forwarding(wires_, slots_, entry_);
  int next_look = 2;
  for (int i = 0; i < pattern_.chunks; ++i) {
    if (!goes_on(static_cast<std::int64_t>(wires_.size()), wires_.empty() ? 0 : wires_.front().left)) return;
    forwarding.step();
    if (i < next_look) continue;
    next_look = i + std::max(1, i / 8);
    if (!forwarding.is_steady()) continue;
    const int rest = pattern_.chunks - 1 - i;
    forwarding.go_on(rest);
    skipped_ += static_cast<std::int64_t>(wires_.size()) * rest;
    break;
  }
  for (const Wire& w : wires_) {
    const auto from = static_cast<std::size_t>(w.from), to = static_cast<std::size_t>(w.hop.peer);
    exit_[from] = std::max(exit_[from], w.left);
    exit_[to] = std::max(exit_[to], w.left + w.latency);
  }
}

void Evaluation::send_freely(const Phase& phase) {
  messages_ += static_cast<std::int64_t>(wires_.size());
  skipped_ += static_cast<std::int64_t>(wires_.size()) * (pattern_.chunks - 1);
  std::vector<Ticks> turn = entry_;
  for (const Wire& w : wires_) {
    const auto from = static_cast<std::size_t>(w.from), to = static_cast<std::size_t>(w.hop.peer);
    const Ticks start = phase.flow == Flow::sequential ? turn[from] : entry_[from];
    const Ticks left = turn[from] = start + pattern_.chunks * w.alone;
    exit_[from] = std::max(exit_[from], left);
    exit_[to] = std::max(exit_[to], left + w.latency);
  }
}

}  // namespace

std::optional<Recurrence> recurrence(const Fabric& fabric, const Pattern& pattern, const EngineWatch& watch) {
  return Evaluation(fabric, pattern, watch).finish();
}

std::optional<Recurrence> recurrence_beside(const Fabric& fabric, const Pattern& pattern,
                                            std::span<const Pattern> others, const EngineWatch& watch) {
  Evaluation evaluation(fabric, pattern, watch);
  if (!evaluation.is_possible()) return std::nullopt;
  for (const Pattern& other : others)
    if (!evaluation.is_apart_from(other)) return std::nullopt;
  return evaluation.finish();
}

bool has_recurrence(const Fabric& fabric, const Pattern& pattern) {
  return Evaluation(fabric, pattern, {}).is_possible();
}

}  // namespace collcast
