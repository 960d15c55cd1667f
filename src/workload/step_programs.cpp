#include "workload/step_programs.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "workload/step_collectives.hpp"
#include "workload/timeline.hpp"

namespace collcast::workload {

namespace {

std::uint8_t account_of(Category category) { return static_cast<std::uint8_t>(category); }

/// The programs of a plan's stages, which take part in `collectives`.
class ProgramWriter {
 public:
  ProgramWriter(const StepInputs& in, const Fabric& fabric, Seconds base_latency, const StepPlan& plan, Programs& out,
                StepCollectives& collectives)
      : in_(in),
        fabric_(fabric),
        base_latency_(base_latency),
        plan_(plan),
        spelled_(spell_out(plan)),
        out_(out),
        collectives_(collectives),
        stages_(plan.stages.size()),
        other_(spelled_.schedule.size(), nowhere),
        slows_(spelled_.schedule.size()),
        waits_(spelled_.schedule.size()),
        begins_pass_(spelled_.schedule.size()),
        here_(spelled_.schedule.size()),
        there_(spelled_.schedule.size()) {
    for (StageState& stage : stages_) stage.program.streams.resize(lines);
    for (const Slowing& slowing : spelled_.slowings) slows_[slowing.op.value()] = true;
    for (const LaunchWait& wait : spelled_.launch_waits) {
      waits_[wait.op.value()] = true;
      begins_pass_[wait.pass.value()] = true;
    }
    for (const Hidden& hidden : spelled_.hidden) hidden_by_[hidden.kernel.value()] = hidden.exchange.value();
    for (std::size_t i = 0; i < spelled_.of_class.size(); ++i)
      for (const OpId op : spelled_.of_class[i])
        if (stage_of(op.value()) != static_cast<int>(i) && spelled_.exchanged[op.value()].to < 0)
          other_[op.value()] = static_cast<int>(i);
  }

  /// By stage.
  Result<std::vector<Program>> write() {
    for (std::uint32_t op = 0; op < spelled_.schedule.size(); ++op) {
      if (!spelled_.schedule.stream(OpId(op)))
        meet(op);
      else if (spelled_.exchanged[op].to >= 0)
        send(op);
      else if (spelled_.places[op].doing == Doing::tied)
        sum_embeddings(op);
      else
        work(op);
    }
    if (!errors_.empty()) return errors_;
    for (StageState& stage : stages_)
      if (const std::size_t all = stage.program.streams[dp].size(); all > 0)
        await(stage, own, {dp, static_cast<std::uint32_t>(all)}, account_of(Category::dp));
    return without_empty_lines();
  }

 private:
  enum Line : std::uint8_t { own, to_next, to_previous, dp, beside, from_previous, from_next };
  static constexpr std::size_t lines = from_next + std::size_t{1};
  static constexpr int nowhere = -1;

  /// So many instructions of a line, or messages on a channel.
  struct Spot {
    std::uint8_t line = own;
    std::uint32_t count = 0;
  };

  struct StageState {
    Program program;
    std::array<std::array<std::uint32_t, lines>, lines> awaited{};  ///< by line, of another line
    std::array<std::array<std::uint32_t, 2>, lines> received{};     ///< by line and channel
    std::array<std::uint32_t, 2> sent{};                            ///< to it, by channel
    bool begins_pass = false;                                       ///< the next instruction that takes time
    std::map<std::uint32_t, std::uint32_t> number;                  ///< of the next exchange, by set
    std::map<int, std::uint32_t> collectives;                       ///< by place in the plan's list
    Spot met;

    std::vector<Instruction>& line(std::size_t l) { return program.streams[l]; }
    Spot now(Line l) { return {l, static_cast<std::uint32_t>(line(l).size())}; }
  };

  int stage_of(std::uint32_t op) const { return spelled_.places[op].stage; }
  StageState& stage(int i) { return stages_[static_cast<std::size_t>(i)]; }
  Category category(std::uint32_t op) const { return *parse_category(spelled_.schedule.category(OpId(op))); }

  Line line_of(std::uint32_t op) const {
    const Stream& stream = spelled_.schedule.streams()[spelled_.schedule.stream(OpId(op))->value()];
    if (spelled_.exchanged[op].beside) return beside;
    if (stream.name == "dp") return dp;
    if (stream.name == "pp to next") return to_next;
    return stream.name == "pp to previous" ? to_previous : own;
  }

