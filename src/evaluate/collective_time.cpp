// The two answers as functions, and a memory in front of either.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>

#include "collcast/engine/beside.hpp"
#include "collcast/engine/folded.hpp"
#include "collcast/engine/footprint.hpp"
#include "collcast/engine/watch.hpp"
#include "collcast/evaluate/by_nccl.hpp"
#include "evaluate/group_patterns.hpp"
#include "evaluate/meeting.hpp"
#include "evaluate/request_key.hpp"
#include "evaluate/simulated_beside.hpp"

namespace collcast {
namespace {

void append_group(const Group& group, RequestKey& key) {
  key.push_back(group.size());
  if (group.is_strided()) {
    key.insert(key.end(), {-1, group.size() > 0 ? group[0].value() : 0, group.stride()});
    return;
  }
  for (int i = 0; i < group.size(); ++i) key.push_back(group[i].value());
}

/// The options, with a watch that tells whether it ended the run; both must outlive them.
EngineOptions telling_end(const EngineOptions& engine, bool& is_ended) {
  return {engine.sharing, telling_end(engine.watch, is_ended), engine.repeats, engine.memory};
}

/// A recurrence that was ended is not tried again event by event, nor is one that was being folded.
Diagnostic ended() {
  return {{"simulation"}, "the simulation was ended from outside", "nothing is known of its result"};
}

}  // namespace

RequestKey key_of_groups(const CollectiveRequest& request) {
  RequestKey key{static_cast<std::int64_t>(request.kind), request.root};
  append_group(request.group, key);
  for (const Group& group : request.alongside) append_group(group, key);
  return key;
}

CollectiveTime by_estimate(const Fabric& fabric, CollectivePolicy policy) {
  if (policy.library == Library::nccl) return by_nccl(fabric, policy);
  return [&fabric, policy = std::move(policy)](const CollectiveRequest& request) -> Result<Seconds> {
    if (takes_no_time(request)) return Seconds(0);
    const auto choice = fastest(fabric, request, policy);
    if (!choice) return choice.errors();
    return policy.stretched(request.size, choice->estimate.total + policy.base_latency);
  };
}

CollectiveTime by_simulation(const Fabric& fabric, CollectivePolicy policy, EngineOptions engine) {
  if (policy.library == Library::nccl) return by_nccl(fabric, policy);
  return [&fabric, policy = std::move(policy),
          engine = std::move(engine)](const CollectiveRequest& request) -> Result<Seconds> {
    if (takes_no_time(request)) return Seconds(0);
    const auto choice = fastest(fabric, request, policy);
    if (!choice) return choice.errors();
    const Result<Seconds> time = simulated_beside(fabric, request, choice->options, engine);
    if (!time) return time.errors();
    return policy.stretched(request.size, *time + policy.base_latency);
  };
}

Result<Seconds> simulated_beside(const Fabric& fabric, const CollectiveRequest& request,
                                 const CollectiveOptions& options, const EngineOptions& engine) {
  Result<std::vector<Pattern>> all = group_patterns(fabric, request, options);
  if (!all) return all.errors();
  const std::vector<Pattern> patterns = that_meet_the_first(fabric, std::move(all).value());
  if (patterns.size() == 1) {
    const Result<SimulatedTime> alone = simulated_time(fabric, patterns.front(), engine);
    if (!alone) return alone.errors();
    return alone->time;
  }
  bool is_ended = false;
  if (const auto rows = recurrence_beside(fabric, patterns.front(), std::span<const Pattern>(patterns).subspan(1),
                                          telling_end(engine.watch, is_ended)))
    return to_seconds(rows->finish);
  if (is_ended) return ended();
  if (const auto folded = simulate_folded(fabric, patterns, telling_end(engine, is_ended))) {
    if (!*folded) return folded->errors();
    return to_seconds((*folded)->finish.front());
  }
  if (is_ended) return ended();
  const auto times = simulate_together(fabric, patterns, engine);
  if (!times) return times.errors();
  return times->times.front();  // the own group's; the others run beside it
}

Result<SimulatedTime> simulated_time(const Fabric& fabric, const Pattern& pattern, const EngineOptions& engine) {
  if (auto lacks = lacks_memory(fabric, {&pattern, 1}, engine.memory)) return std::move(*lacks);
  bool is_ended = false;
  if (const auto rows = recurrence(fabric, pattern, telling_end(engine.watch, is_ended)))
    return SimulatedTime{to_seconds(rows->finish), rows->messages, rows->stepped};
  if (is_ended) return ended();
  if (const auto folded = simulate_folded(fabric, {&pattern, 1}, telling_end(engine, is_ended))) {
    if (!*folded) return folded->errors();
    const FoldedRun& run = **folded;
    return SimulatedTime{to_seconds(run.finish.front()), run.messages, run.stepped, run.positions, run.classes};
  }
  if (is_ended) return ended();
  const Result<Timeline> timeline = simulate(fabric, pattern, engine);
  if (!timeline) return timeline.errors();
  const std::int64_t messages = timeline->counters.messages;
  return SimulatedTime{to_seconds(timeline->finish), messages, messages};
}

Result<Together> simulate_together(const Fabric& fabric, std::span<const Pattern> patterns,
                                   const EngineOptions& engine) {
  if (auto lacks = lacks_memory(fabric, patterns, engine.memory)) return std::move(*lacks);
  // By their ranks, not as they are listed: of equal requests for a link fifo asks whose operation is the earlier.
  std::vector<std::size_t> order(patterns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return patterns[a].group.ranks() < patterns[b].group.ranks(); });
  Schedule schedule;
  std::vector<OpId> first(patterns.size());
  for (const std::size_t p : order) first[p] = schedule.add_exchange(patterns[p]);
  Result<Timeline> timeline = simulate(fabric, schedule, engine);
  if (!timeline) return timeline.errors();
  std::vector<Seconds> times;
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    SimTime finish{};
    for (int i = 0; i < patterns[p].size(); ++i)
      finish = std::max(finish, timeline->ops[first[p].value() + static_cast<std::uint32_t>(i)].finish);
    times.push_back(to_seconds(finish));
  }
  return Together{std::move(times), std::move(timeline).value()};
}

CollectiveTime memoized(CollectiveTime time) {
  struct Memory {
    std::mutex mutex;
    std::map<RequestKey, Result<Seconds>> known;
  };
  return [time = std::move(time),
          memory = std::make_shared<Memory>()](const CollectiveRequest& request) -> Result<Seconds> {
    RequestKey key = key_of_groups(request);
    key.push_back(request.size.value());
    {
      const std::lock_guard lock(memory->mutex);
      if (const auto found = memory->known.find(key); found != memory->known.end()) return found->second;
    }
    Result<Seconds> answer = time(request);
    const std::lock_guard lock(memory->mutex);
    return memory->known.emplace(std::move(key), std::move(answer)).first->second;
  };
}

}  // namespace collcast
