// The critical path of a step: its parts sum to the step, and it names what the step waits for.
#include "workload/critical.hpp"

#include <catch2/catch.hpp>

#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

/// "0-2 x3 F mb0, send on".
std::string shown(const PathRun& run) {
  return std::to_string(run.first_stage) + "-" + std::to_string(run.last_stage) + " x" + std::to_string(run.times) +
         " " + run.what;
}

std::vector<std::string> shown(const CriticalPath& path) {
  std::vector<std::string> lines;
  for (const PathRun& run : path.runs) lines.push_back(shown(run));
  return lines;
}

/// Computing operations of given stages one after the other, 1 ms each.
struct Chain {
  Schedule schedule;
  std::vector<workload::Place> places;
  void step(int stage, workload::Doing doing, int number, const char* category = "forward") {
    std::vector<After> after;
    if (schedule.size() > 0) after.push_back({OpId(static_cast<std::uint32_t>(schedule.size() - 1))});
    schedule.add(Delay{Seconds(1e-3)}, after, {"op", category});
    places.push_back({stage, doing, number});
  }
  CriticalPath path() const {
    return workload::critical_path_of(schedule, simulate(four_nodes(), schedule).value(), places);
  }
};

using workload::Doing;

}  // namespace

TEST_CASE("the parts of the path sum to the simulated step, by kind, by stage and by run") {
  for (const ParallelLayout& l : {layout(1, 1, 1), layout(8, 1, 1), layout(1, 8, 1), layout(1, 1, 8), layout(2, 2, 2),
                                  layout(4, 2, 4), layout(2, 8, 2)})
    for (const bool ends : {true, false})
      for (const bool overlap : {true, false})
        for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe}) {
          StepInputs in = inputs(small_model(), l, 1024, 24);
          in.layout.schedule = schedule;
          in.options.embedding_and_logits = ends;
          in.options.overlap_dp = in.options.overlap_pp = overlap;
          in.options.zero = overlap ? 1 : 0;
          const StepResult r = forecast(in, four_nodes(), Method::simulate);
          REQUIRE(r.critical_path);
          const CriticalPath& path = *r.critical_path;
          CHECK(path.time.total().count() == Approx(r.simulate->count()).epsilon(1e-12));
          Seconds stages{}, runs{};
          for (const PathTimes& t : path.by_stage) stages += t.total();
          for (const PathRun& run : path.runs) runs += run.time.total();
          CHECK(stages.count() == Approx(r.simulate->count()).epsilon(1e-12));
          CHECK(runs.count() == Approx(r.simulate->count()).epsilon(1e-12));
          CHECK(path.runs.size() <= 16);
          CHECK(path.time.wait == Seconds{});  // collectives are given times here: nothing queues
        }
}

TEST_CASE("a rank on its own is on the path all the time") {
  const StepResult r = forecast(small_step(8, 1, 1, 4), four_nodes(), Method::simulate);
  CHECK(r.critical_path->time.compute.count() == Approx(r.breakdown.compute.count()).epsilon(1e-12));
  CHECK(r.critical_path->time.tp.count() == Approx(r.breakdown.tp_exposed.count()).epsilon(1e-12));
  CHECK(shown(*r.critical_path) == std::vector<std::string>{"0-0 x1 F mb0 ... mb3, B mb0 ... mb3, optimizer"});
}

TEST_CASE("a slower last stage: fill the pipeline, work there, drain it, wait for the gradients") {
  // Logits make the last of four stages the slowest.
  const StepResult r = forecast(small_step(1, 4, 2, 8), four_nodes(), Method::simulate);
  CHECK(shown(*r.critical_path)[0] == "0-2 x3 F mb0, send on");
  CHECK(shown(*r.critical_path)[1] == "3-3 x1 F mb0 ... mb7, B mb0 ... mb7, send back");
  CHECK(shown(*r.critical_path)[2] == "2-1 x2 B mb7, send back");
  CHECK(r.critical_path->by_stage[3].compute > r.critical_path->by_stage[0].compute);
  CHECK(r.critical_path->time.dp > Seconds{});
}

TEST_CASE("an estimate has no timeline, hence no path") {
  const Result<StepResult> r = forecast_step(small_step(1, 2, 1, 4), four_nodes(), {}, Method::estimate);
  REQUIRE(r.ok());
  CHECK_FALSE(r->critical_path);
}

TEST_CASE("visits that take turns are counted, not listed") {
  Chain chain;
  for (int k = 0; k < 5; ++k) {
    chain.step(1, Doing::forward, k);
    chain.step(1, Doing::message_on, k, "pp");
    chain.step(2, Doing::backward, k, "backward");
    chain.step(2, Doing::message_back, k, "pp");
  }
  const CriticalPath path = chain.path();
  CHECK(shown(path) ==
        std::vector<std::string>{"1-2 x5 stage 1: F mb0 ... mb4, send on; stage 2: B mb0 ... mb4, send back"});
  CHECK(path.time.compute.count() == Approx(10e-3));
  CHECK(path.time.pp.count() == Approx(10e-3));
  CHECK(path.by_stage[2].compute.count() == Approx(5e-3));
}

TEST_CASE("a path that never repeats is cut in the middle, and nothing of its time is lost") {
  // Visits of 1, 2, 3 ... 19 micro-batches on stages 0 and 5 in turn: no two are alike.
  Chain chain;
  int operations = 0;
  for (int visit = 0; visit < 19; ++visit)
    for (int k = 0; k <= visit; ++k, ++operations) chain.step(visit % 2 * 5, Doing::forward, k);
  const CriticalPath path = chain.path();
  REQUIRE(path.runs.size() == 16);
  CHECK(path.runs[8].what == "4 more lines");  // 19 = 8 + 4 + 7
  CHECK((path.runs[8].first_stage == 0 && path.runs[8].last_stage == 5));
  CHECK(path.runs[8].time.total().count() == Approx(1e-3 * (9 + 10 + 11 + 12)));
  CHECK(path.time.total().count() == Approx(1e-3 * operations));
}

TEST_CASE("times of the path are the nearest numbers to their picoseconds") {
  Chain chain;
  for (int i = 0; i < 50; ++i) chain.step(0, Doing::forward, i);
  CHECK(chain.path().time.compute.count() == 0.05);  // not 0.049999999999999996, the product with 1e-12
  CHECK(chain.path().runs.at(0).time.total().count() == 0.05);
}

TEST_CASE("tasks on the path are named; a task that others hide is not on it") {
  const auto ms = [](double value) { return Seconds(value * 1e-3); };
  const TaskGraph graph{{{"a", "compute", ms(2), {}, Category::compute},
                         {"hidden", "dp", ms(1), {}, Category::dp},
                         {"reduce", "tp", ms(3), {"a"}, Category::tp},
                         {"b", "compute", ms(4), {"reduce"}, Category::compute}},
                        true};
  const Result<StepResult> r = forecast_tasks(graph, four_nodes());
  REQUIRE(r.ok());
  CHECK(shown(*r->critical_path) == std::vector<std::string>{"0-0 x1 a", "0-0 x1 reduce", "0-0 x1 b"});
  CHECK(r->critical_path->time.compute.count() == Approx(6e-3));
  CHECK(r->critical_path->time.tp.count() == Approx(3e-3));
  CHECK(r->critical_path->time.dp == Seconds{});
}
