// A user's own pipeline schedule: the order of a built-in one given back is that one to the picosecond; any order that
// can be gone through is, by formula as on the timeline; what cannot is refused, and it alone.
#include "collcast/workload/own_schedule.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <regex>
#include <set>

#include "collcast/workload/search.hpp"
#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/memory/memory.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

constexpr std::array fixed{PipelineSchedule::gpipe,     PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved,
                           PipelineSchedule::zb_h1,     PipelineSchedule::zb_h2,       PipelineSchedule::zb_v,
                           PipelineSchedule::dualpipe_v};

/// Stage and turn as line and column, lines from 1 on.
Location spot(std::size_t stage, std::optional<std::size_t> turn) {
  return {"o", static_cast<int>(stage) + 1, turn ? static_cast<int>(*turn) : -1};
}
std::string wrong_with(const OwnSchedule& own) {
  std::string out;
  for (const Diagnostic& d : check_order(own, spot))
    out +=
        std::to_string(d.where.line) + ":" + std::to_string(d.where.column) + " " + d.message + " | " + d.hint + "\n";
  return out;
}

/// "F0 F1.1 B0+..." as turns, one stage a string.
OwnSchedule given(int micro_batches, int chunks, bool in_v, const std::vector<std::string>& stages) {
  OwnSchedule own;
  own.name = "mine";
  own.micro_batches = micro_batches;
  own.chunks = chunks;
  own.in_v = in_v;
  for (const std::string& stage : stages) {
    std::vector<Turn>& order = own.orders.emplace_back();
    for (std::size_t at = 0; at < stage.size();) {
      Turn turn;
      if (stage.compare(at, 2, "BW") == 0) {
        turn.backward = turn.whole = true;
        ++at;
      } else {
        turn.backward = stage[at] != 'F';
        turn.weights = stage[at] == 'W';
      }
      turn.micro_batch = stage[++at] - '0';
      if (++at < stage.size() && stage[at] == '.') {
        turn.chunk = stage[at + 1] - '0';
        at += 2;
      }
      turn.with_next = at < stage.size() && stage[at] == '+';
      ++at;
      order.push_back(turn);
    }
  }
  return own;
}

StepInputs with_order(StepInputs in, OwnSchedule own) {
  in.layout.schedule = own.kind();
  if (!own.in_v) in.layout.vpp = own.chunks;
  in.layout.own = std::make_shared<const OwnSchedule>(std::move(own));
  return in;
}

/// An order that some run of the stages makes: whoever is drawn does one of the turns that it can.
OwnSchedule random_order(std::mt19937& random, int p, int chunks, bool in_v, int m, bool splits, bool mixed) {
  const auto dice = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  OwnSchedule own;
  own.name = "drawn";
  own.micro_batches = m;
  own.chunks = chunks;
  own.in_v = in_v;
  own.orders.resize(static_cast<std::size_t>(p));
  const int slices = p * chunks;
  const auto slice = [&](int stage, int chunk) {
    return in_v ? (chunk == 0 ? stage : 2 * p - 1 - stage) : chunk * p + stage;
  };
  // Of a micro-batch in a slice: 0 nothing, 1 forward, 2 backward too, 3 weight gradients too.
  std::vector<std::vector<int>> state(static_cast<std::size_t>(slices), std::vector<int>(static_cast<std::size_t>(m)));
  const auto of = [&](int s, int k) -> int& { return state[static_cast<std::size_t>(s)][static_cast<std::size_t>(k)]; };
  for (int left = slices * m; left > 0;) {
    const int i = dice(p);
    std::vector<Turn> can;
    for (int c = 0; c < chunks; ++c)
      for (int k = 0; k < m; ++k) {
        const int s = slice(i, c), at = of(s, k);
        if (at == 0 && (s == 0 || of(s - 1, k) >= 1)) can.push_back({false, k, c});
        if (at == 1 && (s + 1 == slices || of(s + 1, k) >= 2)) can.push_back({true, k, c});
        if (at == 2 && splits) can.push_back({true, k, c, true});
      }
    if (can.empty()) continue;
    Turn turn = can[static_cast<std::size_t>(dice(static_cast<int>(can.size())))];
    int& at = of(slice(i, turn.chunk), turn.micro_batch);
    turn.whole = splits && mixed && turn.backward && !turn.weights && dice(3) == 0;
    at = !turn.backward ? 1 : turn.weights || turn.whole || !splits ? 3 : 2;
    if (at == 3) --left;
    own.orders[static_cast<std::size_t>(i)].push_back(turn);
  }
  return own;
}

