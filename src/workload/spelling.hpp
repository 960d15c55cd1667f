// A step on its way to operations (timeline.hpp): what each class of ranks has done so far. What ZeRO-3 gathers and
// reduces unit by unit is in timeline_sharded.cpp, all else in timeline.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workload/aligned.hpp"
#include "workload/schedules/dualpipe.hpp"
#include "workload/sharded_walk.hpp"
#include "workload/timeline.hpp"

namespace collcast::workload {

struct StageStreams {
  StreamId compute, tp, next, previous, dp;
  std::optional<StreamId> cp, ep;  ///< where there are CP ranks, or experts on several ranks
};

class Spelling {
 public:
  Spelling(const ClassedPlan& all, const EngineWatch& watch);

  /// Nothing where the watch ends it.
  std::optional<StepSchedule> run();

 private:
  using Ready = std::optional<OpId>;

  struct TeamState {
    Team stages;
    std::vector<Turn> order;
    std::size_t done = 0;
    std::optional<TurnExchanges> exchanges;  ///< ZeRO-2 and 3
  };
  /// Of a class.
  struct State {
    StageStreams streams;
    std::vector<Ready> activations, gradients;  ///< by chunk and micro-batch: the message's arrival
    Ready last;                                 ///< of its own work
    Ready computed;                             ///< that without a message
    Ready beside;                               ///< messages beside it
    Ready unit_began;                           ///< with the first of the unit's pass
    std::vector<Ready> unit_done;               ///< last backward of each unit
    std::vector<Ready> launched;                ///< aligned, by chunk: what its buckets are behind
    Ready reduced;                              ///< ZeRO-2 and 3: the last gradients of the micro-batch before
    std::vector<Ready> others;                  ///< that the next stretch waits for besides
    std::array<Ready, 2> inputs;                ///< messages that the turn waits for, and its gathers
    std::vector<After> ready;                   ///< what the stretch that is being added waits for
    Ready bucket;                               ///< the last of an exchange
    std::vector<Ready> whole;                   ///< ZeRO-3: gathers of the units' weights, where that is ahead
    Ready gathered, next_gathered, pass_reduced, next_reduced;  ///< ZeRO-3: of the pass, and of the one after it
  };

  void begin(std::size_t c);

  static bool has(const StagePlan& stage, Category category);

  static StreamId stream_of(const StageStreams& streams, Category category) {
    if (category == Category::cp) return *streams.cp;
    return category == Category::ep ? *streams.ep : streams.tp;
  }

  Schedule& schedule() { return result_.schedule; }
  std::size_t stages() const { return all_.stages.size(); }
  const std::vector<std::size_t>& classes(std::size_t stage) const { return all_.stages[stage].classes; }
  template <class Visit>
  void for_classes(const Team& stages, Visit visit) {
    for (const std::size_t i : stages)
      for (const std::size_t c : classes(i)) visit(states_[c]);
  }
  /// What classes of the stages do together of one kind; of two stages it is listed at one of them.
  template <class Visit>
  void for_joins(const Team& stages, std::vector<Join> StageClasses::*joins, Visit visit) {
    for (const std::size_t i : stages)
      for (const Join& join : all_.stages[i].*joins) visit(i, join);
  }
  /// All classes of a stage have the same units.
  const StagePlan& lead(std::size_t stage) const { return all_.of(classes(stage).front()); }

  const std::vector<Join>& joins(std::size_t stage, Category category) const {
    const StageClasses& of = all_.stages[stage];
    return category == Category::cp ? of.cp : category == Category::ep ? of.ep : of.tp;
  }

  /// What several classes do together is done by each.
  OpId add(const Join& members, StreamId stream, Work work, std::vector<After> after, std::string name,
           Category category, Doing doing, int number = 0, int chunk = -1);

  /// What the DP groups of these classes do, all of them: it slows their kernels.
  OpId add_dp(const Join& members, Seconds time, std::vector<After> after, std::string name, Doing doing,
              int number = 0);

  static std::vector<After> after(std::initializer_list<Ready> ops) {
    std::vector<After> list;
    for (const Ready& op : ops)
      if (op) list.push_back({*op});
    return list;
  }

  /// What all members wait for, each once.
  template <class Waits>
  static std::vector<After> joined(const Join& members, Waits waits) {
    std::vector<After> list;
    for (const std::size_t c : members)
      for (const After& one : waits(c)) {
        const bool known = std::any_of(list.begin(), list.end(), [&](const After& a) { return a.op == one.op; });
        if (!known) list.push_back(one);
      }
    return list;
  }

  /// The longest of the members' times.
  template <class Time>
  static Seconds longest(const Join& members, Time time) {
    Seconds most{};
    for (const std::size_t c : members) most = std::max(most, time(c));
    return most;
  }

