// What a plan without a layout that fits says would make one fit, beside the plan that it speaks of.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <map>

#include "small_plans.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

constexpr std::array near_miss_kinds{NearMissKind::all_values, NearMissKind::zero, NearMissKind::host_states,
                                     NearMissKind::more_gpus};

PlanInputs changed(PlanInputs in, NearMissKind kind, const NearMiss* miss) {
  if (kind == NearMissKind::all_values) in.space = {};
  if (kind == NearMissKind::zero)
    in.space.zero = miss != nullptr ? std::vector<int>{miss->choice.zero} : std::vector{3};
  if (kind == NearMissKind::host_states) in.base.options.optimizer_state_offload = states_on_host;
  if (kind == NearMissKind::more_gpus) in.gpus = miss != nullptr ? miss->gpus : 2 * in.gpus;
  return in;
}

PlanResult planned_by_form(const PlanInputs& in) { return test::planned(in, cluster(in.gpus / 8)); }

}  // namespace

TEST_CASE("a near miss fits, needs what it says, and nothing less of it would do") {
  std::map<NearMissKind, int> seen;
  for (const int gpus : {8, 16})
    for (const double gigabytes : {2.0, 2.6, 2.7, 2.8, 2.9, 3.0, 3.1, 3.2, 3.3, 3.4, 3.5, 4.0, 5.5}) {
      PlanInputs in = small(static_cast<std::int64_t>(gigabytes * 1e9));
      in.gpus = gpus;
      // Eight GPUs without stages; sixteen with little TP.
      (gpus == 8 ? in.space.pp : in.space.tp) = gpus == 8 ? std::vector<int>{1} : std::vector<int>{1, 2};
      in.space.recompute = {Recompute::full};
      in.space.zero = {0};
      in.base.host_bandwidth = Bandwidth(1e14);  // states are back before a forward of this small model is over
      const PlanResult p = planned_by_form(in);
      if (!p.ranked.empty()) {
        CHECK(p.near_misses.empty());
        continue;
      }
      for (const NearMissKind kind : near_miss_kinds) {
        const auto miss = std::ranges::find(p.near_misses, kind, &NearMiss::kind);
        INFO(gigabytes << " " << to_string(kind));
        if (miss == p.near_misses.end()) {
          CHECK(planned_by_form(changed(in, kind, nullptr)).feasible == 0);
          continue;
        }
        ++seen[kind];
        const PlanResult then = planned_by_form(changed(in, kind, &*miss));
        REQUIRE(then.feasible > 0);
        const auto least = std::ranges::min_element(then.ranked, {}, [](const auto& l) { return l.memory.peak(); });
        CHECK(least->memory.peak() == miss->memory.peak());
        CHECK(std::ranges::count(then.ranked, miss->choice, &PlannedLayout::choice) == 1);
        if (kind == NearMissKind::more_gpus && miss->gpus > 2 * in.gpus) {
          in.gpus = miss->gpus / 2;
          CHECK(planned_by_form(in).feasible == 0);
          in.gpus = gpus;
        }
      }
    }
  for (const NearMissKind kind : near_miss_kinds) {
    INFO(to_string(kind));
    CHECK(seen[kind] > 0);
  }
}

TEST_CASE("a plan that some layout fits has no near miss; where degrees are at fault it is the search of all") {
  CHECK(planned_by_form(small()).near_misses.empty());
  PlanInputs odd = small();
  odd.space.tp = {3};
  const PlanResult p = planned_by_form(odd);
  REQUIRE(p.ranked.empty());
  // Without --tp 3 many fit; no number of GPUs here is a multiple of three.
  REQUIRE(p.near_misses.size() == 1);
  CHECK(p.near_misses[0].kind == NearMissKind::all_values);
}

TEST_CASE("a near miss has as large a sharding group as was asked for, whatever the layouts before it could have") {
  int seen = 0;
  for (const double gigabytes : {3.2, 3.4, 3.6, 3.8, 4.0, 4.4, 4.8, 5.0}) {
    PlanInputs in = small(static_cast<std::int64_t>(gigabytes * 1e9));
    in.base.layout.dp_shard = 8;
    in.space.tp = {1, 2};
    in.space.pp = {1, 16};  // of one replica with TP 1, and no layout
    in.space.recompute = {Recompute::full};
    in.space.zero = {0};
    const PlanResult p = planned_by_form(in);
    const auto miss = std::ranges::find(p.near_misses, NearMissKind::zero, &NearMiss::kind);
    if (miss == p.near_misses.end()) continue;
    ++seen;
    const PlanResult then = planned_by_form(changed(in, NearMissKind::zero, &*miss));
    REQUIRE(then.feasible > 0);
    const auto least = std::ranges::min_element(then.ranked, {}, [](const auto& l) { return l.memory.peak(); });
    CHECK(least->memory.peak() == miss->memory.peak());
    CHECK(least->choice.dp == 8);
  }
  CHECK(seen > 3);
}

