#include "workload/serving.hpp"

#include <algorithm>
#include <utility>

#include "collcast/base/units.hpp"
#include "workload/attention_core.hpp"
#include "workload/forecast.hpp"
#include "workload/memory_remedies.hpp"
#include "workload/parameters.hpp"
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

bool is_continuous(const StepInputs& in) { return in.serving->batching == Batching::continuous; }

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

/// By how much a layer takes longer than with the shortest context: with all keys, and with those of a window.
struct Longer {
  Seconds of_full{}, of_windowed{};
  bool any() const { return of_full != Seconds{} || of_windowed != Seconds{}; }
  Seconds of(UnitKind kind) const { return is_windowed(kind) ? of_windowed : of_full; }
  Seconds of(const StagePlan& stage) const {
    int full = 0, windowed = 0;
    for (const Unit& u : stage.units)
      if (is_layer(u.kind)) ++(is_windowed(u.kind) ? windowed : full);
    return full * of_full + windowed * of_windowed;
  }
};

ServingTimes times_of(const StepPlan& plan, Seconds back) {
  ServingTimes t{{}, plan.transfer, back, plan.micro_batches};
  for (const StagePlan& stage : plan.stages) t.stage.push_back(stage.time().forward);
  return t;
}

/// The chosen tokens on their way to the embedding, of the slowest TP rank.
Result<Seconds> tokens_back(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  if (in.layout.pp == 1) return Seconds{};
  constexpr double token_bytes = 4;
  Seconds slowest{};
  for (const CollectiveRequest& request :
       stage_messages(in.layout, fabric, in.layout.pp - 1, whole(token_bytes * in.batch.micro_batch))) {
    const Result<Seconds> one = time(request);
    if (!one) return one.errors();
    slowest = std::max(slowest, *one);
  }
  return slowest;
}

/// Both kinds of passes, priced by one method.
struct Priced {
  StepPlan prompts, tokens;  ///< the tokens behind the prompts: the shortest context
  Seconds back{};
};
Result<Priced> priced(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  const StepInputs token = token_pass(in, in.serving->prompt_tokens);
  Result<StepPlan> prompts = make_plan(prompt_pass(in), fabric, time);
  if (!prompts) return prompts.errors();
  Result<StepPlan> tokens = make_plan(token, fabric, time);
  if (!tokens) return tokens.errors();
  const Result<Seconds> back = tokens_back(token, fabric, time);
  if (!back) return back.errors();
  return Priced{std::move(prompts).value(), std::move(tokens).value(), *back};
}

/// By how much a layer takes longer with `context` than with the prompts alone.
class Growth {
 public:
  explicit Growth(const StepInputs& in) : pass_(token_pass(in, in.serving->prompt_tokens)) {
    for (int layer = 0; layer < in.model.layers; ++layer) (has_window(in.model, layer) ? windowed_ : full_) = true;
    first_ = cores(in.serving->prompt_tokens);
  }
  Longer at(int context) {
    const Longer now = cores(context);
    return {now.of_full - first_.of_full, now.of_windowed - first_.of_windowed};
  }

 private:
  Longer cores(int context) {
    return {full_ ? core(context, false) : Seconds{}, windowed_ ? core(context, true) : Seconds{}};
  }
  Seconds core(int context, bool windowed) {
    pass_.batch.context = context;
    const KernelTimer timer(pass_);
    const Share share(pass_);
    return AttentionCore(pass_, timer, share, windowed).forward(Category::forward, 0).front().operations.front().time;
  }
  StepInputs pass_;
  bool full_ = false, windowed_ = false;
  Longer first_;
};

ServingTimes grown(const Priced& p, const Longer& growth) {
  ServingTimes t = times_of(p.tokens, p.back);
  for (std::size_t i = 0; i < t.stage.size(); ++i) t.stage[i] += growth.of(p.tokens.stages[i]);
  return t;
}

/// The tokens behind the first: their mean, exactly summed; the first and the last of them; what messages add.
struct Tokens {
  Seconds mean{}, first{}, last{}, messages{};
  Longer growth{};
};
Tokens tokens_of(const StepInputs& in, const Priced& p) {
  Growth growth(in);
  const int count = in.serving->output_tokens - 1;
  Tokens out;
  Seconds sum{}, bare{};
  for (int k = 0; k < count; ++k) {
    const Longer more = growth.at(in.serving->prompt_tokens + k);
    const ServingTimes times = grown(p, more);
    const Seconds one = token_time(times);
    sum += one;
    bare += token_time(without_messages(times));
    out.growth.of_full += more.of_full;
    out.growth.of_windowed += more.of_windowed;
    if (k == 0) out.first = one;
    out.last = one;
  }
  out.mean = sum / count;
  out.messages = out.mean - bare / count;
  out.growth.of_full /= count;
  out.growth.of_windowed /= count;
  return out;
}

