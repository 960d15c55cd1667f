// The plan of a server beside brute force, and the laws of its search.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "collcast/base/units.hpp"
#include "collcast/planner/why.hpp"
#include "planner/families.hpp"
#include "planner/servers.hpp"
#include "small_plans.hpp"
#include "workload/inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

/// 8 layers of GQA for 16 GPUs, of which CUDA and NCCL take two to five gigabytes.
PlanInputs server(Serving serving = {16, 512, 32, 1, 2}, std::int64_t memory = 7'500'000'000) {
  PlanInputs in;
  in.base = inputs(small_model(), layout(1, 1, 1), serving.prompt_tokens, 1);
  in.base.serving = serving;
  in.base.options.optimizer = false;
  in.base.gpu.memory = Bytes(memory);
  in.gpus = 16;
  return in;
}

StepInputs step_of(const PlanInputs& in, const LayoutChoice& choice) {
  StepInputs step = in.base;
  put(choice, step);
  return step;
}

std::int64_t count_of(const PlanResult& p, const std::string& reason) {
  std::int64_t sum = 0;
  for (const Rejection& r : p.rejected)
    if (r.reason == reason) sum += r.count;
  return sum;
}

double tokens(const PlannedLayout& p) { return p.rates.tokens_per_s_per_gpu; }

}  // namespace

TEST_CASE("a server's plan is what forecasting every layout by itself finds") {
  const Fabric fabric = cluster(2);
  PlanInputs in = server();
  in.space.batch = {4, 12, 400};
  const PlanResult p = planned(in, fabric);

  std::map<LayoutChoice, StepResult> brute;
  std::int64_t too_large = 0, misfits = 0;
  for (int tp = 1; tp <= 16; tp *= 2)
    for (int pp = 1; tp * pp <= 16; pp *= 2)
      for (const int batch : {4, 12, 400})
        for (int micro_batch = 1; micro_batch <= batch; ++micro_batch) {
          if (batch % micro_batch != 0) continue;
          LayoutChoice choice{tp, pp, 16 / tp / pp, micro_batch};
          choice.batch = batch;
          const StepInputs step = step_of(in, choice);
          CHECK(step.serving->micro_batches == batch / micro_batch);
          if (!check_step(step, 16, here).empty()) {
            ++misfits;
            continue;
          }
          StepResult r = forecast_step(step, fabric, {}, Method::estimate).value();
          if (r.memory.fits())
            brute.emplace(choice, std::move(r));
          else
            ++too_large;
        }
  REQUIRE(brute.size() > 100);
  REQUIRE(too_large > 10);
  REQUIRE(misfits > 0);
  CHECK(p.feasible == std::ssize(brute));
  CHECK(rejected(p) == too_large + misfits);
  CHECK(p.evaluated == p.feasible + rejected(p));
  for (const PlannedLayout& l : p.ranked) {
    REQUIRE(brute.count(l.choice) == 1);
    const StepResult& r = brute.at(l.choice);
    CHECK(l.estimate.count() == Approx(r.step.count()).epsilon(1e-12));
    CHECK(l.server->times().ttft.count() == Approx(r.inference->prefill.time().count()).epsilon(1e-12));
    CHECK(l.server->times().tpot.count() == Approx(r.inference->decode.time().count()).epsilon(1e-12));
    CHECK(l.server->tokens_per_s == Approx(r.inference->tokens_per_s).epsilon(1e-12));
    CHECK(tokens(l) == Approx(r.tokens_per_s_per_gpu).epsilon(1e-12));
    CHECK(l.memory.peak() == r.memory.peak());
    CHECK(l.server->decode.total().count() == Approx(l.server->times().tpot.count()).epsilon(1e-9));
    CHECK(l.server->prefill.total().count() == Approx(l.server->times().ttft.count()).epsilon(1e-9));
  }
}

