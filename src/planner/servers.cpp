// Layouts of a server: each is forecast by itself, by closed form, at prices that all share.
#include "planner/servers.hpp"

#include <fmt/format.h>

#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "collcast/base/units.hpp"
#include "planner/families.hpp"

namespace collcast::planner {

namespace {

struct ExpertSpread {
  int ep = 1, etp = 0;
};

/// What divides both.
int common(int a, std::int64_t b) { return static_cast<int>(std::gcd<std::int64_t>(a, b)); }

/// TP ranks that all have every token share the experts between them: ep x expert TP = TP. Others exchange tokens, and
/// each expert is split as the scenario says.
ExpertSpread spread_of(const PlanInputs& in, int tp, int dp, bool sequence_parallel, int ep) {
  if (in.base.model.experts.count == 0) return {ep, in.base.layout.etp};
  if (tp > 1 && !sequence_parallel) return {ep, tp % ep == 0 ? tp / ep : 0};
  const int etp = in.base.layout.etp;
  return {ep, etp > 0 ? common(etp, std::int64_t{tp} * std::max(dp, 1)) : 0};
}

std::vector<ExpertSpread> spreads(const PlanInputs& in, int tp, int dp, bool sequence_parallel) {
  const int experts = in.base.model.experts.count;
  std::vector<int> all{1};
  if (experts > 0) {
    const bool replicates = tp > 1 && !sequence_parallel;
    const int etp = spread_of(in, tp, dp, sequence_parallel, 1).etp;
    const std::int64_t ranks = replicates ? tp : std::int64_t{tp} * dp / (etp > 0 ? etp : tp);
    all = divisors(common(experts, std::max<std::int64_t>(ranks, 1)));
  }
  std::vector<ExpertSpread> out;
  for (const int ep : all_or(in.space.ep, all)) out.push_back(spread_of(in, tp, dp, sequence_parallel, ep));
  return out;
}

std::vector<int> micro_batches_of(const PlanInputs& in, int batch) {
  // Requests in flight are not cut.
  return all_or(in.space.micro_batch, in.base.serving->is_continuous() ? std::vector<int>{batch} : divisors(batch));
}

/// All that have these degrees.
void add_families(const PlanInputs& in, int tp, int pp, int dp, std::vector<ServerFamily>& out) {
  const std::vector<bool> sequence_parallel =
      if_it_matters(tp > 1, all_or(in.space.sequence_parallel, {in.base.layout.sequence_parallel}));
  for (const bool sp : sequence_parallel)
    for (const ExpertSpread& experts : spreads(in, tp, dp, tp > 1 && sp))
      for (const int batch : all_or(in.space.batch, {in.base.serving->batch})) {
        LayoutChoice choice{tp, pp, dp};
        choice.sequence_parallel = tp > 1 && sp;
        choice.ep = experts.ep;
        choice.etp = experts.etp;
        choice.batch = batch;
        out.push_back({choice, {}, micro_batches_of(in, batch)});
      }
}

/// What check_step and sizes have against it; nothing: it can run where its memory fits.
std::optional<Objection> misfit_of(const PlanInputs& in, const LayoutChoice& choice, const StepInputs& step) {
  constexpr std::int64_t most = 1'000'000'000;
  if (choice.batch % choice.micro_batch != 0) return ObjectionKind::server_batch_does_not_divide;
  if (std::int64_t{choice.batch} * choice.dp > most) return ObjectionKind::too_many_sequences;
  if (const Diagnostics wrong = check_step(step, in.gpus, {}); !wrong.empty())
    return Objection(ObjectionKind::misfit, reason_of(wrong.front()));
  if (!check_memory(step, {}).empty()) return ObjectionKind::memory_beyond_count;
  return {};
}

class ServerSearch {
 public:
  ServerSearch(const PlanInputs& in, const Fabric& fabric, const CollectiveTime& prices, const ServerFamily& family)
      : in_(in), fabric_(fabric), prices_(prices), family_(family) {}

  FamilyResult run(SearchProgress& progress) {
    if (family_.objection) {
      ++result_.rejected[*family_.objection];
      progress.step();
      result_.done = true;
      return std::move(result_);
    }
    for (const int micro_batch : family_.micro_batch) {
      if (progress.stopped()) return std::move(result_);
      LayoutChoice choice = family_.choice;
      choice.micro_batch = micro_batch;
      if (!weigh(choice, progress)) return std::move(result_);
      progress.step();
    }
    result_.done = true;
    return std::move(result_);
  }

