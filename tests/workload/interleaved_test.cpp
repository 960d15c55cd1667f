// Interleaved 1F1B: its order, and that timeline, closed form and memory follow from it.
#include "workload/schedules/interleaved.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "collcast/workload/search.hpp"
#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/memory/memory.hpp"
#include "workload/timeline.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

/// Stages with one unit a chunk.
StepPlan plan_of(const ChunkedStages& stages, int micro_batches) {
  StepPlan plan;
  plan.schedule = PipelineSchedule::interleaved;
  plan.micro_batches = micro_batches;
  plan.chunks = stages.chunks;
  plan.overlap_pp = !stages.blocking;
  plan.transfer = stages.transfer;
  for (int i = 0; i < stages.stages; ++i) {
    StagePlan stage;
    stage.rank = Rank(static_cast<std::uint32_t>(i));
    for (int c = 0; c < stages.chunks; ++c) {
      const StageTime time = stages.of(i, c);
      stage.units.push_back({UnitKind::layer, "L", stage.works.size(), c});
      stage.works.push_back({{{"all", Category::forward, time.forward}}, {{"all", Category::backward, time.backward}}});
    }
    plan.stages.push_back(stage);
  }
  return plan;
}

ChunkedStages equal_chunks(int p, int v, double f, double b, double c) {
  ChunkedStages stages{p, v, {}, {}, false};
  stages.times.assign(static_cast<std::size_t>(p * v), {Seconds(f), Seconds(b)});
  stages.transfer.assign(static_cast<std::size_t>(v > 1 ? p : p - 1), Seconds(c));
  return stages;
}

Seconds one_f_one_b(int p, int m, double f, double b, double c) {
  const std::vector<StageTime> stages(static_cast<std::size_t>(p), {Seconds(f), Seconds(b)});
  const std::vector<Seconds> transfer(static_cast<std::size_t>(p - 1), Seconds(c));
  return pipeline_terms(PipelineSchedule::one_f_one_b, stages, transfer, m).total();
}

/// The most forwards that wait for their backward at once.
int most_held(int p, int v, int m, int stage) {
  int held = 0, most = 0;
  for (const Turn& t : stage_order(PipelineSchedule::interleaved, p, stage, m, v)) {
    held += t.backward ? -1 : 1;
    most = std::max(most, held);
  }
  return most;
}

StepInputs interleaved_inputs(TransformerConfig model, int pp, int vpp, int micro_batches) {
  StepInputs in = inputs(std::move(model), layout(2, pp, 1), 1024, micro_batches);
  in.layout.schedule = PipelineSchedule::interleaved;
  in.layout.vpp = vpp;
  return in;
}

}  // namespace

TEST_CASE("interleaved 1F1B on two stages of two chunks and four micro-batches, turn by turn") {
  // Stage 0 warms up with 2 (2-1-0) + (2-1) 2 = 4 forwards, stage 1 with 2. 'a' and 'b' are the chunks.
  const auto text = [](int stage) {
    std::string out;
    for (const Turn& t : stage_order(PipelineSchedule::interleaved, 2, stage, 4, 2))
      out += (t.backward ? "B" : "F") + std::to_string(t.micro_batch) + (t.chunk == 0 ? "a " : "b ");
    return out;
  };
  CHECK(text(0) == "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a B2b B3b B2a B3a ");
  CHECK(text(1) == "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a ");
}

TEST_CASE(
    "every stage does each micro-batch once forward and once backward in each chunk, in the order of the chunks") {
  for (int p = 2; p <= 4; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = 1; m <= 4 * p; ++m)
        for (int i = 0; i < p; ++i) {
          CAPTURE(p, v, m, i);
          std::vector<int> forwards(static_cast<std::size_t>(m)), backwards(forwards);
          for (const Turn& t : stage_order(PipelineSchedule::interleaved, p, i, m, v)) {
            const auto k = static_cast<std::size_t>(t.micro_batch);
            if (t.backward) {
              REQUIRE(forwards[k] == v);
              REQUIRE(t.chunk == v - 1 - backwards[k]++);
            } else {
              REQUIRE(t.chunk == forwards[k]++);
            }
          }
          REQUIRE(forwards == std::vector<int>(static_cast<std::size_t>(m), v));
          REQUIRE(backwards == forwards);
        }
}