  void await(StageState& stage, Line line, Spot spot, std::uint8_t account) {
    if (spot.line == line || spot.count <= stage.awaited[line][spot.line]) return;
    stage.awaited[line][spot.line] = spot.count;
    stage.program.await(line, spot.line, spot.count, account);
  }

  /// For the operations of the list that are the stage's own, or reach it.
  void wait(int i, Line line, std::uint32_t op) {
    StageState& s = stage(i);
    for (const After& edge : spelled_.schedule.after(OpId(op))) {
      const std::uint32_t before = edge.op.value();
      if (!spelled_.schedule.stream(edge.op)) {
        await(s, line, s.met, idle_account);
      } else if (stage_of(before) == i) {
        await(s, line, here_[before], account_of(category(before)));
      } else if (other_[before] == i) {
        await(s, line, there_[before], account_of(category(before)));
      } else if (spelled_.exchanged[before].to == i) {
        receive(s, line, before);
      }
    }
  }

  void receive(StageState& s, Line line, std::uint32_t message) {
    if (gathers_messages(in_)) return await(s, line, there_[message], idle_account);
    const Spot spot = there_[message];
    if (spot.count <= s.received[line][spot.line]) return;
    s.received[line][spot.line] = spot.count;
    s.line(line).push_back({instruction::Receive{spot.line, spot.count}, idle_account});
  }

  /// What is done on the stage itself, and on another that takes part.
  void work(std::uint32_t op) {
    here_[op] = work(op, stage_of(op));
    if (other_[op] != nowhere) there_[op] = work(op, other_[op]);
  }

  Spot work(std::uint32_t op, int i) {
    const Line line = line_of(op);
    StageState& s = stage(i);
    wait(i, line, op);
    s.begins_pass = s.begins_pass || begins_pass_[op];
    const std::size_t first = s.line(line).size();
    const Work& what = spelled_.schedule.work(OpId(op));
    const Uses& uses = spelled_.exchanged[op].uses;
    if (const auto* compute = std::get_if<Compute>(&what))
      compute_for(s, op, compute->duration);
    else if (spelled_.places[op].doing == Doing::optimizer)
      spend(s, own, std::get<Delay>(what).duration, category(op));  // for copies, which nothing slows
    else
      check(uses.any() || std::get<Delay>(what).duration == Seconds{}, "communication is made of collectives");
    for (int n = 0; n < uses.times; ++n)
      for (const int cost : uses.collectives)
        if (cost != Uses::none) take_part(s, line, collective(i, cost), category(op));
    for (std::size_t n = first; n < s.line(line).size() && slows_[op]; ++n) s.line(line)[n].slows = true;
    return s.now(line);
  }

  /// Of what may be slowed, how, where anything slows it.
  void compute_for(StageState& s, std::uint32_t op, Seconds time) {
    spend(s, own, time, category(op));
    if (spelled_.slowings.empty() || s.line(own).empty()) return;
    auto* spent = std::get_if<instruction::Spend>(&s.line(own).back().what);
    if (spent == nullptr || to_picoseconds(time) == Picoseconds{}) return;
    spent->rate = spelled_.rates[op];
    spent->waits_for_launches = waits_[op];
    const auto hidden = hidden_by_.find(op);
    if (hidden == hidden_by_.end()) return;
    spent->beside = here_[hidden->second].line;
    spent->instructions = here_[hidden->second].count;
  }

  void spend(StageState& s, Line line, Seconds time, Category category) {
    const Picoseconds whole = to_picoseconds(time);
    if (whole > Picoseconds{}) add(s, line, instruction::Spend{whole}, category);
  }

  /// What takes time.
  template <class What>
  void add(StageState& s, Line line, What what, Category category) {
    s.line(line).push_back({what, account_of(category)});
    if (line == own || line == beside) s.line(line).back().begins_pass = std::exchange(s.begins_pass, false);
  }

  void take_part(StageState& s, Line line, std::uint32_t collective, Category category) {
    spend(s, line, base_latency_, category);
    const std::uint32_t number = s.number[out_.collectives.empty() ? 0 : out_.collectives[collective].set]++;
    add(s, line, instruction::TakePart{collective, number}, category);
  }

