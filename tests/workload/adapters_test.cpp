// Low-rank adapters: what is frozen and what is trained, by laws and by sums worked out by hand; formula against
// timeline; the planner's quick answer against the forecast.
#include "workload/layer/adapters.hpp"

#include <catch2/catch.hpp>

#include <random>

#include "collcast/workload/search.hpp"
#include "collcast/workload/terms.hpp"
#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/layer/kept.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/memory/memory.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

StepInputs with_adapters(StepInputs in, int rank = 16) {
  in.options.lora.rank = rank;
  return in;
}
StepInputs with_adapters(StepInputs in, int rank, std::vector<AdapterModule> modules) {
  in.options.lora.target_modules = std::move(modules);
  return with_adapters(std::move(in), rank);
}

bool is_of_adapter(const Operation& op) { return op.name.find("adapter") != std::string::npos; }
bool is_of_weights(const Operation& op) {
  return op.name.find("weight gradient") != std::string::npos || op.name.find("bias gradient") != std::string::npos;
}

/// Names and times of what `takes`.
template <class Takes>
std::vector<std::pair<std::string, double>> listed(const std::vector<Operation>& operations, Takes takes) {
  std::vector<std::pair<std::string, double>> out;
  for (const Operation& op : operations)
    if (takes(op)) out.emplace_back(op.name, op.time.count());
  return out;
}

std::string refused(const StepInputs& in) {
  const Diagnostics found = check_step(in, 16, Location{"s.yaml", 3, 1});
  REQUIRE(found.size() == 1);
  return found[0].message + "; " + found[0].hint;
}

}  // namespace

TEST_CASE("adapters of Llama-3 8B: r (n + m) of each matrix, and as many on the ranks of a TP group") {
  TransformerConfig m = llama_70b(32);
  m.hidden = 4096;
  m.heads = 32;
  m.ffn = 14336;
  StepInputs in = with_adapters(inputs(m, layout(1, 1, 1), 1024, 1));
  // qkv 4096 -> 6144, projection 4096 -> 4096, up and gate 4096 -> 28672, down 14336 -> 4096
  const double of_layer = 16. * ((4096 + 6144) + (4096 + 4096) + (4096 + 28672) + (14336 + 4096));
  CHECK(layer_adapters(in, mlp_layer).total() == of_layer);
  CHECK(adapter_parameter_count(in) == 32 * of_layer);
  CHECK(trained_parameters(in, 0).total() == 32 * of_layer);
  CHECK(stage_parameters(in, 0).total() == parameter_count(m) + 32 * of_layer);
  for (const int tp : {2, 4, 8}) {
    in.layout.tp = tp;
    const AdapterParameters part = layer_adapters(in, mlp_layer);
    CHECK(tp * part.sharded + part.replicated == of_layer);
    CHECK(adapter_parameter_count(in) == 32 * of_layer);
  }
}

TEST_CASE("a layer with adapters is the layer without, less gradients of weights, and the adapters' kernels") {
  for (const bool biases : {false, true})
    for (const Attention attention : {Attention::flash, Attention::unfused})
      for (const int tp : {1, 2}) {
        StepInputs in = inputs(small_model(), layout(tp, 1, 1), 1024, 2);
        in.model.biases = biases;
        in.options.attention = attention;
        in.layout.sequence_parallel = tp > 1;
        const LayerOperations whole = layer_operations(in), frozen = layer_operations(with_adapters(in));
        const auto base = [](const Operation& op) { return !is_of_adapter(op); };
        const auto any = [](const Operation&) { return true; };
        CHECK(listed(frozen.forward, base) == listed(whole.forward, any));
        // Of what is left norms pass x and dy for dx alone: 3 in the place of 5.
        const auto kept = [](const Operation& op) {
          return !is_of_weights(op) && op.name.find("norm") == std::string::npos;
        };
        CHECK(listed(frozen.backward, [&](const Operation& op) { return base(op) && kept(op); }) ==
              listed(whole.backward, kept));
        for (const Operation& op : whole.backward)
          if (op.name.find("norm gradient") != std::string::npos)
            CHECK(named(frozen.backward, op.name).bytes.value() == Approx(0.6 * op.bytes.value()));
        CHECK(listed(frozen.backward, [&](const Operation& op) { return base(op) && is_of_weights(op); }).empty());
      }
}