TEST_CASE("equal chunks without messages: the bubble is (p-1)/(v m) of the computing, by formula and timeline") {
  const double f = 3e-3, b = 5e-3;
  for (int p = 2; p <= 4; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = p; m <= 4 * p; m += p) {
        CAPTURE(p, v, m);
        const StepPlan plan = plan_of(equal_chunks(p, v, f / v, b / v, 0), m);
        const StepEstimate estimate = estimate_step(plan);
        const Seconds step = simulated(plan);
        const double ideal = m * (f + b), bubble = static_cast<double>(p - 1) / (v * m);
        CHECK(estimate.total.count() == Approx(ideal * (1 + bubble)).epsilon(1e-12));
        CHECK(estimate.terms.pipeline.order == Seconds{});
        // Each operation on the longest chain is rounded up by less than a picosecond: 2 m v of a stage, 2 p v through.
        CHECK(step.count() >= estimate.total.count() * (1 - 1e-12));
        CHECK(step.count() <= estimate.total.count() * (1 + 1e-12) + 1e-12 * 2 * v * (m + p));
        const double other = one_f_one_b(p, m, f, b, 0).count();
        CHECK(step.count() <= other * (1 + 1e-9));
        if (v == 1) CHECK(step.count() == Approx(other).epsilon(1e-9));
        if (v > 1) CHECK(step.count() < other);
      }
}

TEST_CASE("equal chunks with messages that the steady state has time for: 2 (p v - 1) of them are waited for") {
  const double f = 3e-3, b = 5e-3, c = 0.4e-3;
  for (int p = 2; p <= 4; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = p; m <= 4 * p; m += p) {
        CAPTURE(p, v, m);
        const StepPlan plan = plan_of(equal_chunks(p, v, f, b, c), m);
        const double expected = m * v * (f + b) + (p - 1) * (f + b) + 2 * (p * v - 1) * c;
        const StepEstimate estimate = estimate_step(plan);
        CHECK(estimate.total.count() == Approx(expected).epsilon(1e-12));
        CHECK(estimate.terms.pipeline.order == Seconds{});
        CHECK(estimate.terms.transfers.count() == Approx(2 * (p * v - 1) * c).epsilon(1e-9));
        CHECK(simulated(plan).count() == Approx(expected).epsilon(1e-9));
      }
}

TEST_CASE("bubble rates of interleaved 1F1B: those published by Qi et al., and a message per stage more") {
  // Stage times in ms (Qi et al. 2023, Tables 5 and 9): F, B, W, C, p, m, chunks, rate. The printed rates are those of
  // (p-1)(F+B+W)/v + C ((2v-1) p - 2), this order's have p C more: 0.0026 to 0.0035.
  struct Row {
    double f, b, w, c;
    int p, m, v;
    double rate;
  };
  for (const Row& r :
       {Row{18.513, 18.086, 9.331, 0.626, 8, 32, 3, .0818}, Row{11.307, 11.254, 8.101, 0.379, 16, 64, 3, .0852},
        Row{10.419, 10.207, 7.715, 0.408, 32, 96, 2, .1493}, Row{10.408, 10.204, 7.703, 0.408, 32, 128, 2, .1164}}) {
    const StepPlan plan = plan_of(equal_chunks(r.p, r.v, r.f * 1e-3 / r.v, (r.b + r.w) * 1e-3 / r.v, r.c * 1e-3), r.m);
    const double work = r.m * (r.f + r.b + r.w), total = estimate_step(plan).total.count() * 1e3;
    CHECK(1 - work / (total - r.p * r.c) == Approx(r.rate).margin(1e-4));
    CHECK(1 - work / total == Approx(r.rate).margin(.004));
    CHECK(simulated(plan).count() * 1e3 == Approx(total).epsilon(1e-9));
  }
}

