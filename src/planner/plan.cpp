// Families in parallel, each from its divisibility to its closed forms; then one merge, one sort, a few simulations.
//
// A family is the unit of work: its groups and kernels are worked out once, and prices are shared with the other
// families. Results are put together in the order of the families and sorted by a total order, so that threads leave
// no trace.
#include "collcast/planner/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <utility>

#include "collcast/base/loop_order.hpp"
#include "collcast/workload/faulty_layouts.hpp"
#include "collcast/workload/own_schedule.hpp"
#include "planner/families.hpp"
#include "planner/near_misses.hpp"
#include "planner/pieces.hpp"
#include "planner/servers.hpp"
#include "planner/shared_prices.hpp"

namespace collcast {

namespace {

using namespace planner;

/// Closed forms on the machine as it is: each thread its own prices, as all get the same.
using FaultyForms = tbb::enumerable_thread_specific<FaultyLayouts>;

/// Everything about one family; when stopped, as far as it has come.
class FamilySearch {
 public:
  /// `faulty`: nullptr on a machine as described.
  FamilySearch(const PlanInputs& in, const Fabric& fabric, const CollectiveTime& prices, FaultyForms* faulty,
               const Family& family)
      : in_(in),
        fabric_(fabric),
        prices_(prices),
        faulty_(faulty),
        family_(family),
        step_(in.base),
        misfits_(6 * family.vpp.size()),
        split_(4 * family.vpp.size()),
        cut_(4 * family.vpp.size()) {}

  FamilyResult run(SearchProgress& progress) {
    if (family_.objection) {
      result_.rejected[*family_.objection] += family_.layouts();
      progress.step(static_cast<std::size_t>(family_.layouts()));
      result_.done = true;
      return std::move(result_);
    }
    for (const bool sp : family_.sequence_parallel)
      for (const int micro_batch : family_.micro_batch) {
        if (progress.stopped()) return std::move(result_);
        for (std::size_t v = 0; v < family_.vpp.size(); ++v)
          if (!look_at(sp, micro_batch, v, progress)) return std::move(result_);
        progress.step(family_.recompute.size() * family_.zero.size() * family_.vpp.size());
      }
    result_.done = true;
    return std::move(result_);
  }

 private:
  /// False where it was stopped before its last layout.
  bool look_at(bool sp, int micro_batch, std::size_t v, SearchProgress& progress) {
    const auto count = static_cast<std::int64_t>(family_.recompute.size() * family_.zero.size());
    LayoutChoice choice{family_.tp,      family_.pp, family_.dp,     micro_batch, sp,
                        Recompute::none, 0,          family_.vpp[v], family_.cp,  family_.ep};
    if (in_.base.batch.global_batch % (std::int64_t{micro_batch} * family_.dp) != 0) {
      result_.rejected[ObjectionKind::batch_does_not_divide] += count;
      return true;
    }
    const int micro_batches = in_.base.batch.global_batch / (micro_batch * family_.dp);
    if (choice.vpp > 1 && micro_batches % family_.pp != 0) {
      result_.rejected[ObjectionKind::micro_batches_go_round] += count;
      return true;
    }
    if (from_both_ends(schedule_of(choice, in_.base.layout.schedule)) && micro_batches % 2 != 0) {
      result_.rejected[ObjectionKind::half_from_either_end] += count;
      return true;
    }
    for (const Recompute recompute : family_.recompute) {
      choice.recompute = recompute;
      if (const StepMisfit* wrong = misfit(choice, v)) {
        result_.rejected[{ObjectionKind::misfit, reason_of(wrong->said)}] += std::ssize(family_.zero);
        continue;
      }
      for (const int zero : family_.zero) {
        if (progress.stopped()) return false;
        choice.zero = zero;
        if (!weigh(choice, v, progress)) return false;
      }
    }
    return true;
  }

  /// The scenario's schedule goes with each layout anew: one with chunks is interleaved, and the next without is not.
  void arrange(const LayoutChoice& choice) {
    step_.layout.schedule = in_.base.layout.schedule;
    put(choice, step_);
  }

  /// What there is against tp, pp, sequence parallelism, recomputation and the v-th vpp before memory is asked; nullptr
  /// if nothing.
  const StepMisfit* misfit(LayoutChoice choice, std::size_t v) {
    choice.zero = 0;
    const std::vector<StepMisfit>& own = misfits(choice, v);
    if (own.empty()) return nullptr;
    if (!choice.sequence_parallel) return &own.front();
    // What rules the layout out either way is one reason. Without sequence parallelism there may be others, and less
    // that one degree does not divide.
    choice.sequence_parallel = false;
    for (const StepMisfit& without : misfits(choice, v))
      for (const StepMisfit& with : own)
        if (with.blamed == without.blamed) return &without;
    return &own.front();
  }