  void gather_ahead(const TeamState& team);

  /// False if the team is through, or waits for a message that is not there yet.
  bool take_turn(TeamState& team);

  /// Aligned: of the chunks whose buckets are reduced from here on.
  void launch_gradients(const Team& stages, const Turn& turn);
  /// What a bucket of a class waits for that this unit fills; asked when all turns are there, but with ZeRO-2.
  Ready begin_of_bucket(std::size_t i, std::size_t c, std::size_t unit) const;

  void take_inputs(std::size_t i, const Turn& turn, const Turn* together);

  /// Of a stage that exchanges no weights.
  void pass_all(std::size_t i, const Turn& turn);

  void pass_units(std::size_t i, const Turn& turn);

  static Turn weights_of(Turn backward) {
    backward.weights = true;
    return backward;
  }

  /// Weight gradients wait for their backward only, which was before. All classes of a stage get their messages in the
  /// same turn of the sender's.
  bool has_input(std::size_t i, const Turn& turn) const {
    return turn.weights ||
           begins(plan_.schedule, static_cast<int>(stages()), plan_.chunks, static_cast<int>(i), turn) ||
           message(classes(i).front(), turn).has_value();
  }

  const Ready& message(std::size_t c, const Turn& turn) const {
    return (turn.backward ? states_[c].gradients : states_[c].activations)[index(turn.chunk, turn.micro_batch)];
  }

  /// In the order of the pass.
  std::vector<std::size_t> units_of(std::size_t i, const Turn& turn) const;

  const std::vector<Stretch>& stretches(std::size_t c, std::size_t u, const Turn& turn) const {
    const UnitWork& work = all_.of(c).work(all_.of(c).units[u]);
    return turn.weights ? work.weights_of(turn.whole) : turn.backward ? work.backward_of(turn.whole) : work.forward;
  }

  bool has_stretches(std::size_t i, const Turn& turn) const;

  /// A chunk without layers may have nothing to do, as with the embedding's backward: it is over when its message is
  /// there.
  void pass_nothing(std::size_t i, const Turn& turn);

  /// One unit's forward or backward; it also waits for `others`.
  void pass_unit(std::size_t i, std::size_t u, const Turn& turn);

  void pass_stretch(std::size_t i, std::size_t u, const Turn& turn, std::size_t n);

  /// Of a pass that ends with a wait for them, as long as it takes with nobody else.
  static Picoseconds launches_of(const std::vector<Stretch>& pass);

  /// ZeRO-3: weights and gradients unit by unit, as in sharded.hpp.
  void pass_sharded(const Team& stages, const Turn& turn, const TurnExchange& exchange);

  void pass_sharded_units(const Team& stages, const Turn& turn, const TurnExchange& exchange, bool reduces);

  /// For a forward or a backward, after the work so far, and `besides`; leaves it in next_gathered.
  void gather_unit(const Team& stages, std::size_t u, bool backward, const std::string& of, Ready State::*besides);

  /// After the unit's backward, which is the last work so far; leaves it in next_reduced.
  void reduce_unit(const Team& stages, std::size_t u, const Turn& turn);

  /// Those of a chunk, or of all. Leaves the last one in `bucket`, which is empty where nothing is exchanged.
  void exchange_buckets(const Team& stages, const std::string& of, std::optional<int> chunk = {});

  std::size_t index(int chunk, int micro_batch) const {
    return static_cast<std::size_t>(chunk) * static_cast<std::size_t>(plan_.micro_batches) +
           static_cast<std::size_t>(micro_batch);
  }

  /// -1 where there is only one.
  int told(int chunk) const { return plan_.chunks > 1 ? chunk : -1; }
  /// Of all micro-batches: with DualPipe those from the other end come behind.
  int number(std::size_t i, const Turn& turn) const;
  std::string title(std::size_t i, const Turn& turn) const;

  std::vector<Ready>& arrivals(std::size_t c, const Turn& turn) {
    return turn.backward ? states_[c].gradients : states_[c].activations;
  }

  void send(std::size_t i, const Turn& turn);

  void send(std::size_t i, const Turn& turn, std::size_t to, std::size_t slot, bool on, const Join& senders,
            const Join& receivers, Seconds time);

  void exchange_gradients();

  void update();

  void gather_parameters(std::size_t i);

  const ClassedPlan& all_;
  const StepPlan& plan_;
  const EngineWatch& watch_;
  std::vector<TeamState> teams_;
  std::vector<State> states_;
  std::vector<GradientLaunches> launches_;  ///< by stage, where they are aligned
  bool slows_ = false;                      ///< what DP does, kernels
  std::vector<Ready> gradients_done_;       ///< by class
  StepSchedule result_;
};

}  // namespace collcast::workload