 private:
  /// False where it was stopped before its prices were known.
  bool weigh(const LayoutChoice& choice, SearchProgress& progress) {
    StepInputs step = in_.base;
    // Of a batch that is not cut into whole micro-batches nothing else is asked.
    if (choice.batch % choice.micro_batch == 0) put(choice, step);
    if (const auto misfit = misfit_of(in_, choice, step)) {
      ++result_.rejected[*misfit];
      return true;
    }
    const MemoryUse memory = peak_memory(step, fabric_.ranks_per_node());
    if (const auto objection = server_memory_objection(memory)) {
      ++result_.rejected[*objection];
      keep_smaller(result_.smallest, {choice, memory});
      return true;
    }
    const Result<StepResult> forecast = estimate_serving(step, fabric_, prices_);
    if (!forecast) {
      if (progress.stopped()) return false;
      ++result_.rejected[{ObjectionKind::no_cost, forecast.errors().front().message}];
      return true;
    }
    PlannedLayout layout;
    layout.choice = choice;
    take_server(*forecast, layout);
    if (const auto broken = broken_limit(in_, *forecast)) {
      ++result_.rejected[broken->objection];
      keep_nearer(result_.nearest_values, *broken);
      keep_nearer(result_.nearest, {std::move(layout), excess(*forecast)});
      return true;
    }
    result_.feasible.push_back(std::move(layout));
    return true;
  }

  /// Times the worst of the limits.
  double excess(const StepResult& forecast) const {
    double worst = 0;
    for (const GateResult& g : check_gates(in_.limits, forecast)) {
      const double times = g.bound == Bound::max ? g.value / g.gate.limit : g.gate.limit / g.value;
      worst = std::max(worst, times);
    }
    return worst;
  }

  const PlanInputs& in_;
  const Fabric& fabric_;
  const CollectiveTime& prices_;
  const ServerFamily& family_;
  FamilyResult result_;
};

std::string amount_text(std::string_view figure, double amount) {
  if (figure.ends_with("_bytes")) return format_bytes(Volume(amount));
  if (figure.starts_with("tokens_per_s")) return fmt::format("{:.6g} tokens/s", amount);
  return format_seconds(Seconds(amount));
}

/// "above its limit, 2 s"
std::string beyond_limit(const GateResult& g) {
  return fmt::format("{} its limit, {}", g.bound == Bound::max ? "above" : "below",
                     amount_text(g.gate.figure, g.gate.limit));
}

}  // namespace

std::vector<ServerFamily> server_families(const PlanInputs& in) {
  std::vector<ServerFamily> all, beside;  // beside: of degrees that are not the GPUs
  for (const int tp : all_or(in.space.tp, divisors(in.gpus)))
    for (const int pp : all_or(in.space.pp, divisors(std::max(1, in.gpus / tp)))) {
      const int dp = replicas_of(in.gpus, {tp, pp});
      for (const int asked : all_or(in.space.dp, {}))
        if (asked != dp) beside.push_back({{tp, pp, asked}, ObjectionKind::degrees_are_not_gpus, {1}});
      if (!in.space.dp.empty() && std::find(in.space.dp.begin(), in.space.dp.end(), dp) == in.space.dp.end()) continue;
      if (dp == 0)
        all.push_back({{tp, pp, 0}, ObjectionKind::degrees_do_not_divide, {1}});
      else
        add_families(in, tp, pp, dp, all);
    }
  // Where all three were named each product that is wrong was asked for; else only if no other is left.
  const bool all_named = !in.space.tp.empty() && !in.space.pp.empty();
  if (all_named || all.empty()) std::move(beside.begin(), beside.end(), std::back_inserter(all));
  return all;
}

std::vector<SearchPiece> server_pieces(const PlanInputs& in, const Fabric& fabric, const CollectiveTime& prices) {
  std::vector<SearchPiece> out;
  for (ServerFamily& family : server_families(in)) {
    const auto layouts = static_cast<std::int64_t>(family.micro_batch.size());
    out.push_back({layouts, [&in, &fabric, &prices, family = std::move(family)](SearchProgress& progress) {
                     return ServerSearch(in, fabric, prices, family).run(progress);
                   }});
  }
  return out;
}

void take_server(const StepResult& r, PlannedLayout& layout) {
  const ServingPhase &prefill = r.inference->prefill, &decode = r.inference->decode;
  layout.estimate = r.estimate;
  layout.simulate = r.simulate;
  layout.breakdown = r.breakdown;
  layout.memory = r.memory;
  layout.rates.tokens_per_s_per_gpu = r.tokens_per_s_per_gpu;
  PlannedServer server;
  server.estimate = {prefill.estimate, decode.estimate};
  if (r.simulate) server.simulate = ServerTimes{*prefill.simulate, *decode.simulate};
  server.tokens_per_s = r.inference->tokens_per_s;
  server.prefill = prefill.breakdown;
  server.decode = decode.breakdown;
  server.load = r.inference->load;
  layout.server = server;
}

std::optional<BrokenLimit> broken_limit(const PlanInputs& in, const StepResult& result) {
  for (const GateResult& g : check_gates(in.limits, result))
    if (!g.kept())
      return BrokenLimit{Objection(ObjectionKind::limit, fmt::format("{} is {}", g.gate.figure, beyond_limit(g))), g};
  return std::nullopt;
}

std::vector<std::string> broken_limits(const PlanInputs& in, const StepResult& result) {
  std::vector<std::string> out;
  for (const GateResult& g : check_gates(in.limits, result))
    if (!g.kept())
      out.push_back(fmt::format("{} is {}, {}", g.gate.figure, amount_text(g.gate.figure, g.value), beyond_limit(g)));
  return out;
}

std::optional<ObjectionKind> server_memory_objection(const MemoryUse& use) {
  if (use.fits()) return std::nullopt;
  return use.parameters > use.capacity                  ? ObjectionKind::weights_do_not_fit
         : use.parameters + use.kv_cache > use.capacity ? ObjectionKind::cache_does_not_fit
         : use.allocated() > use.capacity               ? ObjectionKind::passes_do_not_fit
                                                        : ObjectionKind::server_runtime_does_not_fit;
}

std::vector<std::string> server_objections(const PlanInputs& in, const LayoutChoice& choice, int gpus_per_node) {
  std::vector<std::string> found = objections_to_degrees(in, choice);
  if (!found.empty()) return found;
  if (choice.batch % choice.micro_batch != 0) return {to_string(ObjectionKind::server_batch_does_not_divide)};
  StepInputs step = in.base;
  put(choice, step);
  for (const Diagnostic& d : check_step(step, in.gpus, {})) found.push_back(reason_of(d));
  if (!found.empty()) return found;
  if (const auto misfit = misfit_of(in, choice, step)) return {misfit->words()};
  if (const auto objection = server_memory_objection(peak_memory(step, gpus_per_node))) return {to_string(*objection)};
  return {};
}

LayoutChoice complete_server(const LayoutQuestion& q, LayoutChoice c, const PlanInputs& in) {
  if (q.sequence_parallel) c.sequence_parallel = *q.sequence_parallel;
  const auto left = [&](int a, int b) { return left_beside(in.gpus, {a, b}); };
  if (q.tp) c.tp = *q.tp;
  if (q.pp) c.pp = *q.pp;
  if (q.dp) c.dp = *q.dp;
  if (!q.dp)
    c.dp = replicas_of(in.gpus, {c.tp, c.pp});
  else if (!q.pp)
    c.pp = left(c.tp, c.dp);
  else if (!q.tp)
    c.tp = left(c.pp, c.dp);
  // One that is not asked for is the best's as far as the ranks go.
  if (in.base.model.experts.count > 0) {
    const bool replicates = c.tp > 1 && !c.sequence_parallel;
    const int ep = q.ep ? *q.ep : common(c.ep, replicates ? c.tp : std::int64_t{c.tp} * std::max(c.dp, 1));
    const ExpertSpread spread = spread_of(in, c.tp, c.dp, c.sequence_parallel, ep);
    c.ep = spread.ep;
    c.etp = spread.etp;
  } else if (q.ep) {
    c.ep = *q.ep;
  }
  // Cut into as many as the best's batch is, or the next more that it can be cut into.
  int cut = in.base.serving->is_continuous() ? 1 : c.batch / c.micro_batch;
  if (q.batch) c.batch = *q.batch;
  for (cut = std::min(cut, c.batch); c.batch % cut != 0;) ++cut;
  c.micro_batch = q.micro_batch ? *q.micro_batch : c.batch / cut;
  return c;
}

}  // namespace collcast::planner

