// Chrome traces: valid JSON, named tracks, and no two events of a track that overlap.
#include "collcast/report/trace.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <map>
#include <random>
#include <sstream>

using namespace collcast;
using Json = nlohmann::json;

namespace {

SimTime at(std::int64_t picoseconds) { return SimTime(Picoseconds(picoseconds)); }

std::string trace(const Schedule& schedule, const Timeline& timeline) {
  std::ostringstream out;
  write_chrome_trace(out, schedule, timeline);
  return out.str();
}

/// Viewers keep whole nanoseconds.
std::int64_t nanoseconds(const Json& microseconds) { return std::llround(microseconds.get<double>() * 1000); }

void check_no_overlap(const Json& doc) {
  std::map<std::pair<int, int>, std::map<std::int64_t, std::int64_t>> tracks;
  for (const Json& event : doc.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const std::int64_t start = nanoseconds(event.at("ts")), end = start + nanoseconds(event.at("dur"));
    auto& track = tracks[{event.at("pid").get<int>(), event.at("tid").get<int>()}];
    for (const auto& [other_start, other_end] : track) CHECK((end <= other_start || other_end <= start));
    track[start] = end;
  }
}

}  // namespace

TEST_CASE("a trace names processes and threads and keeps names, times and categories") {
  Schedule schedule;
  const StreamId compute = schedule.add_stream({"compute", Rank(0)});
  const StreamId tp = schedule.add_stream({"tp \"x\"", Rank(4)});
  schedule.add(compute, Compute{Rank(0), Seconds(1.5e-6)}, {}, {"forward", "forward"});
  schedule.add(tp, Delay{Seconds(2e-6)}, {}, {"all\\reduce", "tp"});
  Timeline timeline;
  timeline.ops = {{at(0), at(1'500'000), at(1'500'000)}, {at(1'500'000), at(3'500'000), at(3'500'000)}};
  const Json doc = Json::parse(trace(schedule, timeline));
  const Json& events = doc.at("traceEvents");
  REQUIRE(events.size() == 6);  // two processes, two threads, two operations
  CHECK(events.at(0).at("name") == "process_name");
  CHECK(events.at(2).at("args").at("name") == "stage 1 (rank 4)");
  CHECK(events.at(3).at("args").at("name") == "tp \"x\"");
  CHECK(events.at(4).at("name") == "forward");
  CHECK(events.at(4).at("ts") == 0.0);
  CHECK(events.at(4).at("dur") == 1.5);  // microseconds
  CHECK(events.at(5).at("cat") == "tp");
  CHECK(events.at(5).at("name") == "all\\reduce");
  CHECK(events.at(5).at("pid") == 1);
  CHECK(events.at(5).at("ts") == 1.5);
}

TEST_CASE("operations of no duration are left out") {
  Schedule schedule;
  schedule.add(Delay{});
  Timeline timeline;
  timeline.ops = {{at(5), at(5), at(5)}};
  CHECK(Json::parse(trace(schedule, timeline)).at("traceEvents").empty());
}

TEST_CASE("operations that touch to the picosecond do not overlap in a viewer's nanoseconds") {
  std::mt19937_64 random(7);
  Schedule schedule;
  const StreamId stream = schedule.add_stream({"compute", Rank(0)});
  Timeline timeline;
  std::int64_t now = 0;
  for (int i = 0; i < 500; ++i) {
    schedule.add(stream, Compute{Rank(0), Seconds()}, {}, {"op", "c"});
    const std::int64_t end = now + 1 + static_cast<std::int64_t>(random() % 5000);
    timeline.ops.push_back({at(now), at(end), at(end)});
    now = end;
  }
  check_no_overlap(Json::parse(trace(schedule, timeline)));
}

TEST_CASE("operations on no stream are spread over as many threads as they need") {
  std::mt19937_64 random(11);
  Schedule schedule;
  Timeline timeline;
  for (int i = 0; i < 100; ++i) {
    schedule.add(Delay{Seconds(1)}, {}, {"transfer", "network"});
    const auto start = static_cast<std::int64_t>(random() % 1'000'000);
    const auto end = start + 1000 + static_cast<std::int64_t>(random() % 100'000);
    timeline.ops.push_back({at(start), at(end), at(end)});
  }
  const Json doc = Json::parse(trace(schedule, timeline));
  check_no_overlap(doc);
  CHECK(std::count_if(doc.at("traceEvents").begin(), doc.at("traceEvents").end(),
                      [](const Json& e) { return e.at("ph") == "X"; }) == 100);
}

TEST_CASE("operations on the critical path are marked") {
  // b waits for the longer of a1 and a2.
  Schedule schedule;
  const OpId a1 = schedule.add(Delay{Seconds(1e-6)}, {}, {"a1", "tp"});
  const OpId a2 = schedule.add(Delay{Seconds(2e-6)}, {}, {"a2", "tp"});
  schedule.add(Delay{Seconds(1e-6)}, std::vector<After>{{a1}, {a2}}, {"b", "tp"});
  Timeline timeline;
  timeline.ops = {{at(0), at(1'000'000), at(1'000'000)},
                  {at(0), at(2'000'000), at(2'000'000)},
                  {at(2'000'000), at(3'000'000), at(3'000'000)}};
  std::map<std::string, bool> critical;
  const Json doc = Json::parse(trace(schedule, timeline));
  for (const Json& e : doc.at("traceEvents"))
    if (e.at("ph") == "X") critical[e.at("name")] = e.contains("args") && e.at("args").at("critical") == true;
  CHECK(critical == std::map<std::string, bool>{{"a1", false}, {"a2", true}, {"b", true}});
}
