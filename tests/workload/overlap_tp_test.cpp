// TP beside the products of its own layer, and gradients that kernels of their own add up.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "inputs.hpp"
#include "support/dice.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

StepInputs layers_only(bool sequence_parallel) {
  StepInputs in = inputs(small_model(), layout(4, 1, 1), 1024, 1);
  in.layout.sequence_parallel = sequence_parallel;
  in.options.embedding_and_logits = false;
  in.options.optimizer = false;
  return in;
}

Seconds collective(const StepResult& r, const std::string& name) {
  for (const CollectiveCost& c : r.collectives)
    if (c.name == name) return c.time;
  FAIL("no " << name);
  return {};
}

double sum_of(const StepResult& r, std::initializer_list<const char*> names) {
  double sum = 0;
  for (const char* name : names) sum += named(r.operations.backward, name).time.count();
  return sum;
}

}  // namespace

TEST_CASE("the backward hides the reduction of a gradient under the product of weights, as far as that goes") {
  StepInputs in = layers_only(false);
  const StepResult none = forecast_on_two(in);
  in.options.overlap_tp = TpOverlap::backward;
  const StepResult hidden = forecast_on_two(in);
  const double reduction = collective(none, "tp all_reduce").count();
  const double saved = std::min(reduction, sum_of(none, {"qkv weight gradient"})) +
                       std::min(reduction, sum_of(none, {"mlp up+gate weight gradient"}));
  REQUIRE(saved > 0);
  CHECK(hidden.layer.forward == none.layer.forward);
  CHECK((none.layer.backward - hidden.layer.backward).count() == Approx(saved));
  CHECK(hidden.layer.tp_comm.count() == Approx(none.layer.tp_comm.count()));
  CHECK((none.layer.tp_exposed - hidden.layer.tp_exposed).count() == Approx(saved));
}

TEST_CASE("with sequence parallelism the gather of inputs runs under the gradients of inputs, too") {
  StepInputs in = layers_only(true);
  const StepResult none = forecast_on_two(in);
  in.options.overlap_tp = TpOverlap::backward;
  const StepResult hidden = forecast_on_two(in);
  const double gather = collective(none, "tp all_gather").count();
  const double scatter = collective(none, "tp reduce_scatter").count();
  double saved = 0;
  for (const char* name : {"qkv", "mlp up+gate"}) {
    saved += std::min(gather, sum_of(none, {(std::string(name) + " input gradient").c_str()}));
    saved += std::min(scatter, sum_of(none, {(std::string(name) + " weight gradient").c_str()}));
  }
  CHECK((none.layer.backward - hidden.layer.backward).count() == Approx(saved));
}

TEST_CASE("a ring leaves a piece of each product exposed, or messages that are longer than the other pieces") {
  StepInputs in = layers_only(true);
  const StepResult none = forecast_on_two(in);
  in.options.overlap_tp = TpOverlap::ring;
  const StepResult ring = forecast_on_two(in);
  const double gather = collective(none, "tp all_gather").count();
  const double scatter = collective(none, "tp reduce_scatter").count();
  double saved = 0;
  for (const char* name : {"qkv", "mlp up+gate"})
    saved += std::min(gather, 0.75 * named(none.operations.forward, name).time.count());
  for (const char* name : {"projection", "mlp down"})
    saved += std::min(scatter, 0.75 * named(none.operations.forward, name).time.count());
  // The kernels of these tests have no overhead, and pieces of them are memory-bound no more than the whole.
  CHECK((none.layer.forward - ring.layer.forward).count() == Approx(saved).epsilon(0.02));
  CHECK(ring.layer.tp_comm.count() == Approx(none.layer.tp_comm.count()));
  in.kernels.gemm.at("bf16").overhead = Seconds(1e-3);
  StepInputs whole = in;
  whole.options.overlap_tp = TpOverlap::none;
  CHECK(forecast_on_two(in).layer.forward >
        forecast_on_two(whole).layer.forward);  // 16 launches of 1 ms in the place of 4
}

TEST_CASE("more overlap is never slower where kernels have no overhead and keep their rate, by formula and timeline") {
  for (const bool sequence_parallel : {false, true})
    for (const Method method : {Method::estimate, Method::simulate}) {
      StepInputs in = inputs(small_model(), layout(4, 2, 2), 1024, 4);
      in.layout.sequence_parallel = sequence_parallel;
      const Seconds none = forecast_on_two(in, method).step;
      in.options.overlap_tp = TpOverlap::backward;
      const Seconds backward = forecast_on_two(in, method).step;
      CHECK(backward < none);
      in.kernels.beside_collectives = 0.5;
      CHECK(forecast_on_two(in, method).step >= backward);
    }
}