namespace collcast {

std::string to_string(const ServingObjective& objective) {
  using Figure = ServingObjective::Figure;
  const char* figure = objective.figure == Figure::tpot   ? "tpot"
                       : objective.figure == Figure::ttft ? "ttft"
                                                          : "tokens_per_s_per_gpu";
  return objective.statistic == nullptr ? figure : fmt::format("{}.{}", figure, objective.statistic->name);
}

double value_of(const ServingObjective& objective, double tokens_per_s_per_gpu, const PlannedServer& server) {
  using Figure = ServingObjective::Figure;
  const bool tpot = objective.figure == Figure::tpot;
  if (objective.figure == Figure::tokens_per_s_per_gpu) return tokens_per_s_per_gpu;
  if (objective.statistic == nullptr) return (tpot ? server.times().tpot : server.times().ttft).count();
  check(server.load.has_value(), "percentiles rank servers with a run of requests");
  return ((tpot ? server.load->tpot : server.load->ttft).*objective.statistic->of).count();
}
double value_of(const ServingObjective& objective, const PlannedLayout& p) {
  return value_of(objective, p.rates.tokens_per_s_per_gpu, *p.server);
}

std::vector<ServingObjective> serving_objectives() {
  using Figure = ServingObjective::Figure;
  std::vector<ServingObjective> out{{}, {Figure::tpot}, {Figure::ttft}};
  for (const Figure figure : {Figure::tpot, Figure::ttft})
    for (const TimeStatistic& statistic : limited_statistics) out.push_back({figure, &statistic});
  return out;
}

}  // namespace collcast
