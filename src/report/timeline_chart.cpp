// A schedule's streams as bars, few enough to draw.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "collcast/report/overview.hpp"

namespace collcast {

namespace {

/// Streams by stage and in their own order; a stage is a rank that has streams. A server's say their stage themselves.
std::vector<std::string> track_names(const Schedule& schedule) {
  std::vector<std::optional<Rank>> stages;
  std::vector<std::string> out;
  for (const Stream& stream : schedule.streams()) {
    const auto known = std::find(stages.begin(), stages.end(), stream.rank);
    const auto stage = known - stages.begin();
    if (known == stages.end()) stages.push_back(stream.rank);
    const bool named = !stream.rank || stream.name.starts_with("stage ");
    out.push_back(named ? stream.name : fmt::format("stage {} {}", stage, stream.name));
  }
  return out;
}

std::vector<std::vector<TimelineChart::Bar>> bars_by_track(const Schedule& schedule, const Timeline& timeline) {
  std::vector<std::vector<TimelineChart::Bar>> out(schedule.streams().size());
  for (std::uint32_t i = 0; i < schedule.size(); ++i) {
    const OpId op(i);
    const Interval& interval = timeline.ops[i];
    const auto stream = schedule.stream(op);
    if (!stream || interval.finish == interval.start) continue;
    out[stream->value()].push_back({stream->value(), to_seconds(interval.start).count(),
                                    to_seconds(interval.finish).count(), std::string(schedule.name(op)),
                                    std::string(schedule.category(op))});
  }
  for (auto& track : out)
    std::stable_sort(track.begin(), track.end(), [](const auto& a, const auto& b) { return a.start_s < b.start_s; });
  return out;
}

/// `track` with gaps and bars shorter than `blur` closed between equals.
std::vector<TimelineChart::Bar> merged(const std::vector<TimelineChart::Bar>& track, double blur) {
  std::vector<TimelineChart::Bar> out;
  int count = 1;
  for (const TimelineChart::Bar& bar : track) {
    const bool joins = !out.empty() && out.back().category == bar.category && bar.start_s - out.back().end_s <= blur &&
                       (bar.end_s - bar.start_s <= blur || out.back().end_s - out.back().start_s <= blur);
    if (!joins) {
      out.push_back(bar);
      count = 1;
      continue;
    }
    out.back().end_s = std::max(out.back().end_s, bar.end_s);
    ++count;
    out.back().name = fmt::format("{} operations", count);
  }
  return out;
}

}  // namespace

TimelineChart timeline_chart(const Schedule& schedule, const Timeline& timeline, std::size_t most) {
  const auto tracks = bars_by_track(schedule, timeline);
  TimelineChart out;
  out.tracks = track_names(schedule);
  const double end = to_seconds(timeline.finish).count();
  // Coarser until it fits: first what is exact, then a 4000th of the whole, then four times that, and so on.
  for (double blur = 0; blur <= end; blur = blur == 0 ? end / 4000 : 4 * blur) {
    out.bars.clear();
    for (const auto& track : tracks) {
      const auto bars = blur > 0 ? merged(track, blur) : track;
      out.bars.insert(out.bars.end(), bars.begin(), bars.end());
    }
    if (out.bars.size() <= most) break;
  }
  return out;
}

}  // namespace collcast
