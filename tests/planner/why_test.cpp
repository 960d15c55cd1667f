// Why a layout is not the best: the numbers are those of its forecast, and the words fit them.
#include "collcast/planner/why.hpp"

#include <catch2/catch.hpp>

#include "collcast/workload/terms.hpp"
#include "workload/inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

PlanInputs nearly_full() {
  PlanInputs in;
  in.base = inputs(small_model(), layout(1, 1, 1), 1024, 1);
  in.base.batch.global_batch = 32;
  in.base.gpu.memory = Bytes(6'200'000'000);
  in.gpus = 16;
  return in;
}

struct Planned {
  Fabric fabric = cluster(2);
  PlanInputs in = nearly_full();
  PlanResult result = plan(in, fabric, {1, 0}, Location{"test"}).value();
};

bool says(const std::vector<std::string>& sentences, const std::string& words) {
  for (const std::string& s : sentences)
    if (s.find(words) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("the best is put beside its runner-up, with what asking about that one says") {
  const Planned p;
  const Why w = why(p.in, p.fabric, p.result.ranked[0].choice, p.result.ranked).value();
  CHECK(w.of_best());
  CHECK(*w.asked.step == *w.best->step);
  REQUIRE(w.runner_up);
  CHECK(w.runner_up->rank == 2);
  CHECK(w.runner_up->choice == p.result.ranked[1].choice);
  const Why second = why(p.in, p.fabric, p.result.ranked[1].choice, p.result.ranked).value();
  CHECK_FALSE(second.of_best());
  CHECK_FALSE(second.runner_up);
  CHECK(*w.runner_up->step == *second.asked.step);
  CHECK(w.sentences == second.sentences);
  CHECK(w.beside_best()->choice == second.beside_best()->choice);
}

TEST_CASE("of parameters that a GPU updates experts of other ranks are none") {
  // Of 8 experts each of 8 ranks has one; without ZeRO it updates that and all the rest of the model.
  PlanInputs in = nearly_full();
  in.base = inputs(small_experts(), layout(1, 1, 8), 1024, 1);
  in.base.layout.ep = 8;
  in.base.options.zero = 0;
  const MemoryTerms terms = memory_terms(in.base, 0);
  const double all = parameter_count(in.base.model), experts = 8 * terms.trained_apart;
  CHECK(terms.trained(1, terms.optimizer_shares, false) == Approx(all - experts + experts / 8));
}

TEST_CASE("the only layout that fits has no runner-up") {
  const Planned p;
  const Why w = why(p.in, p.fabric, p.result.ranked[0].choice, {p.result.ranked[0]}).value();
  CHECK(w.of_best());
  CHECK(w.beside_best() == nullptr);
  CHECK(w.sentences.empty());
}

TEST_CASE("a layout whose gradients make too many buckets is told what it would need, and no time") {
  Planned p;
  p.in.base.options.bucket = Bytes(1024);
  const Why w = why(p.in, p.fabric, {2, 1, 8, 1, false, Recompute::none, 1}, p.result.ranked).value();
  REQUIRE(w.asked.objections.size() == 1);
  CHECK(says(w.asked.objections, "into more than 10000 pieces"));
  CHECK(w.asked.memory);
  CHECK_FALSE(w.asked.step);
}

TEST_CASE("terms are those of the layout's own forecast and sum to its step") {
  const Planned p;
  for (const std::size_t rank : {std::size_t{2}, p.result.ranked.size()}) {
    const PlannedLayout& layout = p.result.ranked[rank - 1];
    const Why w = why(p.in, p.fabric, layout.choice, p.result.ranked).value();
    CHECK(w.asked.rank == static_cast<int>(rank));
    CHECK(w.asked.step->count() == Approx(layout.estimate.count()).epsilon(1e-12));
    CHECK(w.asked.breakdown.total().count() == Approx(w.asked.step->count()).epsilon(1e-9));
    CHECK(w.asked.memory->peak() == layout.memory.peak());
    CHECK((!w.sentences.empty() || layout.estimate < 1.1 * p.result.ranked.front().estimate));
  }
}

TEST_CASE("a group that crosses nodes is named with both rates") {
  const Planned p;
  const Why w = why(p.in, p.fabric, {16, 1, 1, 2, false, Recompute::none, 0}, p.result.ranked).value();
  REQUIRE_FALSE(w.sentences.empty());
  CHECK(says(w.sentences, "TP group of 16 crosses 2 nodes"));
}

TEST_CASE("a rejected layout says why, with its memory where it divides") {
  const Planned p;
  const Why large = why(p.in, p.fabric, {1, 1, 16, 2, false, Recompute::none, 0}, p.result.ranked).value();
  CHECK(large.asked.rank == 0);
  REQUIRE(large.asked.objections.size() == 1);
  CHECK(large.asked.memory->peak() > large.asked.memory->capacity);
  CHECK(large.asked.step.has_value());
  CHECK(says(large.sentences, "memory: stage 0 needs "));
  CHECK(says(large.sentences, std::string("what breaks the limit: ") + breaking_part(*large.asked.memory).name));
  const Why odd = why(p.in, p.fabric, {1, 16, 1, 1, false, Recompute::none, 0}, p.result.ranked).value();
  CHECK(odd.asked.objections.front() == "pp 16 does not divide layers 8");
  CHECK_FALSE(odd.asked.step.has_value());
  CHECK(odd.sentences.empty());
}

TEST_CASE("degrees whose product is not the GPUs say the product; tp x pp is blamed only where it does not divide") {
  const Planned p;
  const auto objections = [&](const LayoutQuestion& q) {
    return why(p.in, p.fabric, complete(q, p.result, p.in), p.result.ranked).value().asked.objections;
  };
  CHECK(objections({.tp = 4, .pp = 2, .dp = 4}) ==
        std::vector<std::string>{"tp 4 x pp 2 x dp 4 is 32, not the number of GPUs, 16"});
  CHECK(objections({.tp = 4, .pp = 1, .dp = 2}) ==
        std::vector<std::string>{"tp 4 x pp 1 x dp 2 is 8, not the number of GPUs, 16"});
  CHECK(objections({.tp = 3, .pp = 1}) ==
        std::vector<std::string>{"tp 3 x pp 1 does not divide the 16 GPUs; nearest that does: tp 2 or 4"});
  CHECK(objections({.tp = 3, .pp = 2, .dp = 5}) ==
        std::vector<std::string>{"tp 3 x pp 2 does not divide the 16 GPUs; nearest that does: tp 2 or 4"});
  CHECK(objections({.tp = 2, .pp = 6}) ==
        std::vector<std::string>{"tp 2 x pp 6 does not divide the 16 GPUs; nearest that does: pp 4 or 8"});
  CHECK(objections({.tp = 8, .pp = 4}) ==
        std::vector<std::string>{"tp 8 x pp 4 does not divide the 16 GPUs; nearest that does: pp 2"});
  CHECK(objections({.tp = 3, .pp = 3}) == std::vector<std::string>{"tp 3 x pp 3 does not divide the 16 GPUs"});
  // There is no dp then.
  CHECK(complete({.tp = 3, .pp = 1}, p.result, p.in).dp == 0);
  CHECK(complete({.tp = 3, .pp = 1, .dp = 5}, p.result, p.in).dp == 5);
}

TEST_CASE("what a question leaves open comes from the best layout that agrees") {
  const Planned p;
  const auto& ranked = p.result.ranked;
  CHECK(complete({}, p.result, p.in) == ranked.front().choice);
  const LayoutChoice wide = complete({.tp = 4, .pp = 4}, p.result, p.in);
  CHECK((wide.tp == 4 && wide.pp == 4 && wide.dp == 1));
  CHECK(std::ranges::find(ranked, wide, &PlannedLayout::choice) != ranked.end());
  // Nothing agrees with pp 16: the degrees fill the GPUs, the rest is the best layout's.
  const LayoutChoice none = complete({.tp = 1, .pp = 16}, p.result, p.in);
  CHECK((none.tp == 1 && none.pp == 16 && none.dp == 1));
  CHECK(none.micro_batch == ranked.front().choice.micro_batch);
  CHECK(complete({.pp = 16, .dp = 1}, p.result, p.in).tp == 1);
  CHECK(complete({.tp = 1, .dp = 1}, p.result, p.in).pp == 16);
  CHECK(complete({.vpp = 2}, p.result, p.in).vpp == 2);
  // 32 sequences: replicas have 2 each then, or none.
  PlanResult of_eight = p.result;
  of_eight.ranked.front().choice.micro_batch = 8;
  CHECK(complete({.tp = 1, .pp = 1, .sequence_parallel = true}, of_eight, p.in).micro_batch == 2);
  CHECK(complete({.tp = 1, .pp = 1, .dp = 5}, of_eight, p.in).micro_batch == 8);
}

TEST_CASE("where no layout fits the one asked about stands alone, with what is against it and its figures") {
  Planned p;
  // 8 layers' weights, gradients and states of 16 GPUs are more than that, however they are split.
  p.in.base.gpu.memory = Bytes(1'000'000'000);
  p.result = plan(p.in, p.fabric, {1, 0}, Location{"test"}).value();
  REQUIRE(p.result.ranked.empty());
  REQUIRE(p.result.smallest);
  const LayoutChoice asked = complete({.tp = 4, .pp = 2}, p.result, p.in);
  CHECK((asked.tp == 4 && asked.pp == 2 && asked.dp == 2));
  CHECK(asked.recompute == p.result.smallest->choice.recompute);
  const Why w = why(p.in, p.fabric, asked, p.result.ranked).value();
  CHECK_FALSE(w.best);
  CHECK_FALSE(w.of_best());
  CHECK(w.beside_best() == &w.asked);
  REQUIRE(w.asked.objections.size() == 1);
  CHECK(w.asked.memory->peak() > w.asked.memory->capacity);
  CHECK(w.asked.step->count() == Approx(w.asked.breakdown.total().count()));
  CHECK(w.sentences.empty());
}

TEST_CASE("degrees whose product is more than 32 bits hold leave one to the third") {
  const Planned p;
  CHECK(complete({.tp = 65'536, .dp = 65'536}, p.result, p.in).pp == 1);
  CHECK(complete({.pp = 65'536, .dp = 65'536}, p.result, p.in).tp == 1);
  CHECK(complete({.tp = 65'536, .pp = 65'536}, p.result, p.in).dp == 0);
}

TEST_CASE("degrees whose product is more than 64 bits hold do not divide the GPUs") {
  const Planned p;
  // 2^29 x 2^29 x 2^6 = 2^64, which is 0 in 64 bits.
  const LayoutChoice asked = complete({.tp = 536'870'912, .pp = 536'870'912, .cp = 64}, p.result, p.in);
  CHECK(asked.dp == 0);
  CHECK(why(p.in, p.fabric, asked, p.result.ranked).value().asked.objections ==
        std::vector<std::string>{"tp 536870912 x pp 536870912 x cp 64 does not divide the 16 GPUs"});
  LayoutChoice given = complete({.tp = 536'870'912, .dp = 536'870'912, .cp = 64}, p.result, p.in);
  CHECK(given.pp == 1);
  CHECK_FALSE(why(p.in, p.fabric, given, p.result.ranked).value().asked.objections.empty());
}