  std::uint32_t collective(int i, int cost) {
    const auto [known, is_new] = stage(i).collectives.emplace(cost, 0);
    if (is_new) {
      const CollectiveCost& c = plan_.stages[static_cast<std::size_t>(i)].collectives[static_cast<std::size_t>(cost)];
      known->second = add(i, set_of(i, c.request.group), c.request, c.name, c.dimension);
    }
    return known->second;
  }

  /// Of groups like that of a rank of the stage.
  GroupSet set_of(int i, const Group& group) const {
    std::vector<Rank> here;
    for (int r = 0; r < group.size(); ++r)
      if (coordinates(in_.layout, group[r]).pp == i) here.push_back(group[r]);
    const Group alone = Group::listed(std::move(here));
    GroupSet set{alone.stride(), alone.size()};
    if (alone.size() == group.size()) return set;
    // With those of the other stage that holds the same slices.
    const auto at = [&](int stage) { return static_cast<int>(rank_at(in_.layout, {0, stage, 0, 0, 0}).value()); };
    set.fold_stride = at(1) - at(0);
    set.folded = in_.layout.pp;
    return set;
  }

  std::uint32_t add(int i, const GroupSet& set, const CollectiveRequest& request, const std::string& name,
                    Dimension dimension) {
    const Result<std::uint32_t> added = collectives_.add(i, set, request, name, in_.traffic(dimension));
    if (added) return *added;
    append(errors_, added.errors());
    if (out_.collectives.empty()) out_.collectives.emplace_back();  // never run
    return 0;
  }

  void meet(std::uint32_t op) {
    for (int i = 0; i < in_.layout.pp; ++i) {
      wait(i, own, op);
      stage(i).line(own).push_back({instruction::Meet{0}, idle_account});
      stage(i).met = stage(i).now(own);
    }
  }

  void send(std::uint32_t op) {
    const int from = stage_of(op), to = spelled_.exchanged[op].to;
    const Line line = line_of(op);
    const std::uint32_t channel = spelled_.places[op].doing == Doing::message_on ? 0 : 1;
    StageState &sender = stage(from), &receiver = stage(to);
    wait(from, line, op);
    spend(sender, line, base_latency_, Category::pp);
    const auto at = [&](int i) { return static_cast<std::int32_t>(rank_at(in_.layout, {0, i, 0, 0, 0}).value()); };
    const Volume size(static_cast<double>(whole(stage_message_bytes(in_)).value()));
    sender.line(line).push_back(
        {instruction::Send{at(to) - at(from), channel, size, in_.traffic(Dimension::pp)}, account_of(Category::pp)});
    here_[op] = sender.now(line);
    there_[op] = {static_cast<std::uint8_t>(channel), ++receiver.sent[channel]};
    if (gathers_messages(in_)) there_[op] = gather(to, channel == 0 ? from_previous : from_next, there_[op]);
  }

  /// The receivers put their shares of a message together.
  Spot gather(int to, Line line, Spot message) {
    StageState& s = stage(to);
    s.line(line).push_back({instruction::Receive{message.line, message.count}, idle_account});
    const auto [known, is_new] = s.collectives.emplace(Uses::none, 0);
    if (is_new) {
      const CollectiveRequest request = message_gather_request(in_, fabric_, to);
      known->second = add(to, {request.group.stride(), request.group.size()}, request, "pp all_gather", Dimension::pp);
    }
    take_part(s, line, known->second, Category::pp);
    return s.now(line);
  }

  /// The gradients of embeddings that the first and the last stage have.
  void sum_embeddings(std::uint32_t op) {
    const int last = in_.layout.pp - 1;
    const CollectiveCost& cost =
        plan_.stages[0].collectives[static_cast<std::size_t>(plan_.stages[0].tied_uses.collectives[0])];
    const GroupSet ends{cost.request.group.stride() / last, in_.layout.pp, last};
    for (const int i : {0, last}) {
      wait(i, dp, op);
      take_part(stage(i), dp, add(i, ends, cost.request, cost.name, cost.dimension), Category::dp);
      (i == 0 ? here_ : there_)[op] = stage(i).now(dp);
    }
  }

