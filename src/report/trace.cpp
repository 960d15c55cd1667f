// A schedule and its timeline as Trace Event JSON ("X" complete events and "M" metadata).
//
// Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event Format).
// Operations on the critical path have the argument "critical".
// Viewers keep whole nanoseconds. Both ends of an event are therefore rounded to nanoseconds first and its
// duration is their difference: two events that touch in picoseconds still touch, and never overlap.
#include "collcast/report/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "report/document.hpp"

namespace collcast {

namespace {

struct Track {
  std::uint32_t process = 0, thread = 0;
};

std::string quoted(std::string_view text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string microseconds(std::int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

std::int64_t nanoseconds(SimTime t) { return (t.time_since_epoch().count() + 500) / 1000; }

/// Operations that are on no stream: each on the first of the spare threads that is free when it starts.
class SpareThreads {
 public:
  std::uint32_t take(const Interval& interval) {
    const auto free =
        std::find_if(busy_until_.begin(), busy_until_.end(), [&](SimTime until) { return until <= interval.start; });
    const auto index = static_cast<std::uint32_t>(free - busy_until_.begin());
    if (free == busy_until_.end())
      busy_until_.push_back(interval.finish);
    else
      *free = interval.finish;
    return index;
  }
  std::size_t count() const { return busy_until_.size(); }

 private:
  std::vector<SimTime> busy_until_;
};

class TraceWriter {
 public:
  explicit TraceWriter(std::ostream& out) : out_(out) { out_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":["; }
  void name(const char* what, Track track, std::string_view name) {
    event(fmt::format(R"("ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}})", what, track.process,
                      track.thread, quoted(name)));
  }
  void complete(std::string_view name, std::string_view category, Track track, const Interval& interval,
                bool critical) {
    const std::int64_t start = nanoseconds(interval.start), end = nanoseconds(interval.finish);
    event(fmt::format(R"("ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{}{})", quoted(name),
                      quoted(category), track.process, track.thread, microseconds(start), microseconds(end - start),
                      critical ? R"(,"args":{"critical":true})" : ""));
  }
  void close() { out_ << "\n]}\n"; }

 private:
  void event(const std::string& fields) {
    out_ << (first_ ? "\n{" : ",\n{") << fields << '}';
    first_ = false;
  }
  std::ostream& out_;
  bool first_ = true;
};

}  // namespace

void write_chrome_trace(std::ostream& out, const Schedule& schedule, const Timeline& timeline) {
  TraceWriter writer(out);
  std::vector<bool> critical(schedule.size());
  for (const OpId op : critical_operations(schedule, timeline)) critical[op.value()] = true;
  std::vector<std::optional<Rank>> processes;
  std::vector<Track> tracks;
  for (const Stream& stream : schedule.streams()) {
    const auto known = std::find(processes.begin(), processes.end(), stream.rank);
    const Track track{static_cast<std::uint32_t>(known - processes.begin()), static_cast<std::uint32_t>(tracks.size())};
    if (known == processes.end()) {
      writer.name("process_name", track,
                  stream.rank ? fmt::format("stage {} (rank {})", track.process, stream.rank->value()) : "shared");
      processes.push_back(stream.rank);
    }
    writer.name("thread_name", track, stream.name);
    tracks.push_back(track);
  }

  std::vector<OpId> loose;
  for (std::uint32_t i = 0; i < schedule.size(); ++i) {
    const OpId op(i);
    const Interval& interval = timeline.ops[i];
    if (interval.finish == interval.start) continue;
    if (const auto stream = schedule.stream(op))
      writer.complete(schedule.name(op), schedule.category(op), tracks[stream->value()], interval, critical[i]);
    else
      loose.push_back(op);
  }

  std::stable_sort(loose.begin(), loose.end(),
                   [&](OpId a, OpId b) { return timeline.ops[a.value()].start < timeline.ops[b.value()].start; });
  const auto process = static_cast<std::uint32_t>(processes.size()),
             threads = static_cast<std::uint32_t>(tracks.size());
  if (!loose.empty()) writer.name("process_name", {process, threads}, "network");
  SpareThreads spare;
  for (const OpId op : loose) {
    const Interval& interval = timeline.ops[op.value()];
    const std::size_t before = spare.count();
    const Track track{process, threads + spare.take(interval)};
    if (spare.count() > before) writer.name("thread_name", track, fmt::format("transfers {}", spare.count()));
    writer.complete(schedule.name(op), schedule.category(op), track, interval, critical[op.value()]);
  }
  writer.close();
}

}  // namespace collcast