TEST_CASE("with no_sync the least is also looked for in one micro-batch, which needs no sum of gradients") {
  int of_one = 0;
  for (const double gigabytes : {2.6, 2.8, 3.0, 3.2, 3.4, 3.6, 3.8, 4.0}) {
    PlanInputs in = small(static_cast<std::int64_t>(gigabytes * 1e9));
    in.base.options.no_sync = true;
    in.base.options.zero = 3;
    in.space.tp = {1};
    in.space.pp = {1};
    in.space.recompute = {Recompute::full};
    in.space.zero = {1};
    const PlanResult p = planned_by_form(in);
    if (!p.ranked.empty()) continue;
    INFO(gigabytes);
    const auto miss = std::ranges::find(p.near_misses, NearMissKind::zero, &NearMiss::kind);
    const PlanResult then = planned_by_form(changed(in, NearMissKind::zero, nullptr));
    REQUIRE((miss != p.near_misses.end()) == (then.feasible > 0));
    if (miss == p.near_misses.end()) continue;
    const auto least = std::ranges::min_element(then.ranked, {}, [](const auto& l) { return l.memory.peak(); });
    CHECK(least->memory.peak() == miss->memory.peak());
    // 32 sequences over 16 replicas.
    of_one += miss->choice.micro_batch == 2 ? 1 : 0;
  }
  CHECK(of_one > 0);
}

TEST_CASE("where no degrees divide the nearest numbers of GPUs are offered: of a node any, else whole nodes") {
  int below = 0, above = 0;
  for (int gpus = 1; gpus <= 40; ++gpus) {
    PlanInputs in = small();
    const auto fits = [&](int count) {
      in.gpus = count;
      return planned(in, cluster(16)).feasible > 0;
    };
    in.gpus = gpus;
    const PlanResult p = planned(in, cluster(5));
    if (p.feasible > 0 || p.smallest) continue;
    INFO(gpus);
    for (const NearMiss& miss : p.near_misses) {
      CHECK(miss.kind == (miss.gpus < gpus ? NearMissKind::fewer_gpus : NearMissKind::more_gpus));
      CHECK(fits(miss.gpus));
      const int each = gpus < 8 || (gpus == 8 && miss.gpus < gpus) ? 1 : 8, towards = miss.gpus < gpus ? each : -each;
      CHECK(miss.gpus % each == 0);
      for (int between = miss.gpus + towards; towards > 0 ? between < gpus : between > gpus; between += towards)
        CHECK_FALSE(fits(between));
      ++(miss.gpus < gpus ? below : above);
    }
    CHECK(std::ranges::count(p.near_misses, NearMissKind::more_gpus, &NearMiss::kind) == 1);
  }
  CHECK(below > 10);
  CHECK(above > 10);
}

TEST_CASE("of one full node a part of it is offered") {
  PlanInputs in = small();
  in.base.batch.global_batch = 7;  // a replica or seven, of eight layers and heads in powers of two
  in.space.pp = {1};
  in.space.tp = {1};
  in.gpus = 8;
  const PlanResult node = planned_by_form(in);
  REQUIRE(node.ranked.empty());
  const auto seven = std::ranges::find(node.near_misses, NearMissKind::fewer_gpus, &NearMiss::kind);
  REQUIRE(seven != node.near_misses.end());
  CHECK(seven->gpus == 7);
}