/// The most work, of prompts and tokens together.
std::size_t busiest(const StepInputs& in, const Priced& p, const Longer& growth) {
  std::size_t stage = 0;
  Seconds most{};
  const ServingTimes prompts = times_of(p.prompts, {}), tokens = grown(p, growth);
  for (std::size_t i = 0; i < prompts.stage.size(); ++i) {
    const Seconds work = prompts.stage[i] + (in.serving->output_tokens - 1) * tokens.stage[i];
    if (work > most) {
      most = work;
      stage = i;
    }
  }
  return stage;
}

/// On one stage; what is idle is the bubble, but for what messages add.
Breakdown breakdown_of(const StagePlan& stage, int micro_batches, const Longer& growth, Seconds whole_time,
                       Seconds messages) {
  Breakdown b;
  b.compute = micro_batches * (stage.compute_time() + growth.of(stage));
  b.tp_exposed = micro_batches * stage.tp_time();
  b.ep_exposed = micro_batches * stage.ep_time();
  b.bubble = std::max(whole_time - b.compute - b.tp_exposed - b.ep_exposed, Seconds{});
  tell_messages_from_bubble(b, messages);
  return b;
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
          {}};
}

void add_layer(ServingPhase& phase, const StagePlan& stage, const StepInputs& pass) {
  const Unit* layer = shown_layer(stage);
  check(layer != nullptr, "every stage has a layer");
  const UnitWork& work = stage.work(*layer);
  phase.layer = work.forward_time();
  phase.layer_comm = work.sum_of([](const Stretch& s) { return s.computes() ? Seconds{} : s.time; });
  phase.operations = layer_operations(pass).forward;
  phase.collectives = stage.collectives;
}

/// The micro-batches on their way through the stages, as operations.
class Rounds {
 public:
  void start(const StepPlan& plan) {
    for (std::size_t i = 0; i < plan.stages.size(); ++i) {
      const Rank rank = plan.stages[i].rank;
      stages_.push_back(schedule.add_stream({"stage " + std::to_string(i), rank}));
      links_.push_back(schedule.add_stream({"messages of stage " + std::to_string(i), rank}));
    }
    ready_.assign(static_cast<std::size_t>(plan.micro_batches), std::nullopt);
  }

  /// Nothing of what follows begins before all of this is over.
  void meet() { ready_.assign(ready_.size(), last_); }

  /// All micro-batches once through all stages, each after its own round before.
  void go(const StepPlan& plan, const Longer& growth, Seconds back, const std::string& what) {
    for (std::size_t m = 0; m < ready_.size(); ++m) {
      std::optional<OpId> before = ready_[m];
      for (std::size_t i = 0; i < plan.stages.size(); ++i) {
        before = through(plan.stages[i], stages_[i], growth, what + " mb" + std::to_string(m), before);
        last_ = before;
        if (i + 1 < plan.stages.size()) before = send(i, plan.transfer[i], *before);
      }
      if (back > Seconds{}) before = send(plan.stages.size() - 1, back, *before);
      ready_[m] = before;
    }
  }

  OpId last() const { return *last_; }
  Schedule schedule;

 private:
  OpId put(StreamId stream, Work work, std::optional<OpId> before, const Label& label) {
    const After after{before.value_or(OpId(0))};
    return schedule.add(stream, work, before ? std::span(&after, 1) : std::span<const After>(), label);
  }
  OpId through(const StagePlan& stage, StreamId stream, const Longer& growth, const std::string& what,
               std::optional<OpId> before) {
    for (const Unit& unit : stage.units) {
      bool grows = growth.any() && is_layer(unit.kind);
      for (const Stretch& s : stage.work(unit).forward) {
        const Seconds time = s.time + (grows && s.computes() ? growth.of(unit.kind) : Seconds{});
        if (s.computes()) grows = false;
        const Label label{what + " " + unit.label + " " + s.name, std::string(to_string(s.category))};
        before = s.computes() ? put(stream, Compute{stage.rank, time}, before, label)
                              : put(stream, Delay{time}, before, label);
      }
    }
    return *before;
  }
  OpId send(std::size_t stage, Seconds time, OpId after) {
    return put(links_[stage], Delay{time}, after, {"send", std::string(to_string(Category::pp))});
  }

