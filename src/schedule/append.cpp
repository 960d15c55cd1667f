// Spells a Pattern out as a DAG: one Transfer per message, one join per position and phase.
//
// The order edges are the execution rules of pattern.hpp and nothing more; an edge that another one
// implies is left out (a position's first message waits for its entry into the phase, the next ones wait
// for that first). Hops are added in ascending round order, so that what a message waits for exists.
#include <algorithm>
#include <optional>

#include "collcast/base/check.hpp"
#include "collcast/schedule/schedule.hpp"

namespace collcast {

namespace {

struct Send {
  Position from;
  int index;  ///< of the hop among those of its position
  Hop hop;
};

std::vector<Send> sends_by_round(const Phase& phase, int positions) {
  std::vector<Send> sends;
  for (Position v = 0; v < positions; ++v)
    for (int j = 0, hops = phase.shape->sends(phase, v); j < hops; ++j)
      sends.push_back({v, j, phase.shape->send(phase, v, j)});
  std::stable_sort(sends.begin(), sends.end(), [](const Send& a, const Send& b) { return a.hop.round < b.hop.round; });
  return sends;
}

/// The messages of one phase that exist so far. Chunk i of a hop is its first operation + i.
class PhaseMessages {
 public:
  PhaseMessages(const Phase& phase, int positions) : flow_(phase.flow) {
    const auto count = static_cast<std::size_t>(positions);
    sent_.resize(count);
    received_.resize(count);
    for (Position v = 0; v < positions; ++v) {
      sent_[at(v)].resize(at(phase.shape->sends(phase, v)));
      received_[at(v)].resize(at(phase.shape->receives(phase, v)));
    }
  }

  void add(const Send& send, OpId first) {
    check(send.hop.slot < static_cast<int>(received_[at(send.hop.peer)].size()), "every hop has a receive");
    sent_[at(send.from)][at(send.index)] = first;
    received_[at(send.hop.peer)][at(send.hop.slot)] = first;
  }

  /// What chunk i of the hop waits for; `chunks` in all.
  std::vector<After> before(const Send& send, int i, int chunks, OpId entry, std::optional<OpId> previous_chunk) const {
    std::vector<After> after;
    if (previous_chunk) after.push_back({*previous_chunk, Until::left});
    if (send.index > 0 && flow_ == Flow::forwarding) after.push_back({sent(send.from, send.index - 1, i), Until::left});
    if (send.index > 0 && sends_in_turn(flow_) && i == 0)
      after.push_back({sent(send.from, send.index - 1, chunks - 1), Until::left});
    if (flow_ == Flow::circulating && send.index > 0) after.push_back({received(send.from, send.index - 1, i)});
    if (flow_ == Flow::forwarding)
      for (int slot = 0; slot < send.hop.after; ++slot) after.push_back({received(send.from, slot, i)});
    if (i == 0 && (send.index == 0 || flow_ == Flow::concurrent)) after.push_back({entry});
    return after;
  }

  /// What the position waits for before it leaves the phase.
  std::vector<After> all_of(Position v, int chunks, OpId entry) const {
    std::vector<After> after{{entry}};
    for (int j = 0; j < static_cast<int>(sent_[at(v)].size()); ++j)
      after.push_back({sent(v, j, chunks - 1), Until::left});
    for (int slot = 0; slot < static_cast<int>(received_[at(v)].size()); ++slot)
      after.push_back({received(v, slot, chunks - 1)});
    return after;
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  static OpId chunk(const std::optional<OpId>& first, int i) {
    check(first.has_value(), "a message waits only for messages of earlier rounds");
    return OpId(first->value() + static_cast<std::uint32_t>(i));
  }
  OpId sent(Position v, int hop, int i) const { return chunk(sent_[at(v)][at(hop)], i); }
  OpId received(Position v, int slot, int i) const {
    check(slot < static_cast<int>(received_[at(v)].size()), "a hop waits only for receives that its position has");
    return chunk(received_[at(v)][at(slot)], i);
  }

  Flow flow_;
  std::vector<std::vector<std::optional<OpId>>> sent_, received_;
};

/// Adds one phase; `entry` (by position) becomes the joins after it.
void append_phase(Schedule& schedule, const Pattern& pattern, const Lane& lane, const Phase& phase,
                  TrafficClass traffic, std::vector<OpId>& entry) {
  PhaseMessages messages(phase, pattern.size());
  for (const Send& send : sends_by_round(phase, pattern.size())) {
    const Transfer transfer{pattern.rank(lane, send.from), pattern.rank(lane, send.hop.peer),
                            pattern.message(lane, send.hop), lane.route_lane, traffic};
    const OpId first(static_cast<std::uint32_t>(schedule.size()));
    std::optional<OpId> previous;
    for (int i = 0; i < pattern.chunks; ++i)
      previous = schedule.add(
          transfer, messages.before(send, i, pattern.chunks, entry[static_cast<std::size_t>(send.from)], previous));
    messages.add(send, first);
  }
  for (Position v = 0; v < pattern.size(); ++v) {
    OpId& join = entry[static_cast<std::size_t>(v)];
    join = schedule.add(Delay{}, messages.all_of(v, pattern.chunks, join));
  }
}

}  // namespace

std::vector<OpId> append(Schedule& schedule, const Pattern& pattern, std::span<const OpId> ready,
                         TrafficClass traffic) {
  const auto size = static_cast<std::size_t>(pattern.size());
  check(ready.empty() || ready.size() == size, "an expansion names one ready operation per participant");
  std::vector<OpId> start(ready.begin(), ready.end());
  while (start.size() < size) start.push_back(schedule.add(Delay{}));

  std::vector<std::vector<After>> finished(size);
  for (std::size_t i = 0; i < size; ++i) finished[i].push_back({start[i]});
  for (const Lane& lane : pattern.lanes) {
    std::vector<OpId> entry(size);
    for (std::size_t v = 0; v < size; ++v)
      entry[v] = start[static_cast<std::size_t>(lane.participant(static_cast<Position>(v)))];
    for (const Phase& phase : lane.phases) append_phase(schedule, pattern, lane, phase, traffic, entry);
    for (std::size_t v = 0; v < size; ++v)
      finished[static_cast<std::size_t>(lane.participant(static_cast<Position>(v)))].push_back({entry[v]});
  }
  std::vector<OpId> joins;
  joins.reserve(size);
  for (const std::vector<After>& after : finished) joins.push_back(schedule.add(Delay{}, after));
  return joins;
}

}  // namespace collcast