/// The order with what a hint says done to it: "move B0 of stage 1 (o:2:2) in front of its F1, write F2 of ...".
OwnSchedule followed(OwnSchedule own, const std::string& hint) {
  static const std::regex step(
      R"((move|write) (\S+) of stage (\d+) \(o:\d+:\d+\) (in front of its (\S+?)(,|\n|$)|and its \S+ one after))");
  for (std::sregex_iterator at(hint.begin(), hint.end(), step), end; at != end; ++at) {
    std::vector<Turn>& order = own.orders[std::stoul((*at)[3])];
    const auto find = [&](const std::string& name) {
      return std::find_if(order.begin(), order.end(), [&](const Turn& t) { return to_text(t, own.chunks) == name; });
    };
    const auto turn = find((*at)[2]);
    REQUIRE(turn != order.end());
    if ((*at)[1] == "move") {
      if (turn != order.begin() && !turn->with_next) std::prev(turn)->with_next = false;
      Turn alone = *turn;
      alone.with_next = false;
      order.erase(turn);
      const auto to = find((*at)[5]);
      REQUIRE(to != order.end());
      order.insert(to, alone);
    } else {
      REQUIRE(turn->with_next);
      turn->with_next = false;
    }
  }
  return own;
}

}  // namespace

TEST_CASE("the order of a built-in schedule, given back, has its step to the picosecond and its memory to the byte") {
  const Fabric fabric = cluster(8);
  std::mt19937 random(20270101);
  const auto dice = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  std::set<PipelineSchedule> seen;
  int cases = 0;
  while (cases < 120) {
    StepInputs in = inputs(small_model(), layout(1 << dice(2), 1 << dice(3), 1 << dice(2)), 512, 1 + dice(12));
    in.layout.schedule = fixed[static_cast<std::size_t>(dice(static_cast<int>(fixed.size())))];
    in.layout.order = RankOrder::tp_cp_ep_dp_pp;
    if (in.layout.schedule == PipelineSchedule::interleaved) in.layout.vpp = 1 << dice(2);
    in.layout.sequence_parallel = in.layout.tp > 1;
    in.model.layers = 8;
    in.model.dropout = dice(2) * 0.1;
    draw_options(in, dice(3) == 0, dice);
    // An order says nothing of gradients, which its stages reduce each for itself.
    in.options.align_grad_reduce = false;
    if (!check_step(in, fabric.rank_count(), {}).empty()) continue;
    ++cases;
    seen.insert(in.layout.schedule);
    CAPTURE(cases, to_string(in.layout.schedule), in.layout.pp, in.layout.vpp, in.options.overlap_pp,
            in.options.overlap_dp);
    const OwnSchedule order = order_of_work(in, fabric, {}, Method::both).value();
    CHECK(wrong_with(order) == "");
    const StepInputs own = with_order(in, order);
    REQUIRE(to_text(check_step(own, fabric.rank_count(), {})) == "");
    const StepResult was = forecast_step(in, fabric, {}, Method::both).value();
    const StepResult is = forecast_step(own, fabric, {}, Method::both).value();
    CHECK(is.step == was.step);
    CHECK(is.estimate.count() == Approx(was.estimate.count()).epsilon(1e-9));
    CHECK(is.breakdown.compute == was.breakdown.compute);
    CHECK(is.breakdown.dp_exposed == was.breakdown.dp_exposed);
    CHECK(is.breakdown.bubble.count() == Approx(was.breakdown.bubble.count()).margin(1e-9 * was.step.count()));
    for (std::size_t i = 0; i < was.memory_by_stage.size(); ++i) {
      CHECK(is.memory_by_stage[i].peak() == was.memory_by_stage[i].peak());
      CHECK(is.memory_by_stage[i].activations == was.memory_by_stage[i].activations);
    }
    CHECK(is.memory.peak() == was.memory.peak());
  }
  CHECK(seen.size() == fixed.size());
}