TEST_CASE("there is nothing to hide with TP 1, nor for a backward that leaves its weight gradients out") {
  StepInputs in = inputs(small_model(), layout(1, 2, 4), 1024, 4);
  const Seconds none = forecast_on_two(in).step;
  in.options.overlap_tp = TpOverlap::ring;
  CHECK(forecast_on_two(in).step == none);
  in = inputs(small_model(), layout(4, 2, 1), 1024, 4);
  in.layout.schedule = PipelineSchedule::zb_h1;
  const Seconds split = forecast_on_two(in).step;
  in.options.overlap_tp = TpOverlap::backward;
  CHECK(forecast_on_two(in).step == split);
}

TEST_CASE("formula and timeline agree on steps that hide TP") {
  for (const TpOverlap overlap : {TpOverlap::backward, TpOverlap::ring})
    for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe})
      for (const int tp : {2, 8}) {
        StepInputs in = inputs(small_model(), layout(tp, 2, 1), 1024, 8);
        in.layout.sequence_parallel = true;
        in.layout.schedule = schedule;
        in.options.overlap_tp = overlap;
        in.options.recompute = Recompute::full;
        in.options.fuse_accumulation = false;
        in.kernels.beside_collectives = 0.8;
        const StepResult r = forecast_on_two(in, Method::both);
        CHECK(r.simulate->count() == Approx(r.estimate.count()).epsilon(0.01));
        CHECK(r.breakdown.total().count() == Approx(r.step.count()).epsilon(1e-9));
      }
}

TEST_CASE("rings need what sequence parallelism gathers") {
  StepInputs in = inputs(small_model(), layout(4, 1, 1), 1024, 1);
  in.options.overlap_tp = TpOverlap::ring;
  const Diagnostics found = check_step(in, 8, Location{"s.yaml", 3, 1});
  REQUIRE(found.size() == 1);
  CHECK(found[0].message == "rings of overlap_tp need sequence parallelism with tp 4: without it nothing is gathered");
  CHECK(found[0].hint == "use sequence_parallel: true, or overlap_tp: backward");
  in.layout.sequence_parallel = true;
  CHECK(check_step(in, 8, {}).empty());
}

TEST_CASE("without fused accumulation each parameter's gradient is read, its sum read and written, per micro-batch") {
  StepInputs in = layers_only(false);
  const StepResult fused = forecast_on_two(in);
  in.options.fuse_accumulation = false;
  const StepResult apart = forecast_on_two(in);
  // 16-bit gradients into sums of 32 bit: 2 + 4 + 4 bytes for each parameter of the layer on this rank, at 1 TB/s.
  const double parameters = parameter_terms(in, 0).layer[mlp_layer].total();
  CHECK(named(apart.operations.backward, "gradient accumulation").time.count() == Approx(10 * parameters / 1e12));
  // The product of weights writes 2 bytes where it read and wrote 4; it is bound by computing either way.
  CHECK((apart.layer.backward - fused.layer.backward).count() == Approx(10 * parameters / 1e12));
}

TEST_CASE("overlap of TP that makes a step longer is told, with what is quicker by how much") {
  Dice dice(5);
  int longer = 0, shorter = 0;
  for (int step = 0; step < 200; ++step) {
    StepInputs in = small_step(1 << (1 + dice.roll(3)), 1, 1 + dice.roll(2));
    in.batch.sequence = 128 << dice.roll(6);
    in.layout.sequence_parallel = true;
    in.options.overlap_tp = dice.roll(2) == 0 ? TpOverlap::ring : TpOverlap::backward;
    in.kernels.beside_collectives = 0.75;
    in.kernels.gemm["bf16"].overhead = Seconds(dice.roll(2) * 10e-6);
    if (!check_step(in, 32, {}).empty()) continue;
    const StepResult now = forecast(in, four_nodes(), Method::estimate);
    std::string said;
    for (const std::string& text : now.warnings)
      if (text.starts_with("overlap_tp ")) said = text;
    for (const TpOverlap other : {TpOverlap::none, TpOverlap::backward}) {
      if (other >= in.options.overlap_tp) continue;
      StepInputs changed = in;
      changed.options.overlap_tp = other;
      const double less = 1 - forecast(changed, four_nodes(), Method::estimate).step / now.step;
      INFO(step << ' ' << said << ' ' << less);
      if (std::abs(less - 0.005) < 1e-6) continue;
      const std::string value = "training.overlap_tp: " + std::string(to_string(other)) + " (";
      const std::size_t at = said.find(value);
      CHECK((at != std::string::npos) == (less > 0.005));
      ++(less > 0.005 ? longer : shorter);
      if (at != std::string::npos) CHECK(100 * less == Approx(std::stod(said.substr(at + value.size()))).margin(0.501));
    }
  }
  CHECK(longer > 10);
  CHECK(shorter > 10);
}