TEST_CASE("a near miss of an order that is made for times says that its memory is a bound") {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::one_f_one_b, PipelineSchedule::zb_1p, PipelineSchedule::zb_2p}) {
    int seen = 0, compared = 0;
    for (const double gigabytes : {2.6, 3.0, 3.4, 4.0, 5.5}) {
      PlanInputs in = small(static_cast<std::int64_t>(gigabytes * 1e9));
      in.gpus = 8;
      in.base.layout.schedule = schedule;
      in.space.recompute = {Recompute::full};
      in.space.zero = {0};
      in.space.pp = {2};
      for (const NearMiss& miss : planned_by_form(in).near_misses) {
        ++seen;
        CHECK(miss.at_most == (schedule != PipelineSchedule::one_f_one_b));
        for (const PlannedLayout& layout : planned_by_form(changed(in, miss.kind, &miss)).ranked)
          if (layout.choice == miss.choice) {
            ++compared;
            CHECK(layout.memory.peak() <= miss.memory.peak());
          }
      }
    }
    INFO(to_string(schedule));
    CHECK(seen > 0);
    CHECK(compared > 0);
  }
}

TEST_CASE("the smallest that is rejected is a bound where its state alone is too much for an order made for times") {
  int bounds = 0, known = 0;
  for (const PipelineSchedule schedule :
       {PipelineSchedule::one_f_one_b, PipelineSchedule::zb_1p, PipelineSchedule::zb_2p})
    for (const double gigabytes : {0.2, 0.8, 1.6, 2.6}) {
      PlanInputs in = small(static_cast<std::int64_t>(gigabytes * 1e9));
      in.gpus = 8;
      in.base.layout.schedule = schedule;
      in.space.zero = {0};
      in.space.pp = {2};
      const std::optional<SmallestRejected> smallest = planned_by_form(in).smallest;
      if (!smallest) continue;
      CAPTURE(to_string(schedule), gigabytes);
      const bool before_times =
          schedule != PipelineSchedule::one_f_one_b && smallest->memory.state() > smallest->memory.capacity;
      CHECK(smallest->at_most == before_times);
      (smallest->at_most ? bounds : known) += 1;
    }
  CHECK(bounds > 0);
  CHECK(known > 0);
}

TEST_CASE("a near miss has the nodes that its GPUs fill, and says where these are more than there are") {
  PlanInputs in = small(2'600'000'000);
  in.gpus = 8;
  in.space.zero = {0};
  for (const int nodes : {1, 64}) {
    const PlanResult p = test::planned(in, cluster(nodes));
    REQUIRE(p.ranked.empty());
    REQUIRE(!p.near_misses.empty());
    for (const NearMiss& miss : p.near_misses) {
      CHECK(miss.nodes == miss.gpus / 8);
      CHECK(miss.more_nodes == (miss.nodes > nodes));
    }
    CHECK(p.near_misses.back().kind == NearMissKind::more_gpus);
    CHECK(p.near_misses.back().more_nodes == (nodes == 1));
  }
}

TEST_CASE("of a number of GPUs that splits little the nearest below on which a layout fits is offered beside more") {
  int below = 0;
  for (const int gpus : {3, 5, 6, 7})
    for (double gigabytes = 2.5; gigabytes < 6; gigabytes += 0.25) {
      PlanInputs in = small(static_cast<std::int64_t>(gigabytes * 1e9));
      in.base.batch.global_batch = 210;  // of which every one of these has its part
      in.space.zero = {0};
      in.space.recompute = {Recompute::full};
      const auto fits = [&](int count) {
        in.gpus = count;
        return planned(in, cluster(16)).feasible > 0;
      };
      in.gpus = gpus;
      const PlanResult p = planned(in, cluster(1));
      if (p.feasible > 0 || !p.smallest) continue;
      INFO(gpus << " GPUs of " << gigabytes << " GB");
      const auto miss = std::ranges::find(p.near_misses, NearMissKind::fewer_gpus, &NearMiss::kind);
      int nearest = gpus - 1;
      while (2 * nearest > gpus && !fits(nearest)) --nearest;
      REQUIRE((miss != p.near_misses.end()) == (2 * nearest > gpus));
      if (miss == p.near_misses.end()) continue;
      CHECK(miss->gpus == nearest);
      ++below;
    }
  CHECK(below > 3);
}

TEST_CASE("a layout that the order of ranks has no place for is rejected with the order that has") {
  PlanInputs in = small();
  in.base.layout.order = RankOrder::tp_pp_dp;
  in.space.cp = {2};
  const PlanResult p = planned(in, cluster(2));
  CHECK(std::ranges::any_of(p.rejected, [](const Rejection& r) {
    return r.reason == "cp 2 has no place in the order tp-pp-dp; use order: tp-cp-ep-dp-pp";
  }));
}