TEST_CASE("an order given back gathers and reduces what the built-in schedule does, whatever is split") {
  const Fabric fabric = cluster(8);
  for (const PipelineSchedule schedule : fixed)
    for (const int pp : {1, 2})
      for (const int micro_batches : {1, 2, 4})
        for (const bool reshard : {true, false})
          for (const bool no_sync : {true, false}) {
            StepInputs in = inputs(small_model(), layout(1, pp, 2), 512, 2 * micro_batches);
            in.batch.micro_batch = 1;
            in.batch.global_batch = 2 * micro_batches;
            in.layout.schedule = schedule;
            in.options.zero = 3;
            in.options.reshard_after_forward = reshard;
            in.options.no_sync = no_sync;
            if (!check_step(in, fabric.rank_count(), {}).empty()) continue;
            // All backwards of this one are whole, so that what is written says of none that it is.
            if (schedule == PipelineSchedule::dualpipe_v && pp == 1 && micro_batches == 1) continue;
            CAPTURE(to_string(schedule), pp, micro_batches, reshard, no_sync);
            const StepInputs own = with_order(in, order_of_work(in, fabric, {}, Method::both).value());
            const StepResult was = forecast_step(in, fabric, {}, Method::both).value();
            const StepResult is = forecast_step(own, fabric, {}, Method::both).value();
            CHECK(is.step == was.step);
            CHECK(is.estimate.count() == Approx(was.estimate.count()).epsilon(1e-9));
            CHECK(is.memory.peak() == was.memory.peak());
            const auto counts = [](const StepResult& r) {
              std::vector<std::int64_t> out;
              for (const CollectiveCost& c : r.collectives) out.push_back(c.count);
              return out;
            };
            CHECK(counts(is) == counts(was));
          }
}

TEST_CASE("an order that was made for times has the same step and the same memory") {
  const Fabric fabric = cluster(4);
  for (const PipelineSchedule schedule : {PipelineSchedule::zb_1p, PipelineSchedule::zb_2p}) {
    StepInputs in = inputs(small_model(), layout(2, 4, 2), 512, 12);
    in.layout.schedule = schedule;
    const StepResult was = forecast_step(in, fabric, {}, Method::both).value();
    const StepInputs own = with_order(in, order_of_work(in, fabric, {}, Method::both).value());
    const StepResult is = forecast_step(own, fabric, {}, Method::both).value();
    CHECK(is.step == was.step);
    CHECK(is.estimate.count() == Approx(was.estimate.count()).epsilon(1e-9));
    for (std::size_t i = 0; i < was.memory_by_stage.size(); ++i)
      CHECK(is.memory_by_stage[i].peak() == was.memory_by_stage[i].peak());
  }
}

TEST_CASE("a built-in order in which every backward is whole has none that is called so") {
  // DualPipeV of one micro-batch on one stage: F0.0 F0.1 B0.1 B0.0, nothing left for later.
  const Fabric fabric = cluster(1);
  StepInputs in = inputs(small_model(), layout(2, 1, 2), 512, 1);
  in.layout.schedule = PipelineSchedule::dualpipe_v;
  in.batch.global_batch = in.batch.micro_batch * in.layout.dp;
  in.options.bucket = Bytes(40'000'000);
  REQUIRE(to_text(check_step(in, fabric.rank_count(), {})) == "");
  const OwnSchedule order = order_of_work(in, fabric, {}, Method::both).value();
  CHECK(order.micro_batches == 1);
  CHECK_FALSE((order.splits() || order.has_whole()));
  const StepResult was = forecast_step(in, fabric, {}, Method::both).value();
  const StepResult is = forecast_step(with_order(in, order), fabric, {}, Method::both).value();
  CHECK(is.step == was.step);
  CHECK(is.breakdown.dp_exposed == was.breakdown.dp_exposed);
}

TEST_CASE("orders have the same digest where they are the same, and only there") {
  OwnSchedule one;
  one.name = "one";
  one.micro_batches = 2;
  one.orders = {{{false, 0}, {false, 1}, {true, 0}, {true, 1}}};
  OwnSchedule same = one, other = one, more = one;
  same.name = "same";
  std::swap(other.orders[0][0], other.orders[0][1]);
  more.orders.push_back({});
  CHECK(digest(same) == digest(one));
  CHECK(digest(other) != digest(one));
  CHECK(digest(more) != digest(one));
}