  std::vector<StreamId> stages_, links_;
  std::vector<std::optional<OpId>> ready_;
  std::optional<OpId> last_;
};

struct Simulated {
  Seconds prompts{}, tokens{};
  std::int64_t operations = 0;
};

/// Prompts and two rounds behind them, and of tokens at the middle and the end of the answers two rounds each.
Result<Simulated> simulated(const StepInputs& in, const Priced& p, const Fabric& fabric, const EngineOptions& engine,
                            StepTimeline* timeline) {
  const EngineOptions options{Sharing::max_min, engine.watch};
  Growth growth(in);
  const int count = in.serving->output_tokens - 1, middle = (count - 1) / 2;
  Simulated out;
  const auto finish = [](const Timeline& run, OpId op) { return to_seconds(run.ops[op.value()].finish); };

  Rounds rounds;
  rounds.start(p.prompts);
  rounds.go(p.prompts, {}, {}, "prompt");
  const OpId prompts = rounds.last();
  rounds.meet();
  rounds.go(p.tokens, {}, p.back, "token 1");
  const OpId one = rounds.last();
  rounds.go(p.tokens, {}, p.back, "token 2");
  Result<Timeline> run = simulate(fabric, rounds.schedule, options);
  if (!run) return run.errors();
  out.prompts = finish(*run, prompts);
  out.operations = static_cast<std::int64_t>(run->ops.size());
  const Seconds first = finish(*run, rounds.last()) - finish(*run, one);
  if (timeline) *timeline = {std::move(rounds.schedule), std::move(run).value()};

  const auto at = [&](int token) -> Result<Seconds> {
    if (token == 0) return first;
    const Longer more = growth.at(in.serving->prompt_tokens + token);
    Rounds later;
    later.start(p.tokens);
    later.go(p.tokens, more, p.back, "token");
    const OpId before = later.last();
    later.go(p.tokens, more, p.back, "token");
    Result<Timeline> ran = simulate(fabric, later.schedule, options);
    if (!ran) return ran.errors();
    out.operations += static_cast<std::int64_t>(ran->ops.size());
    return finish(*ran, later.last()) - finish(*ran, before);
  };
  const Result<Seconds> mid = at(middle);
  if (!mid) return mid.errors();
  const Result<Seconds> last = at(count - 1);
  if (!last) return last.errors();
  // Straight from the first to the middle and on to the last; the middle counts once.
  out.tokens = ((middle + 1) * (first + *mid) / 2 + (count - middle) * (*mid + *last) / 2 - *mid) / count;
  return out;
}

void put_times(StepResult& result, const StepInputs& in, const Priced& p, std::optional<Simulated> run) {
  InferenceResult& served = *result.inference;
  const Tokens tokens = tokens_of(in, p);
  const ServingTimes prompts = times_of(p.prompts, {});
  const int micro_batches = in.serving->micro_batches, further = in.serving->output_tokens - 1;
  const PromptShares share = prompt_shares(*in.serving);
  const Seconds prompt = run ? run->prompts : prompts_time(prompts), token = run ? run->tokens : tokens.mean;
  if (!run) {
    served.prefill.estimate = share.in_ttft * prompt;
    served.decode.estimate = token + share.in_tpot * prompt;
    served.first_token = tokens.first + share.in_tpot * prompt;
    served.last_token = tokens.last + share.in_tpot * prompt;
    if (is_continuous(in)) served.first_token = served.last_token = served.decode.estimate;
  } else {
    served.prefill.simulate = share.in_ttft * prompt;
    served.decode.simulate = token + share.in_tpot * prompt;
  }
  const std::size_t stage = busiest(in, p, tokens.growth);
  result.stage.stage = static_cast<int>(stage);
  const Breakdown of_prompt = breakdown_of(p.prompts.stages[stage], micro_batches, {}, prompt,
                                           prompts_time(prompts) - prompts_time(without_messages(prompts)));
  const Breakdown of_token = breakdown_of(p.tokens.stages[stage], micro_batches, tokens.growth, token, tokens.messages);
  served.prefill.breakdown = sum_of({}, of_prompt, share.in_ttft);
  served.decode.breakdown = sum_of(of_token, of_prompt, share.in_tpot);
  result.breakdown = sum_of(served.prefill.breakdown, served.decode.breakdown, further);
  add_layer(served.prefill, p.prompts.stages[stage], prompt_pass(in));
  add_layer(served.decode, p.tokens.stages[stage], token_pass(in, in.serving->prompt_tokens));
}

