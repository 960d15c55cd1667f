#include "workload/timeline.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "workload/spelling.hpp"

namespace collcast::workload {

Spelling::Spelling(const ClassedPlan& all, const EngineWatch& watch)
    : all_(all), plan_(all.plan), watch_(watch), states_(all.classes.size()) {
  result_.of_class.resize(states_.size());
  result_.compute.resize(states_.size());
  Orders orders = plan_.orders();
  for (Team& team : teams_of(plan_)) {
    TeamState& one = teams_.emplace_back();
    one.order = std::move(orders[team.front()]);
    if (plan_.zero >= 2) one.exchanges.emplace(plan_, team.front(), one.order);
    one.stages = std::move(team);
  }
  for (const StageClasses& stage : all.stages)
    for (const std::size_t c : stage.classes) begin(c);
  if (!aligns_gradients(plan_)) return;
  for (const TeamState& team : teams_) launches_.emplace_back(plan_, team.stages.front(), team.order);
}

std::optional<StepSchedule> Spelling::run() {
  if (gathers_ahead(plan_))
    for (const TeamState& team : teams_) gather_ahead(team);
  // An operation waits only for existing ones: each stage goes on as far as what it waits for is there.
  for (bool more = true; more;) {
    more = false;
    for (TeamState& team : teams_)
      while (take_turn(team)) {
        if (watch_ && !watch_({})) return std::nullopt;
        more = true;
      }
  }
  for (const TeamState& t : teams_) check(t.done == t.order.size(), "a pipeline order never waits for itself");
  exchange_gradients();
  update();
  return std::move(result_);
}

void Spelling::begin(std::size_t c) {
  const StagePlan& plan = all_.of(c);
  State& s = states_[c];
  const auto stream = [&](const char* name) { return schedule().add_stream({name, all_.classes[c].first}); };
  for (const UnitWork& work : plan.works) slows_ = slows_ || (plan_.overlap_dp && work.is_slowed());
  s.streams = {stream("compute"), stream("tp"), stream("pp to next"), stream("pp to previous"), stream("dp"), {}, {}};
  if (has(plan, Category::cp)) s.streams.cp = stream("cp");
  if (has(plan, Category::ep)) s.streams.ep = stream("ep");
  result_.compute[c] = s.streams.compute;
  const std::vector<Ready> none(static_cast<std::size_t>(plan_.micro_batches) * static_cast<std::size_t>(plan_.chunks));
  s.activations = none;
  s.gradients = none;
  s.unit_done.resize(plan.units.size());
  s.launched.resize(static_cast<std::size_t>(plan_.chunks));
  s.whole.resize(plan.units.size());
}

bool Spelling::has(const StagePlan& stage, Category category) {
  for (const UnitWork& work : stage.works)
    for (const std::vector<Stretch>* stretches : {&work.forward, &work.backward})
      for (const Stretch& s : *stretches)
        if ((s.beside_is == category && s.beside > Seconds{}) || s.category == category) return true;
  return false;
}

OpId Spelling::add(const Join& members, StreamId stream, Work work, std::vector<After> after, std::string name,
                   Category category, Doing doing, int number, int chunk) {
  const OpId op = schedule().add(stream, work, after, {std::move(name), std::string(to_string(category))});
  for (const std::size_t c : members) result_.of_class[c].push_back(op);
  result_.places.push_back({all_.classes[members.front()].stage, doing, number, chunk});
  result_.exchanged.emplace_back();
  result_.rates.push_back(1);
  return op;
}

OpId Spelling::add_dp(const Join& members, Seconds time, std::vector<After> after, std::string name, Doing doing,
                      int number) {
  const OpId op = add(members, states_[members.front()].streams.dp, Delay{time}, std::move(after), std::move(name),
                      Category::dp, doing, number);
  if (slows_) result_.slowings.push_back({op, members});
  return op;
}

bool Spelling::take_turn(TeamState& team) {
  if (team.done == team.order.size()) return false;
  const Turn turn = team.order[team.done];
  const Turn* together = turn.with_next ? &team.order[team.done + 1] : nullptr;
  for (const std::size_t i : team.stages)
    if (!has_input(i, turn) || (together != nullptr && !has_input(i, *together))) return false;

  for (const std::size_t i : team.stages) take_inputs(i, turn, together);
  const TurnExchange exchange = team.exchanges ? team.exchanges->next(turn) : TurnExchange();
  if (plan_.zero == 3)
    pass_sharded(team.stages, turn, exchange);
  else
    for (const std::size_t i : team.stages) pass_all(i, turn);
  if (plan_.zero == 2 && exchange.reduces) {
    for_classes(team.stages, [](State& s) { s.bucket.reset(); });
    exchange_buckets(team.stages, title(team.stages.front(), turn) + " ", turn.chunk);
    for_classes(team.stages, [](State& s) { s.reduced = s.bucket; });
  }
  for_classes(team.stages, [](State& s) { s.computed = s.last; });
  if (!launches_.empty()) launch_gradients(team.stages, turn);
  // Of a pair both send in the end.
  for (const std::size_t i : team.stages) {
    if (team.done > 0 && team.order[team.done - 1].with_next) send(i, team.order[team.done - 1]);
    if (!turn.weights && !turn.with_next) send(i, turn);
  }
  ++team.done;
  return true;
}

void Spelling::launch_gradients(const Team& stages, const Turn& turn) {
  for (const int chunk : launches_[stages.front()].behind(turn))
    for_classes(stages, [chunk](State& s) { s.launched[static_cast<std::size_t>(chunk)] = s.last; });
}

Spelling::Ready Spelling::begin_of_bucket(std::size_t i, std::size_t c, std::size_t unit) const {
  const State& s = states_[c];
  if (fills_in_backward(plan_, i)) return s.unit_done[unit];
  const Ready& launched = s.launched[static_cast<std::size_t>(lead(i).units[unit].chunk)];
  return launched ? launched : s.last;
}

void Spelling::take_inputs(std::size_t i, const Turn& turn, const Turn* together) {
  for (const std::size_t c : classes(i)) {
    State& s = states_[c];
    s.inputs = {turn.weights ? Ready() : message(c, turn), together != nullptr ? message(c, *together) : Ready()};
    // A unit that has nothing to do leaves its gather to the next turn.
    if (plan_.zero != 3) s.others.clear();
    s.others.insert(s.others.end(), {s.inputs[0], s.reduced, s.inputs[1]});
  }
}

void Spelling::pass_all(std::size_t i, const Turn& turn) {
  pass_units(i, turn);
  if (!turn.weights && !has_stretches(i, turn)) pass_nothing(i, turn);
  if (turn.whole) pass_units(i, weights_of(turn));
}

void Spelling::pass_units(std::size_t i, const Turn& turn) {
  for (const std::size_t u : units_of(i, turn)) {
    pass_unit(i, u, turn);
    for (const std::size_t c : classes(i)) states_[c].others = {Ready(), states_[c].reduced};
  }
}

std::vector<std::size_t> Spelling::units_of(std::size_t i, const Turn& turn) const {
  const std::vector<Unit>& all = lead(i).units;
  std::vector<std::size_t> units;
  for (std::size_t u = 0; u < all.size(); ++u)
    if (all[u].chunk == turn.chunk) units.push_back(u);
  if (turn.backward) std::reverse(units.begin(), units.end());
  return units;
}

bool Spelling::has_stretches(std::size_t i, const Turn& turn) const {
  const std::vector<std::size_t> units = units_of(i, turn);
  return std::any_of(units.begin(), units.end(),
                     [&](std::size_t u) { return !stretches(classes(i).front(), u, turn).empty(); });
}

void Spelling::pass_nothing(std::size_t i, const Turn& turn) {
  for (const std::size_t c : classes(i)) {
    State& s = states_[c];
    s.last = add({c}, s.streams.compute, Delay{}, after({s.last, s.beside, message(c, turn), s.reduced}),
                 title(i, turn), turn.backward ? Category::backward : Category::forward,
                 turn.backward ? Doing::backward : Doing::forward, number(i, turn), told(turn.chunk));
    s.beside.reset();
  }
}

void Spelling::pass_unit(std::size_t i, std::size_t u, const Turn& turn) {
  for (std::size_t n = 0; n < stretches(classes(i).front(), u, turn).size(); ++n) pass_stretch(i, u, turn, n);
  for (const std::size_t c : classes(i)) states_[c].unit_done[u] = states_[c].last;
}

void Spelling::pass_stretch(std::size_t i, std::size_t u, const Turn& turn, std::size_t n) {
  for (const std::size_t c : classes(i)) {
    State& s = states_[c];
    s.ready = after({s.last, s.beside});
    for (const Ready& op : s.others)
      if (op) s.ready.push_back({*op});
    s.beside.reset();
    s.others.clear();
  }
  const auto of = [&](std::size_t c) -> const Stretch& { return stretches(c, u, turn)[n]; };
  const Stretch& first = of(classes(i).front());
  const std::string name = title(i, turn) + " " + lead(i).units[u].label + " " + first.name;
  if (n == 0)
    for (const std::size_t c : classes(i)) states_[c].unit_began.reset();
  const auto pass = [&](const Join& members, StreamId stream, Work work, const char* what, Category category) {
    const OpId op = add(members, stream, work, joined(members, [&](std::size_t c) { return states_[c].ready; }),
                        name + what, category,
                        turn.weights    ? Doing::weights
                        : turn.backward ? Doing::backward
                                        : Doing::forward,
                        number(i, turn), told(turn.chunk));
    for (const std::size_t c : members)
      if (!states_[c].unit_began) states_[c].unit_began = op;
    return op;
  };
  for (const Join& join : joins(i, first.beside_is)) {
    const Seconds beside = longest(join, [&](std::size_t c) { return of(c).beside; });
    if (beside == Seconds{}) continue;
    const StreamId stream = stream_of(states_[join.front()].streams, first.beside_is);
    const OpId op = pass(join, stream, Delay{beside}, " messages", first.beside_is);
    result_.exchanged.back() = {first.uses, true};
    for (const std::size_t c : join) states_[c].beside = op;
  }
  if (first.computes()) {
    for (const std::size_t c : classes(i)) {
      const OpId op =
          pass({c}, states_[c].streams.compute, Compute{all_.classes[c].first, of(c).time}, "", first.category);
      states_[c].last = op;
      result_.rates.back() = of(c).rate;
      if (of(c).rate < 1 && states_[c].beside) result_.hidden.push_back({op, *states_[c].beside});
      if (first.waits_for_host())
        result_.launch_waits.push_back({op, *states_[c].unit_began, launches_of(stretches(c, u, turn))});
    }
    return;
  }
  for (const Join& join : joins(i, first.category)) {
    const Seconds time = longest(join, [&](std::size_t c) { return of(c).time; });
    const OpId op =
        pass(join, stream_of(states_[join.front()].streams, first.category), Delay{time}, "", first.category);
    result_.exchanged.back() = {first.uses};
    for (const std::size_t c : join) states_[c].last = op;
  }
}

Picoseconds Spelling::launches_of(const std::vector<Stretch>& pass) {
  const Picoseconds wait = to_picoseconds(pass.back().time + pass.back().spared);
  if (wait == Picoseconds{}) return {};
  Picoseconds busy{};
  for (std::size_t n = 0; n + 1 < pass.size(); ++n) busy += to_picoseconds(pass[n].length());
  return busy + wait;
}

void Spelling::exchange_buckets(const Team& stages, const std::string& of, std::optional<int> chunk) {
  const StagePlan& any = lead(stages.front());
  for (std::size_t b = 0; b < any.buckets.size(); ++b) {
    const std::size_t unit = any.buckets[b].unit;
    if (chunk && any.units[unit].chunk != *chunk) continue;
    for_joins(stages, &StageClasses::dp, [&](std::size_t i, const Join& join) {
      const Seconds time = longest(join, [&](std::size_t c) { return all_.of(c).buckets[b].time; });
      const auto waits = [&](std::size_t c) {
        if (plan_.delayed) return std::vector<After>{};
        return after({begin_of_bucket(i, c, unit)});
      };
      const OpId op = add_dp(join, time, joined(join, waits), of + "gradient bucket " + std::to_string(b),
                             Doing::bucket, static_cast<int>(b));
      result_.exchanged.back() = {lead(i).buckets[b].uses};
      for (const std::size_t c : join) states_[c].bucket = op;
    });
  }
}

int Spelling::number(std::size_t i, const Turn& turn) const {
  const bool other_way =
      from_both_ends(plan_.schedule) && !goes_down(static_cast<int>(stages()), static_cast<int>(i), turn.chunk);
  return turn.micro_batch + (other_way ? plan_.micro_batches : 0);
}

std::string Spelling::title(std::size_t i, const Turn& turn) const {
  const std::string chunk = plan_.chunks > 1 ? " chunk " + std::to_string(turn.chunk) : "";
  return (turn.weights ? "W mb" : turn.backward ? "B mb" : "F mb") + std::to_string(number(i, turn)) + chunk;
}

void Spelling::send(std::size_t i, const Turn& turn) {
  const std::optional<ChunkPlace> next =
      next_place(plan_.schedule, static_cast<int>(stages()), plan_.chunks, static_cast<int>(i), turn);
  if (!next) return;
  const auto to = static_cast<std::size_t>(next->stage);
  const std::size_t slot = index(next->chunk, turn.micro_batch);
  if (to == i) {
    for (const std::size_t c : classes(i)) arrivals(c, turn)[slot] = states_[c].last;
    return;
  }
  // What goes to the stage before takes the way of what comes from it. A TP group's messages are one: its stage goes
  // on when all are there.
  const bool on = goes_on(plan_.schedule, static_cast<int>(i), *next, turn);
  const std::vector<StageClasses::Message>& ways = all_.stages[on ? i : to].next;
  for (std::size_t j = 0; j < ways.size(); ++j)
    send(i, turn, to, slot, on, all_.stages[i].tp[on ? j : ways[j].to], all_.stages[to].tp[on ? ways[j].to : j],
         ways[j].time);
}

void Spelling::send(std::size_t i, const Turn& turn, std::size_t to, std::size_t slot, bool on, const Join& senders,
                    const Join& receivers, Seconds time) {
  const StageStreams& streams = states_[senders.front()].streams;
  const StreamId stream = !plan_.overlap_pp ? streams.compute : on ? streams.next : streams.previous;
  const OpId message =
      add(senders, stream, Delay{time}, joined(senders, [&](std::size_t c) { return after({states_[c].last}); }),
          title(i, turn) + " to stage " + std::to_string(to), Category::pp,
          on ? Doing::message_on : Doing::message_back, number(i, turn));
  result_.exchanged.back() = {{}, false, static_cast<int>(to)};
  for (const std::size_t c : receivers) {
    result_.of_class[c].push_back(message);
    arrivals(c, turn)[slot] = message;
  }
  if (plan_.overlap_pp) return;
  for (const std::size_t c : senders) states_[c].last = message;
}

void Spelling::exchange_gradients() {
  gradients_done_.resize(states_.size());
  // A group that is of two stages exchanges with the one that it is listed at.
  for (std::size_t i = 0; i < stages(); ++i)
    if (plan_.zero < 2) exchange_buckets({i}, "");
  // Delayed they are those of the step before, and wait for nothing of this one.
  for (std::size_t c = 0; c < states_.size(); ++c)
    gradients_done_[c] = plan_.zero >= 2 ? states_[c].reduced : states_[c].bucket;
  for (const ClassedPlan::Tied& tied : all_.tied) {
    std::vector<After> gradients = after({gradients_done_[tied.front], gradients_done_[tied.back]});
    // What is reduced need not be all: experts' gradients alone, or those of the turns before the last.
    if (!plan_.delayed)
      for (const std::size_t c : {tied.front, tied.back})
        for (const After& turn : after({states_[c].computed})) gradients.push_back(turn);
    const OpId op = add({tied.front}, states_[tied.front].streams.dp, Delay{tied.time}, std::move(gradients),
                        "embedding gradients", Category::dp, Doing::tied);
    result_.exchanged.back() = {all_.of(tied.front).tied_uses};
    result_.of_class[tied.back].push_back(op);
    gradients_done_[tied.front] = gradients_done_[tied.back] = op;
  }
}

void Spelling::update() {
  if (lead(0).optimizer.empty()) return;
  std::vector<After> all;
  for (std::size_t i = 0; i < stages(); ++i)
    for (const std::size_t c : classes(i))
      for (const After& op : after({states_[c].last, gradients_done_[c]})) all.push_back(op);
  const OpId norm =
      schedule().add(Delay{}, all, {"gradient norm of all ranks", std::string(to_string(Category::optimizer))});
  result_.places.push_back({0, Doing::optimizer, 0, -1});
  result_.exchanged.emplace_back();
  result_.rates.push_back(1);
  // What is split over two stages is gathered when both have updated their part.
  const bool after_all = from_both_ends(plan_.schedule);
  for (std::size_t i = 0; i < stages(); ++i) {
    for (const std::size_t c : classes(i))
      for (const Operation& op : all_.of(c).optimizer)
        states_[c].last = add({c}, states_[c].streams.compute,
                              op.is_wait() ? Work(Delay{op.time}) : Compute{all_.classes[c].first, op.time},
                              after({norm}), op.name, Category::optimizer, Doing::optimizer);
    if (!after_all) gather_parameters(i);
  }
  for (std::size_t i = 0; i < stages() && after_all; ++i) gather_parameters(i);
}

void Spelling::gather_parameters(std::size_t i) {
  for (const Join& join : all_.stages[i].shard) {
    const Seconds gather = longest(join, [&](std::size_t c) { return all_.of(c).gather; });
    if (gather == Seconds{}) continue;
    add(join, states_[join.front()].streams.dp, Delay{gather},
        joined(join, [&](std::size_t c) { return after({states_[c].last}); }), "parameter gather", Category::dp,
        Doing::gather);
    result_.exchanged.back() = {all_.of(join.front()).gather_uses};
  }
}

StepSchedule spell_out(const ClassedPlan& plan) { return *spell_out(plan, {}); }
StepSchedule spell_out(const StepPlan& plan) { return spell_out(as_classes(plan)); }
std::optional<StepSchedule> spell_out(const ClassedPlan& plan, const EngineWatch& watch) {
  return Spelling(plan, watch).run();
}
Diagnostic spelling_ended() {
  return {{}, "the simulation was ended from outside before it began", "nothing is known of its result"};
}

}  // namespace collcast::workload
