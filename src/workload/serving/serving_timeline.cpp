#include "workload/serving/serving_timeline.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "workload/layer/indexer.hpp"

namespace collcast::workload {

namespace {

/// The micro-batches on their way through the stages, as operations.
class Rounds {
 public:
  void start(const StepPlan& plan) {
    for (std::size_t i = 0; i < plan.stages.size(); ++i) {
      const Rank rank = plan.stages[i].rank;
      stages_.push_back(schedule.add_stream({"stage " + std::to_string(i), rank}));
      links_.push_back(schedule.add_stream({"stage " + std::to_string(i) + " messages", rank}));
    }
    ready_.assign(static_cast<std::size_t>(plan.micro_batches), std::nullopt);
  }

  /// Nothing of what follows begins before all of this is over.
  void meet() { ready_.assign(ready_.size(), last_); }

  /// All micro-batches once through all stages, each after its own round before.
  void go(const StepPlan& plan, const LongerContext& longer, Seconds back, const std::string& what) {
    for (std::size_t m = 0; m < ready_.size(); ++m) {
      std::optional<OpId> before = ready_[m];
      for (std::size_t i = 0; i < plan.stages.size(); ++i) {
        before = through(plan.stages[i], stages_[i], longer, what + " mb" + std::to_string(m), before);
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
  OpId through(const StagePlan& stage, StreamId stream, const LongerContext& longer, const std::string& what,
               std::optional<OpId> before) {
    for (const Unit& unit : stage.units) {
      Seconds more = longer_of(longer, unit.kind);
      for (const Stretch& s : stage.work(unit).forward) {
        const Seconds time = s.time + (s.computes() ? more : Seconds{});
        if (s.computes()) more = {};
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

/// Of the tokens behind the first the one at which what a token takes bends, as windows are full from it on, or all
/// keys that may be chosen are there; else the
/// one in the middle.
int token_between(const StepInputs& in, int count) {
  const int full = most_keys(in.model) - 1 - in.serving->mean_prompt_tokens();
  return (in.model.sparse.top_k > 0 || windowed_layers(in.model) > 0) && full > 0 && full < count ? full
                                                                                                  : (count - 1) / 2;
}

}  // namespace

Result<SimulatedPasses> simulate_passes(const StepInputs& in, const PricedPasses& p, const Fabric& fabric,
                                        const EngineOptions& engine, StepTimeline* timeline) {
  const EngineOptions options{Sharing::max_min, engine.watch};
  ContextGrowth growth(in);
  const int count = in.serving->mean_output_tokens() - 1, middle = token_between(in, count);
  SimulatedPasses out;
  out.tokens = {count, middle, {}, {}, {}};
  const auto finish = [](const Timeline& run, OpId op) { return to_seconds(run.ops[op.value()].finish); };

  const std::string what = in.serving->speculation ? "pass" : "token";
  Rounds rounds;
  rounds.start(p.prompts);
  rounds.go(p.prompts, {}, {}, "prompt");
  const OpId prompts = rounds.last();
  rounds.meet();
  rounds.go(p.tokens, {}, p.back, what + " 1");
  const OpId one = rounds.last();
  rounds.go(p.tokens, {}, p.back, what + " 2");
  Result<Timeline> run = simulate(fabric, rounds.schedule, options);
  if (!run) return run.errors();
  out.prompts = finish(*run, prompts);
  out.operations = static_cast<std::int64_t>(run->ops.size());
  const Seconds first = out.tokens.at_first = finish(*run, rounds.last()) - finish(*run, one);
  if (timeline) *timeline = {std::move(rounds.schedule), std::move(run).value()};

  const auto at = [&](int token) -> Result<Seconds> {
    if (token == 0) return first;
    const LongerContext more = growth.at(in.serving->mean_prompt_tokens() + token);
    Rounds later;
    later.start(p.tokens);
    later.go(p.tokens, more, p.back, what);
    const OpId before = later.last();
    later.go(p.tokens, more, p.back, what);
    Result<Timeline> ran = simulate(fabric, later.schedule, options);
    if (!ran) return ran.errors();
    out.operations += static_cast<std::int64_t>(ran->ops.size());
    return finish(*ran, later.last()) - finish(*ran, before);
  };
  if (p.full) {
    Rounds together;
    together.start(*p.full);
    together.go(*p.full, {}, {}, "prompts");
    Result<Timeline> ran = simulate(fabric, together.schedule, options);
    if (!ran) return ran.errors();
    out.operations += static_cast<std::int64_t>(ran->ops.size());
    out.full = finish(*ran, together.last());
  }
  const Result<Seconds> mid = at(middle);
  if (!mid) return mid.errors();
  const Result<Seconds> last = at(count - 1);
  if (!last) return last.errors();
  out.tokens.at_middle = *mid;
  out.tokens.at_last = *last;
  return out;
}

}  // namespace collcast::workload