  const std::vector<StepMisfit>& misfits(const LayoutChoice& choice, std::size_t v) {
    const std::size_t recompute = static_cast<std::size_t>(choice.recompute);
    std::optional<std::vector<StepMisfit>>& known =
        misfits_[6 * v + 2 * recompute + (choice.sequence_parallel ? 1 : 0)];
    // Of too many turns larger micro-batches may pass, as they are fewer.
    if (!known || std::ranges::find(*known, "batch.global_batch", &StepMisfit::blamed) != known->end()) {
      arrange(choice);
      known = misfits_before_memory(step_, fabric_.rank_count());
    }
    return *known;
  }

  std::size_t with_zero(std::size_t v) const { return 4 * v + static_cast<std::size_t>(step_.options.zero); }

  /// What ZeRO adds to that before memory is asked, the same for all with the v-th vpp and a ZeRO stage: whom states
  /// are split over, and what does not go with split gradients or weights.
  const std::string& split(std::size_t v) {
    std::optional<std::string>& known = split_[with_zero(v)];
    if (!known) {
      known.emplace();
      if (step_.options.zero > 0)
        if (const auto wrong = misfits_before_memory(step_, fabric_.rank_count()); !wrong.empty())
          known = reason_of(wrong.front().said);
    }
    return *known;
  }

  /// What check_step has against a layout that fits the memory, of which the same holds: ZeRO-3 has no buckets.
  const std::string& cut(std::size_t v) {
    std::optional<std::string>& known = cut_[with_zero(v)];
    if (!known) {
      const Diagnostics wrong = check_step(step_, fabric_.rank_count(), {});
      known = wrong.empty() ? std::string() : reason_of(wrong.front());
    }
    return *known;
  }

  /// A layout that needs more memory than there is.
  void refuse(ObjectionKind objection, const LayoutChoice& choice, const MemoryUse& memory, bool at_most) {
    ++result_.rejected[objection];
    keep_smaller(result_.smallest, {choice, memory, at_most});
  }

  /// False where it was stopped before its prices were known.
  bool weigh(const LayoutChoice& choice, std::size_t v, SearchProgress& progress) {
    arrange(choice);
    if (const std::string& objection = split(v); !objection.empty()) {
      ++result_.rejected[{ObjectionKind::misfit, objection}];
      return true;
    }
    const std::optional<MemoryUse> memory = countable_peak_memory(step_, fabric_.ranks_per_node());
    if (!memory) {
      ++result_.rejected[ObjectionKind::memory_beyond_count];
      return true;
    }
    if (const auto objection = objection_before_times(step_.layout.schedule, *memory)) {
      refuse(*objection, choice, *memory, made_for_times(step_.layout.schedule));
      return true;
    }
    if (const std::string& objection = cut(v); !objection.empty()) {
      ++result_.rejected[{ObjectionKind::misfit, objection}];
      return true;
    }
    const auto forms = closed_forms_.try_emplace(choice.vpp, step_, fabric_, prices_).first;
    const Result<LayoutEstimate> cost = forms->second.estimate(choice);
    if (!cost) {
      if (progress.stopped()) return false;
      ++result_.rejected[{ObjectionKind::no_cost, cost.errors().front().message}];
      return true;
    }
    PlannedLayout layout{choice, cost->step, {}, cost->breakdown, *memory, {}};
    if (faulty_ != nullptr) {
      const Result<FaultyEstimate> both = faulty_->local().estimate(step_);
      if (!both) {
        if (progress.stopped()) return false;
        ++result_.rejected[{ObjectionKind::no_cost, both.errors().front().message}];
        return true;
      }
      add_faults(*both, layout);
    }
    // An order that is made for times is the same with faults.
    if (!cost->made.empty()) layout.memory = peak_memory(step_, fabric_.ranks_per_node(), cost->made);
    if (const auto objection = memory_objection(layout.memory)) {
      refuse(*objection, choice, layout.memory, false);
      return true;
    }
    layout.rates = rates(step_, layout.estimate);
    result_.feasible.push_back(std::move(layout));
    return true;
  }

