#include "workload/serving/serving.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "collcast/evaluate/symmetry.hpp"
#include "collcast/workload/search.hpp"
#include "workload/forecast.hpp"
#include "workload/serving/serving_passes.hpp"
#include "workload/serving/serving_timeline.hpp"
#include "workload/warnings.hpp"

namespace collcast::workload {

namespace {

StepInputs pass_of(const StepInputs& in, int sequences, int tokens, int context) {
  StepInputs pass = in;
  pass.batch.sequence = tokens;
  pass.batch.context = context;
  pass.batch.micro_batch = sequences;
  pass.batch.global_batch = sequences * in.serving->micro_batches * in.layout.dp;
  pass.model.dropout = 0;
  return pass;
}

Seconds total(const std::vector<Seconds>& times) {
  Seconds sum{};
  for (const Seconds t : times) sum += t;
  return sum;
}

/// The longest that anything is held by one micro-batch: a stage, or a link between two.
Seconds slowest_of(const ServingTimes& t) {
  Seconds most = t.back;
  for (const std::vector<Seconds>* times : {&t.stage, &t.transfer})
    for (const Seconds one : *times) most = std::max(most, one);
  return most;
}

ServingTimes without_messages(ServingTimes t) {
  for (Seconds& one : t.transfer) one = {};
  t.back = {};
  return t;
}

/// Of units whose attention meets more keys with every token.
int& count_of(ContextLayers& layers, UnitKind kind) {
  return kind == UnitKind::draft ? layers.drafts : is_windowed(kind) ? layers.windowed : layers.full;
}
ContextLayers layers_of(const StagePlan& stage) {
  ContextLayers out;
  for (const Unit& u : stage.units)
    if (u.kind == UnitKind::draft || attends_to_keys(u.kind)) ++count_of(out, u.kind);
  return out;
}

ServingTimes times_of(const StepPlan& plan, Seconds back) {
  ServingTimes t{{}, plan.transfer, back, plan.micro_batches};
  for (const StagePlan& stage : plan.stages) t.stage.push_back(stage.time().forward);
  return t;
}

ServingTimes grown(const TokenTerms& t, const LongerContext& longer) {
  ServingTimes out = t.shortest;
  for (std::size_t i = 0; i < out.stage.size(); ++i) out.stage[i] += t.layers[i].of(longer);
  return out;
}

void add(TokenTerms::Part& part, const LongerContext& longer, Seconds time) {
  ++part.tokens;
  part.longer.full += longer.full;
  part.longer.windowed += longer.windowed;
  part.longer.draft += longer.draft;
  part.time += time;
}
void mean(TokenTerms::Part& part) {
  if (part.tokens == 0) return;
  part.longer.full /= part.tokens;
  part.longer.windowed /= part.tokens;
  part.longer.draft /= part.tokens;
  part.time /= part.tokens;
}

/// The stage that is as slow as anything; nothing: a link is.
std::optional<int> slowest_stage(const ServingTimes& t) {
  const auto slowest = std::max_element(t.stage.begin(), t.stage.end());
  if (*slowest < slowest_of(t)) return std::nullopt;
  return static_cast<int>(slowest - t.stage.begin());
}

/// The tokens behind the first: their mean, exactly summed; the first and the last of them; what messages add.
struct Tokens {
  TokenTerms terms;
  Seconds first{}, last{}, messages{};
};
Tokens tokens_of(const StepInputs& in, const PricedPasses& p) {
  ContextGrowth growth(in);
  const int count = in.serving->mean_output_tokens() - 1;
  Tokens out;
  TokenTerms& terms = out.terms;
  terms.shortest = times_of(p.tokens, p.back);
  for (const StagePlan& stage : p.tokens.stages) terms.layers.push_back(layers_of(stage));
  Seconds bare{};
  TokenTerms::Part all;
  for (int k = 0; k < count; ++k) {
    const LongerContext longer = growth.at(in.serving->mean_prompt_tokens() + k);
    const ServingTimes times = grown(terms, longer);
    const Seconds round = round_time(times), turns = turns_time(times), one = std::max(round, turns);
    if (round >= turns) {
      add(terms.round, longer, round);
    } else {
      const std::optional<int> slowest = slowest_stage(times);
      terms.slowest = terms.turns.tokens == 0 || terms.slowest == slowest ? slowest : std::nullopt;
      add(terms.turns, longer, turns);
    }
    add(all, longer, one);
    bare += token_time(without_messages(times));
    if (k == 0) out.first = one;
    out.last = one;
  }
  mean(terms.round);
  mean(terms.turns);
  mean(all);
  terms.mean = all.time;
  terms.longer = all.longer;
  out.messages = terms.mean - bare / count;
  return out;
}

/// The most work, of prompts and tokens together.
std::size_t busiest(const StepInputs& in, const ServingTimes& prompts, const TokenTerms& terms) {
  std::size_t stage = 0;
  Seconds most{};
  const ServingTimes tokens = grown(terms, terms.longer);
  for (std::size_t i = 0; i < prompts.stage.size(); ++i) {
    const Seconds work = prompts.stage[i] + in.serving->passes(in.serving->mean_output_tokens()) * tokens.stage[i];
    if (work > most) {
      most = work;
      stage = i;
    }
  }
  return stage;
}

/// What is read off the difference of two passes may leave a part below zero, be it by the picoseconds that a run is
/// rounded up by: the other parts have that less, each in proportion, and the sum stays.
void leave_none_below_zero(Breakdown& b) {
  const Seconds whole = b.total();
  Seconds above{};
  for (Seconds* part : {&b.compute, &b.tp_exposed, &b.pp_exposed, &b.ep_exposed, &b.bubble})
    above += * part = std::max(*part, Seconds{});
  if (above == whole || above == Seconds{}) return;
  for (Seconds* part : {&b.compute, &b.tp_exposed, &b.pp_exposed, &b.ep_exposed, &b.bubble}) *part *= whole / above;
}

/// Of a pass on one stage; what is idle is the bubble, but for what messages add.
void add_breakdown(ServingPass& pass, const StagePlan& stage) {
  Breakdown& b = pass.breakdown = {};
  b.compute = pass.micro_batches * (stage.compute_time() + pass.longer);
  b.tp_exposed = pass.micro_batches * stage.tp_time();
  b.ep_exposed = pass.micro_batches * stage.ep_time();
  b.bubble = pass.time() - b.compute - b.tp_exposed - b.ep_exposed;
  leave_none_below_zero(b);
  tell_messages_from_bubble(b, pass.messages);
}

Breakdown sum_of(const Breakdown& a, const Breakdown& b, double times) {
  return {a.compute + times * b.compute,
          a.tp_exposed + times * b.tp_exposed,
          a.pp_exposed + times * b.pp_exposed,
          {},
          a.ep_exposed + times * b.ep_exposed,
          {},
          a.bubble + times * b.bubble,
          {},
          a.other + times * b.other};
}

void add_layer(ServingPhase& phase, const StepPlan& plan, std::size_t stage, const StepInputs& pass) {
  const StagePlan& shown = with_shown_layer(plan, stage);
  const UnitWork& work = shown.work(*shown_layer(shown));
  phase.layer = work.forward_time();
  phase.layer_comm = work.sum_of([](const Stretch& s) { return s.computes() ? Seconds{} : s.time; });
  phase.operations = layer_operations(pass).forward;
  phase.linear_operations = linear_attention_operations(pass).forward;
  phase.feed_forward_operations = feed_forward_operations(pass).forward;
  phase.collectives = plan.stages[stage].collectives;
}

/// What the times come to.
void put_rates(StepResult& result, const StepInputs& in) {
  InferenceResult& served = *result.inference;
  const int tokens = in.serving->output_tokens;
  result.step = served.prefill.time() + (tokens - 1) * served.decode.time();
  const double sequences = static_cast<double>(in.serving->batch) * in.layout.dp;
  served.tokens_per_s = sequences * tokens / result.step.count();
  if (in.serving->load) {
    const Seconds further = served.further_prompt();
    served.load = load_times(run_load(*in.serving),
                             {served.prefill.pass.time() - further, further / in.serving->mean_prompt_tokens(),
                              served.decode.pass.time(), in.serving->first_token_overhead});
    served.tokens_per_s = in.layout.dp * served.load->tokens_per_s;
  }
  result.tokens_per_s_per_gpu = served.tokens_per_s / in.layout.world();
  if (!in.serving->is_continuous()) served.tokens_per_s = sequences / served.decode.time().count();
}

/// What a phase waits for, on the mean.
struct Waits {
  double prompts = 0, prompt_passes = 0, tokens = 0;
};
void put_phase(ServingPhase& phase, const Waits& waits, const InferenceResult& served) {
  const ServingPass &one = served.prefill.pass, &token = served.decode.pass;
  const int k = served.full_pass ? served.full_pass->prompts : 1;
  const ServingPass& full = served.full_pass ? served.full_pass->pass : one;
  const auto sum = [&](Seconds prompt, Seconds together, Seconds of_token) {
    const Seconds further = further_prompt(prompt, together, k);
    return waits.prompts * further + waits.prompt_passes * (prompt - further) + waits.tokens * of_token;
  };
  phase.estimate = sum(one.estimate, full.estimate, token.estimate);
  if (one.simulate) phase.simulate = sum(*one.simulate, *full.simulate, *token.simulate);
  // The same as multiples of the passes, whose parts are known.
  const Seconds further = served.further_prompt();
  double of_one = waits.prompts, of_full = 0;
  if (further == Seconds{}) {
    of_one = waits.prompt_passes;
  } else if (further < one.time()) {
    of_full = (waits.prompts - waits.prompt_passes) / (k - 1);
    of_one = waits.prompt_passes - of_full;
  }
  phase.breakdown =
      sum_of(sum_of(sum_of({}, one.breakdown, of_one), full.breakdown, of_full), token.breakdown, waits.tokens);
  if (of_full < 0 || of_one < 0) leave_none_below_zero(phase.breakdown);
}

/// What the host takes is part of no pass.
void add_overhead(ServingPhase& phase, Seconds overhead) {
  phase.estimate += overhead;
  if (phase.simulate) *phase.simulate += overhead;
  phase.breakdown.other = overhead;
}

void put_times(StepResult& result, const StepInputs& in, const PricedPasses& p,
               const std::optional<SimulatedPasses>& run) {
  InferenceResult& served = *result.inference;
  const Tokens tokens = tokens_of(in, p);
  const ServingTimes prompts = times_of(p.prompts, {});
  const PromptShares share = prompt_shares(*in.serving);
  ServingPass &prompt = served.prefill.pass, &token = served.decode.pass;
  if (p.full) {
    if (!served.full_pass) served.full_pass.emplace();
    served.full_pass->prompts = in.serving->prompts_in_full_pass();
    const ServingTimes times = times_of(*p.full, {});
    ServingPass& full = served.full_pass->pass;
    if (!run) {
      served.full_pass->times = times;
      full.estimate = prompts_time(times);
    } else {
      full.simulate = run->full;
    }
    full.messages = prompts_time(times) - prompts_time(without_messages(times));
  }
  if (!run) {
    served.prompts = prompts;
    served.tokens = tokens.terms;
    prompt.estimate = prompts_time(prompts);
    token.estimate = tokens.terms.mean;
    served.first_token = share.passes_in_tpot * tokens.first + share.in_tpot * prompt.estimate;
    served.last_token = share.passes_in_tpot * tokens.last + share.in_tpot * prompt.estimate;
  } else {
    prompt.simulate = run->prompts;
    token.simulate = run->tokens.mean();
    served.simulated_tokens = run->tokens;
  }
  const std::size_t stage = busiest(in, prompts, tokens.terms);
  result.stage.stage = static_cast<int>(stage);
  result.uneven = uneven_collectives(p.prompts, stage);
  std::ranges::copy(uneven_collectives(p.tokens, stage), std::back_inserter(result.uneven));
  prompt.messages = prompts_time(prompts) - prompts_time(without_messages(prompts));
  token.messages = tokens.messages;
  token.longer = tokens.terms.layers[stage].of(tokens.terms.longer);
  const auto put_parts = [&](ServingPass& pass, const StepPlan& plan) {
    pass.micro_batches = plan.micro_batches;
    pass.stage = stage_terms(plan.stages[stage], static_cast<int>(stage));
    add_breakdown(pass, plan.stages[stage]);
  };
  put_parts(prompt, p.prompts);
  put_parts(token, p.tokens);
  if (p.full) put_parts(served.full_pass->pass, *p.full);
  put_phase(served.prefill, {share.in_ttft, share.prompt_passes_in_ttft, share.tokens_in_ttft}, served);
  add_overhead(served.prefill, in.serving->first_token_overhead);
  put_phase(served.decode, {share.in_tpot, share.prompt_passes_in_tpot, share.passes_in_tpot}, served);
  if (!run && in.serving->is_continuous()) served.first_token = served.last_token = served.decode.estimate;
  result.breakdown = sum_of(served.prefill.breakdown, served.decode.breakdown, in.serving->output_tokens - 1);
  result.compute_to_communication = compute_to_communication(result.breakdown);
  add_layer(served.prefill, p.prompts, stage, prompt_pass(in));
  add_layer(served.decode, p.tokens, stage, token_pass(in, in.serving->mean_prompt_tokens()));
}

}  // namespace

StepInputs prompt_pass(const StepInputs& in) {
  const Serving& s = *in.serving;
  return pass_of(in, in.serving->is_continuous() ? 1 : s.batch / s.micro_batches, s.mean_prompt_tokens(), 0);
}
StepInputs full_prompt_pass(const StepInputs& in) {
  return pass_of(in, in.serving->prompts_in_full_pass(), in.serving->mean_prompt_tokens(), 0);
}
StepInputs token_pass(const StepInputs& in, int context) {
  return pass_of(in, in.serving->batch / in.serving->micro_batches, in.serving->verified_tokens(), context);
}

Seconds prompts_time(const ServingTimes& t) {
  return total(t.stage) + total(t.transfer) + (t.micro_batches - 1) * slowest_of(t);
}

Seconds round_time(const ServingTimes& t) { return total(t.stage) + total(t.transfer) + t.back; }
Seconds turns_time(const ServingTimes& t) { return t.micro_batches * slowest_of(t); }
Seconds token_time(const ServingTimes& t) { return std::max(round_time(t), turns_time(t)); }

namespace {

/// All that needs no simulation and no names of algorithms.
Result<StepResult> by_formula(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time,
                              const Origins& origins) {
  if (Diagnostics wrong = check_memory(in, origins); !wrong.empty()) return wrong;
  StepResult result;
  result.inference.emplace();
  result.micro_batches = in.serving->micro_batches;
  for (int stage = 0; stage < in.layout.pp; ++stage)
    result.memory_by_stage.push_back(stage_memory(in, stage, fabric.ranks_per_node()));
  result.memory = *std::max_element(result.memory_by_stage.begin(), result.memory_by_stage.end(),
                                    [](const MemoryUse& a, const MemoryUse& b) { return a.peak() < b.peak(); });
  const Result<PricedPasses> passes = price_passes(in, fabric, time);
  if (!passes) return placed(passes.errors(), origins);
  put_times(result, in, *passes, {});
  put_rates(result, in);
  result.estimate = result.step;
  return result;
}

}  // namespace

Result<StepResult> forecast_inference(const StepInputs& in, const Fabric& fabric, ForecastPrices& prices, Method method,
                                      StepTimeline* timeline, const EngineOptions& engine, const Origins& origins) {
  Result<StepResult> closed_form = by_formula(in, fabric, prices.by_estimate(), origins);
  if (!closed_form) return closed_form.errors();
  StepResult result = std::move(closed_form).value();
  if (method != Method::estimate) {
    const Result<PricedPasses> by_engine = price_passes(in, fabric, prices.by_simulation());
    if (!by_engine) return placed(by_engine.errors(), origins);
    if (Diagnostics wrong =
            check_operations(by_engine->operations(), origins.of("inference.microbatches"), prices.room());
        !wrong.empty())
      return wrong;
    const Result<SimulatedPasses> run = simulate_passes(in, *by_engine, fabric, engine, timeline);
    if (!run) return run.errors();
    put_times(result, in, *by_engine, *run);
    put_rates(result, in);
    result.simulated_operations = run->operations;
    result.ranks = in.layout.world();
    result.classes = in.layout.pp;
    result.simulate = result.step;
  }
  for (ServingPhase* phase : {&result.inference->prefill, &result.inference->decode})
    if (Diagnostics wrong = name_algorithms(phase->collectives, prices); !wrong.empty()) return wrong;
  result.layer.forward = result.inference->prefill.layer;
  result.operations.forward = result.inference->prefill.operations;
  result.warnings = serving_warnings(in, fabric, result.memory);
  add_uneven_groups(fabric, result.uneven, result.warnings);
  if (auto ratio = served_ratio_warning(in, fabric, result, prices.by_estimate()))
    result.warnings.push_back(std::move(*ratio));
  return result;
}

}  // namespace collcast::workload

namespace collcast {

Result<StepResult> estimate_serving(const StepInputs& in, const Fabric& fabric, const CollectiveTime& prices) {
  const CollectiveTime at_front = [&](const CollectiveRequest& request) {
    return prices(moved_to_front(fabric, request));
  };
  return workload::by_formula(in, fabric, at_front, {});
}

}  // namespace collcast
