// Deterministic discrete-event simulation of a Schedule on a Fabric, in integer picoseconds.
//
// A transfer holds the links of its route from its start until its last byte has left; it has arrived one
// route latency later. Links are shared by one of:
//   max_min  all transfers flow at once at max-min fair rates (fluid),
//            those of one priority in proportion to their weights; a lower
//            priority value is served first, what it leaves is shared by the next
//   fifo     a transfer starts when it is first in the queue of every link of its route (queues ordered by
//            priority, then arrival), and then has them to itself
//   none     links are not shared at all: the length of the longest dependency chain
// Rates change only when a transfer starts or ends on the connected set of links; all starts and ends of
// one instant are seen together. A finish time is rounded up to the next picosecond, so a transfer that has its
// links to itself is never faster than its bytes allow and less than 1 ps slower (plus 1 ps for its latency). Where it
// shares them its rate is the nearest multiple of 2^-24 bytes/s, to either side: 6e-15 of 10 MB/s.
// Equal input gives equal bytes, on every compiler: events are ordered by (time, kind, index), never by
// address or insertion history.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/schedule/schedule.hpp"
#include "collcast/schedule/spelled_out.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast {

enum class Sharing : std::uint8_t { max_min, fifo, none };

/// How far a simulation has come.
struct EngineProgress {
  std::int64_t messages = 0;  ///< that have left
  SimTime now{};
};
/// Whether to go on: asked before the first event and then every 8,192, or as many as messages have been under way at
/// once where that is more, and within an instant after every 1,024 events, by the thread that simulates. It sees a
/// result grow and cannot change one; a simulation that it ends fails.
using EngineWatch = std::function<bool(const EngineProgress&)>;

inline constexpr Bytes unlimited_memory{std::numeric_limits<std::int64_t>::max()};

struct EngineOptions {
  Sharing sharing = Sharing::max_min;
  EngineWatch watch = {};  ///< empty: nobody asks
  /// Of Programs: a group with links of its own that does again what it has done, all members together, is not walked
  /// again. It changes no time; bytes on links to rounding. False: every message is walked.
  bool repeats = true;
  /// What a simulation of patterns may take, as footprint.hpp counts: evaluate's fail where one needs more, before it
  /// begins.
  Bytes memory = unlimited_memory;
};

struct Interval {
  SimTime start{}, left{}, finish{};  ///< left: when a transfer freed its links; else equal to finish
};

struct LinkUse {
  Volume carried{};    ///< bytes that crossed the link
  Picoseconds busy{};  ///< time with at least one transfer on it
};

/// Deterministic counts of the work done, for benchmarks and CI gates.
struct EngineCounters {
  std::int64_t events = 0;        ///< taken from the queue
  std::int64_t messages = 0;      ///< transfers and messages of exchanges, repeated ones too
  std::int64_t rate_updates = 0;  ///< rates that were set because links are shared: one per flow, or one for all
  std::int64_t repeated = 0;      ///< messages that were not walked: EngineOptions::repeats
};

struct Timeline {
  std::vector<Interval> ops;   ///< by OpId; a Part starts when its participant was ready
  std::vector<LinkUse> links;  ///< by LinkId
  SimTime finish{};
  EngineCounters counters;
};

/// Fails, naming the operation, when a time exceeds the clock's 106 days, when no links join the ranks of a message,
/// when the sends and receives of a pattern do not match, and when a rank has more than 2^32 messages in a phase; and
/// when its watch ends it. Never ends with work left over.
Result<Timeline> simulate(const Fabric&, const Schedule&, const EngineOptions& = {});

/// One pattern alone from time 0.
Result<Timeline> simulate(const Fabric&, const Pattern&, const EngineOptions& = {});

/// What is spelled out, from time 0; an operation of the timeline is a thread. Fails, too, naming thread and step,
/// where a thread waits for what does not come, or a message is received by nobody.
Result<Timeline> simulate(const Fabric&, const SpelledOut&, const EngineOptions& = {});

/// The longest dependency chain, without contention: a lower bound of every simulation. The end of the clock where the
/// run without contention fails.
SimTime critical_path(const Fabric&, const Schedule&);
/// The chain of operations that ended last in a timeline (with contention, if that had any), first to last; through an
/// exchange by the participant that was ready last.
std::vector<OpId> critical_operations(const Schedule&, const Timeline&);

struct FlowDemand {
  std::span<const LinkId> links;
  TrafficClass traffic = {};
};
/// Max-min fair rates, strict priorities: the sharing rule on its own. A flow without links gets +inf.
void max_min_rates(std::span<const FlowDemand> flows, std::span<const Bandwidth> capacity, std::span<Bandwidth> rates);

/// What a recurrence says, and how much of it was worked out message by message: the rest follows from a steady state,
/// exactly (whole picoseconds that repeat, each time later by the same).
struct Recurrence {
  SimTime finish{};
  std::int64_t messages = 0;
  std::int64_t stepped = 0;
};

/// Max-plus recurrence: the finish time of a pattern whose links are never used by two transfers at once,
/// row by row, without events, and from a steady state on without rows. Nothing if links may be shared (checked from
/// the routes). Equal to `simulate` to the last picosecond. Nothing, too, if the watch ends it.
std::optional<Recurrence> recurrence(const Fabric&, const Pattern&, const EngineWatch& = {});
/// Whether it answers; the work of looking up every hop once.
bool has_recurrence(const Fabric&, const Pattern&);

}  // namespace collcast