  std::vector<Program> without_empty_lines() {
    std::vector<Program> out;
    std::array<std::uint32_t, lines> number{};
    std::vector<std::size_t> used{own};
    for (std::size_t l = own + std::size_t{1}; l < lines; ++l) {
      const bool any = std::any_of(stages_.begin(), stages_.end(), [l](StageState& s) { return !s.line(l).empty(); });
      if (!any) continue;
      number[l] = static_cast<std::uint32_t>(used.size());
      used.push_back(l);
    }
    for (StageState& s : stages_) {
      Program program;
      for (const std::size_t l : used) program.streams.push_back(std::move(s.line(l)));
      for (std::vector<Instruction>& stream : program.streams)
        for (Instruction& i : stream)
          if (auto* await = std::get_if<instruction::Await>(&i.what))
            await->stream = number[await->stream];
          else if (auto* spend = std::get_if<instruction::Spend>(&i.what))
            spend->beside = number[spend->beside];
      out.push_back(std::move(program));
    }
    return out;
  }

  const StepInputs& in_;
  const Fabric& fabric_;
  Seconds base_latency_;
  const StepPlan& plan_;
  StepSchedule spelled_;
  Programs& out_;
  StepCollectives& collectives_;
  std::vector<StageState> stages_;
  std::vector<int> other_;  ///< by OpId: of what two stages do together the one that it is not listed at
  std::vector<bool> slows_, waits_, begins_pass_;     ///< by OpId: collectives of DP; waits for launches; of their pass
  std::map<std::uint32_t, std::uint32_t> hidden_by_;  ///< of kernels that may be slowed: the exchange beside them
  std::vector<Spot> here_, there_;  ///< by OpId: on its stage, and where it arrives or on the other one
  Diagnostics errors_;
};

}  // namespace

Result<Programs> make_programs(const StepInputs& in, const Fabric& fabric, ForecastPrices& prices, const StepPlan& plan,
                               const RankPrices* own) {
  Programs out;
  out.channels = plan.stages.size() > 1 ? 2 : 0;
  out.accounts = idle_account + 1U;
  for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(in.layout.world()); ++r)
    out.of_rank.push_back(static_cast<std::uint16_t>(own == nullptr ? coordinates(in.layout, Rank(r)).pp
                                                                    : static_cast<int>(own->plan_of[r])));
  StepCollectives collectives(in, fabric, prices, out);
  const Seconds latency = prices.policy().base_latency;
  if (own == nullptr) {
    Result<std::vector<Program>> programs = ProgramWriter(in, fabric, latency, plan, out, collectives).write();
    if (!programs) return programs.errors();
    out.programs = std::move(programs).value();
    return out;
  }
  check(own->plans.size() < 65'536, "ranks of few kinds");
  for (std::size_t p = 0; p < own->plans.size(); ++p) {
    const std::size_t stage = own->stage_of_plan[p];
    StepPlan one = plan;
    one.stages[stage] = own->plans[p];
    Result<std::vector<Program>> programs = ProgramWriter(in, fabric, latency, one, out, collectives).write();
    if (!programs) return programs.errors();
    out.programs.push_back(std::move((*programs)[stage]));
  }
  return out;
}

Diagnostics check_unfolding(const StepInputs& in, const CollectivePolicy& policy, const Origins& origins) {
  Diagnostics wrong;
  const auto refuse = [&](const char* path, std::string what, std::string hint) {
    wrong.push_back({origins.of(path), std::move(what), std::move(hint)});
  };
  if (in.serving)
    refuse("inference", "a batch that is served cannot be unfolded", "expected a training step, or no --unfolded");
  if (policy.library == Library::nccl)
    refuse("collectives.library", "library nccl has times of collectives, not their messages, and cannot be unfolded",
           "expected library ideal (--library ideal)");
  // Experts that are split exchange rows, too.
  const bool exchanges_rows = in.model.experts.count > 0 && in.layout.ep * in.layout.expert_tp() > 1;
  if (in.options.overlap_ep && exchanges_rows)
    refuse("training.overlap_ep", "an exchange of experts under another micro-batch's computing cannot be unfolded",
           "expected overlap_ep false, or no --unfolded");
  return wrong;
}

}  // namespace collcast::workload
