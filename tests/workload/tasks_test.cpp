// Tasks with given times: streams, waits, and where the time goes.
#include <catch2/catch.hpp>

#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

Seconds ms(double value) { return Seconds(value * 1e-3); }

/// A 175B layer, forward and backward on 8 GPUs: 80 ms of computing, 40 ms of communication. The four TP
/// all-reduces sit between the blocks (15 ms); the gradients' buckets (25 ms) run under what is left of the
/// backward pass.
TaskGraph layer_175b(bool overlap) {
  return {{{"attention", "compute", ms(9), {}, Category::compute},
           {"attention all_reduce", "tp", ms(3.75), {"attention"}, Category::tp},
           {"mlp", "compute", ms(17), {"attention all_reduce"}, Category::compute},
           {"mlp all_reduce", "tp", ms(3.75), {"mlp"}, Category::tp},
           {"mlp gradient", "compute", ms(18), {"mlp all_reduce"}, Category::compute},
           {"mlp gradient all_reduce", "tp", ms(3.75), {"mlp gradient"}, Category::tp},
           {"mlp bucket", "dp", ms(16), {"mlp gradient"}, Category::dp},
           {"attention gradient", "compute", ms(18), {"mlp gradient all_reduce"}, Category::compute},
           {"attention gradient all_reduce", "tp", ms(3.75), {"attention gradient"}, Category::tp},
           {"attention bucket", "dp", ms(9), {"attention gradient"}, Category::dp},
           {"next layer", "compute", ms(18), {"attention gradient all_reduce"}, Category::compute}},
          overlap};
}

StepResult forecast_of(const TaskGraph& graph) {
  Result<StepResult> result = forecast_tasks(graph, cluster(1));
  if (!result) FAIL(to_text(result.errors()));
  return std::move(result).value();
}

}  // namespace

TEST_CASE("80 ms of computing and 40 ms of communication: 120 ms one after the other") {
  const StepResult r = forecast_of(layer_175b(false));
  CHECK(r.step.count() == Approx(0.120).epsilon(1e-9));
  CHECK(r.estimate.count() == Approx(0.120).epsilon(1e-9));
  CHECK(r.breakdown.compute.count() == Approx(0.080));
  CHECK(r.breakdown.tp_exposed.count() == Approx(0.015));
  CHECK(r.breakdown.dp_exposed.count() == Approx(0.025));
}

TEST_CASE("with overlap 95 ms: the TP all-reduces stay exposed, the buckets are hidden") {
  const StepResult r = forecast_of(layer_175b(true));
  CHECK(r.step.count() == Approx(0.095).epsilon(1e-9));
  CHECK(r.estimate.count() == Approx(0.095).epsilon(1e-9));
  CHECK(r.breakdown.compute.count() == Approx(0.080));
  CHECK(r.breakdown.tp_exposed.count() == Approx(0.015));
  CHECK(r.breakdown.dp_exposed == Seconds{});
  CHECK(r.breakdown.bubble == Seconds{});
  CHECK(r.breakdown.total().count() == Approx(r.step.count()).epsilon(1e-9));
}

TEST_CASE("time without any task running is the bubble, computing hides the rest") {
  // compute 0-2 ms, pp 1 (waits: 2-5 ms), optimizer waits for it (5-6 ms); tp 0-4 ms runs beside.
  const TaskGraph graph{{{"a", "compute", ms(2), {}, Category::compute},
                         {"t", "tp", ms(4), {}, Category::tp},
                         {"p", "pp", ms(3), {"a"}, Category::pp},
                         {"o", "compute", ms(1), {"p"}, Category::optimizer}},
                        true};
  const Breakdown b = forecast_of(graph).breakdown;
  CHECK(b.compute.count() == Approx(2e-3));
  CHECK(b.tp_exposed.count() == Approx(2e-3));  // 2-4 ms, before pp
  CHECK(b.pp_exposed.count() == Approx(1e-3));  // 4-5 ms
  CHECK(b.optimizer.count() == Approx(1e-3));
}

