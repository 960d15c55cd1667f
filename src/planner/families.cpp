#include "planner/families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "collcast/base/product.hpp"

namespace collcast::planner {

std::string reason_of(const Diagnostic& said) {
  if (!said.hint.starts_with("use order: ")) return said.message;
  // Of several hints the first.
  const std::size_t end = std::min(said.hint.find_first_of(",;"), said.hint.find(" or "));
  return said.message + "; " + said.hint.substr(0, end);
}

namespace {

/// Ranks that each expert is split over in a layout of these degrees.
int expert_tp_of(const StepInputs& base, int tp, int cp, int dp) {
  LayoutChoice choice{tp, 1, dp};
  choice.cp = cp;
  const int etp = etp_of(choice, base);
  return etp > 0 ? etp : tp;
}

}  // namespace

bool Family::has_replicas(const StepInputs& base) const {
  return std::int64_t{dp} * cp * base.layout.twins() > 1 || std::int64_t{expert_tp_of(base, tp, cp, dp)} * ep < tp;
}

std::int64_t Family::layouts() const {
  return static_cast<std::int64_t>(micro_batch.size() * sequence_parallel.size() * recompute.size() * zero.size() *
                                   vpp.size());
}

std::vector<int> divisors(int n) {
  std::vector<int> small, large;
  for (int d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    small.push_back(d);
    if (d != n / d) large.push_back(n / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

int replicas_of(int gpus, std::initializer_list<std::int64_t> degrees) {
  const std::optional<std::int64_t> ranks = product_within(degrees, gpus);
  return ranks && *ranks > 0 && gpus % *ranks == 0 ? static_cast<int>(gpus / *ranks) : 0;
}

int left_beside(int gpus, std::initializer_list<std::int64_t> degrees) {
  const std::optional<std::int64_t> ranks = product_within(degrees, gpus);
  return ranks ? static_cast<int>(gpus / std::max<std::int64_t>(1, *ranks)) : 1;
}

namespace {

/// Chunks of a stage that a search tries where none are asked for. Uneven stages hold any number: eight at most.
std::vector<int> fitting_chunks(const PlanInputs& in, int pp) {
  const StepInputs& base = in.base;
  const bool all_values = in.space.values == SearchValues::all;
  const PipelineSchedule schedule = base.layout.schedule;
  if (schedule != PipelineSchedule::interleaved && !(all_values && schedule == PipelineSchedule::one_f_one_b))
    return {1};
  std::vector<int> all;
  if (base.layout.uneven_stages)
    for (int chunks = 1; chunks <= std::max(1, base.model.layers / pp); ++chunks) all.push_back(chunks);
  else
    all = base.model.layers % pp == 0 ? divisors(base.model.layers / pp) : std::vector<int>{1};
  if (!all_values || base.layout.uneven_stages)
    std::erase_if(all, [](int chunks) { return chunks > most_stage_chunks; });
  return all;
}

/// What is wrong of `changed` and not of `plain`, for two ranks each: why no search tries it.
std::optional<std::string> against(const PlanInputs& in, const LayoutChoice& plain, const LayoutChoice& changed) {
  const auto misfits = [&](const LayoutChoice& choice) {
    StepInputs step = in.base;
    put(choice, step);
    return step_misfits(step, 2, {});
  };
  const std::vector<StepMisfit> before = misfits(plain);
  for (const StepMisfit& misfit : misfits(changed))
    if (std::ranges::find(before, misfit.blamed, &StepMisfit::blamed) == before.end()) return reason_of(misfit.said);
  return std::nullopt;
}

/// What a search tries by itself of a base, whatever its degrees.
struct OwnValues {
  std::vector<int> zero;
  bool cp = false;                     ///< powers of two
  std::vector<std::string> ruled_out;  ///< of all values where no list has them, with the reason

  /// Gradients and weights are split only where the scenario does so or all values are asked for, and an optimizer
  /// where there is one. CP has a place in one order of ranks, and not beside every model.
  explicit OwnValues(const PlanInputs& in) : zero(in.base.options.optimizer ? 2 : 1) {
    std::iota(zero.begin(), zero.end(), 0);
    if (in.base.options.zero >= 2) zero = {0, 1, 2, 3};
    if (in.space.values != SearchValues::all) return;
    const LayoutChoice plain{1, 1, 2};
    if (in.base.options.zero < 2)
      for (const int stage : {2, 3}) {
        LayoutChoice sharded = plain;
        sharded.zero = stage;
        const auto reason = against(in, plain, sharded);
        if (!reason) zero.push_back(stage);
        if (reason && in.space.zero.empty()) ruled_out.push_back(fmt::format("ZeRO-{}: {}", stage, *reason));
      }
    LayoutChoice split{1, 1, 1};
    split.cp = 2;
    const auto reason = against(in, plain, split);
    cp = !reason;
    if (reason && in.base.layout.cp == 1 && in.space.cp.empty()) ruled_out.push_back("CP above 1: " + *reason);
  }
};

/// Of context parallelism those that the ranks allow: of a base that has some all divisors.
std::vector<int> own_cp(const PlanInputs& in, const OwnValues& own, int tp, int pp) {
  const int ranks = std::max(1, in.gpus / tp / pp);
  if (in.base.layout.cp > 1) return divisors(ranks);
  std::vector<int> out{1};
  if (own.cp && in.gpus % (std::int64_t{tp} * pp) == 0)
    for (int cp = 2; ranks % cp == 0 && in.base.batch.sequence / cp >= least_tokens_of_cp; cp *= 2) out.push_back(cp);
  return out;
}

/// Of expert parallelism what the ranks of a stage and the experts allow.
std::vector<int> own_ep(const PlanInputs& in, int stage) {
  if (in.base.layout.ep == 1 && in.space.values != SearchValues::all) return {1};
  return divisors(std::gcd(std::max(1, in.base.model.experts.count), std::max(1, stage)));
}

/// With an objection to the degrees their other values do not matter, and micro-batches count once.
Family family(const PlanInputs& in, const OwnValues& own, int tp, int pp, int cp, int ep, int dp,
              std::optional<ObjectionKind> objection) {
  const SearchSpace& space = in.space;
  const int samples = !objection ? in.base.batch.global_batch / dp : 0;
  Family f{tp, pp, dp, objection, {}, {}, {}, {}, {}, cp, ep};
  f.micro_batch = all_or(space.micro_batch, samples > 0 ? divisors(samples) : std::vector<int>{1});
  f.sequence_parallel = if_it_matters(tp > 1, all_or(space.sequence_parallel, {false, true}));
  f.recompute = all_or(space.recompute, {Recompute::none, Recompute::selective, Recompute::full});
  f.zero = if_it_matters(f.has_replicas(in.base), all_or(space.zero, own.zero));
  f.vpp = if_it_matters(pp > 1 && !objection, all_or(space.vpp, fitting_chunks(in, pp)));
  return f;
}

}  // namespace

std::vector<Family> families(const PlanInputs& in) {
  const SearchSpace& space = in.space;
  const OwnValues own(in);
  std::vector<Family> all;
  std::vector<Family> beside;  // of degrees that are not the GPUs
  for (const int tp : all_or(space.tp, divisors(in.gpus)))
    for (const int pp : all_or(space.pp, divisors(std::max(1, in.gpus / tp))))
      for (const int cp : all_or(space.cp, own_cp(in, own, tp, pp))) {
        const int dp = replicas_of(in.gpus, {tp, pp, cp});
        for (const int asked : all_or(space.dp, {}))
          if (asked != dp) beside.push_back(family(in, own, tp, pp, cp, 1, asked, ObjectionKind::degrees_are_not_gpus));
        if (!space.dp.empty() && std::ranges::find(space.dp, dp) == space.dp.end()) continue;
        std::optional<ObjectionKind> objection;
        if (dp == 0)
          objection = cp > 1 ? ObjectionKind::degrees_with_cp_do_not_divide : ObjectionKind::degrees_do_not_divide;
        std::vector<int> spreads{1};
        if (dp > 0) spreads = all_or(space.ep, own_ep(in, tp * cp * dp / expert_tp_of(in.base, tp, cp, dp)));
        for (const int ep : spreads) all.push_back(family(in, own, tp, pp, cp, ep, dp, objection));
      }
  // Where all three were named each product that is wrong was asked for; else only if no other is left.
  const bool all_named = !space.tp.empty() && !space.pp.empty();
  if (all_named || all.empty()) std::ranges::move(beside, std::back_inserter(all));
  return all;
}

std::vector<StepMisfit> misfits_before_memory(StepInputs& step, int gpus) {
  const std::optional<Bytes> bucket = std::exchange(step.options.bucket, std::nullopt);
  std::vector<StepMisfit> wrong = step_misfits(step, gpus, {});
  step.options.bucket = bucket;
  return wrong;
}

std::optional<ObjectionKind> memory_objection(const MemoryUse& use) {
  if (use.fits()) return std::nullopt;
  if (use.state() > use.capacity) return ObjectionKind::state_does_not_fit;
  if (use.allocated() <= use.capacity) return ObjectionKind::runtime_does_not_fit;
  return use.moment == MemoryMoment::optimizer ? ObjectionKind::update_does_not_fit
                                               : ObjectionKind::activations_do_not_fit;
}

std::optional<ObjectionKind> objection_before_times(PipelineSchedule schedule, const MemoryUse& use) {
  const std::optional<ObjectionKind> objection = memory_objection(use);
  return made_for_times(schedule) && objection != ObjectionKind::state_does_not_fit ? std::nullopt : objection;
}

namespace {

/// That tp x pp does not divide, and what would in the place of the degree that is at fault.
std::string division_objection(int gpus, int tp, int pp) {
  const bool tp_stays = gpus % tp == 0;
  const int wrong = tp_stays ? pp : tp, other = tp_stays ? tp : pp;
  std::vector<int> nearest;
  if (gpus % other == 0) {
    const std::vector<int> fitting = divisors(gpus / other);
    const auto above = std::ranges::upper_bound(fitting, wrong);
    if (above != fitting.begin()) nearest.push_back(*std::prev(above));
    if (above != fitting.end()) nearest.push_back(*above);
  }
  return fmt::format(
      "tp {} x pp {} does not divide the {} GPUs{}", tp, pp, gpus,
      nearest.empty() ? std::string()
                      : fmt::format("; nearest that does: {} {}", tp_stays ? "pp" : "tp", fmt::join(nearest, " or ")));
}

}  // namespace

std::vector<std::string> objections_to_degrees(const PlanInputs& in, const LayoutChoice& choice) {
  const std::string with_cp = choice.cp > 1 ? fmt::format(" x cp {}", choice.cp) : std::string();
  const int dp = replicas_of(in.gpus, {choice.tp, choice.pp, choice.cp});
  if (choice.cp > 1 && (choice.dp < 1 || dp == 0))
    return {fmt::format("tp {} x pp {}{} does not divide the {} GPUs", choice.tp, choice.pp, with_cp, in.gpus)};
  if (choice.dp < 1 || dp == 0) return {division_objection(in.gpus, choice.tp, choice.pp)};
  if (choice.dp != dp)
    return {fmt::format("tp {} x pp {}{} x dp {} is {}, not the number of GPUs, {}", choice.tp, choice.pp, with_cp,
                        choice.dp, std::int64_t{in.gpus / dp} * choice.dp, in.gpus)};
  return {};
}

std::vector<std::string> objections(const PlanInputs& in, const LayoutChoice& choice, int gpus_per_node) {
  std::vector<std::string> found = objections_to_degrees(in, choice);
  if (!found.empty()) return found;
  StepInputs step = in.base;
  put(choice, step);
  if (step.batch.global_batch % (std::int64_t{choice.micro_batch} * choice.dp) != 0) {
    found.push_back(to_string(ObjectionKind::batch_does_not_divide));
    // Whatever else is wrong.
    step.batch.micro_batch = 1;
    step.batch.global_batch = choice.dp * choice.pp;
  }
  for (const StepMisfit& misfit : misfits_before_memory(step, in.gpus)) found.push_back(reason_of(misfit.said));
  if (!found.empty()) return found;
  if (!check_memory(step, {}).empty()) return {to_string(ObjectionKind::memory_beyond_count)};
  if (const auto objection = objection_before_times(step.layout.schedule, peak_memory(step, gpus_per_node)))
    return {to_string(*objection)};
  for (const Diagnostic& d : check_step(step, in.gpus, {})) found.push_back(reason_of(d));
  return found;
}

}  // namespace collcast::planner

namespace collcast {

namespace {

/// That a search has of layouts whose degrees divide.
struct Searched {
  std::set<int> cp, ep, zero, vpp;

  explicit Searched(const PlanInputs& in) {
    for (const planner::Family& f : planner::families(in)) {
      if (f.objection) continue;
      cp.insert(f.cp);
      ep.insert(f.ep);
      zero.insert(f.zero.begin(), f.zero.end());
      vpp.insert(f.vpp.begin(), f.vpp.end());
    }
  }
};

}  // namespace

std::vector<std::string> left_out(const PlanInputs& in) {
  std::vector<std::string> out;
  if (in.base.serving || in.space.values == SearchValues::all) return out;
  PlanInputs wider = in;
  wider.space.values = SearchValues::all;
  const Searched has(in), could(wider);
  if (could.cp.size() > has.cp.size()) out.push_back("CP above 1");
  if (could.ep.size() > has.ep.size()) out.push_back("EP above 1");
  std::vector<int> stages;
  std::ranges::set_difference(could.zero, has.zero, std::back_inserter(stages));
  if (!stages.empty()) out.push_back(fmt::format("ZeRO-{}", fmt::join(stages, " and ")));
  if (could.vpp.size() > has.vpp.size())
    out.push_back(has.vpp.size() > 1 ? fmt::format("more than {} chunks of a stage", *has.vpp.rbegin())
                                     : "stages of several chunks");
  return out;
}

std::vector<std::string> ruled_out(const PlanInputs& in) {
  return in.base.serving ? std::vector<std::string>() : planner::OwnValues(in).ruled_out;
}

}  // namespace collcast
