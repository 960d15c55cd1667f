// A forecast works out each price once, whoever asks for it: the closed form, the simulation, the algorithms' names,
// the programs of an unfolded step.
#include <catch2/catch.hpp>

#include <set>
#include <tuple>
#include <vector>

#include "inputs.hpp"
#include "workload/forecast.hpp"
#include "workload/step_programs.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

using Asked = std::tuple<CollectiveKind, std::int64_t, std::vector<std::vector<Rank>>>;

Asked asked(const CollectiveRequest& r) {
  std::vector<std::vector<Rank>> groups{r.group.ranks()};
  for (const Group& g : r.alongside) groups.push_back(g.ranks());
  return {r.kind, r.size.value(), std::move(groups)};
}

/// The different requests of a plan that take time: of collectives, of messages.
struct Different {
  std::set<Asked> collectives, messages;
};

Different requests_of(const StepInputs& in, const Fabric& fabric) {
  Different out;
  const CollectiveTime record = [&](const CollectiveRequest& r) -> Result<Seconds> {
    if (r.group.size() > 1 && r.size > Bytes(0))
      (r.kind == CollectiveKind::sendrecv ? out.messages : out.collectives).insert(asked(r));
    return Seconds(1e-6);
  };
  REQUIRE(make_plan(in, fabric, record).ok());
  return out;
}

}  // namespace

TEST_CASE("a forecast chooses and simulates each of its requests once") {
  const Fabric fabric = cluster(4);
  for (const ParallelLayout& l : {layout(8, 1, 4), layout(2, 4, 2), layout(4, 2, 4)}) {
    const StepInputs in = inputs(small_model(), l, 1024, 8);
    const Different different = requests_of(in, fabric);
    const auto wanted = static_cast<std::int64_t>(different.collectives.size());
    const auto messages = static_cast<std::int64_t>(different.messages.size());
    REQUIRE(wanted > 1);

    CollectivePolicy policy;
    policy.chunks = 1;
    ForecastPrices prices(fabric, policy);
    StepPlan plan;
    REQUIRE(forecast_training(in, fabric, prices, Method::both, nullptr, {}, {}, &plan).ok());
    CHECK(prices.collectives().counts().chosen <= wanted);
    CHECK(prices.collectives().counts().simulated <= wanted);
    CHECK(prices.messages().counts().chosen <= messages);
    CHECK(prices.messages().counts().simulated <= messages);
    // Each stage gathers messages there, of which the plan has those of the slowest way alone.
    const std::int64_t chosen = prices.collectives().counts().chosen,
                       simulated = prices.collectives().counts().simulated;
    REQUIRE(make_programs(in, fabric, prices, plan).ok());
    CHECK(prices.collectives().counts().chosen <= chosen + l.pp);
    CHECK(prices.collectives().counts().simulated == simulated);
  }
}

TEST_CASE("a closed form alone simulates nothing") {
  const Fabric fabric = cluster(2);
  ForecastPrices prices(fabric, {});
  const StepInputs in = inputs(small_model(), layout(4, 2, 2), 1024, 8);
  REQUIRE(forecast_training(in, fabric, prices, Method::estimate, nullptr, {}, {}).ok());
  CHECK(prices.collectives().counts().chosen > 0);
  CHECK(prices.collectives().counts().simulated == 0);
}

TEST_CASE("a step that its watch ends has its closed form if that was known by then, and nothing else") {
  const Fabric fabric = cluster(2);
  const StepInputs in = inputs(small_model(), layout(4, 2, 2), 1024, 4);
  const Result<StepResult> closed = forecast_step(in, fabric, {}, Method::estimate);
  const Result<StepResult> both = forecast_step(in, fabric, {}, Method::both);
  REQUIRE((closed.ok() && both.ok()));
  int known = 0, unknown = 0;
  for (int limit = 0;; ++limit) {
    int asked = 0;
    const auto goes_on = [&] { return asked++ < limit; };
    EngineOptions engine;
    engine.watch = [&](const EngineProgress&) { return goes_on(); };
    const StepAsFar step = forecast_step_as_far(in, fabric, {}, nullptr, engine, {}, goes_on);
    if (step.result) {
      CHECK(step.result->step == both->step);
      CHECK_FALSE(step.by_formula);
      break;
    }
    (step.by_formula ? known : unknown) += 1;
    if (!step.by_formula) continue;
    CHECK(step.by_formula->step == closed->step);
    CHECK_FALSE(step.by_formula->simulate);
  }
  CHECK(known > 0);
  CHECK(unknown > 0);
}

TEST_CASE("a step is run on the nodes that it uses, and takes what it takes on a machine of those alone") {
  const Fabric large = cluster(40), small = cluster(2);
  const StepInputs in = inputs(small_model(), layout(2, 4, 2), 1024, 4);
  StepTimeline on_large, on_small;
  const Result<StepResult> a = forecast_step(in, large, {}, Method::both, &on_large);
  const Result<StepResult> b = forecast_step(in, small, {}, Method::both, &on_small);
  REQUIRE((a.ok() && b.ok()));
  CHECK(a->step == b->step);
  CHECK(a->estimate == b->estimate);
  CHECK(on_large.timeline.links.size() <= small.links().size());
}