TEST_CASE("unequal chunks and transfers, with gradients behind them: the closed form is the timeline") {
  const unsigned seed = 20261123;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto between = [&](int low, int high) {
    return static_cast<int>(low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1)));
  };
  double shortest[3]{}, longest[3]{};  // of the formula alone, by how slow messages are
  int exposed = 0;
  for (int i = 0; i < 400; ++i) {
    const int p = between(2, 6), v = between(1, 4), m = p * between(1, 4);
    const int most = i % 3 == 0 ? 0 : i % 3 == 1 ? 400 : 12000;  // none, quicker than a chunk, up to several chunks
    ChunkedStages stages{p, v, {}, {}, i % 2 == 1};
    for (int n = 0; n < p * v; ++n)
      stages.times.push_back({Seconds(between(500, 2000) * 1e-6), Seconds(between(500, 3000) * 1e-6)});
    for (int n = 0; n < (v > 1 ? p : p - 1); ++n) stages.transfer.emplace_back(between(0, most) * 1e-6);
    CAPTURE(i, p, v, m, most);
    StepPlan plan = plan_of(stages, m);
    plan.overlap_dp = i % 7 > 0;
    if (i % 5 > 0)
      for (StagePlan& stage : plan.stages)
        for (std::size_t u = stage.units.size(); u-- > 0;)
          stage.buckets.push_back({u, Seconds(between(0, 10000) * 1e-6)});
    const StepEstimate estimate = estimate_step(plan);
    CHECK(estimate.total.count() == Approx(simulated(plan).count()).epsilon(1e-9));
    exposed += estimate.terms.gradients.exposed() > Seconds{} ? 1 : 0;
    const double formula = estimate.terms.pipeline.total().count() - estimate.terms.pipeline.order.count();
    const double off = formula / estimate.terms.pipeline.total().count() - 1;
    shortest[i % 3] = std::min(shortest[i % 3], off);
    longest[i % 3] = std::max(longest[i % 3], off);
  }
  CHECK(exposed > 100);
  // docs/steps.md states how far the formula is off without the order of work: chunks alone, short messages, long ones.
  for (int n = 0; n < 3; ++n) {
    CAPTURE(n, shortest[n], longest[n]);
    CHECK(shortest[n] > (n == 2 ? -0.61 : -0.20));
    CHECK(longest[n] < 0.20);
  }
}

TEST_CASE("a timeline does every chunk of every micro-batch, and says which") {
  const StepPlan plan = plan_of(equal_chunks(2, 2, 1e-3, 2e-3, 1e-4), 2);
  const StepSchedule spelled = spell_out(plan);
  std::vector<std::string> names;
  for (std::uint32_t op = 0; op < spelled.schedule.size(); ++op) names.emplace_back(spelled.schedule.name(OpId(op)));
  // 2 stages x 2 chunks x 2 micro-batches, both ways; 2 micro-batches over 3 ways, on and back.
  CHECK(names.size() == 16 + 12);
  for (const char* name : {"F mb1 chunk 0 L all", "B mb0 chunk 1 L all", "F mb0 chunk 0 to stage 1",
                           "F mb0 chunk 0 to stage 0", "B mb1 chunk 1 to stage 1", "B mb0 chunk 0 to stage 0"})
    CHECK(std::count(names.begin(), names.end(), name) ==
          (std::string(name).find("L all") != std::string::npos ? 2 : 1));
}

TEST_CASE("the first stage holds 1 + (p-1)/(p v) times what it holds under 1F1B") {
  // Korthikanti et al. 2022, section 4.2.
  for (int p = 2; p <= 8; ++p)
    for (int v = 2; v <= 4; ++v)
      for (const int rounds : {2, 3, 5}) {
        CAPTURE(p, v, rounds);
        const int m = rounds * p;
        CHECK(most_held(p, v, m, 0) == Approx(p * v * (1 + (p - 1.0) / (p * v))));
        for (int i = 0; i < p; ++i) CHECK(most_held(p, v, m, i) == std::min(2 * (p - 1 - i) + (v - 1) * p + 1, m * v));
      }
}