std::vector<std::string> serving_warnings(const StepInputs& in, const Fabric& fabric, const MemoryUse& m) {
  std::vector<std::string> list;
  if (!m.fits())
    list.push_back("stage " + std::to_string(m.stage) + " needs " + format_bytes(volume(m.peak())) + " of the GPU's " +
                   format_bytes(volume(m.capacity)) + ", " + format_bytes(volume(m.kv_cache)) +
                   " of them for keys and values; what breaks the limit: " + breaking_part(m).name + "; " +
                   what_would_fit(in, fabric));
  if (in.serving->micro_batches < in.layout.pp)
    list.push_back(too_few_micro_batches(in.serving->micro_batches, in.layout.pp) +
                   "; more microbatches of a larger batch, or a smaller pp would help");
  return list;
}

}  // namespace

StepInputs prompt_pass(const StepInputs& in) {
  const Serving& s = *in.serving;
  return pass_of(in, is_continuous(in) ? 1 : s.batch / s.micro_batches, s.prompt_tokens, 0);
}
StepInputs token_pass(const StepInputs& in, int context) {
  return pass_of(in, in.serving->batch / in.serving->micro_batches, 1, context);
}

PromptShares prompt_shares(const Serving& s) {
  if (s.batching == Batching::at_once) return {};
  const double others = s.batch - 1, rounds = s.output_tokens - 1, before = others / (2 * rounds);
  return {1 + before, (others - before) / rounds};
}

Seconds prompts_time(const ServingTimes& t) {
  return total(t.stage) + total(t.transfer) + (t.micro_batches - 1) * slowest_of(t);
}

Seconds token_time(const ServingTimes& t) {
  return std::max(total(t.stage) + total(t.transfer) + t.back, t.micro_batches * slowest_of(t));
}

namespace {

struct Needs {  ///< of memory, bytes
  double weights = 0, kept = 0, activations = 0, buffers = 0;
  double all() const { return weights + kept + activations + buffers; }
};

/// Adds what a pass needs while it is in the stage, where it is more than another pass did.
void add_pass(Needs& out, const StepInputs& in, const StepInputs& pass, std::span<const StageLayer> layers, int stage) {
  const Share share(pass);
  const double w = KernelTimer(pass).precision().activation;
  const double widths = in.model.gated_mlp ? 2 : 1;
  double widest = std::max(share.query + share.key + share.value, widths * share.ffn) * share.tokens;
  if (std::any_of(layers.begin(), layers.end(), [&](const StageLayer& l) { return has_experts(in.model, l.number); }))
    widest = std::max(widest, share.taken * (share.hidden + widths * share.expert));
  const double messages = in.layout.pp > 1 ? 2 * tp_bytes(pass) : 0;
  out.activations = std::max(out.activations, w * (2 * share.tokens * share.hidden + widest));
  out.buffers =
      std::max(out.buffers, messages + (has_head(in, stage) ? w * pass.batch.micro_batch * in.model.vocab : 0));
}

Needs needs(const StepInputs& in, int stage) {
  const StepInputs prompts = prompt_pass(in), tokens = token_pass(in, 0);
  const KernelTimer timer(prompts);
  const Share share(prompts);
  const double w = timer.precision().activation;
  const std::vector<StageLayer> layers = layers_of_stage(in, stage);
  Needs out;
  std::size_t unit = 0;
  const std::size_t first_layer = has_embedding(in, stage) ? 1 : 0;
  for (const UnitParameters& parameters : unit_parameters(in, stage)) {
    const bool layer = unit >= first_layer && unit < first_layer + layers.size();
    out.weights += (layer ? timer.precision().weight : w) * parameters.all();
    ++unit;
  }
  const LatentAttention& latent = in.model.latent;
  const double of_token = latent.kv_rank > 0 ? latent.kv_rank + latent.rope : share.key + share.value;
  const double kept = in.serving->kept_tokens(), in_window = std::min<double>(kept, in.model.window.tokens);
  double tokens_of_layers = 0;
  for (const StageLayer& layer : layers)
    tokens_of_layers += in.serving->kv_window && has_window(in.model, layer.number) ? in_window : kept;
  out.kept = in.serving->kv_bytes * of_token * in.serving->batch * tokens_of_layers;
  for (const StepInputs& pass : {prompts, tokens}) add_pass(out, in, pass, layers, stage);
  return out;
}

}  // namespace

