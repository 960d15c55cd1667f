// Recomputation by module: what is computed once more, what is kept, and that both methods say the same of it.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "../support/dice.hpp"
#include "collcast/workload/search.hpp"
#include "inputs.hpp"
#include "workload/layer/kept.hpp"
#include "workload/layer/share.hpp"
#include "workload/memory/memory.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;
using Module = RecomputeModule;

namespace {

/// 2 of 8 experts beside a shared one; layer 0 has an MLP.
TransformerConfig with_experts() {
  TransformerConfig m = small_model();
  m.experts.count = 8;
  m.experts.top_k = 2;
  m.experts.ffn = 1024;
  m.experts.shared_ffn = 512;
  m.experts.dense_layers = 1;
  return m;
}
TransformerConfig latent() {
  TransformerConfig m = small_model();
  m.kv_heads = m.heads;
  m.latent = {256, 128, 48, 16, 64};
  return m;
}

/// Selective, unless no module is named.
StepInputs step(TransformerConfig model, RecomputeModules modules, ParallelLayout l = layout(2, 1, 1)) {
  StepInputs in = inputs(std::move(model), l, 1024, 4);
  in.options.recompute = modules.empty() ? Recompute::none : Recompute::selective;
  in.options.recompute_modules = std::move(modules);
  in.layout.sequence_parallel = in.layout.tp > 1 && in.model.experts.count > 0;
  return in;
}
StepInputs without(StepInputs in) {
  in.options.recompute = Recompute::none;
  return in;
}

RecomputeModules modules_of(const TransformerConfig& m) {
  if (m.latent.kv_rank > 0)
    return {Module::core_attn, Module::layernorm, Module::mla_up_proj, Module::mlp, Module::o_proj, Module::mlp_act};
  RecomputeModules all{Module::core_attn, Module::layernorm, Module::mlp,       Module::q_proj,  Module::k_proj,
                       Module::v_proj,    Module::o_proj,    Module::gate_proj, Module::up_proj, Module::mlp_act};
  if (m.experts.count > 0) all.insert(all.end(), {Module::moe_act, Module::moe, Module::shared_experts});
  return all;
}
RecomputeModules some_of(const RecomputeModules& all, Dice& dice) {
  RecomputeModules some;
  for (const Module module : all)
    if (dice.roll(3) == 0) some.push_back(module);
  return some;
}

std::vector<std::string> names(const std::vector<Operation>& operations) {
  std::vector<std::string> out;
  for (const Operation& op : operations) out.push_back(op.name);
  std::sort(out.begin(), out.end());
  return out;
}
std::vector<std::string> again(const StepInputs& in) { return names(layer_operations(in).recompute); }

Seconds total(const std::vector<Operation>& operations) {
  Seconds sum{};
  for (const Operation& op : operations) sum += op.time;
  return sum;
}

double kept(const StepInputs& in, LayerShape shape = {}) { return layer_activations(in, shape).value(); }

}  // namespace

TEST_CASE("a module's operations are computed once more, and no others") {
  using Names = std::vector<std::string>;
  const TransformerConfig m = small_model();
  CHECK(again(step(m, {})).empty());
  CHECK(again(step(m, {Module::core_attn})) == Names{"flash attention"});
  CHECK(again(step(m, {Module::layernorm})) == Names{"attention norm", "mlp norm"});
  CHECK(again(step(m, {Module::mlp})) == Names{"activation", "mlp down", "mlp up+gate"});
  CHECK(again(step(m, {Module::q_proj, Module::v_proj})) == Names{"part of qkv", "rotary"});
  CHECK(again(step(m, {Module::v_proj})) == Names{"part of qkv"});
  CHECK(again(step(m, {Module::o_proj})) == Names{"attention residual", "projection"});
  CHECK(again(step(m, {Module::gate_proj})) == Names{"mlp gate"});
  CHECK(again(step(m, {Module::gate_proj, Module::up_proj, Module::mlp_act})) == Names{"activation", "mlp up+gate"});
  CHECK(again(step(latent(), {Module::mla_up_proj})) == Names{"kv up", "q up", "rotary"});
  const TransformerConfig e = with_experts();
  CHECK(again(step(e, {Module::moe_act})) == Names{"experts activation"});
  CHECK(again(step(e, {Module::shared_experts})) == Names{"shared activation", "shared down", "shared up+gate"});
  CHECK(again(step(e, {Module::mlp})).empty());  // the layer that is shown has experts
  const auto all = again(step(e, {Module::moe}));
  for (const char* name : {"router", "permute", "experts up+gate", "experts down", "unpermute", "shared up+gate"})
    CHECK(std::find(all.begin(), all.end(), name) != all.end());
}