TEST_CASE("tasks compute so many times as long as they communicate, hidden or not") {
  for (const bool overlap : {true, false}) {
    const StepResult r = forecast_of(layer_175b(overlap));
    CHECK(r.compute_to_communication == Approx(2).epsilon(1e-12));  // 80 ms and 40 ms
    CHECK(r.warnings.empty());
  }
  // 80 ms and 120 ms: beside computing 25 ms of the second are hidden.
  const auto slow = [](bool overlap) {
    return TaskGraph{{{"attention", "compute", ms(30), {}, Category::compute},
                      {"reduce attention", "tp", ms(75), {"attention"}, Category::tp},
                      {"mlp", "compute", ms(50), {"attention"}, Category::forward},
                      {"reduce mlp", "dp", ms(45), {"mlp"}, Category::dp},
                      {"adam", "compute", ms(1), {"reduce mlp"}, Category::optimizer}},
                     overlap};
  };
  const StepResult serial = forecast_of(slow(false)), beside = forecast_of(slow(true));
  for (const StepResult& r : {serial, beside}) {
    CHECK(r.compute_to_communication == Approx(2.0 / 3));
    REQUIRE(r.warnings.size() == 1);
    CHECK_THAT(r.warnings[0],
               Catch::StartsWith("tasks compute only 0.67 times as long as they communicate (80 ms and 120 ms), the "
                                 "longest in reduce attention (75 ms); ") &&
                   Catch::Contains("40 ms of communication at most"));
  }
  CHECK(beside.step.count() == Approx(0.126));  // 30 + 50 + 45 + 1
  CHECK_THAT(serial.warnings[0], Catch::EndsWith("tasks.overlap: true would hide 75 ms of the step (126 ms)"));
  CHECK_THAT(beside.warnings[0], !Catch::Contains("tasks.overlap"));
}

TEST_CASE("tasks that only communicate, or none that do, have no ratio") {
  const TaskGraph talks{{{"t", "tp", ms(4), {}, Category::tp}}, true};
  const TaskGraph computes{{{"c", "compute", ms(4), {}, Category::compute}}, true};
  for (const TaskGraph& graph : {talks, computes}) {
    CHECK(forecast_of(graph).compute_to_communication == 0);
    CHECK(forecast_of(graph).warnings.empty());
  }
}

TEST_CASE("tasks of one stream run in the order in which they are written") {
  const TaskGraph graph{{{"long", "tp", ms(5), {}, Category::tp}, {"short", "tp", ms(1), {}, Category::tp}}, true};
  CHECK(forecast_of(graph).step.count() == Approx(6e-3));
}

TEST_CASE("tasks that overlap are never slower than tasks in a row") {
  CHECK(forecast_of(layer_175b(true)).step <= forecast_of(layer_175b(false)).step);
}

TEST_CASE("mistakes in a task graph are found together") {
  const TaskGraph graph{{{"a", "compute", ms(1), {"b"}, Category::compute}, {"a", "tp", ms(-1), {}, Category::tp}},
                        true};
  const Result<StepResult> r = forecast_tasks(graph, cluster(1));
  REQUIRE_FALSE(r.ok());
  CHECK(r.errors().size() == 3);
  CHECK(r.errors()[0].message == "task 'a' waits for 'b', which no earlier task is called");
  CHECK_FALSE(forecast_tasks({}, cluster(1)).ok());
}

TEST_CASE("the timeline of the tasks is handed out for a trace") {
  StepTimeline timeline;
  REQUIRE(forecast_tasks(layer_175b(true), cluster(1), &timeline).ok());
  CHECK(timeline.schedule.size() == 11);
  CHECK(timeline.schedule.name(OpId(6)) == "mlp bucket");
  CHECK(timeline.schedule.streams().size() == 3);
}