MemoryUse serving_memory(const StepInputs& in, int stage, int gpus_per_node) {
  const Needs n = needs(in, stage);
  MemoryUse use;
  use.stage = stage;
  use.parameters = whole(n.weights);
  use.kv_cache = whole(n.kept);
  use.activations = whole(n.activations);
  use.buffers = whole(n.buffers);
  use.capacity = in.gpu.memory;
  // Replicas of a server talk to each other where they share experts.
  ParallelLayout layout = in.layout;
  if (layout.ep == 1) layout.dp = 1;
  add_runtime(use, layout, gpus_per_node, use.parameters + use.kv_cache);
  return use;
}

MemoryUse peak_serving_memory(const StepInputs& in, int gpus_per_node) {
  MemoryUse most = serving_memory(in, 0, gpus_per_node);
  for (int stage = 1; stage < in.layout.pp; ++stage)
    if (const MemoryUse use = serving_memory(in, stage, gpus_per_node); use.peak() > most.peak()) most = use;
  return most;
}

Result<StepResult> forecast_inference(const StepInputs& in, const Fabric& fabric, ForecastPrices& prices, Method method,
                                      StepTimeline* timeline, const EngineOptions& engine, const Origins& origins) {
  // 2^60: a sum of a few such sizes still fits 64 bits.
  constexpr double most = 0x1p60;
  for (int stage = 0; stage < in.layout.pp; ++stage)
    if (const double needed = needs(in, stage).all(); needed > most)
      return Diagnostic{origins.of(needs(in, stage).weights > most ? "model" : "inference.batch"),
                        "a rank needs " + format_bytes(Volume(needed)) + " of memory",
                        "expected up to " + format_bytes(Volume(most))};
  StepResult result;
  result.inference.emplace();
  result.micro_batches = in.serving->micro_batches;
  for (int stage = 0; stage < in.layout.pp; ++stage)
    result.memory_by_stage.push_back(serving_memory(in, stage, fabric.ranks_per_node()));
  result.memory = *std::max_element(result.memory_by_stage.begin(), result.memory_by_stage.end(),
                                    [](const MemoryUse& a, const MemoryUse& b) { return a.peak() < b.peak(); });

  const Result<Priced> by_formula = priced(in, fabric, prices.by_estimate());
  if (!by_formula) return placed(by_formula.errors(), origins);
  put_times(result, in, *by_formula, {});
  InferenceResult& served = *result.inference;
  const int further = in.serving->output_tokens - 1;
  result.estimate = result.step = served.prefill.time() + further * served.decode.time();
  if (method != Method::estimate) {
    const Result<Priced> by_engine = priced(in, fabric, prices.by_simulation());
    if (!by_engine) return placed(by_engine.errors(), origins);
    const double operations = by_engine->prompts.operations() + 2 * by_engine->tokens.operations();
    if (Diagnostics wrong = check_operations(operations, origins.of("inference.microbatches"), prices.room());
        !wrong.empty())
      return wrong;
    const Result<Simulated> run = simulated(in, *by_engine, fabric, engine, timeline);
    if (!run) return run.errors();
    put_times(result, in, *by_engine, *run);
    result.simulated_operations = run->operations;
    result.ranks = in.layout.world();
    result.classes = in.layout.pp;
    result.simulate = result.step = served.prefill.time() + further * served.decode.time();
  }
  const double sequences = static_cast<double>(in.serving->batch) * in.layout.dp;
  served.tokens_per_s = is_continuous(in) ? sequences * in.serving->output_tokens / result.step.count()
                                          : sequences / served.decode.time().count();
  result.tokens_per_s_per_gpu = sequences * in.serving->output_tokens / (result.step.count() * in.layout.world());
  for (ServingPhase* phase : {&served.prefill, &served.decode})
    if (Diagnostics wrong = name_algorithms(phase->collectives, prices); !wrong.empty()) return wrong;
  result.layer.forward = served.prefill.layer;
  result.operations.forward = served.prefill.operations;
  result.warnings = serving_warnings(in, fabric, result.memory);
  return result;
}

}  // namespace collcast::workload