TEST_CASE("all of a layer's parts together are its whole forward, but for the sum behind it") {
  const StepInputs parts = step(small_model(), {Module::core_attn, Module::layernorm, Module::q_proj, Module::k_proj,
                                                Module::v_proj, Module::o_proj, Module::mlp});
  StepInputs full = parts;
  full.options.recompute = Recompute::full;
  std::vector<std::string> of_full = again(full);
  of_full.erase(std::find(of_full.begin(), of_full.end(), "mlp residual"));
  CHECK(again(parts) == of_full);
  CHECK(total(layer_operations(parts).recompute) <= total(layer_operations(full).recompute));
  const FlopTerms some = flop_terms(parts), whole = flop_terms(full);
  CHECK(some.recomputed == Approx(whole.recomputed));
  // Both keep the layer's input; the parts also what attention gave.
  CHECK(kept(parts) == Approx(kept(full) + 2. * 2048 * 512));
}

TEST_CASE("what is computed once more is not kept") {
  // 2048 tokens, 2 ranks: 512 of 1024 query and 256 of 512 key elements, 2048 of an MLP of 4096; w = 2.
  const double t = 2048, w = 2;
  const StepInputs none = without(step(small_model(), {}));
  const auto spared = [&](RecomputeModules modules) {
    const StepInputs in = step(small_model(), std::move(modules));
    return kept(without(in)) - kept(in);
  };
  CHECK(spared({}) == 0);
  CHECK(spared({Module::layernorm}) == 2 * w * t * 1024);
  CHECK(spared({Module::mlp}) == 3 * w * t * 2048);
  CHECK(spared({Module::gate_proj}) == w * t * 2048);
  CHECK(spared({Module::up_proj, Module::mlp_act}) == 2 * w * t * 2048);
  CHECK(spared({Module::q_proj}) == w * t * 512);
  CHECK(spared({Module::k_proj, Module::v_proj}) == 2 * w * t * 256);
  CHECK(spared({Module::o_proj}) == w * t * 1024);
  CHECK(spared({Module::core_attn}) == 4 * 2 * 8 * 1024.);
  StepInputs mla = step(latent(), {Module::mla_up_proj});
  // 16 / 2 heads of 64 elements of queries, keys and values each.
  CHECK(kept(without(mla)) - kept(mla) == 3 * w * t * 8 * 64);
  StepInputs moe = step(with_experts(), {Module::moe_act});
  CHECK(kept(without(moe), expert_layer) - kept(moe, expert_layer) == w * Share(moe).taken * Share(moe).expert);
  moe.options.recompute_modules = {Module::moe};
  // All but norms, projections and the core.
  StepInputs dense = step(small_model(), {Module::mlp});
  dense.layout.sequence_parallel = true;
  CHECK(kept(moe, expert_layer) == kept(dense));
}

TEST_CASE("more modules never keep more, nor take less time") {
  Dice dice(5);
  for (int run = 0; run < 60; ++run) {
    const TransformerConfig m = run % 3 == 0 ? small_model() : run % 3 == 1 ? with_experts() : latent();
    const RecomputeModules few = some_of(modules_of(m), dice);
    RecomputeModules more = few;
    for (const Module module : some_of(modules_of(m), dice))
      if (std::ranges::find(few, module) == few.end()) more.push_back(module);
    const StepInputs a = step(m, few), b = step(m, more);
    CHECK(kept(a) >= kept(b));
    CHECK(kept(a, layer_shape(m, m.layers - 1)) >= kept(b, layer_shape(m, m.layers - 1)));
    CHECK(kept(b) > 0);
    const StepResult of_a = forecast_on_two(a), of_b = forecast_on_two(b);
    CHECK(of_a.step <= of_b.step);
    CHECK(flop_terms(a).recomputed <= flop_terms(b).recomputed);
    CHECK(of_a.layer.forward == of_b.layer.forward);
  }
}

TEST_CASE("a second module never makes a step shorter, and an MLP's products in the module count once") {
  for (const TransformerConfig& m : {small_model(), with_experts(), latent()})
    for (const Module first : modules_of(m)) {
      const auto with = [&](RecomputeModules modules) {
        StepInputs in = step(m, std::move(modules), layout(4, 1, 1));
        in.layout.sequence_parallel = true;
        return forecast_on_two(in).step;
      };
      const Seconds alone = with({first});
      for (const Module second : modules_of(m)) {
        if (second == first) continue;
        const Seconds both = with({first, second});
        CAPTURE(to_string(first), to_string(second));
        CHECK(both >= alone);
        if (first == Module::mlp &&
            (second == Module::gate_proj || second == Module::up_proj || second == Module::mlp_act))
          CHECK(both == alone);
      }
    }
}