TEST_CASE("any order, stages and transfers that differ: the closed form is the timeline") {
  std::mt19937 random(20270102);
  const auto dice = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  for (int n = 0; n < 300; ++n) {
    const int p = 1 + dice(4), m = 1 + dice(5);
    const bool in_v = dice(3) == 0, splits = dice(2) == 0;
    const int chunks = in_v ? 2 : p > 1 ? 1 + dice(3) : 1;
    const OwnSchedule own = random_order(random, p, chunks, in_v, m, splits, dice(2) == 0);
    REQUIRE(wrong_with(own) == "");
    ChunkedStages stages{p, chunks, {}, {}, dice(4) == 0};
    for (int c = 0; c < p * chunks; ++c)
      stages.times.push_back({Seconds(1e-3 * (1 + dice(9))), Seconds(1e-3 * (1 + dice(9))),
                              own.splits() ? Seconds(1e-3 * dice(9)) : Seconds{}});
    const int ways = !in_v && chunks > 1 ? p : p - 1;
    for (int i = 0; i < ways; ++i) stages.transfer.push_back(Seconds(1e-4 * dice(30)));
    StepPlan plan = plan_of_chunks(own.kind(), stages, m);
    plan.own_orders = own.orders;
    plan.overlap_dp = dice(4) > 0;
    for (StagePlan& stage : plan.stages) stage.buckets.push_back({0, Seconds(1e-3 * dice(20))});
    CAPTURE(n, p, m, chunks, in_v, splits, plan.overlap_pp, plan.overlap_dp);
    CHECK(estimate_step(plan).total.count() == Approx(simulated(plan).count()).epsilon(1e-9));
  }
}

TEST_CASE("orders in which stages wait for each other are refused, and no others, and their hints make them run") {
  std::mt19937 random(20270103);
  const auto dice = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  int stuck = 0, several = 0;
  for (int n = 0; n < 400; ++n) {
    const int p = 2 + dice(3), m = 1 + dice(4);
    const bool in_v = dice(2) == 0;
    const int chunks = in_v ? 2 : 1 + dice(2);
    OwnSchedule own = random_order(random, p, chunks, in_v, m, false, false);
    // Two neighbours in one stage change places: F and B of the same micro-batch and chunk may not.
    std::vector<Turn>& order = own.orders[static_cast<std::size_t>(dice(p))];
    for (int swaps = 1 + dice(3); swaps > 0; --swaps) {
      const auto at = static_cast<std::size_t>(dice(static_cast<int>(order.size()) - 1));
      if (order[at].micro_batch == order[at + 1].micro_batch && order[at].chunk == order[at + 1].chunk) continue;
      std::swap(order[at], order[at + 1]);
    }
    // An oracle of its own: turns are taken off a list as long as what they need has been.
    std::set<std::tuple<bool, int, int>> done;  // backward, slice, micro-batch
    std::vector<std::size_t> next(own.orders.size());
    for (bool more = true; more;) {
      more = false;
      for (int i = 0; i < p; ++i) {
        const std::vector<Turn>& of = own.orders[static_cast<std::size_t>(i)];
        std::size_t& at = next[static_cast<std::size_t>(i)];
        if (at == of.size()) continue;
        const Turn& t = of[at];
        const int slice = in_v && t.chunk == 1 ? 2 * p - 1 - i : t.chunk * p + i;
        const int needs = t.backward ? slice + 1 : slice - 1;
        if (needs >= 0 && needs < p * chunks && done.count({t.backward, needs, t.micro_batch}) == 0) continue;
        done.insert({t.backward, slice, t.micro_batch});
        ++at;
        more = true;
      }
    }
    const bool runs = done.size() == static_cast<std::size_t>(2 * p * chunks * m);
    CAPTURE(n, p, m, chunks, in_v);
    const std::string wrong = wrong_with(own);
    CHECK((wrong == "") == runs);
    stuck += runs ? 0 : 1;
    if (runs || wrong.find("no stage can go on") == std::string::npos) continue;
    INFO(wrong);
    CHECK(wrong_with(followed(own, check_order(own, spot).front().hint)) == "");
    several += wrong.find("several turns") == std::string::npos ? 0 : 1;
  }
  CHECK(stuck > 50);
  CHECK(stuck < 350);
  CHECK(several > 5);
}