TEST_CASE("memory holds of each stage what its order holds, itemised") {
  TransformerConfig model = small_model();
  model.layers = 24;
  model.dropout = 0.1;
  for (const int pp : {2, 3, 4})
    for (const int vpp : {1, 2})
      for (const int rounds : {1, 2, 4})
        for (const Recompute recompute : {Recompute::none, Recompute::full}) {
          CAPTURE(pp, vpp, rounds);
          StepInputs in = interleaved_inputs(model, pp, vpp, rounds * pp);
          in.options.recompute = recompute;
          for (int stage = 0; stage < pp; ++stage) {
            // The whole order, what each chunk keeps, and the most at any time.
            const MemoryTerms terms = memory_terms(in, stage);
            double held = 0, most = 0;
            int losses = 0;
            for (const Turn& t : stage_order(PipelineSchedule::interleaved, pp, stage, rounds * pp, vpp)) {
              double kept = terms.layer[mlp_layer].total().value() * 24 / pp / vpp;
              if (t.chunk == 0) kept += terms.embedding_mask.value();
              if (t.chunk == vpp - 1) kept += terms.final_norm.value();
              held += t.backward ? -kept : kept;
              if (t.chunk == vpp - 1) losses += t.backward ? -1 : 1;
              most = std::max(most, held + terms.probabilities.value() * std::max(losses - 1, 0));
            }
            CHECK(terms.activations().value() == Approx(most).epsilon(1e-12));
            CHECK(stage_memory(in, stage, 8).activations.value() == Approx(most).margin(1));
          }
        }
  // Layers alone: the factor itself.
  StepInputs in = interleaved_inputs(model, 4, 3, 16);
  in.options.embedding_and_logits = false;
  const double interleaved = static_cast<double>(stage_memory(in, 0, 8).activations.value());
  in.layout.vpp = 1;
  in.layout.schedule = PipelineSchedule::one_f_one_b;
  CHECK(interleaved / static_cast<double>(stage_memory(in, 0, 8).activations.value()) == Approx(1 + 3.0 / (4 * 3)));
}

TEST_CASE("layers go to chunks in slices round the stages; the ends of the model are on the first and the last") {
  const Fabric fabric = cluster(1);
  const StepInputs in = interleaved_inputs(small_model(), 2, 2, 4);
  const Result<StepPlan> plan = make_plan(in, fabric, by_estimate(fabric, {}));
  REQUIRE(plan.ok());
  const auto text = [&](std::size_t stage) {
    std::string out;
    for (const Unit& u : plan->stages[stage].units) out += u.label + ":" + std::to_string(u.chunk) + " ";
    return out;
  };
  CHECK(text(0) == "embedding:0 L0:0 L1:0 L4:1 L5:1 ");
  CHECK(text(1) == "L2:0 L3:0 L6:1 L7:1 head:1 ");
  CHECK(plan->transfer.size() == 2);
  // Of both stages: 4 micro-batches x 2 chunks over the inner boundary, and once less the way round.
  for (const StagePlan& stage : plan->stages) {
    std::int64_t inner = 0, round = 0;
    for (const CollectiveCost& c : stage.collectives) {
      if (c.name == "pp sendrecv") inner += c.count;
      if (c.name == "pp sendrecv round") round += c.count;
    }
    CHECK(inner == 8);
    CHECK(round == 4);
  }
}

TEST_CASE("a whole step: closed form and timeline agree, the bubble shrinks with more chunks") {
  const Fabric fabric = cluster(2);
  Seconds bubble{1};
  for (const int vpp : {1, 2, 4}) {
    CAPTURE(vpp);
    StepInputs in = interleaved_inputs(small_model(), 2, vpp, 8);
    in.layout.dp = 2;
    in.batch.global_batch *= 2;
    const auto r = forecast_step(in, fabric, {}, Method::both);
    REQUIRE(r.ok());
    CHECK(r->simulate->count() == Approx(r->estimate.count()).epsilon(1e-6));
    CHECK(r->breakdown.total().count() == Approx(r->step.count()).epsilon(1e-9));
    CHECK(r->breakdown.bubble < bubble);
    bubble = r->breakdown.bubble;
    const bool told = std::any_of(r->warnings.begin(), r->warnings.end(), [](const std::string& w) {
      return w.find("interleaved with vpp 1") != std::string::npos;
    });
    CHECK(told == (vpp == 1));
  }
}

