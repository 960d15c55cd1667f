// What ZeRO-3 gathers and reduces, unit by unit, as operations.
#include <string>
#include <utility>

#include "workload/spelling.hpp"

namespace collcast::workload {

void Spelling::gather_ahead(const TeamState& team) {
  for (const std::size_t u : units_in_first_use(lead(team.stages.front()), team.order)) {
    gather_unit(team.stages, u, false, "", nullptr);
    for_classes(team.stages, [&](State& s) { s.whole[u] = std::exchange(s.next_gathered, {}); });
  }
}

void Spelling::pass_sharded(const Team& stages, const Turn& turn, const TurnExchange& exchange) {
  const bool split = splits_backward(plan_.schedule);
  for (const std::size_t i : stages)
    if (!turn.weights && !has_stretches(i, turn)) pass_nothing(i, turn);
  pass_sharded_units(stages, turn, exchange, exchange.reduces && !turn.whole && (turn.weights || !split));
  if (turn.whole) pass_sharded_units(stages, weights_of(turn), {}, exchange.reduces);
}

void Spelling::pass_sharded_units(const Team& stages, const Turn& turn, const TurnExchange& exchange, bool reduces) {
  const std::vector<std::size_t> units = units_of(stages.front(), turn);
  if (units.empty()) return;
  for_classes(stages, [](State& s) {
    s.gathered.reset();
    s.next_gathered.reset();
    s.pass_reduced = s.reduced;
  });
  const bool ahead = exchange.gathers && gathers_ahead(plan_), gathers = exchange.gathers && !ahead;
  const std::string of = title(stages.front(), turn) + " ";
  if (gathers && !exchange.first_stays) gather_unit(stages, units.front(), turn.backward, of, &State::reduced);
  for_classes(stages, [](State& s) { s.gathered = s.next_gathered; });
  for (std::size_t n = 0; n < units.size(); ++n) {
    const bool more = gathers && n + 1 < units.size();
    for_classes(stages, [](State& s) {
      s.next_gathered.reset();
      s.next_reduced.reset();
    });
    if (plan_.overlap_dp) {
      if (reduces && n > 0) reduce_unit(stages, units[n - 1], turn);
      if (more) gather_unit(stages, units[n + 1], turn.backward, of, nullptr);
    }
    for_classes(stages, [&](State& s) {
      s.others.insert(s.others.end(), {s.gathered, s.pass_reduced});
      if (ahead) s.others.push_back(s.whole[units[n]]);
    });
    for (const std::size_t i : stages) pass_unit(i, units[n], turn);
    if (plan_.overlap_dp) {
      for_classes(stages, [](State& s) { s.pass_reduced = s.next_reduced; });
    } else {
      // A unit that has nothing to reduce leaves what was reduced before it to wait for.
      if (reduces) for_classes(stages, [](State& s) { s.next_reduced = s.pass_reduced; });
      if (reduces) reduce_unit(stages, units[n], turn);
      for_classes(stages, [](State& s) { s.pass_reduced = s.next_reduced; });
      if (more) gather_unit(stages, units[n + 1], turn.backward, of, &State::pass_reduced);
    }
    for_classes(stages, [](State& s) { s.gathered = s.next_gathered; });
  }
  if (!reduces) return;
  for_classes(stages, [](State& s) { s.next_reduced = s.pass_reduced; });
  if (plan_.overlap_dp) reduce_unit(stages, units.back(), turn);
  for_classes(stages, [](State& s) { s.reduced = s.next_reduced; });
}

void Spelling::gather_unit(const Team& stages, std::size_t u, bool backward, const std::string& of,
                           Ready State::*besides) {
  for_joins(stages, &StageClasses::shard, [&](std::size_t i, const Join& join) {
    const Seconds time =
        longest(join, [&](std::size_t c) { return all_.of(c).work(all_.of(c).units[u]).gather_before(backward); });
    if (time == Seconds{}) return;
    const auto waits = [&](std::size_t c) {
      const State& s = states_[c];
      return after({s.last, besides == nullptr ? Ready() : s.*besides, s.inputs[0], s.inputs[1]});
    };
    const OpId op =
        add_dp(join, time, joined(join, waits), of + lead(i).units[u].label + " weight gather", Doing::gather);
    result_.exchanged.back() = {lead(i).work(lead(i).units[u]).gather_uses};
    for (const std::size_t c : join) states_[c].next_gathered = op;
  });
}

void Spelling::reduce_unit(const Team& stages, std::size_t u, const Turn& turn) {
  for_joins(stages, &StageClasses::dp, [&](std::size_t i, const Join& join) {
    const Seconds time = longest(join, [&](std::size_t c) { return all_.of(c).work(all_.of(c).units[u]).reduce; });
    if (time == Seconds{}) return;
    const OpId op = add_dp(join, time, joined(join, [&](std::size_t c) { return after({states_[c].last}); }),
                           title(i, turn) + " " + lead(i).units[u].label + " gradient reduction", Doing::reduction);
    result_.exchanged.back() = {lead(i).work(lead(i).units[u]).reduce_uses};
    for (const std::size_t c : join) states_[c].next_reduced = op;
  });
}
}  // namespace collcast::workload
