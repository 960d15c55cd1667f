// Multi-token prediction: what a module adds, by hand and against what it is made of, and laws.
#include "workload/layer/mtp.hpp"

#include <catch2/catch.hpp>

#include <string>

#include "../support/dice.hpp"
#include "../support/sample.hpp"
#include "collcast/workload/terms.hpp"
#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/gradient_exchange.hpp"
#include "workload/layer/parameters.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

StepInputs predicting(int modules, ParallelLayout split, TransformerConfig model = small_model()) {
  StepInputs in = inputs(std::move(model), split, 512, 8);
  in.model.mtp_layers = modules;
  return in;
}

/// The time of a stage's passes of one micro-batch.
double passes(const StagePlan& stage, UnitKind kind) {
  double sum = 0;
  for (const Unit& unit : stage.units) {
    const UnitWork& work = stage.work(unit);
    if (unit.kind == kind) sum += (work.forward_time() + work.backward_time() + work.weights_time()).count();
  }
  return sum;
}

double bytes_moved(const Segments& s, const std::string& name) {
  double sum = 0;
  for (const auto pass : {&Segments::forward, &Segments::backward, &Segments::weights})
    for (const Segment& segment : s.*pass)
      for (const Operation& op : segment.operations)
        if (op.name == name) sum += op.bytes.value();
  return sum;
}