TEST_CASE("an adapter's FLOPs are 2 T r (n + m) forward and twice that backward") {
  StepInputs in = inputs(small_model(), layout(1, 1, 1), 1024, 1);
  const double tokens = 1024. * in.batch.micro_batch, rank = 8;
  for (const AdapterModule module : adapter_modules(in.model)) {
    const StepInputs one = with_adapters(in, 8, {module});
    const LayerOperations ops = layer_operations(one);
    const auto of = [&](const std::vector<Operation>& all) {
      double sum = 0;
      for (const Operation& op : all)
        if (is_of_adapter(op)) sum += op.flops.value();
      return sum;
    };
    const double forward = 2 * tokens * layer_adapters(one, mlp_layer).total();
    CHECK(layer_adapters(one, mlp_layer).total() / rank == std::floor(layer_adapters(one, mlp_layer).total() / rank));
    CHECK(of(ops.forward) == Approx(forward));
    CHECK(of(ops.backward) == Approx(2 * forward));
    const FlopTerms flops = flop_terms(one);
    CHECK(flops.adapters == Approx(one.model.layers * forward / one.batch.micro_batch));
  }
}

TEST_CASE("model FLOPs of frozen matrices are two passes, with or without logits") {
  StepInputs in = inputs(small_model(), layout(1, 1, 1), 1024, 2);
  for (const bool logits : {true, false}) {
    in.options.embedding_and_logits = logits;
    const FlopTerms whole = flop_terms(in), frozen = flop_terms(with_adapters(in));
    CHECK(whole.model().value() - frozen.model().value() ==
          Approx(whole.samples * (whole.linear + whole.logits - 3 * frozen.adapters)));
  }
}

TEST_CASE("weights are held by all, gradients and optimizer of adapters alone") {
  for (const int zero : {0, 1, 2, 3}) {
    StepInputs in = with_adapters(inputs(small_model(), layout(2, 2, 4), 1024, 8));
    in.options.zero = zero;
    for (int stage = 0; stage < 2; ++stage) {
      const double trained = 4 * layer_adapters(in, mlp_layer).total(), all = stage_parameters(in, stage).total();
      const MemoryTerms terms = memory_terms(in, stage);
      CHECK(terms.weights().value() == 2 * all / (zero == 3 ? 4 : 1));
      CHECK(terms.gradients().value() == 4 * trained / (zero >= 2 ? 4 : 1));
      CHECK(terms.optimizer().value() == 12 * trained / (zero >= 1 ? 4 : 1));
    }
  }
}

TEST_CASE("what is kept for gradients of weights is kept for adapters alone") {
  StepInputs in = inputs(small_model(), layout(1, 1, 1), 1024, 2);
  const double T = 2048, h = in.model.hidden, f = in.model.ffn, w = 2;
  const double whole = layer_activations(in, mlp_layer).value();
  // Frozen: neither norm's output, nor what the activation function gives.
  const auto kept = [&](std::vector<AdapterModule> modules) {
    return layer_activations(with_adapters(in, 16, std::move(modules)), mlp_layer).value();
  };
  CHECK(whole - kept({AdapterModule::linear_proj}) == w * (2 * T * h + T * f - T * 16));
  CHECK(kept({AdapterModule::linear_qkv}) - kept({AdapterModule::linear_proj}) == w * T * h);
  CHECK(kept({AdapterModule::linear_fc1}) - kept({AdapterModule::linear_proj}) == w * T * h);
  CHECK(kept({AdapterModule::linear_fc2}) - kept({AdapterModule::linear_proj}) == w * T * f);
  CHECK(kept(adapter_modules(in.model)) - whole == w * T * 4 * 16);
}