TEST_CASE("each stage does every forward, backward and weight gradient once and in order") {
  const std::string good = "F0 F1 B0 B1";
  CHECK(wrong_with(given(2, 1, false, {good, good})) == "");
  CHECK(wrong_with(given(2, 1, false, {good, "F0 B0 F1 B1 B0"})) ==
        "2:4 stage 1, B0 is there already (o:2:1) | expected each once: remove one of them\n");
  CHECK(wrong_with(given(2, 1, false, {"F0 B0 F1", good})) ==
        "1:-1 stage 0 never does B1 | expected forward and backward of 2 micro-batches\n");
  CHECK(wrong_with(given(2, 1, false, {"F0 B1 F1 B0", good})) ==
        "1:1 stage 0, B1 comes before F1 (o:1:2) | move it behind F1, whose result it needs\n");
  CHECK(wrong_with(given(2, 1, false, {"F0 F1 B0 B1 F2", good})) ==
        "1:4 stage 0, F2: there is no micro-batch 2 | expected 0 to 1, as the schedule is for 2 micro-batches\n");
  CHECK(wrong_with(given(2, 1, false, {"F0 F1.1 B0 B1 F1", good})) ==
        "1:1 stage 0, F1: there is no chunk 1 | expected none, as a stage has one chunk; or say how many 'chunks' "
        "there are\n1:3 stage 0, B1 comes before F1 (o:1:4) | move it behind F1, whose result it needs\n");
  // Weight gradients, where there are any: of every backward that is not whole, behind it.
  CHECK(wrong_with(given(2, 1, false, {"F0 F1 B0 W0 BW1", "F0 BW0 F1 B1 W1"})) == "");
  CHECK(wrong_with(given(2, 1, false, {"F0 F1 B0 W0 B1", "F0 B0 F1 B1 W1 W0"})) ==
        "1:-1 stage 0 never does W1 | expected weight gradients of every backward; one that has them itself is written "
        "BW0\n");
  CHECK(wrong_with(given(1, 1, false, {"F0 W0 B0"})) ==
        "1:1 stage 0, W0 comes before B0 (o:1:2) | move it behind B0, whose result it needs\n");
  CHECK(wrong_with(given(1, 1, false, {"F0 BW0 W0"})) ==
        "1:2 stage 0, W0: BW0 (o:1:1) has these weight gradients already | write B0 there, or remove this one\n");
  // Two that go together.
  CHECK(wrong_with(given(2, 1, false, {"F0 F1+B0 B1"})) == "");
  CHECK(
      wrong_with(given(1, 1, false, {"F0+B0"})) ==
      "1:1 stage 0, B0 is together with its own forward, for which it waits | expected two different micro-batches or "
      "chunks\n");
  // All at once, and long lists in short.
  CHECK(wrong_with(given(9, 1, false, {"F0 B0", ""})) ==
        "1:-1 stage 0 never does F1, F2, F3, F4, F5, F6 and more | expected forward and backward of 9 micro-batches\n"
        "1:-1 stage 0 never does B1, B2, B3, B4, B5, B6 and more | expected forward and backward of 9 micro-batches\n"
        "2:-1 stage 1 never does F0, F1, F2, F3, F4, F5 and more | expected forward and backward of 9 micro-batches\n"
        "2:-1 stage 1 never does B0, B1, B2, B3, B4, B5 and more | expected forward and backward of 9 micro-batches\n");
}