int collectives(const std::vector<Segment>& pass, CollectiveKind kind, double bytes) {
  int count = 0;
  for (const Segment& s : pass) count += s.then == kind && s.then_bytes == bytes ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("a module of multi-token prediction is a layer, a projection, three norms and one more head") {
  const StepInputs with = predicting(1, layout(1, 1, 1)), without = predicting(0, layout(1, 1, 1));
  const double h = with.model.hidden, V = with.model.vocab, s = with.batch.sequence;
  const ParameterTerms p = parameter_terms(with, 0);
  CHECK(p.all_layers() == without.model.layers + 1);
  CHECK(p.mtp_projections == 2 * h * h);
  CHECK(p.mtp_norms == 3 * h);
  CHECK(p.mtp_embedding == 0);  // the embedding is there
  StepInputs longer = without;
  ++longer.model.layers;
  CHECK(parameter_count(with.model) == parameter_count(longer.model) + 2 * h * h + 3 * h);
  const FlopTerms f = flop_terms(with), of_longer = flop_terms(longer);
  CHECK(f.linear == of_longer.linear);
  CHECK(f.core == of_longer.core);
  CHECK(f.logits == 2 * of_longer.logits);
  CHECK(f.mtp == 4 * s * h * h);
  CHECK(f.model().value() == Approx(of_longer.model().value() + 3 * 8 * 2 * (2 * s * h * V + 4 * s * h * h)));
  // The layer takes what the model's do, the head what two do and what is before the layer.
  const StepPlan a = planned(with), b = planned(longer);
  CHECK(passes(a.stages[0], UnitKind::layer) == passes(b.stages[0], UnitKind::layer));
  const Segments before = mtp_input_segments(with);
  double kernels = 0;
  for (const auto pass : {&Segments::forward, &Segments::backward})
    for (const Segment& segment : before.*pass)
      for (const Operation& op : segment.operations) kernels += op.time.count();
  CHECK(passes(a.stages[0], UnitKind::head) == Approx(2 * passes(b.stages[0], UnitKind::head) + kernels));
}

TEST_CASE("what comes before a module's layer, by hand") {
  for (const bool parallel : {false, true}) {
    StepInputs in = predicting(2, layout(4, 1, 1));
    in.layout.sequence_parallel = parallel;
    const double T = 2. * 512, h = in.model.hidden, w = 2, g = in.options.gradient_bytes, rows = parallel ? T / 4 : T;
    const Segments s = mtp_input_segments(in);
    CHECK(bytes_moved(s, "MTP embedding norm") == 2 * w * rows * h);
    CHECK(bytes_moved(s, "MTP hidden norm") == 2 * w * rows * h);
    CHECK(bytes_moved(s, "MTP concatenation") == 4 * w * rows * h);
    CHECK(bytes_moved(s, "MTP projection") == w * (T * 2 * h + 2 * h * h / 4 + T * h / 4));
    CHECK(bytes_moved(s, "MTP projection weight gradient") == w * T * (2 * h + h / 4) + 2 * g * 2 * h * h / 4);
    CHECK(bytes_moved(s, "embedding") == 2 * w * T * h);
    // 0: of the hidden states of all tokens. Behind the projection its columns are put together.
    using enum CollectiveKind;
    const double both = 2 * w * T * h;
    CHECK(collectives(s.forward, all_gather, both) == (parallel ? 1 : 0));
    CHECK(collectives(s.forward, all_gather, 0) == 1);
    CHECK(collectives(s.forward, parallel ? reduce_scatter : all_reduce, 0) == 1);
    CHECK(collectives(s.backward, parallel ? reduce_scatter : all_reduce, both) == 1);
    CHECK(collectives(s.backward, all_gather, both) == (parallel ? 1 : 0));
    CHECK(collectives(s.backward, all_gather, 0) == (parallel ? 2 : 0));  // the projection's, the embedding's
    CHECK(loss_reductions(in) == 9);
  }
}

TEST_CASE("the last stage holds the modules, and a copy of the embedding where it has none") {
  const double w = 2, T = 2. * 512;
  for (const bool tied : {false, true}) {
    StepInputs in = predicting(2, layout(2, 4, 1));
    in.model.tied_embeddings = tied;
    StepInputs without = in;
    without.model.mtp_layers = 0;
    const double h = in.model.hidden, V = in.model.vocab;
    for (const int stage : {0, 1, 2})
      CHECK(parameter_terms(in, stage).total() == parameter_terms(without, stage).total());
    const ParameterTerms last = parameter_terms(in, 3), before = parameter_terms(without, 3);
    CHECK(last.all_layers() == 4);
    const double copy = tied ? 0 : V * h / 2;
    CHECK(last.total() == before.total() + 2 * last.layer[mlp_layer].total() + 2 * (2 * h * h / 2 + 3 * h) + copy);
    CHECK(stage_parameters(in, 3).total() == last.total());
    double units = 0;
    for (const UnitParameters& unit : unit_parameters(in, 3)) units += unit.all();
    CHECK(units == last.total());
    // Both ends sum the gradients up.
    CHECK(cost(planned(in).stages[0], "embedding all_reduce").request.size ==
          Bytes(static_cast<std::int64_t>(in.options.gradient_bytes * V * h / 2)));
    const MemoryTerms m = memory_terms(in, 3), of_before = memory_terms(without, 3);
    CHECK(m.mtp.value() == 2 * 6 * w * T * h);
    CHECK(m.probabilities == of_before.probabilities * 3);
    CHECK(m.logits == of_before.logits);
    CHECK(m.activations() == of_before.activations() + m.layer[mlp_layer].total() * 2 + m.mtp);
  }
  // A V has both ends on the first stage.
  StepInputs v = predicting(1, layout(1, 2, 1));
  v.layout.schedule = PipelineSchedule::zb_v;
  CHECK(parameter_terms(v, 0).mtp_projections > 0);
  CHECK(parameter_terms(v, 0).mtp_embedding == 0);
  CHECK(parameter_terms(v, 1).mtp_projections == 0);
}

TEST_CASE("DeepSeek-V3 with its module has the published size") {
  TransformerConfig m = small_deepseek();
  m.layers = 61;
  m.hidden = 7168;
  m.heads = m.kv_heads = 128;
  m.ffn = 18432;
  m.vocab = 129'280;
  m.latent = {1536, 512, 128, 64, 128};
  m.experts.count = 256;
  m.experts.top_k = 8;
  m.experts.ffn = m.experts.shared_ffn = 2048;
  m.experts.dense_layers = 3;
  CHECK(parameter_count(m) == Approx(671e9).epsilon(0.001));
  const double main = parameter_count(m);
  m.mtp_layers = 1;
  // "671B of the Main Model weights and 14B of the Multi-Token Prediction (MTP) Module weights", which have copies of
  // the embedding and the head (huggingface.co/deepseek-ai/DeepSeek-V3).
  CHECK(parameter_count(m) - main + 2. * m.vocab * m.hidden == Approx(14e9).epsilon(0.05));
  CHECK(layer_shape(m, m.layers) == expert_layer);
}

TEST_CASE("a module's layer is like the model's last, of a hybrid model one with attention") {
  TransformerConfig m = small_experts();
  m.mtp_layers = 2;
  m.experts.dense_at = {m.layers - 1};
  CHECK(layer_shape(m, m.layers + 1) == mlp_layer);
  m.experts.dense_at = {};
  CHECK(layer_shape(m, m.layers + 1) == expert_layer);
  CHECK(expert_layers(m) == m.layers + 2);
  m.window = {128, 0, 2, {}};  // each second layer has all keys, the last too
  CHECK_FALSE(has_window(m, m.layers));
  m.window.full_every = 3;
  CHECK(has_window(m, m.layers));
  m.pattern = "M*M-";
  m.layers = 4;
  CHECK(layer_shape(m, 4) == expert_layer);
  m.experts = {};
  CHECK(layer_shape(m, 4) == mlp_layer);
  StepInputs in = predicting(1, layout(1, 1, 1));
  in.options.bf16_last_layers = 1;
  CHECK(kind_of_layer(in, in.model.layers - 1).bf16);
  CHECK_FALSE(kind_of_layer(in, in.model.layers).bf16);
}

TEST_CASE("with modules behind the model the closed form is the timeline: every schedule, ZeRO, experts") {
  Dice dice(20261127);
  Sample sample(4);
  for (int cases = 0; cases < 400;) {
    StepInputs in =
        predicting(1 + dice.roll(3), layout(dice.pick({1, 2, 4}), dice.pick({1, 2, 4, 8}), dice.pick({1, 2})),
                   dice.roll(3) == 0 ? small_experts() : small_model());
    in.layout.order = RankOrder::tp_cp_ep_dp_pp;
    in.model.layers = 16;
    in.model.tied_embeddings = dice.roll(3) == 0;
    if (in.layout.pp > 1)
      in.layout.schedule =
          dice.pick({PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::interleaved,
                     PipelineSchedule::zb_h1, PipelineSchedule::zb_h2, PipelineSchedule::zb_1p, PipelineSchedule::zb_2p,
                     PipelineSchedule::zb_v, PipelineSchedule::dualpipe, PipelineSchedule::dualpipe_v});
    if (in.layout.schedule == PipelineSchedule::interleaved) in.layout.vpp = 2;
    in.layout.sequence_parallel = in.layout.tp > 1 && (in.model.experts.count > 0 || dice.roll(2) == 0);
    in.layout.uneven_stages = dice.roll(2) == 0;
    in.options.zero = dice.roll(4);
    in.options.overlap_dp = dice.roll(3) > 0;
    in.options.overlap_pp = dice.roll(2) == 0;
    in.options.bucket = Bytes(1'000'000 << dice.roll(6));
    in.options.recompute = dice.pick({Recompute::none, Recompute::full, Recompute::selective});
    if (dice.roll(4) == 0) in.layout.cp = 2;
    if (in.layout.tp > 1) in.options.overlap_tp = dice.pick({TpOverlap::none, TpOverlap::backward, TpOverlap::ring});
    in.options.fuse_loss = dice.roll(2) == 0;
    in.options.fuse_accumulation = dice.roll(2) == 0;
    in.options.launch = Seconds(dice.pick({0.0, 5e-6}));
    in.model.dropout = dice.pick({0.0, 0.1});
    in.kernels.beside_collectives = dice.pick({1.0, 0.6});
    in.batch.global_batch = 2 * in.layout.dp * in.layout.pp * (1 + dice.roll(3));
    if (!check_step(in, 64, {}).empty()) continue;
    ++cases;
    if (!sample.takes()) continue;
    CAPTURE(cases, in.layout.tp, in.layout.pp, in.layout.dp, in.options.zero, to_string(in.layout.schedule),
            in.model.mtp_layers, in.options.overlap_dp, in.options.overlap_pp, in.model.experts.count);
    const StepPlan plan = planned(in, priced(2e-6, dice.pick({1e9, 10e9, 100e9})));
    const StepEstimate e = estimate_step(plan);
    CHECK(e.total.count() == Approx(simulated(plan).count()).epsilon(1e-8));
    CHECK(e.terms.total().count() == Approx(e.total.count()).epsilon(1e-12));
    CHECK(e.breakdown.total().count() == Approx(e.total.count()).epsilon(1e-9));
  }
}

TEST_CASE("units that are gathered read the embedding where the modules look it up") {
  for (const bool tied : {false, true}) {
    StepInputs in = predicting(1, layout(1, 1, 4));
    in.options.zero = 3;
    in.model.tied_embeddings = tied;
    StepInputs without = in;
    without.model.mtp_layers = 0;
    const double h = in.model.hidden, V = in.model.vocab, modules = 2 * h * h + 3 * h;
    const UnitParameters head = unit_parameters(in, 0).back(), before = unit_parameters(without, 0).back();
    CHECK(head.own == before.own + modules);
    CHECK(head.used == before.used + modules + (tied ? 0 : V * h));
  }
}

TEST_CASE("zero bubble: what the weight gradients of modules wait for, and dropout's masks") {
  StepInputs in = predicting(2, layout(2, 2, 1));
  in.layout.schedule = PipelineSchedule::zb_h1;
  in.layout.sequence_parallel = true;
  const double w = 2, T = 2. * 512, rows = T / 2, h = in.model.hidden, v = in.model.vocab / 2.0, t = 2;
  CHECK(memory_terms(in, 1).head_weights.value() == 3 * w * (rows * h + T * v) + 2 * w * (2 * rows * h + T * h / t));
  const Segments s = mtp_input_segments(in);
  CHECK(collectives(s.weights, CollectiveKind::all_gather, 2 * w * T * h) == 1);
  CHECK(collectives(s.backward, CollectiveKind::all_gather, 2 * w * T * h) == 0);
  CHECK(bytes_moved({s.backward, {}, {}, {}}, "MTP projection weight gradient") == 0);
  const Volume kept = mtp_kept(in);
  CHECK(kept.value() == 2 * 6 * w * rows * h);
  in.model.dropout = 0.1;
  CHECK(mtp_kept(in).value() == kept.value() + 2 * rows * h);
}

TEST_CASE("a family of layouts prices modules behind the model as a forecast does") {
  for (const int pp : {1, 2, 4})
    for (const int modules : {1, 2}) check_family(predicting(modules, layout(2, pp, 2)), pp);
}

TEST_CASE("adapters beside a module's layer alone are trained, and more modules take longer") {
  StepInputs in = predicting(0, layout(2, 2, 2));
  double before = forecast_on_two(in).step.count();
  for (const int modules : {1, 2, 3}) {
    in.model.mtp_layers = modules;
    const double now = forecast_on_two(in).step.count();
    CHECK(now > before);
    before = now;
  }
  in = predicting(1, layout(2, 1, 2));
  in.options.lora.rank = 8;
  in.options.lora.target_modules = std::vector{AdapterModule::linear_qkv};
  StepInputs without = in;
  without.model.mtp_layers = 0;
  const ParameterTerms p = parameter_terms(in, 0);
  CHECK(p.trained() == Approx(parameter_terms(without, 0).trained() * 9 / 8));
  CHECK(bytes_moved(mtp_input_segments(in), "MTP projection weight gradient") == 0);
  CHECK(memory_terms(in, 0).mtp.value() == 3 * 2. * 2 * 512 * in.model.hidden);
}

TEST_CASE("modules that cannot be are refused, with what would help") {
  const auto wrong = [](auto change) {
    StepInputs in = predicting(1, layout(1, 1, 1));
    change(in);
    return to_text(check_step(in, 16, Origins()));
  };
  using Catch::Matchers::Contains;
  CHECK(wrong([](StepInputs&) {}).empty());
  CHECK_THAT(wrong([](StepInputs& in) { in.model.mtp_layers = 65; }),
             Contains("mtp_num_layers is 65") && Contains("expected 0 to 64"));
  CHECK_THAT(wrong([](StepInputs& in) { in.model.mtp_layers = -1; }), Contains("mtp_num_layers is -1"));
  CHECK_THAT(wrong([](StepInputs& in) { in.options.embedding_and_logits = false; }),
             Contains("layers that predict further tokens need embedding and logits"));
  CHECK_THAT(wrong([](StepInputs& in) { in.model.learned_positions = 512; }),
             Contains("layers that predict further tokens go with rotary positions or none"));
  CHECK_THAT(
      wrong([](StepInputs& in) {
        in.serving = Serving{};
        in.options.optimizer = false;
      }),
      Contains("a server has no use of layers that predict further tokens here") && Contains("or draft by them"));
}

TEST_CASE("PowerSGD compresses the modules' projections and copies of the embedding as other matrices") {
  // Behind the 4 layers and the head of the last stage: a fifth layer, a projection of 2h x h, a copy of the embedding.
  StepInputs in = inputs(small_model(), layout(1, 2, 2), 1024, 4);
  in.options.compression.method = CompressionMethod::powersgd;
  in.options.compression.rank = 2;
  const double h = in.model.hidden, of_vocabulary = in.model.vocab * h;
  const GradientExchange without(in, 1, false);
  in.model.mtp_layers = 1;
  const GradientExchange with(in, 1, false);
  const double layer = (without.compressed - of_vocabulary) / 4;
  CHECK(with.compressed == without.compressed + layer + 2 * h * h + of_vocabulary);
}