TEST_CASE("uneven chunks go through the model once, slices and stages differ by one layer at most") {
  for (int pp = 2; pp <= 6; ++pp)
    for (int vpp = 2; vpp <= 4; ++vpp)
      for (int layers = pp * vpp; layers <= 4 * pp * vpp; ++layers) {
        StepInputs in = inputs(small_model(), layout(1, pp, 1), 512, pp);
        in.layout.schedule = PipelineSchedule::interleaved;
        in.layout.vpp = vpp;
        in.layout.uneven_stages = true;
        in.model.layers = layers;
        if (ends_stand_for_layers(in)) continue;
        CAPTURE(pp, vpp, layers);
        REQUIRE(check_step(in, 64, {}).empty());
        std::vector<std::vector<int>> slices(static_cast<std::size_t>(pp * vpp));
        std::vector<int> stages;
        for (int stage = 0; stage < pp; ++stage) {
          stages.push_back(stage_layers(in, stage));
          for (const StageLayer& l : layers_of_stage(in, stage))
            slices[static_cast<std::size_t>(l.chunk * pp + stage)].push_back(l.number);
        }
        int next = 0;
        for (const std::vector<int>& slice : slices) {
          const int size = static_cast<int>(slice.size());
          CHECK((size == layers / (pp * vpp) || size == (layers + pp * vpp - 1) / (pp * vpp)));
          for (const int number : slice) REQUIRE(number == next++);
        }
        REQUIRE(next == layers);
        // The last stage, which has the head, has none of the extra ones before the others.
        CHECK(std::is_sorted(stages.rbegin(), stages.rend()));
        CHECK(stages.front() - stages.back() <= 1);
      }
}

TEST_CASE("a whole step of uneven chunks: closed form, timeline, and memory of what the order holds") {
  const Fabric fabric = cluster(4);
  std::mt19937 random(20261126);
  const auto dice = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  int cases = 0;
  while (cases < 60) {
    const int pp = 2 + dice(3), vpp = 2 + dice(3);
    StepInputs in = inputs(small_model(), layout(1 << dice(2), pp, 1 << dice(2)), 512, pp * (1 + dice(4)));
    in.layout.schedule = PipelineSchedule::interleaved;
    in.layout.vpp = vpp;
    in.layout.uneven_stages = true;
    in.layout.sequence_parallel = in.layout.tp > 1;
    in.model.layers = pp * vpp + dice(3 * pp * vpp);
    draw_options(in, false, dice);
    in.options.fuse_loss = dice(2) == 0;
    if (in.model.layers % (pp * vpp) == 0 || !check_step(in, fabric.rank_count(), {}).empty()) continue;
    ++cases;
    CAPTURE(cases, pp, vpp, in.model.layers, in.layout.tp, in.layout.dp);
    const StepPlan plan = planned(in, priced(2e-6, 30e9));
    const double rounding = 1e-12 * static_cast<double>(spell_out(plan).schedule.size());
    CHECK(estimate_step(plan).total.count() == Approx(simulated(plan, fabric).count()).epsilon(1e-9).margin(rounding));
    // Held where the order holds most, every chunk with its own layers.
    in.options.embedding_and_logits = false;
    in.model.dropout = 0;
    for (int stage = 0; stage < pp; ++stage) {
      const MemoryTerms terms = memory_terms(in, stage);
      std::vector<int> of(static_cast<std::size_t>(vpp));
      for (const StageLayer& l : layers_of_stage(in, stage)) ++of[static_cast<std::size_t>(l.chunk)];
      int held = 0, most = 0;
      for (const Turn& t :
           stage_order(PipelineSchedule::interleaved, pp, stage, in.batch.micro_batches(in.layout), vpp)) {
        held += of[static_cast<std::size_t>(t.chunk)] * (t.backward ? -1 : 1);
        most = std::max(most, held);
      }
      CHECK(terms.activations().value() == Approx(most * terms.layer[mlp_layer].total().value()));
    }
  }
}

TEST_CASE("chunks beyond any number are refused before anything goes through them") {
  // Gone through one by one, a billion of them took 8 GB.
  StepInputs in = inputs(small_model(), layout(1, 8, 2), 512, 8);
  in.options.bucket = Bytes(40'000'000);
  const auto said = [&] { return to_text(check_step(in, 16, Location{"s.yaml", 3, 1})); };
  REQUIRE(said().empty());
  in.layout.schedule = PipelineSchedule::interleaved;
  for (const int vpp : {1'000'000'000, 536'870'912}) {  // x 8 stages = 2^32, 0 in 32 bits
    in.layout.vpp = vpp;
    CHECK_THAT(said(), Catch::Contains("vpp " + std::to_string(vpp) + " does not divide the 1 layers of a stage"));
  }
  // Nor where the schedule has none, and stages are uneven.
  in.layout.schedule = PipelineSchedule::one_f_one_b;
  in.layout.uneven_stages = true;
  in.model.layers = 9;
  CHECK_THAT(said(), Catch::Contains("vpp 536870912 needs schedule interleaved"));
}
