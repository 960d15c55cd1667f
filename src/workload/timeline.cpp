#include "workload/timeline.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace collcast::workload {

namespace {

struct StageStreams {
  StreamId compute, tp, next, previous, dp;
  std::optional<StreamId> cp, ep;  ///< where there are CP ranks, or experts on several ranks
};

class Spelling {
 public:
  explicit Spelling(const StepPlan& plan) : plan_(plan), states_(plan.stages.size()) {
    result_.of_stage.resize(plan.stages.size());
    for (std::size_t i = 0; i < plan.stages.size(); ++i) {
      State& s = states_[i];
      const auto stream = [&](const char* name) { return schedule().add_stream({name, plan.stages[i].rank}); };
      s.streams = {
          stream("compute"), stream("tp"), stream("pp to next"), stream("pp to previous"), stream("dp"), {}, {}};
      if (has(plan.stages[i], Category::cp)) s.streams.cp = stream("cp");
      if (has(plan.stages[i], Category::ep)) s.streams.ep = stream("ep");
      s.order = stage_order(plan.schedule, static_cast<int>(plan.stages.size()), static_cast<int>(i),
                            plan.micro_batches, plan.chunks);
      const std::vector<std::optional<OpId>> none(static_cast<std::size_t>(plan.micro_batches) *
                                                  static_cast<std::size_t>(plan.chunks));
      s.activations = none;
      s.gradients = none;
      s.unit_done.resize(plan.stages[i].units.size());
    }
  }