TEST_CASE("the backward is longer by what its layer computes once more") {
  for (const TransformerConfig& m : {small_model(), with_experts(), latent()})
    for (const Module module : modules_of(m)) {
      StepInputs in = step(m, {module}, layout(1, 1, 1));
      in.options.embedding_and_logits = false;
      in.options.optimizer = false;
      const StepResult more = forecast_on_two(in), none = forecast_on_two(without(in));
      const Seconds extra = total(layer_operations(in).recompute);
      CHECK((more.layer.backward - none.layer.backward).count() == Approx(extra.count()).margin(1e-12));
    }
}

TEST_CASE("with sequence parallelism the input of single products is gathered once, that of a module for itself") {
  const auto gathers = [](RecomputeModules modules) {
    StepInputs in = step(small_model(), std::move(modules), layout(4, 1, 1));
    in.layout.sequence_parallel = true;
    return forecast_on_two(in).layer.tp_comm;
  };
  CHECK(gathers({Module::q_proj, Module::gate_proj}) == gathers({}));
  CHECK(gathers({Module::mlp}) > gathers({}));
  CHECK(gathers({Module::o_proj}) > gathers({}));
}

TEST_CASE("closed form and timeline agree on modules, layouts and shares of layers, and so does the family") {
  Dice dice(11);
  const Fabric fabric = cluster(2);
  for (int run = 0; run < 120; ++run) {
    const TransformerConfig m = run % 3 == 0 ? small_model() : run % 3 == 1 ? with_experts() : latent();
    ParallelLayout l = layout(dice.pick({1, 2}), dice.pick({1, 2, 4}), dice.pick({1, 2}));
    l.sequence_parallel = l.tp > 1 && (m.experts.count > 0 || dice.roll(2) == 0);
    if (l.pp > 1)
      l.schedule = dice.pick({PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::zb_h1,
                              PipelineSchedule::zb_v, PipelineSchedule::dualpipe_v});
    StepInputs in = step(m, some_of(modules_of(m), dice), l);
    in.layout.sequence_parallel = l.sequence_parallel;
    in.batch.global_batch = 2 * 8 * l.dp;
    if (dice.roll(4) == 0) in.options.recompute = Recompute::full;
    in.options.recompute_layers = dice.pick({1.0, 0.5, 0.25, 0.75});
    in.options.zero = dice.roll(2);
    in.options.overlap_tp = l.sequence_parallel ? dice.pick({TpOverlap::none, TpOverlap::backward, TpOverlap::ring})
                                                : dice.pick({TpOverlap::none, TpOverlap::backward});
    INFO("run " << run << ", " << to_string(l.schedule) << ", tp " << l.tp << " pp " << l.pp << " dp " << l.dp);
    REQUIRE(check_step(in, fabric.rank_count(), {}).empty());
    const StepResult r = forecast(in, fabric, Method::both);
    // Every operation of the timeline is rounded up to a picosecond.
    CHECK(r.simulate->count() == Approx(r.estimate.count()).epsilon(5e-8));
    const CollectiveTime prices = memoized(step_prices(fabric, {}));
    LayoutFamily family(in, fabric, prices);
    const auto quick = family.estimate(
        {l.tp, l.pp, l.dp, in.batch.micro_batch, l.sequence_parallel, in.options.recompute, in.options.zero});
    REQUIRE(quick.ok());
    CHECK(quick->step.count() == Approx(r.estimate.count()).epsilon(1e-12));
  }
}

TEST_CASE("a share of the layers is spread over the model, and is recomputed, kept and counted as that") {
  TrainingOptions o;
  o.recompute_layers = 0.5;
  std::set<int> some;
  for (int layer = 0; layer < 8; ++layer)
    if (recomputes_layer(o, layer)) some.insert(layer);
  CHECK(some == std::set<int>{0, 2, 4, 6});
  for (const int of : {7, 8, 40, 126})
    for (const double share : {0.1, 1. / 3, 0.5, 2. / 3, 0.9, 1.0}) {
      o.recompute_layers = share;
      int count = 0;
      for (int layer = 0; layer < of; ++layer) count += recomputes_layer(o, layer) ? 1 : 0;
      CHECK(std::abs(count - share * of) <= 0.5 + 1e-6);
    }

  StepInputs in = step(small_model(), {}, layout(1, 1, 1));
  in.options.recompute = Recompute::full;
  const StepResult full = forecast_on_two(in), none = forecast_on_two(without(in));
  const FlopTerms of_full = flop_terms(in);
  in.options.recompute_layers = 0.5;
  const StepResult half = forecast_on_two(in);
  CHECK(half.step.count() == Approx((full.step + none.step).count() / 2));
  CHECK(flop_terms(in).recomputed == Approx(of_full.recomputed / 2));
  const MemoryTerms terms = memory_terms(in, 0);
  CHECK(terms.of_chunk.front().layers[mlp_layer] == 8);
  CHECK(terms.of_chunk.front().whole_layers[mlp_layer] == 4);
  const Volume whole = activations_with(in, all_tensors(in, {}), {}).total();
  CHECK(whole > layer_activations(in));
  CHECK(terms.activations().value() - terms.final_norm.value() == Approx(4 * (layer_activations(in) + whole).value()));
}

