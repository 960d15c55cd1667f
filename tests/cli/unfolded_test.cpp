// step --unfolded: beside the step, never instead of it; what it cannot do is refused where it is written.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/called.hpp"

using namespace collcast;
using namespace collcast::test;
using Json = nlohmann::json;
using Catch::Contains;

namespace {
const std::string small = "step llama3-70b-64xh100 --chunks 1 --set batch.global_batch=8 ";
}

TEST_CASE("the unfolded step stands beside the step, which is as without it") {
  const Called both = call(small + "--unfolded --format json");
  CHECK(both.exit == 0);
  const Json doc = Json::parse(both.out), folded = Json::parse(call(small + "--library ideal --format json").out);
  CHECK(doc["step_s"] == folded["step_s"]);
  CHECK(doc["breakdown"] == folded["breakdown"]);
  CHECK_FALSE(folded.contains("unfolded"));
  const Json& unfolded = doc["unfolded"];
  CHECK(unfolded["folded_s"] == doc["simulate_s"]);
  CHECK(unfolded["ranks"] == 64);
  // 4 micro-batches of each of 2 replicas: on and back over 3 boundaries, by 8 TP ranks.
  CHECK(unfolded["transfers"] == 2 * 4 * 2 * 3 * 8);
  CHECK(unfolded["messages"].get<std::int64_t>() > unfolded["exchanges"].get<std::int64_t>());
  double sum = 0;
  for (const auto& part : unfolded["breakdown"].items()) sum += part.value().get<double>();
  CHECK(sum == Approx(unfolded["step_s"].get<double>()));
  CHECK(call(small + "--unfolded --format json").out == both.out);

  const Called page = call(small + "--unfolded");
  CHECK_THAT(page.out, Contains("library ideal"));
  CHECK_THAT(page.out, Contains("every rank for itself"));
  CHECK_THAT(page.out, Contains("mean of the ranks of stage"));
  CHECK_THAT(page.out, Contains("It differs from the step time"));
}

TEST_CASE("a step that was not simulated rank by rank to its end is partial, the rest of it known") {
  // A minute of messages; the folded step takes less than a second, or some on a busy machine.
  const Called cut = call("step gpt3-100096xh100 --unfolded --time-limit 5s --format json");
  CHECK(cut.exit == 0);
  CHECK_THAT(cut.err, Contains("partial: the time limit of 5 s is over; "));
  const Json doc = Json::parse(cut.out);
  CHECK_FALSE(doc.contains("unfolded"));
  CHECK(doc["estimate_s"].get<double>() > 0);
}

TEST_CASE("what cannot be unfolded is refused, each with its place") {
  const Called nccl = call("step llama3-70b-64xh100 --unfolded --library nccl");
  CHECK(nccl.exit == 2);
  CHECK_THAT(nccl.err, Contains("--library") && Contains("cannot be unfolded") && Contains("expected library ideal"));
  const Called estimate = call(small + "--unfolded --method estimate");
  CHECK(estimate.exit == 2);
  CHECK_THAT(estimate.err, Contains("--unfolded is told beside the step by both methods"));
  const Called fault = call("step llama3-70b-straggler-64xh100 --what-if slow-gpu-from-4s --unfolded");
  CHECK(fault.exit == 2);
  CHECK_THAT(fault.err, Contains("llama3-70b-straggler-64xh100.yaml:23:") &&
                            Contains("a fault that begins or ends cannot be unfolded"));
  const Called drawn = call("step llama3-70b-straggler-64xh100 --what-if jitter --unfolded");
  CHECK(drawn.exit == 2);
  CHECK_THAT(drawn.err, Contains("jitter cannot be unfolded"));
  const Called tasks = call("step overlap-175b-layer --unfolded");
  CHECK(tasks.exit == 2);
  CHECK_THAT(tasks.err, Contains("--unfolded has no effect on a scenario of tasks"));
  const Called served = call("step llama3-70b-inference-8xh100 --unfolded");
  CHECK(served.exit == 2);
  CHECK_THAT(served.err, Contains("a batch that is served cannot be unfolded"));
}

TEST_CASE("weights and sharing fifo: a warning that they have no effect") {
  const std::string weighted = small + "--unfolded --set collectives.weights.tp=4 ";
  CHECK_THAT(call(weighted + "--sharing fifo").err, Contains("weights have no effect on sharing fifo"));
  CHECK(call(weighted).err.find("weights have no effect") == std::string::npos);
}

TEST_CASE("a slow GPU, a slow link and other nodes, every rank for itself") {
  const std::string at = "step llama3-70b-straggler-64xh100 --unfolded --chunks 1 --format json ";
  const auto step_of = [&](const std::string& more) {
    const Called called = call(at + more);
    INFO(called.err);
    REQUIRE(called.exit == 0);
    const Json doc = Json::parse(called.out);
    CHECK(doc["unfolded"]["step_s"].get<double>() ==
          Approx(doc["simulate_s"].get<double>()).epsilon(0.05));  // contention, and first finishers
    return doc["unfolded"]["step_s"].get<double>();
  };
  const double healthy = step_of("");
  CHECK(step_of("--what-if slow-gpu") > 1.1 * healthy);
  CHECK(step_of("--what-if slow-nic") > 1.001 * healthy);
  // All of eight nodes are in one pod, and alike.
  CHECK(step_of("--set placement.nodes=random") == Approx(healthy).epsilon(1e-6));
}
