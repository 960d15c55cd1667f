// What a search tries where no values are listed, usual or all, and what it says that it left out.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "small_plans.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

using Words = std::vector<std::string>;

/// With sequences that four ranks can share, and memory for all layouts.
PlanInputs roomy() {
  PlanInputs in = small(80'000'000'000);
  in.base.batch.sequence = 4096;
  in.base.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.space.tp = {1, 2};
  in.space.recompute = {Recompute::none};
  in.space.sequence_parallel = {false};
  in.space.micro_batch = {1};
  return in;
}

PlanInputs with_all(PlanInputs in) {
  in.space.values = SearchValues::all;
  return in;
}

std::map<LayoutChoice, double> times(const PlanResult& p) {
  std::map<LayoutChoice, double> out;
  for (const PlannedLayout& l : p.ranked) out[l.choice] = l.estimate.count();
  return out;
}

template <class T>
std::set<T> seen(const PlanResult& p, T LayoutChoice::*value) {
  std::set<T> out;
  for (const PlannedLayout& l : p.ranked) out.insert(l.choice.*value);
  return out;
}

}  // namespace

TEST_CASE("a search of all values is one of the lists that divide") {
  const Fabric fabric = cluster(2);
  const PlanInputs in = roomy();
  PlanInputs listed = in;
  listed.space.cp = {1, 2, 4};  // of 4096 tokens 1024 are left to each rank
  listed.space.zero = {0, 1, 2, 3};
  listed.space.vpp = {1, 2, 4};
  const PlanResult all = planned(with_all(in), fabric), by_lists = planned(listed, fabric), usual = planned(in, fabric);
  CHECK(times(all) == times(by_lists));
  CHECK(all.feasible > 3 * usual.feasible);
  CHECK(all.ranked.front().estimate <= usual.ranked.front().estimate);
  CHECK(seen(all, &LayoutChoice::cp) == std::set{1, 2, 4});
  CHECK(seen(all, &LayoutChoice::zero) == std::set{0, 1, 2, 3});
  CHECK(seen(all, &LayoutChoice::vpp) == std::set{1, 2, 4});
  // All of the narrower search is in it.
  for (const auto& [choice, time] : times(usual)) CHECK(times(all).at(choice) == time);
  // Chunks that do not divide are not tried, as those of a list are.
  CHECK(all.evaluated < by_lists.evaluated);
}

TEST_CASE("lists come before a search of all values") {
  PlanInputs in = with_all(roomy());
  in.space.cp = {2};
  in.space.zero = {1};
  in.space.vpp = {1};
  const PlanResult p = planned(in, cluster(2));
  CHECK(seen(p, &LayoutChoice::cp) == std::set{2});
  CHECK(seen(p, &LayoutChoice::zero) == std::set{1});
  CHECK(seen(p, &LayoutChoice::vpp) == std::set{1});
}

TEST_CASE("what a search leaves out of all values is told, and nothing that it has or that cannot be") {
  const PlanInputs in = roomy();
  CHECK(left_out(in) == Words{"CP above 1", "ZeRO-2 and 3", "stages of several chunks"});
  CHECK(left_out(with_all(in)).empty());
  PlanInputs listed = in;
  listed.space.zero = {0};
  listed.space.vpp = {1};
  CHECK(left_out(listed) == Words{"CP above 1"});
  listed.space.cp = {1};
  CHECK(left_out(listed).empty());
  PlanInputs flat = in;  // without stages and replicas
  flat.space.tp = {16};
  CHECK(left_out(flat).empty());

  PlanInputs other = in;
  other.base.layout.order = RankOrder::tp_pp_dp;  // which has no place for CP
  CHECK(left_out(other) == Words{"ZeRO-2 and 3", "stages of several chunks"});
  CHECK(seen(planned(with_all(other), cluster(2)), &LayoutChoice::cp) == std::set{1});
  other.base.layout.schedule = PipelineSchedule::gpipe;
  other.base.options.zero = 2;
  CHECK(left_out(other).empty());
  other = in;
  other.base.batch.sequence = 1024;
  other.base.layout.schedule = PipelineSchedule::interleaved;
  CHECK(left_out(other) == Words{"ZeRO-2 and 3"});
  other.base.model.layers = 32;
  CHECK(left_out(other) == Words{"ZeRO-2 and 3", "more than 8 chunks of a stage"});
  other.base.options.no_sync = true;  // which ZeRO-2 does not go with
  CHECK(left_out(other).front() == "ZeRO-3");
  CHECK(seen(planned(with_all(other), cluster(2)), &LayoutChoice::zero) == std::set{0, 1, 3});
}

TEST_CASE("what the scenario rules out of all values is told with the reason, where all are asked for") {
  CHECK(ruled_out(with_all(roomy())).empty());
  PlanInputs other = roomy();
  other.base.layout.order = RankOrder::tp_pp_dp;
  CHECK(ruled_out(other).empty());
  const std::string no_cp = "CP above 1: cp 2 has no place in the order tp-pp-dp; use order: tp-cp-ep-dp-pp";
  CHECK(ruled_out(with_all(other)) == Words{no_cp});
  other.base.options.no_sync = true;
  const Words both = ruled_out(with_all(other));
  REQUIRE(both.size() == 2);
  CHECK(both[0].starts_with("ZeRO-2: "));
  CHECK(both[1] == no_cp);
  // What is listed is rejected layout by layout.
  other.space.cp = {1, 2};
  other.space.zero = {0, 2};
  CHECK(ruled_out(with_all(other)).empty());
}

TEST_CASE("of experts a search of all values has every degree that divides them") {
  PlanInputs in = roomy();
  in.base.model.experts.count = 4;
  in.base.model.experts.top_k = 2;
  in.base.model.experts.ffn = in.base.model.ffn;
  in.space.tp = {1};
  in.space.pp = {1};
  CHECK(left_out(in) == Words{"CP above 1", "EP above 1", "ZeRO-2 and 3"});
  in.space.cp = {1};
  CHECK(seen(planned(with_all(in), cluster(2)), &LayoutChoice::ep) == std::set{1, 2, 4});
}

TEST_CASE("a near miss of a search of all values is one of all, too") {
  int seen = 0;
  for (double gigabytes = 2.2; gigabytes < 4; gigabytes += 0.2) {
    PlanInputs in = with_all(roomy());
    in.base.gpu.memory = Bytes(static_cast<std::int64_t>(gigabytes * 1e9));
    in.space.tp = {1};
    in.space.pp = {1};
    const PlanResult p = planned(in, cluster(2));
    const auto miss = std::ranges::find(p.near_misses, NearMissKind::all_values, &NearMiss::kind);
    if (miss == p.near_misses.end()) continue;
    INFO(gigabytes);
    REQUIRE(p.ranked.empty());
    in.space = {};
    in.space.values = SearchValues::all;
    const PlanResult then = planned(in, cluster(2));
    const auto least = std::ranges::min_element(then.ranked, {}, [](const auto& l) { return l.memory.peak(); });
    REQUIRE(least != then.ranked.end());
    CHECK(least->memory.peak() == miss->memory.peak());
    ++seen;
  }
  CHECK(seen > 0);
}