  /// What changes nothing leaves the family's sum as it was, to the last bit, and a fault never makes it less.
  void add_faults(const FaultyEstimate& both, PlannedLayout& layout) const {
    layout.described = LayoutAsDescribed{layout.estimate, {}};
    const Seconds now = both.as_it_is.step;
    if (now == both.as_described.step || (!in_.machine.placement.any() && now <= layout.estimate)) return;
    layout.estimate = now;
    layout.breakdown = both.as_it_is.breakdown;
  }

  const PlanInputs& in_;
  const Fabric& fabric_;
  const CollectiveTime& prices_;
  FaultyForms* faulty_;
  const Family& family_;
  StepInputs step_;
  std::vector<std::optional<std::vector<StepMisfit>>> misfits_;  // by vpp, recomputation, sequence parallelism
  std::vector<std::optional<std::string>> split_, cut_;          // by vpp, ZeRO stage
  std::map<int, LayoutFamily> closed_forms_;                     // by vpp
  FamilyResult result_;
};

std::vector<SearchPiece> training_pieces(const PlanInputs& in, const Fabric& fabric, const CollectiveTime& prices,
                                         FaultyForms* faulty) {
  std::vector<SearchPiece> out;
  for (Family& family : families(in)) {
    const std::int64_t layouts = family.layouts();
    out.push_back({layouts, [&in, &fabric, &prices, faulty, family = std::move(family)](SearchProgress& progress) {
                     return FamilySearch(in, fabric, prices, faulty, family).run(progress);
                   }});
  }
  return out;
}

/// What is ranked by: less is better.
double ranked_by(const PlanInputs& in, const PlannedLayout& p) {
  if (!p.server) return p.step().count();
  const double value = value_of(in.objective, p);
  return in.objective.figure == ServingObjective::Figure::tokens_per_s_per_gpu ? -value : value;
}

/// By that, what else servers are asked for, memory and the layout itself: no two are equal.
bool better(const PlanInputs& in, const PlannedLayout& a, const PlannedLayout& b) {
  if (const double own = ranked_by(in, a), other = ranked_by(in, b); own != other) return own < other;
  if (a.server) {
    const double own = a.rates.tokens_per_s_per_gpu, other = b.rates.tokens_per_s_per_gpu;
    if (own != other) return own > other;
    if (a.server->times().tpot != b.server->times().tpot) return a.server->times().tpot < b.server->times().tpot;
  }
  if (a.memory.peak() != b.memory.peak()) return a.memory.peak() < b.memory.peak();
  return a.choice < b.choice;
}

/// `ranked` is fastest first.
std::vector<PlannedLayout> fast_and_small(const std::vector<PlannedLayout>& ranked) {
  std::vector<PlannedLayout> front;
  for (const PlannedLayout& layout : ranked)
    if (front.empty() || layout.memory.peak() < front.back().memory.peak()) front.push_back(layout);
  return front;
}

/// Of servers: of short TPOT and many tokens/s per GPU.
std::vector<PlannedLayout> prompt_and_productive(PlanInputs in, std::vector<PlannedLayout> all) {
  in.objective = {ServingObjective::Figure::tpot};
  std::ranges::sort(all, [&](const PlannedLayout& a, const PlannedLayout& b) { return better(in, a, b); });
  std::vector<PlannedLayout> front;
  for (const PlannedLayout& layout : all)
    if (front.empty() || layout.rates.tokens_per_s_per_gpu > front.back().rates.tokens_per_s_per_gpu)
      front.push_back(layout);
  return front;
}

std::vector<PlannedLayout> pareto_of(const PlanInputs& in, const std::vector<PlannedLayout>& ranked) {
  return in.base.serving ? prompt_and_productive(in, ranked) : fast_and_small(ranked);
}

/// The Pareto set of the ranked: by simulation where all have one, else by closed form, which `by_form` has of all that
/// were to be simulated, those that broke a limit then among them.
std::vector<PlannedLayout> best_compromises(const PlanInputs& in, std::vector<PlannedLayout> by_form,
                                            const std::vector<PlannedLayout>& ranked) {
  if (std::ranges::all_of(ranked, [](const PlannedLayout& p) { return p.simulate.has_value(); }))
    return pareto_of(in, ranked);
  std::map<LayoutChoice, const PlannedLayout*> stayed;
  for (const PlannedLayout& p : ranked) stayed.emplace(p.choice, &p);
  std::erase_if(by_form, [&](const PlannedLayout& p) { return !stayed.contains(p.choice); });
  std::vector<PlannedLayout> front = pareto_of(in, by_form);
  for (PlannedLayout& p : front) p = *stayed.at(p.choice);
  return front;
}

/// The most frequent first.
void sort(std::vector<Rejection>& rejected) {
  std::ranges::sort(rejected, [](const Rejection& a, const Rejection& b) {
    return a.count != b.count ? a.count > b.count : a.reason < b.reason;
  });
}

void merge(const PlanInputs& in, std::vector<FamilyResult> families, PlanResult& plan) {
  std::map<Objection, std::int64_t> rejected;
  NearestValues nearest_values;
  for (FamilyResult& f : families) {
    plan.all_seen = plan.all_seen && f.done;
    plan.ranked.insert(plan.ranked.end(), f.feasible.begin(), f.feasible.end());
    for (const auto& [objection, count] : f.rejected) rejected[objection] += count;
    for (const auto& [objection, by] : f.nearest_values) keep_nearer(nearest_values, {objection, by});
    if (f.smallest) keep_smaller(plan.smallest, *f.smallest);
    if (f.nearest) keep_nearer(plan.nearest, *f.nearest);
  }
  plan.partial = !plan.all_seen;
  plan.feasible = std::ssize(plan.ranked);
  plan.evaluated = plan.feasible;
  for (const auto& [objection, count] : rejected) {
    plan.rejected.push_back({objection.words(), count, objection.kind()});
    if (const auto by = nearest_values.find(objection); by != nearest_values.end())
      plan.rejected.back().nearest = by->second;
    plan.evaluated += count;
  }
  sort(plan.rejected);
  std::ranges::sort(plan.ranked, [&](const PlannedLayout& a, const PlannedLayout& b) { return better(in, a, b); });
}

/// A layout too long to simulate, or that was stopped, keeps its closed form. `broken` receives the limit that its
/// simulated times break.
Diagnostics simulate(const PlanInputs& in, const Fabric& fabric, const EngineOptions& engine, PlannedLayout& layout,
                     std::optional<BrokenLimit>& broken) {
  StepInputs step = in.base;
  put(layout.choice, step);
  const auto take = [&](const StepResult& result) {
    if (step.serving) {
      take_server(result, layout);
      broken = broken_limit(in, result);
      return;
    }
    layout.simulate = result.simulate;
    layout.breakdown = result.breakdown;
    layout.memory = result.memory;
    layout.rates = rates(step, layout.step());
  };
  if (in.machine.as_described()) {
    const Result<StepResult> result = forecast_step(step, fabric, in.collectives, Method::both, nullptr, engine);
    if (!result) return result.errors();
    take(*result);
    return {};
  }
  const Result<FaultyStep> both =
      forecast_faulty_step(step, fabric, in.machine, in.collectives, Method::both, nullptr, engine);
  if (!both) return both.errors();
  if (both->effect.is_undrawn) return {{{}, "the simulation was ended before its draw", ""}};
  take(both->result);
  layout.described->simulate = both->effect.simulate;
  return {};
}

/// The simulated come first: they were the best so many by closed form, and what is left is slower by that. Stopped
/// before its end that says nothing of the two, and time alone decides.
void rank(const PlanInputs& in, PlanResult& plan) {
  std::ranges::sort(plan.ranked, [&](const PlannedLayout& a, const PlannedLayout& b) {
    if (!plan.partial && a.simulate.has_value() != b.simulate.has_value()) return a.simulate.has_value();
    return better(in, a, b);
  });
}

/// Takes out those of the first of the ranked that keep the limits by closed form, and break one as simulated.
void reject_broken(const std::vector<std::optional<BrokenLimit>>& broken, PlanResult& plan) {
  for (std::size_t i = broken.size(); i-- > 0;) {
    if (!broken[i]) continue;
    const auto& [objection, by] = *broken[i];
    --plan.feasible;
    plan.ranked.erase(plan.ranked.begin() + static_cast<std::ptrdiff_t>(i));
    auto known = std::ranges::find_if(plan.rejected, [&reason = objection](const Rejection& r) {
      return r.kind == reason.kind() && r.reason == reason.words();
    });
    if (known == plan.rejected.end()) known = plan.rejected.insert(known, {objection.words(), 0, objection.kind(), by});
    ++known->count;
    if (by.margin() > known->nearest->margin()) known->nearest = by;
  }
  sort(plan.rejected);
}

/// Best first, whichever thread is free: stopped early, it is the best that were simulated, but for those, one a
/// thread, that were ended within.
void simulate_best(const PlanInputs& in, const Fabric& fabric, std::size_t count, Bytes memory,
                   SearchProgress& progress, PlanResult& plan) {
  count = std::min(count, plan.ranked.size());
  progress.begin("simulating", count);
  EngineOptions engine = in.engine;
  engine.memory = std::min(in.engine.memory, memory);
  engine.watch = [&](const EngineProgress& simulated) {
    return !progress.stopped() && (!in.engine.watch || in.engine.watch(simulated));
  };
  std::vector<Diagnostics> lacks(count);
  std::vector<std::optional<BrokenLimit>> broken(count);
  std::atomic<bool> missed = false;
  std::atomic<std::size_t> next = 0;
  tbb::parallel_for(std::size_t{0}, count, LoopOrder([&](std::size_t) {
                      if (progress.stopped()) {
                        missed = true;
                        return;
                      }
                      const std::size_t mine = next++;
                      lacks[mine] = simulate(in, fabric, engine, plan.ranked[mine], broken[mine]);
                      if (!lacks[mine].empty() && progress.stopped()) missed = true;
                      progress.step();
                    }));
  plan.partial = missed;
  for (const Diagnostics& lack : lacks) {
    if (lack.empty() || missed) continue;
    if (!plan.unsimulated) plan.unsimulated = Unsimulated{0, lack.front().message};
    ++plan.unsimulated->count;
  }
  reject_broken(broken, plan);
  rank(in, plan);
}

}  // namespace

Result<PlanResult> plan(const PlanInputs& in, const Fabric& fabric, const PlanOptions& options,
                        const Origins& origins) {
  if (is_own(in.base.layout.schedule))
    return Diagnostic{origins.of("layout.schedule"),
                      fmt::format("schedule '{}' is for one number of stages and micro-batches, and a plan varies both",
                                  in.base.layout.own->name),
                      "use a schedule by its name, such as 1f1b; 'collcast step' forecasts this one"};
  StepInputs alone = in.base;
  LayoutChoice one;
  if (alone.serving) {
    // Requests in flight are one micro-batch.
    one.batch = one.micro_batch = alone.serving->batch;
  }
  put(one, alone);
  // One stage is no pair; a layout's own stages are looked at with it.
  if (from_both_ends(alone.layout.schedule)) alone.layout.schedule = PipelineSchedule::one_f_one_b;
  // So are its turns: one GPU alone has those of all samples, one by one.
  if (splits_backward(alone.layout.schedule)) alone.batch.global_batch = std::min(alone.batch.global_batch, 1);
  if (Diagnostics wrong = check_step(alone, fabric.rank_count(), origins); !wrong.empty()) return wrong;

  std::optional<MachineAsItIs> machine;
  if (!in.machine.as_described()) {
    Result<MachineAsItIs> built = MachineAsItIs::build(fabric, in.machine, in.gpus);
    if (!built) return built.errors();
    machine = std::move(built).value();
  }
  const GoesOn goes_on([&options] { return !options.stop || !options.stop(); }, [&options] { return options.memory; });
  SharedPrices prices(step_prices(fabric, in.collectives, goes_on));
  const CollectiveTime time = [&prices](const CollectiveRequest& request) { return prices(request); };
  std::optional<FaultyForms> faulty;
  if (machine) faulty.emplace([&] { return FaultyLayouts(*machine, in.collectives, goes_on); });
  const std::vector<SearchPiece> all = in.base.serving ? server_pieces(in, fabric, time)
                                                       : training_pieces(in, fabric, time, faulty ? &*faulty : nullptr);
  std::vector<FamilyResult> results(all.size());
  std::int64_t layouts = 0;
  for (const SearchPiece& piece : all) layouts += piece.layouts;
  SearchProgress progress(options);
  PlanResult plan;
  const int threads = options.threads > 0 ? options.threads : tbb::info::default_concurrency();
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  arena.execute([&] {
    progress.begin("layouts", static_cast<std::size_t>(layouts));
    tbb::parallel_for(std::size_t{0}, all.size(),
                      LoopOrder([&](std::size_t i) { results[i] = all[i].search(progress); }));
    merge(in, std::move(results), plan);
    const std::vector<PlannedLayout> by_form = plan.ranked;
    const Bytes each = options.memory == unlimited_memory ? unlimited_memory : Bytes(options.memory.value() / threads);
    if (!plan.partial) simulate_best(in, fabric, static_cast<std::size_t>(options.simulate), each, progress, plan);
    plan.pareto = best_compromises(in, by_form, plan.ranked);
    if (plan.feasible > 0 || !plan.all_seen || plan.nearest) return;
    plan.near_misses = near_misses(in, fabric, plan.smallest.has_value(), progress);
    plan.partial = plan.partial || progress.stopped();
  });
  return plan;
}

}  // namespace collcast