TEST_CASE("replicas exchange adapters' gradients, and with ZeRO-1 their weights, and no others'") {
  for (const bool tied : {false, true}) {
    StepInputs in = with_adapters(inputs(small_model(), layout(1, 2, 4), 1024, 8));
    in.model.tied_embeddings = tied;
    in.options.zero = 1;
    in.options.bucket = Bytes(1'000'000'000);
    const StepResult r = forecast(in, four_nodes(), Method::estimate);
    const double trained = 4 * layer_adapters(in, mlp_layer).total();
    int seen = 0;
    for (const CollectiveCost& c : r.collectives) {
      if (c.dimension != Dimension::dp) continue;
      CHECK((c.name == "dp reduce_scatter" || c.name == "dp all_gather"));
      CHECK(static_cast<double>(c.request.size.value()) == (c.name == "dp all_gather" ? 2 : 4) * trained);
      ++seen;
    }
    CHECK(seen >= 2);
  }
}

TEST_CASE(
    "steps with adapters: the closed form is the timeline, and they hold no more memory than training all weights") {
  std::mt19937 random(20261126);
  const auto dice = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const std::vector<PipelineSchedule> schedules{PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe,
                                                PipelineSchedule::interleaved, PipelineSchedule::zb_h1,
                                                PipelineSchedule::dualpipe};
  int compared = 0;
  for (int n = 0; n < 120; ++n) {
    StepInputs in = small_step(1 << dice(2), 1 << dice(3), 1 << dice(2), 8);
    draw_options(in, false, dice);
    in.options.zero = dice(4);
    in.layout.sequence_parallel = in.layout.tp > 1 && dice(2) == 0;
    in.layout.schedule = schedules[static_cast<std::size_t>(dice(5))];
    if (in.layout.schedule == PipelineSchedule::interleaved) in.layout.vpp = 2;
    in.options.overlap_tp = static_cast<TpOverlap>(dice(3));
    std::vector<AdapterModule> modules;
    for (const AdapterModule module : adapter_modules(in.model))
      if (dice(2) == 0) modules.push_back(module);
    if (modules.empty()) modules.push_back(AdapterModule::linear_proj);
    const StepInputs frozen = with_adapters(in, 1, modules);
    if (!check_step(frozen, four_nodes().rank_count(), {}).empty()) continue;
    ++compared;
    INFO("case " << n << ": tp " << in.layout.tp << " pp " << in.layout.pp << " dp " << in.layout.dp << " zero "
                 << in.options.zero << " " << to_string(in.layout.schedule) << " overlap "
                 << to_string(in.options.overlap_tp));
    const StepResult both = forecast(frozen, four_nodes()), whole = forecast(in, four_nodes(), Method::estimate);
    REQUIRE(both.simulate);
    CHECK(both.estimate.count() == Approx(both.simulate->count()).epsilon(0.02));
    CHECK(both.memory.peak() <= whole.memory.peak());
  }
  CHECK(compared > 50);
}

TEST_CASE("a frozen embedding is gathered for forwards alone, and what is gathered is the timeline's in closed form") {
  const Fabric fabric = cluster(8);
  for (const PipelineSchedule schedule :
       {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::zb_h1, PipelineSchedule::dualpipe_v})
    for (const int pp : {1, 2})
      for (const bool overlap : {true, false})
        for (const double rate : {1e9, 100e9}) {
          StepInputs in = with_adapters(inputs(small_model(), layout(1, pp, 2), 512, 4));
          in.layout.schedule = schedule;
          in.options.zero = 3;
          in.options.overlap_dp = overlap;
          in.options.overlap_tp = TpOverlap::none;
          CAPTURE(to_string(schedule), pp, overlap, rate);
          REQUIRE(to_text(check_step(in, fabric.rank_count(), {})) == "");
          const StepPlan plan = planned(in, priced(2e-6, rate));
          CHECK(estimate_step(plan).total.count() == Approx(simulated(plan, fabric).count()).epsilon(1e-8));
          std::int64_t counted = 0, spelled = 0, of_embedding = 0;
          for (const CollectiveCost& c : plan.stages[0].collectives)
            if (c.dimension == Dimension::dp && c.request.kind == CollectiveKind::all_gather) counted += c.count;
          const StepSchedule step = spell_out(plan);
          for (const OpId op : step.of_class[0]) {
            if (step.places[op.value()].doing == Doing::gather) ++spelled;
            if (step.schedule.name(op).find("embedding weight gather") != std::string_view::npos) ++of_embedding;
          }
          CHECK(counted == spelled);
          CHECK(of_embedding == in.batch.passes(in.layout));
        }
}

TEST_CASE("the planner's quick answer is the forecast's with adapters, too") {
  const CollectiveTime time = memoized(step_prices(four_nodes(), {}));
  for (const int zero : {0, 1, 2, 3})
    for (const bool tied : {false, true}) {
      StepInputs in = with_adapters(small_step(2, 2, 4));
      in.model.tied_embeddings = tied;
      in.options.zero = zero;
      LayoutFamily family(in, four_nodes(), time);
      const auto quick = family.estimate({2, 2, 4, in.batch.micro_batch, false, in.options.recompute, zero});
      const auto slow = forecast_step(in, four_nodes(), {}, Method::estimate);
      REQUIRE(quick.ok());
      CHECK(quick->step.count() == Approx(slow->step.count()).epsilon(1e-12));
    }
}

TEST_CASE("what is computed once more has its adapters, in kernels and in FLOPs") {
  StepInputs in = inputs(small_model(), layout(1, 1, 1), 1024, 2);
  in.options.recompute = Recompute::selective;
  in.options.recompute_modules = {RecomputeModule::mlp, RecomputeModule::o_proj};
  const StepInputs frozen = with_adapters(in, 16, {AdapterModule::linear_fc2, AdapterModule::linear_proj});
  REQUIRE(check_step(frozen, 1, {}).empty());
  double again = 0;
  for (const Operation& op : layer_operations(frozen).recompute)
    if (is_of_adapter(op)) again += op.flops.value();
  CHECK(again == Approx(2 * 1024. * in.batch.micro_batch * layer_adapters(frozen, mlp_layer).total()));
  CHECK(flop_terms(frozen).recomputed - flop_terms(in).recomputed ==
        Approx(in.model.layers * again / in.batch.micro_batch));
  // A part of a matrix with an adapter is refused, without one it is not.
  StepInputs part = frozen;
  part.options.recompute_modules = {RecomputeModule::up_proj, RecomputeModule::q_proj};
  CHECK(check_step(part, 1, {}).empty());
  part.options.lora.target_modules = {AdapterModule::linear_fc1};
  CHECK_THAT(refused(part), Catch::Contains("up_proj, a part of a matrix with an adapter"));
}

TEST_CASE("zero bubble: of what adapters' weight gradients wait for, sides of the hidden size are split as rows are") {
  StepInputs in = with_adapters(inputs(small_model(), layout(2, 2, 1), 1024, 8));
  in.layout.schedule = PipelineSchedule::zb_h1;
  const double T = 1024. * in.batch.micro_batch, h = in.model.hidden, w = 2;
  const double whole = memory_terms(in, 0).layer[mlp_layer].weights.value();
  in.layout.sequence_parallel = true;
  CHECK(whole - memory_terms(in, 0).layer[mlp_layer].weights.value() == Approx(w * T / 2 * 4 * h));
}

TEST_CASE("what adapters do not go with is refused, each with its reason") {
  StepInputs in = with_adapters(small_step(1, 1, 1));
  in.options.lora.rank = in.model.hidden + 1;
  CHECK_THAT(refused(in), Catch::Contains("rank is") && Catch::Contains("the model's hidden size"));
  in = with_adapters(small_step(1, 1, 1), 16, {});
  CHECK_THAT(refused(in), Catch::Contains("nothing would be trained"));
  in = with_adapters(small_step(1, 1, 1), 16, {AdapterModule::linear_qkv, AdapterModule::linear_qkv});
  CHECK_THAT(refused(in), Catch::Contains("linear_qkv twice"));
  in = with_adapters(small_step(1, 1, 1), 16, {AdapterModule::linear_kv_up_proj});
  CHECK_THAT(refused(in), Catch::Contains("linear_kv_up_proj: the model's layers have linear_qkv, linear_proj, "
                                          "linear_fc1 and linear_fc2"));
  in = with_adapters(small_step(1, 1, 2));
  in.options.compression.method = CompressionMethod::powersgd;
  CHECK_THAT(refused(in), Catch::Contains("of a low rank already"));
}