TEST_CASE("modules come back one after the other, the single operations of a layer all together") {
  const auto back = [](RecomputeModules modules) {
    StepInputs in = step(small_model(), std::move(modules));
    in.options.embedding_and_logits = false;
    return memory_terms(in, 0).recomputed.value();
  };
  const double t = 2048, w = 2, mlp = 3 * w * t * 2048, core = 4 * 2 * 8 * 1024., norm = w * t * 1024;
  CHECK(back({Module::core_attn}) == core);
  CHECK(back({Module::mlp, Module::core_attn}) == mlp);
  CHECK(back({Module::mlp, Module::layernorm}) == mlp + norm);
  CHECK(back({Module::mlp, Module::layernorm, Module::q_proj}) == mlp + 2 * norm + w * t * 512);
}

TEST_CASE("modules that a model has not are refused, all at once") {
  const auto wrong = [](const StepInputs& in) { return check_step(in, 16, {}); };
  CHECK(wrong(step(small_model(), {Module::core_attn, Module::layernorm, Module::mlp, Module::gate_proj})).empty());
  CHECK(
      wrong(step(small_model(), {Module::mla_up_proj, Module::moe, Module::moe_act, Module::shared_experts})).size() ==
      4);
  CHECK(wrong(step(latent(), {Module::q_proj, Module::k_proj, Module::v_proj})).size() == 3);
  TransformerConfig plain = small_model();
  plain.gated_mlp = false;
  CHECK(wrong(step(plain, {Module::gate_proj, Module::up_proj})).size() == 1);
  TransformerConfig experts = with_experts();
  CHECK(wrong(step(experts, {Module::mlp})).empty());
  experts.experts.dense_layers = 0;
  CHECK(wrong(step(experts, {Module::mlp, Module::up_proj})).size() == 2);
  TransformerConfig beside = small_model();
  beside.parallel_mlp.norms = 1;
  CHECK(wrong(step(beside, {Module::o_proj, Module::layernorm})).size() == 1);
  ParallelLayout ulysses = layout(1, 1, 1);
  ulysses.cp = 2;
  ulysses.cp_exchange = ContextExchange::ulysses;
  ulysses.order = RankOrder::tp_cp_ep_dp_pp;
  CHECK(wrong(step(small_model(), {Module::k_proj, Module::core_attn}, ulysses)).size() == 1);
  StepInputs share = step(small_model(), {Module::core_attn});
  for (const double bad : {0.0, -1.0, 1.5}) {
    share.options.recompute_layers = bad;
    CHECK(wrong(share).size() == 1);
  }
}

TEST_CASE("no module, or one twice, is refused; a share of the layers that is none of them is said") {
  StepInputs in = step(small_model(), {});
  in.options.recompute = Recompute::selective;
  REQUIRE(check_step(in, 16, {}).size() == 1);
  CHECK(check_step(in, 16, {}).front().message ==
        "recompute_modules is empty: recompute selective computes nothing once more");
  CHECK(check_step(without(in), 16, {}).empty());
  in = step(small_model(), {Module::mlp, Module::core_attn, Module::mlp, Module::mlp});
  Origins origins(Location{"s.yaml", 1, 1});
  origins.set("training.recompute_modules.2", {"s.yaml", 7, 5});
  const Diagnostics twice = check_step(in, 16, origins);
  REQUIRE(twice.size() == 2);
  CHECK(twice.front().message == "recompute_modules has mlp twice");
  CHECK(twice.front().where.line == 7);

  in = step(small_model(), {Module::mlp});
  in.options.recompute = Recompute::full;
  const auto warned = [&] {
    const auto list = forecast_on_two(in).warnings;
    return std::ranges::count_if(list, [](const std::string& w) { return w.starts_with("recompute_layers chooses"); });
  };
  for (const double share : {0.0625, 0.5, 1.0}) {
    in.options.recompute_layers = share;
    CHECK(warned() == 0);
  }
  in.options.recompute_layers = 0.06;
  CHECK(warned() == 1);
  in.options.recompute = Recompute::none;
  CHECK(warned() == 0);
}