  StepSchedule run() {
    // An operation waits only for existing ones: each stage goes on as far as what it waits for is there.
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < states_.size(); ++i)
        while (take_turn(i)) more = true;
    }
    for (const State& s : states_) check(s.done == s.order.size(), "a pipeline order never waits for itself");
    exchange_gradients();
    update();
    return std::move(result_);
  }

 private:
  struct State {
    StageStreams streams;
    std::vector<Turn> order;
    std::size_t done = 0;
    std::vector<std::optional<OpId>> activations, gradients;  ///< by chunk and micro-batch: the message's arrival
    std::optional<OpId> last;                                 ///< of the stage's own work
    std::optional<OpId> beside;                               ///< messages beside it
    std::vector<std::optional<OpId>> unit_done;               ///< last backward of each unit
    std::optional<OpId> reduced;  ///< ZeRO-2 and 3: the last gradients of the micro-batch before
  };

  static bool has(const StagePlan& stage, Category category) {
    for (const UnitWork& work : stage.works)
      for (const std::vector<Stretch>* stretches : {&work.forward, &work.backward})
        for (const Stretch& s : *stretches)
          if ((s.beside_is == category && s.beside > Seconds{}) || s.category == category) return true;
    return false;
  }

  static StreamId stream_of(const StageStreams& streams, Category category) {
    if (category == Category::cp) return *streams.cp;
    return category == Category::ep ? *streams.ep : streams.tp;
  }

  Schedule& schedule() { return result_.schedule; }

  OpId add(std::size_t stage, StreamId stream, Work work, std::vector<After> after, std::string name, Category category,
           Doing doing, int number = 0, int chunk = -1) {
    const OpId op = schedule().add(stream, work, after, {std::move(name), std::string(to_string(category))});
    result_.of_stage[stage].push_back(op);
    result_.places.push_back({static_cast<int>(stage), doing, number, chunk});
    return op;
  }

  static std::vector<After> after(std::initializer_list<std::optional<OpId>> ops) {
    std::vector<After> list;
    for (const std::optional<OpId>& op : ops)
      if (op) list.push_back({*op});
    return list;
  }

  /// False if the stage is through, or waits for a message that is not there yet.
  bool take_turn(std::size_t i) {
    State& s = states_[i];
    if (s.done == s.order.size()) return false;
    const Turn turn = s.order[s.done];
    // Weight gradients wait for their backward only, which was before.
    const bool begins = turn.weights || (turn.backward ? i + 1 == states_.size() && turn.chunk + 1 == plan_.chunks
                                                       : i == 0 && turn.chunk == 0);
    std::optional<OpId> message = (turn.backward ? s.gradients : s.activations)[index(turn.chunk, turn.micro_batch)];
    if (!begins && !message) return false;
    if (turn.weights) message.reset();

    if (plan_.zero == 3) {
      pass_sharded_units(i, turn);
    } else {
      for (const std::size_t u : units_of(i, turn)) {
        pass_unit(i, u, turn, {message, s.reduced});
        message.reset();
      }
    }
    if (plan_.zero == 2 && turn.backward) s.reduced = exchange_buckets(i, title(turn) + " ");
    ++s.done;
    if (!turn.weights) send(i, turn);
    return true;
  }

  /// In the order of the pass.
  std::vector<std::size_t> units_of(std::size_t i, const Turn& turn) const {
    const std::vector<Unit>& all = plan_.stages[i].units;
    std::vector<std::size_t> units;
    for (std::size_t u = 0; u < all.size(); ++u)
      if (all[u].chunk == turn.chunk) units.push_back(u);
    if (turn.backward) std::reverse(units.begin(), units.end());
    return units;
  }

  /// One unit's forward or backward; it also waits for `others`.
  void pass_unit(std::size_t i, std::size_t u, const Turn& turn, std::array<std::optional<OpId>, 2> others) {
    State& s = states_[i];
    const StagePlan& stage = plan_.stages[i];
    const Unit& unit = stage.units[u];
    const UnitWork& unit_work = stage.work(unit);
    for (const Stretch& stretch : turn.weights    ? unit_work.weights
                                  : turn.backward ? unit_work.backward
                                                  : unit_work.forward) {
      const std::vector<After> ready = after({s.last, s.beside, others[0], others[1]});
      const auto pass = [&](StreamId stream, Work work, const char* what, Category category) {
        return add(i, stream, work, ready, title(turn) + " " + unit.label + " " + stretch.name + what, category,
                   turn.weights    ? Doing::weights
                   : turn.backward ? Doing::backward
                                   : Doing::forward,
                   turn.micro_batch, told(turn.chunk));
      };
      s.beside.reset();
      if (stretch.beside > Seconds{})
        s.beside = pass(stream_of(s.streams, stretch.beside_is), Delay{stretch.beside}, " messages", stretch.beside_is);
      if (stretch.computes())
        s.last = pass(s.streams.compute, Compute{stage.rank, stretch.time}, "", stretch.category);
      else
        s.last = pass(stream_of(s.streams, stretch.category), Delay{stretch.time}, "", stretch.category);
      others = {};
    }
    s.unit_done[u] = s.last;
  }

  /// ZeRO-3: weights and gradients unit by unit, as in sharded.hpp.
  void pass_sharded_units(std::size_t i, const Turn& turn) {
    State& s = states_[i];
    const std::vector<std::size_t> units = units_of(i, turn);
    const bool gathers = !turn.backward || plan_.reshard;
    std::optional<OpId> gathered, reduced = s.reduced;
    if (!turn.backward) gathered = gather_unit(i, units.front(), turn, {s.last, s.reduced});
    for (std::size_t n = 0; n < units.size(); ++n) {
      const bool more = gathers && n + 1 < units.size();
      std::optional<OpId> next_gathered, next_reduced;
      if (plan_.overlap_dp) {
        if (turn.backward && n > 0) next_reduced = reduce_unit(i, units[n - 1], turn);
        if (more) next_gathered = gather_unit(i, units[n + 1], turn, {s.last, {}});
      }
      pass_unit(i, units[n], turn, {gathered, reduced});
      reduced = next_reduced;
      if (!plan_.overlap_dp) {
        if (turn.backward) reduced = reduce_unit(i, units[n], turn);
        if (more) next_gathered = gather_unit(i, units[n + 1], turn, {s.last, reduced});
      }
      gathered = next_gathered;
    }
    if (turn.backward) s.reduced = plan_.overlap_dp ? reduce_unit(i, units.back(), turn) : reduced;
  }

  std::optional<OpId> gather_unit(std::size_t i, std::size_t u, const Turn& turn,
                                  std::array<std::optional<OpId>, 2> others) {
    const Unit& unit = plan_.stages[i].units[u];
    const Seconds time = plan_.stages[i].work(unit).gather;
    if (time == Seconds{}) return {};
    return add(i, states_[i].streams.dp, Delay{time}, after({others[0], others[1]}),
               title(turn) + " " + unit.label + " weight gather", Category::dp, Doing::gather);
  }

  /// After the unit's backward, which is the last work so far.
  std::optional<OpId> reduce_unit(std::size_t i, std::size_t u, const Turn& turn) {
    const Unit& unit = plan_.stages[i].units[u];
    const Seconds time = plan_.stages[i].work(unit).reduce;
    if (time == Seconds{}) return {};
    return add(i, states_[i].streams.dp, Delay{time}, after({states_[i].last}),
               title(turn) + " " + unit.label + " gradient reduction", Category::dp, Doing::reduction);
  }

  std::optional<OpId> exchange_buckets(std::size_t i, const std::string& of) {
    const State& s = states_[i];
    const StagePlan& stage = plan_.stages[i];
    std::optional<OpId> bucket;
    for (std::size_t b = 0; b < stage.buckets.size(); ++b)
      bucket = add(i, s.streams.dp, Delay{stage.buckets[b].time},
                   after({plan_.overlap_dp ? s.unit_done[stage.buckets[b].unit] : s.last}),
                   of + "gradient bucket " + std::to_string(b), Category::dp, Doing::bucket, static_cast<int>(b));
    return bucket;
  }

  std::size_t index(int chunk, int micro_batch) const {
    return static_cast<std::size_t>(chunk) * static_cast<std::size_t>(plan_.micro_batches) +
           static_cast<std::size_t>(micro_batch);
  }

  /// -1 where there is only one.
  int told(int chunk) const { return plan_.chunks > 1 ? chunk : -1; }
  std::string title(const Turn& turn) const {
    const std::string chunk = plan_.chunks > 1 ? " chunk " + std::to_string(turn.chunk) : "";
    return (turn.weights ? "W mb" : turn.backward ? "B mb" : "F mb") + std::to_string(turn.micro_batch) + chunk;
  }

  /// To the stage's neighbour, and between chunks round to the other end.
  void send(std::size_t i, const Turn& turn) {
    const std::size_t last = states_.size() - 1;
    const bool round = turn.backward ? i == 0 : i == last;
    const int chunk = !round ? turn.chunk : turn.backward ? turn.chunk - 1 : turn.chunk + 1;
    if (chunk < 0 || chunk == plan_.chunks) return;
    State& s = states_[i];
    const std::size_t to = turn.backward ? (i == 0 ? last : i - 1) : (i == last ? 0 : i + 1);
    const StreamId stream = !plan_.overlap_pp ? s.streams.compute : turn.backward ? s.streams.previous : s.streams.next;
    const OpId message = add(i, stream, Delay{plan_.transfer[turn.backward ? to : i]}, after({s.last}),
                             title(turn) + " to stage " + std::to_string(to), Category::pp,
                             turn.backward ? Doing::message_back : Doing::message_on, turn.micro_batch);
    result_.of_stage[to].push_back(message);
    (turn.backward ? states_[to].gradients : states_[to].activations)[index(chunk, turn.micro_batch)] = message;
    if (!plan_.overlap_pp) s.last = message;
  }

  void exchange_gradients() {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const std::optional<OpId> done = plan_.zero >= 2 ? states_[i].reduced : exchange_buckets(i, "");
      gradients_done_.push_back(done ? done : states_[i].last);
    }
    const Seconds tied = std::max(plan_.stages.front().tied_embedding, plan_.stages.back().tied_embedding);
    if (tied == Seconds{}) return;
    const OpId op =
        add(0, states_.front().streams.dp, Delay{tied}, after({gradients_done_.front(), gradients_done_.back()}),
            "embedding gradients", Category::dp, Doing::tied);
    if (states_.size() > 1) result_.of_stage.back().push_back(op);
    gradients_done_.front() = gradients_done_.back() = op;
  }

  void update() {
    if (plan_.stages.front().optimizer.empty()) return;
    std::vector<After> all;
    for (std::size_t i = 0; i < states_.size(); ++i)
      for (const After& op : after({states_[i].last, gradients_done_[i]})) all.push_back(op);
    const OpId norm =
        schedule().add(Delay{}, all, {"gradient norm of all ranks", std::string(to_string(Category::optimizer))});
    result_.places.push_back({0, Doing::optimizer, 0, -1});
    for (std::size_t i = 0; i < states_.size(); ++i) {
      State& s = states_[i];
      const StagePlan& stage = plan_.stages[i];
      for (const Operation& op : stage.optimizer)
        s.last = add(i, s.streams.compute, Compute{stage.rank, op.time}, after({norm}), op.name, Category::optimizer,
                     Doing::optimizer);
      if (stage.gather > Seconds{})
        add(i, s.streams.dp, Delay{stage.gather}, after({s.last}), "parameter gather", Category::dp, Doing::gather);
    }
  }

  const StepPlan& plan_;
  std::vector<State> states_;
  std::vector<std::optional<OpId>> gradients_done_;
  StepSchedule result_;
};

}  // namespace

StepSchedule spell_out(const StepPlan& plan) { return Spelling(plan).run(); }

}  // namespace collcast::workload