TEST_CASE("of stages that wait for each other the circle is told, once") {
  // Stage 0 waits for the gradient of 0 before it sends 1, stage 1 for 1 before it goes back with 0.
  CHECK(
      wrong_with(given(2, 1, false, {"F0 B0 F1 B1", "F0 F1 B0 B1"})) ==
      "1:1 no stage can go on: stage 0 at B0 waits for B0 of stage 1, stage 1 at F1 waits for F1 of stage 0 | move B0 "
      "of stage 1 (o:2:2) in front of its F1\n");
  // The last stage of a V waits for itself; stage 0, which waits for it, is no part of the circle.
  CHECK(wrong_with(given(1, 2, true, {"F0.0 F0.1 B0.1 B0.0", "F0.1 F0.0 B0.1 B0.0"})) ==
        "2:0 no stage can go on: stage 1 at F0.1 waits for F0.0 of stage 1 | move F0.0 of stage 1 (o:2:1) in front of "
        "its F0.1\n");
  // A pair begins when both have their input.
  CHECK(
      wrong_with(given(2, 1, false, {"F0 F1+B0 B1", "F0 F1 B0 B1"})) ==
      "1:2 no stage can go on: stage 0 at B0 waits for B0 of stage 1, stage 1 at F1 waits for F1 of stage 0 | move B0 "
      "of stage 1 (o:2:2) in front of its F1\n");
  // Stage 1 has its backwards and its forwards the wrong way round: with B0 in front of F1 it would wait at F1 still.
  CHECK(
      wrong_with(given(3, 1, false, {"F0 B0 F1 B1 F2 B2", "F0 F1 F2 B0 B1 B2"})) ==
      "1:1 no stage can go on: stage 0 at B0 waits for B0 of stage 1, stage 1 at F1 waits for F1 of stage 0 | several "
      "turns wait for each other: move B0 of stage 1 (o:2:3) in front of its F1, move B1 of stage 1 (o:2:4) in front "
      "of its F2\n");
  // Of a pair one half waits for what waits for the other.
  CHECK(
      wrong_with(given(1, 2, true, {"F0.0 F0.1+B0.0 B0.1"})) ==
      "1:2 no stage can go on: stage 0 at B0.0 waits for B0.1 of stage 0 | several turns wait for each other: write "
      "F0.1 of stage 0 (o:1:1) and its B0.0 one after the other, move B0.1 of stage 0 (o:1:3) in front of its B0.0\n");
}

TEST_CASE("a schedule of one's own is for its stages, chunks and micro-batches") {
  const auto wrong = [](int pp, int m, int vpp, const OwnSchedule& own) {
    StepInputs in = with_order(inputs(small_model(), layout(1, pp, 1), 512, m), own);
    if (vpp > 0) in.layout.vpp = vpp;
    return to_text(check_step(in, 64, {}));
  };
  const OwnSchedule two = given(2, 1, false, {"F0 F1 B0 B1", "F0 B0 F1 B1"});
  CHECK(wrong(2, 2, 0, two) == "");
  CHECK(wrong(4, 2, 0, two).find("schedule 'mine' is for 2 pipeline stages; pp is 4") != std::string::npos);
  CHECK(wrong(2, 3, 0, two).find("schedule 'mine' is for 2 micro-batches; global_batch 6 makes 3") !=
        std::string::npos);
  CHECK(wrong(2, 2, 2, two).find("vpp 2 is not what schedule 'mine' is for, 1 chunk a stage") != std::string::npos);
  CHECK(wrong(1, 1, 0, given(1, 2, false, {"F0.0 F0.1 B0.1 B0.0"})).find("needs at least 2 pipeline stages") !=
        std::string::npos);
}

TEST_CASE("a stage holds what its order holds where that is most") {
  // Stage 0 sends all four forward before the first comes back, stage 1 goes back at once.
  const OwnSchedule own = given(4, 1, false, {"F0 F1 F2 F3 B0 B1 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3"});
  const StepInputs in = with_order(inputs(small_model(), layout(1, 2, 1), 512, 4), own);
  CHECK(memory_terms(in, 0).in_flight == 4);
  CHECK(memory_terms(in, 1).in_flight == 1);
  CHECK(peak_memory(in, 8).peak() == std::max(stage_memory(in, 0, 8).peak(), stage_memory(in, 1, 8).peak()));
  // Weight gradients of all that wait.
  const OwnSchedule late = given(3, 1, false, {"F0 B0 F1 B1 F2 B2 W0 W1 W2"});
  const MemoryTerms terms = memory_terms(with_order(inputs(small_model(), layout(1, 1, 1), 512, 3), late), 0);
  CHECK(terms.in_flight == 1);
  CHECK(terms.waiting == 2);
}