TEST_CASE("the first of a server's plan is the best by its objective of all that are run by themselves") {
  const Fabric fabric = cluster(2);
  using Figure = ServingObjective::Figure;
  const auto by = [](const ServingObjective& objective, const StepResult& r) {
    return objective.figure == Figure::tpot   ? -r.inference->decode.time().count()
           : objective.figure == Figure::ttft ? -r.inference->prefill.time().count()
                                              : r.tokens_per_s_per_gpu;
  };
  for (const ServingObjective& objective : {ServingObjective{}, {Figure::tpot}, {Figure::ttft}})
    for (const int simulate : {0, 1'000}) {
      PlanInputs in = server({8, 256, 9, 1, 2});
      in.objective = objective;
      const Method method = simulate > 0 ? Method::both : Method::estimate;
      const PlanResult p = planned(in, fabric, {1, simulate});
      double best = -1e300;
      for (int tp = 1; tp <= 16; tp *= 2)
        for (int pp = 1; tp * pp <= 16; pp *= 2)
          for (int micro_batch = 1; micro_batch <= 8; micro_batch *= 2) {
            LayoutChoice choice{tp, pp, 16 / tp / pp, micro_batch};
            choice.batch = 8;
            const StepInputs step = step_of(in, choice);
            if (!check_step(step, 16, here).empty()) continue;
            const StepResult r = forecast_step(step, fabric, {}, method).value();
            if (r.memory.fits()) best = std::max(best, by(objective, r));
          }
      INFO(to_string(objective) << ", simulated " << simulate);
      REQUIRE_FALSE(p.ranked.empty());
      const StepResult first = forecast_step(step_of(in, p.ranked.front().choice), fabric, {}, method).value();
      CHECK(by(objective, first) == Approx(best).epsilon(1e-12));
      for (const PlannedLayout& l : p.ranked) CHECK(l.simulate.has_value() == (simulate > 0));
    }
}

namespace {

/// With a run of requests; replicas of one stage.
PlanInputs server_with_load() {
  PlanInputs in = server({16, 256, 8, 1, 2, true, Batching::continuous}, 40'000'000'000);
  in.base.serving->load.emplace();
  in.space.batch = {4, 16, 64};
  return in;
}

double time_of_run(const PlannedLayout& l, const ServingObjective& objective) {
  const LoadTimes& load = l.server->load.value();
  return ((objective.figure == ServingObjective::Figure::tpot ? load.tpot : load.ttft).*objective.statistic->of)
      .count();
}

}  // namespace

TEST_CASE("every statistic of a run of requests ranks, in ascending order, and each layout's are what its step says") {
  const Fabric fabric = cluster(2);
  for (const ServingObjective& objective : serving_objectives()) {
    if (objective.statistic == nullptr) continue;
    PlanInputs in = server_with_load();
    in.objective = objective;
    const PlanResult p = planned(in, fabric);
    INFO(to_string(objective));
    REQUIRE(p.ranked.size() > 5);
    CHECK(std::ranges::is_sorted(p.ranked, {}, [&](const PlannedLayout& l) { return time_of_run(l, objective); }));
    const LoadTimes own = forecast_step(step_of(in, p.ranked.back().choice), fabric, {}, Method::estimate)
                              .value()
                              .inference->load.value();
    CHECK(p.ranked.back().server->load->ttft.p99.count() == Approx(own.ttft.p99.count()).epsilon(1e-12));
    CHECK(p.ranked.back().server->load->tpot.p50.count() == Approx(own.tpot.p50.count()).epsilon(1e-12));
  }
}

TEST_CASE("a limit on a percentile keeps the layouts within it, its own value too, and a tighter one never more") {
  const Fabric fabric = cluster(2);
  PlanInputs in = server_with_load();
  const PlanResult all = planned(in, fabric);
  for (const ServingObjective& by : serving_objectives()) {
    if (by.statistic == nullptr) continue;
    const std::string figure =
        fmt::format("{}.{}_s", by.figure == ServingObjective::Figure::tpot ? "tpot" : "ttft", by.statistic->name);
    std::vector<double> values;
    for (const PlannedLayout& l : all.ranked) values.push_back(time_of_run(l, by));
    std::ranges::sort(values);
    std::set<LayoutChoice> wider;
    for (const PlannedLayout& l : all.ranked) wider.insert(l.choice);
    for (const std::size_t i : {values.size() - 1, values.size() / 2, std::size_t{0}}) {
      in.limits = {{figure, values[i], here}};
      const PlanResult p = planned(in, fabric);
      INFO(figure << " at most " << values[i]);
      CHECK(p.feasible == std::ranges::count_if(values, [&](double v) { return v <= values[i]; }));
      std::set<LayoutChoice> kept;
      for (const PlannedLayout& l : p.ranked) kept.insert(l.choice);
      CHECK(std::ranges::includes(wider, kept));
      const std::string reason = fmt::format("{} is above its limit, {}", figure, format_seconds(Seconds(values[i])));
      CHECK(count_of(p, reason) == all.feasible - p.feasible);
      const auto rejected = std::ranges::find(p.rejected, reason, &Rejection::reason);
      const auto next = std::ranges::upper_bound(values, values[i]);
      REQUIRE((rejected == p.rejected.end()) == (next == values.end()));
      if (next != values.end()) CHECK(rejected->nearest.value().value == *next);
      wider = kept;
    }
  }
}

TEST_CASE("what is asked about says every limit that it breaks, and by what value") {
  const Fabric fabric = cluster(2);
  PlanInputs in = server_with_load();
  const ServingObjective by{ServingObjective::Figure::ttft, &time_statistics[3]};
  in.objective = by;
  const PlanResult all = planned(in, fabric);
  const PlannedLayout worst = all.ranked.back();
  in.limits = {{"ttft.p99_s", time_of_run(all.ranked.front(), by), here}, {"ttft.longest_s", 1e-6, here}};
  const Why told = why(in, fabric, worst.choice, all.ranked).value();
  REQUIRE(told.asked.objections.size() == 2);
  CHECK(told.asked.objections[0] == fmt::format("ttft.p99_s is {}, above its limit, {}",
                                                format_seconds(worst.server->load->ttft.p99),
                                                format_seconds(all.ranked.front().server->load->ttft.p99)));
  CHECK(told.asked.objections[1].starts_with("ttft.longest_s is "));
}

TEST_CASE("the Pareto set has what no other layout beats in TPOT and tokens/s per GPU, and nothing else") {
  const Fabric fabric = cluster(2);
  PlanInputs in = server();
  in.space.batch = {1, 4, 16, 64};
  for (const int simulate : {0, 8, 1'000}) {
    const PlanResult p = planned(in, fabric, {1, simulate});
    const auto tpot = [&](const PlannedLayout& l) {
      return simulate == 8 ? l.server->estimate.tpot : l.server->times().tpot;
    };
    std::set<LayoutChoice> front;
    for (const PlannedLayout& l : p.pareto) front.insert(l.choice);
    CHECK(front.size() > 3);
    if (simulate == 8) continue;
    for (const PlannedLayout& l : p.ranked) {
      const bool beaten = std::ranges::any_of(p.ranked, [&](const PlannedLayout& o) {
        return tpot(o) <= tpot(l) && tokens(o) >= tokens(l) && (tpot(o) < tpot(l) || tokens(o) > tokens(l));
      });
      if (front.contains(l.choice)) CHECK_FALSE(beaten);
      const bool twin = std::ranges::any_of(
          p.pareto, [&](const PlannedLayout& o) { return tpot(o) == tpot(l) && tokens(o) == tokens(l); });
      if (!beaten) CHECK(twin);
    }
  }
}

TEST_CASE("layouts that break a limit are rejected by its name, and the nearest is told where none keeps them") {
  const Fabric fabric = cluster(2);
  PlanInputs in = server();
  const PlanResult all = planned(in, fabric);
  const auto median = [&](auto figure) {
    std::vector<double> values;
    for (const PlannedLayout& l : all.ranked) values.push_back(figure(l));
    std::ranges::sort(values);
    return values[values.size() / 2];
  };
  const double ttft = median([](const PlannedLayout& l) { return l.server->times().ttft.count(); });
  in.limits = {{"ttft_s", ttft, here}, {"tokens_per_s", 1, here}};
  const PlanResult p = planned(in, fabric);
  CHECK(p.feasible == std::ranges::count_if(
                          all.ranked, [&](const PlannedLayout& l) { return l.server->times().ttft.count() <= ttft; }));
  CHECK(p.feasible < all.feasible);
  CHECK(p.evaluated == all.evaluated);
  for (const PlannedLayout& l : p.ranked) CHECK(l.server->times().ttft.count() <= ttft);
  std::int64_t by_limit = 0;
  for (const Rejection& r : p.rejected)
    if (r.reason.starts_with("ttft_s is above its limit, ")) by_limit += r.count;
  CHECK(by_limit == all.feasible - p.feasible);

  in.limits = {{"ttft_s", 1e-9, here}};
  const PlanResult none = planned(in, fabric);
  CHECK(none.ranked.empty());
  REQUIRE(none.nearest.has_value());
  double least = 1e300;
  for (const PlannedLayout& l : all.ranked) least = std::min(least, l.server->times().ttft.count());
  CHECK(none.nearest->layout.server->times().ttft.count() == least);
  CHECK(none.nearest->excess == Approx(least / 1e-9));
}

TEST_CASE("a limit that only the simulated times break rejects as well, and the counts still add up") {
  const Fabric fabric = cluster(2);
  PlanInputs in = server({8, 256, 9, 1, 2});
  const PlanResult all = planned(in, fabric, {1, 1'000});
  // Between closed form and simulation of a layout where the second is longer.
  const auto longer = std::ranges::find_if(all.ranked, [](const PlannedLayout& l) {
    return l.server->simulate->tpot > l.server->estimate.tpot * (1 + 1e-12);
  });
  REQUIRE(longer != all.ranked.end());
  in.limits = {{"tpot_s", (longer->server->simulate->tpot.count() + longer->server->estimate.tpot.count()) / 2, here}};
  const PlanResult p = planned(in, fabric, {1, 1'000});
  for (const PlannedLayout& l : p.ranked) CHECK(l.server->simulate->tpot.count() <= in.limits.front().limit);
  CHECK(std::ranges::find(p.ranked, longer->choice, &PlannedLayout::choice) == p.ranked.end());
  CHECK(p.feasible == std::ssize(p.ranked));
  CHECK(p.evaluated == p.feasible + rejected(p));
  for (const PlannedLayout& l : p.pareto)
    CHECK(std::ranges::find(p.ranked, l.choice, &PlannedLayout::choice) != p.ranked.end());
}

TEST_CASE("the Pareto set is of what is left where simulated times break a limit") {
  const Fabric fabric = cluster(2);
  PlanInputs in = server({8, 256, 9, 1, 2});
  in.space.batch = {1, 2, 4, 8, 16, 32};
  std::map<LayoutChoice, PlannedLayout> by_form;
  for (const PlannedLayout& l : planned(in, fabric).ranked) by_form.emplace(l.choice, l);
  using Figures = std::pair<double, double>;  // both are better when less
  const auto figures = [&](const LayoutChoice& choice) {
    const PlannedLayout& l = by_form.at(choice);
    return Figures(l.server->estimate.tpot.count(), -tokens(l));
  };
  const auto front = [](const std::set<Figures>& all) {
    std::set<Figures> best;
    for (const Figures& own : all)
      if (std::ranges::none_of(all, [&](const Figures& other) {
            return other != own && other.first <= own.first && other.second <= own.second;
          }))
        best.insert(own);
    return best;
  };
  int come_up = 0;  // that only what was rejected beats
  for (const PlannedLayout& l : planned(in, fabric, {1, 1'000}).ranked) {
    const double form = l.server->estimate.ttft.count(), simulated = l.server->simulate->ttft.count();
    if (simulated <= form * (1 + 1e-12)) continue;
    in.limits = {{"ttft_s", (form + simulated) / 2, here}};
    const PlanResult p = planned(in, fabric, {1, 3});
    if (std::ranges::all_of(p.ranked, [](const PlannedLayout& o) { return o.simulate.has_value(); })) continue;
    std::set<Figures> shown, left, before;
    for (const PlannedLayout& o : p.pareto) shown.insert(figures(o.choice));
    for (const PlannedLayout& o : p.ranked) left.insert(figures(o.choice));
    for (const auto& [choice, o] : by_form)
      if (o.server->estimate.ttft.count() <= in.limits.front().limit) before.insert(figures(choice));
    CHECK(shown == front(left));
    const std::set<Figures> best = front(before);
    come_up += static_cast<int>(std::ranges::count_if(shown, [&](const Figures& f) { return !best.contains(f); }));
  }
  CHECK(come_up > 0);
}

TEST_CASE("reasons say which part of a server's memory is too much") {
  const Fabric fabric = cluster(2);
  PlanInputs in = server();
  // Weights of one GPU are 0.4 GB, CUDA takes 1.6 GB.
  in.base.gpu.memory = Bytes(300'000'000);
  CHECK(count_of(planned(in, fabric), to_string(ObjectionKind::weights_do_not_fit)) > 0);
  in = server({2'000, 2'000, 32, 1, 2}, 6'000'000'000);
  CHECK(count_of(planned(in, fabric), to_string(ObjectionKind::cache_does_not_fit)) > 0);
  in = server({64, 4'000, 2, 1, 1}, 6'000'000'000);
  const PlanResult p = planned(in, fabric);
  CHECK(count_of(p, to_string(ObjectionKind::passes_do_not_fit)) > 0);
  REQUIRE(p.smallest.has_value());
  CHECK_FALSE(p.smallest->memory.fits());
}

TEST_CASE("experts are spread as far as ranks and experts allow, and split so that every rank has its part") {
  const Fabric fabric = cluster(2);
  PlanInputs in = server({16, 256, 8, 1, 2}, 40'000'000'000);
  in.base.model.experts = {8, 2, 1024};
  in.base.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.space.sequence_parallel = {false, true};
  const PlanResult p = planned(in, fabric);
  std::set<int> replicated, exchanged;
  for (const PlannedLayout& l : p.ranked) {
    const bool replicates = l.choice.tp > 1 && !l.choice.sequence_parallel;
    (replicates ? replicated : exchanged).insert(l.choice.ep);
    const StepInputs step = step_of(in, l.choice);
    if (replicates) CHECK(step.layout.ep * step.layout.expert_tp() == step.layout.tp);
    CHECK(check_step(step, 16, here).empty());
    const StepResult r = forecast_step(step, fabric, {}, Method::estimate).value();
    CHECK(l.estimate.count() == Approx(r.step.count()).epsilon(1e-12));
    CHECK(l.memory.peak() == r.memory.peak());
  }
  CHECK(replicated == std::set<int>{1, 2, 4, 8});
  CHECK(exchanged == std::set<int>{1, 2, 4, 8});
}

TEST_CASE("requests in flight have one stage and are not cut") {
  const Fabric fabric = cluster(2);
  PlanInputs in = server({16, 256, 8, 1, 2, true, Batching::continuous}, 40'000'000'000);
  const PlanResult p = planned(in, fabric);
  REQUIRE_FALSE(p.ranked.empty());
  for (const PlannedLayout& l : p.ranked) {
    CHECK(l.choice.pp == 1);
    CHECK(l.choice.micro_batch == 16);
  }
  CHECK(rejected(p) == 10);  // 15 layouts of tp x pp, of which 5 have one stage
}

TEST_CASE("a server's plan is the same with any number of threads, and partial when it is stopped") {
  const Fabric fabric = cluster(2);
  PlanInputs in = server();
  in.space.batch = {4, 16, 64};
  const PlanResult one = planned(in, fabric, {1, 8}), four = planned(in, fabric, {4, 8});
  REQUIRE(one.ranked.size() == four.ranked.size());
  for (std::size_t i = 0; i < one.ranked.size(); ++i) {
    CHECK(one.ranked[i].choice == four.ranked[i].choice);
    CHECK(one.ranked[i].step() == four.ranked[i].step());
  }
  int left = 40;
  PlanOptions stopped{1, 8};
  stopped.stop = [&] { return --left < 0; };
  const PlanResult part = planned(in, fabric, stopped);
  CHECK(part.partial);
  CHECK(part.evaluated < one.evaluated);
}

TEST_CASE("a server's layout stands beside the best with the reasons, whatever is asked") {
  const Fabric fabric = cluster(2);
  PlanInputs in = server();
  in.limits = {{"ttft_s", 10, here}};
  const PlanResult p = planned(in, fabric);
  const auto ask = [&](LayoutQuestion q) { return why(in, fabric, complete(q, p, in), p.ranked).value(); };
  LayoutQuestion q;
  q.tp = 4;
  q.pp = 4;
  const Why ranked = ask(q);
  CHECK(ranked.asked.choice.tp == 4);
  CHECK(ranked.asked.choice.pp == 4);
  CHECK(ranked.asked.choice.dp == 1);
  CHECK(ranked.asked.rank > 1);
  REQUIRE(ranked.asked.server.has_value());
  CHECK_FALSE(ranked.sentences.empty());
  q.tp = 3;
  q.pp.reset();
  CHECK(ask(q).asked.objections ==
        std::vector<std::string>{"tp 3 x pp 1 does not divide the 16 GPUs; nearest that does: tp 2 or 4"});
  q = {};
  q.batch = 30;
  q.micro_batch = 4;
  CHECK(ask(q).asked.objections == std::vector<std::string>{to_string(ObjectionKind::server_batch_does_not_divide)});
  // Of a product of more than 32 bits the third degree is one.
  q = {};
  q.tp = q.dp = 65'536;
  CHECK(ask(q).asked.choice.pp == 1);
  CHECK_FALSE(ask(q).asked.objections.empty());
  q = {};
  q.batch = 2'000;
  CHECK_FALSE(ask(q).asked.objections.empty());
  const PlannedLayout& last = p.ranked.back();
  in.limits = {{"ttft_s", last.server->times().ttft.count() / 2, here}};
  const std::vector<std::string> said = why(in, fabric, last.choice, p.ranked).value().asked.objections;
  REQUIRE(said.size() == 1);
  CHECK_THAT(said.front(), Catch::StartsWith("ttft_s is ") && Catch::Contains(", above its limit, "));
}

TEST_CASE("degrees of a server that are not the GPUs are rejected as those of training are") {
  const Fabric fabric = cluster(2);
  PlanInputs in = server();
  in.space.tp = {2, 3};
  in.space.pp = {1};
  in.space.dp = {8, 4};
  const PlanResult p = planned(in, fabric);
  CHECK(count_of(p, to_string(ObjectionKind::degrees_are_not_gpus)) == 3);  // 2 x 4, 3 x 8, 3 x 4
  for (const PlannedLayout& l : p.ranked) CHECK((l.choice.tp == 2 && l.choice.dp == 8));
}

TEST_CASE("a server of which no layout holds the batch is told the largest that one does") {
  const Fabric fabric = cluster(2);
  for (const std::vector<int>& asked : {std::vector<int>{}, {80'000, 50'000}}) {
    PlanInputs in = server({100'000, 512, 32, 1, 2});
    in.space.batch = asked;
    const PlanResult p = planned(in, fabric);
    REQUIRE(p.ranked.empty());
    const auto miss = std::ranges::find(p.near_misses, NearMissKind::smaller_batch, &NearMiss::kind);
    REQUIRE(miss != p.near_misses.end());
    const int batch = miss->choice.batch;
    CHECK(batch < 50'000);
    in.space.batch = {batch};
    const PlanResult then = planned(in, fabric);
    REQUIRE(then.feasible > 0);
    CHECK(std::ranges::count(then.ranked, miss->choice, &PlannedLayout::choice) == 1);
    in.space.batch = {batch + 1};
    CHECK(planned(in, fabric).feasible == 0);
  }
}

TEST_CASE("the batch and the GPUs that would fit are told of servers with sequence parallelism, too") {
  const Fabric fabric = cluster(2);
  struct Case {
    std::vector<int> tp, micro_batch;
    std::vector<bool> sequence_parallel;
  };
  const auto of = [](const PlanResult& p, NearMissKind kind) {
    return std::ranges::find(p.near_misses, kind, &NearMiss::kind);
  };
  // Of TP 8 alone; of unlike multiples beside each other; of micro-batches that were asked for, of which 12 can be
  // split over TP 4 and 2.
  for (const Case& c : {Case{{8}, {}, {true}}, Case{{4, 8}, {}, {true}}, Case{{2, 8}, {}, {false, true}},
                        Case{{2, 4, 8}, {12, 5}, {true}}}) {
    PlanInputs in = server({1920, 2048, 32, 1, 2});
    in.space.tp = c.tp;
    in.space.micro_batch = c.micro_batch;
    in.space.sequence_parallel = c.sequence_parallel;
    const PlanResult p = planned(in, fabric);
    CAPTURE(c.tp, c.micro_batch, c.sequence_parallel);
    REQUIRE(p.ranked.empty());
    const auto smaller = of(p, NearMissKind::smaller_batch), more = of(p, NearMissKind::more_gpus);
    REQUIRE(smaller != p.near_misses.end());
    REQUIRE(more != p.near_misses.end());
    const int batch = smaller->choice.batch, gpus = more->gpus;
    const auto feasible = [&](int sequences) {
      PlanInputs then = in;
      then.space.batch = {sequences};
      return planned(then, fabric).feasible;
    };
    CHECK(feasible(batch) > 0);
    for (int above = batch + 1; above <= batch + 24; ++above) CHECK(feasible(above) == 0);
    in.gpus = gpus;
    const PlanResult then = planned(in, cluster(gpus / 8));
    CHECK(then.feasible > 0);
    CHECK(std::ranges::count(then.ranked, more->choice, &PlannedLayout::choice) == 1);
    in.gpus = gpus / 2;
    CHECK((in.gpus <= 16 || planned(in, cluster(gpus / 16)).feasible == 0));
  }
}

TEST_CASE("of a server with experts degrees are asked for whose product is more than 32 bits hold") {
  const Fabric fabric = cluster(2);
  PlanInputs in = server({16, 512, 32, 1, 2}, 40'000'000'000);
  in.base.model = small_experts();
  in.base.layout.sequence_parallel = true;
  in.base.layout.etp = 1;
  const PlanResult p = planned(in, fabric);
  REQUIRE_FALSE(p.ranked.empty());
  LayoutQuestion q;
  q.tp = q.dp = 65'536;
  const LayoutChoice asked = complete(q, p, in);
  CHECK(asked.pp == 1);
  CHECK(asked.ep >= 1);
  CHECK_FALSE(why(in, fabric, asked, p.ranked).value().asked.objections.empty());
}
