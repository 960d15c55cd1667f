#include "engine/program_ranks.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "collcast/base/check.hpp"

namespace collcast::engine {

ProgramRanks::ProgramRanks(const Programs& programs, Connections& connections, Exchanges& exchanges, Agenda& agenda)
    : programs_(programs),
      connections_(connections),
      exchanges_(exchanges),
      agenda_(agenda),
      streams_(std::max(1U, programs.streams())),
      kernels_(programs),
      accounts_(programs.programs.size() * programs.accounts),
      times_(programs.programs.size()),
      ended_(programs.programs.size()) {
  over_.assign(std::size_t{programs.ranks()} * streams_, 0);
  arrived_.assign(std::size_t{programs.ranks()} * programs.channels, 0);
  std::uint32_t groups = 0;
  for (const GroupSet& set : programs.sets) {
    first_group_.push_back(groups);
    groups += set.groups(programs.ranks());
  }
  check(std::uint64_t{programs.ranks()} * streams_ + groups < none, "streams and groups are numbered in 32 bits");
  forming_of_.assign(groups, none);
  stream_of_.resize(programs.sets.size());
  for (std::uint32_t rank = 0; rank < programs.ranks(); ++rank) {
    const Program& program = programs.programs[program_of(rank)];
    unfinished_ += program.streams.size();
    ++times_[program_of(rank)].ranks;
  }
}

void ProgramRanks::repeat(const Fabric& fabric, Repeats::BusyOf busy) {
  const auto groups = static_cast<std::uint32_t>(forming_of_.size());
  repeats_ =
      Repeats(OwnLinks(fabric, programs_, first_group_, groups), programs_, connections_, std::move(busy), groups);
}

void ProgramRanks::begin() {
  for (std::uint32_t rank = 0; rank < programs_.ranks(); ++rank)
    for (std::uint32_t s = 0; s < programs_.programs[program_of(rank)].streams.size(); ++s) go_on(rank * streams_ + s);
}

void ProgramRanks::go_on(std::uint32_t stream) {
  const Place at = place(stream);
  const std::vector<Instruction>& all = instructions(at);
  while (over_[stream] < all.size()) {
    const Instruction& instruction = all[over_[stream]];
    if (instruction.begins_pass && kernels_.any()) kernels_.begin_pass(at.rank);
    if (start(stream, at, instruction)) {
      if (instruction.slows) slow(at.rank, true);
      return book(at, instruction, false);
    }
    pass(stream, at, instruction);
  }
  end(at);
}

bool ProgramRanks::start(std::uint32_t stream, Place at, const Instruction& instruction) {
  if (const auto* spend = std::get_if<instruction::Spend>(&instruction.what)) {
    return this->spend(stream, at, *spend);
  }
  if (const auto* part = std::get_if<instruction::TakePart>(&instruction.what)) {
    take_part(stream, at, *part);
    return true;
  }
  if (const auto* message = std::get_if<instruction::Send>(&instruction.what)) {
    send(stream, at, *message);
    return true;
  }
  if (const auto* meeting = std::get_if<instruction::Meet>(&instruction.what)) meet(*meeting);
  return !is_there(at, instruction);
}

bool ProgramRanks::spend(std::uint32_t stream, Place at, const instruction::Spend& spend) {
  Ticks time = spend.time.count();
  if (kernels_.any() && spend.waits_for_launches) time = kernels_.left_to_wait(at.rank, time);
  if (time == 0) return false;
  RankKernels::End end{time, 0};
  if (kernels_.any() && spend.rate < 1 && at.stream == 0) end = kernels_.begin(at.rank, spend, agenda_.now);
  agenda_.after(end.after, EventKind::finished, stream, end.version);
  return true;
}

void ProgramRanks::slow(std::uint32_t rank, bool more) {
  if (const std::optional<RankKernels::End> end = kernels_.slow(rank, more, agenda_.now))
    agenda_.after(end->after, EventKind::finished, rank * streams_, end->version);
}

/// Of what a stream waits for.
bool ProgramRanks::is_there(Place at, const Instruction& instruction) const {
  if (const auto* receive = std::get_if<instruction::Receive>(&instruction.what))
    return arrived_[at.rank * programs_.channels + receive->channel] >= receive->messages;
  if (const auto* await = std::get_if<instruction::Await>(&instruction.what))
    return over_[at.rank * streams_ + await->stream] >= await->instructions;
  if (const auto* meeting = std::get_if<instruction::Meet>(&instruction.what))
    return met_[meeting->number] == programs_.ranks();
  return false;
}

void ProgramRanks::pass(std::uint32_t stream, Place at, const Instruction& instruction) {
  ++over_[stream];
  if (kernels_.any()) kernels_.passed(at.rank, at.stream, over_[stream], agenda_.now);
  if (instruction.awaited) look_again(at, over_[stream]);
}

/// Streams of the rank that wait for this one.
void ProgramRanks::look_again(Place at, std::uint32_t over) {
  const auto& program = programs_.programs[program_of(at.rank)];
  for (std::uint32_t s = 0; s < program.streams.size(); ++s) {
    const std::uint32_t other = at.rank * streams_ + s;
    if (s == at.stream || over_[other] == program.streams[s].size()) continue;
    const auto* await = std::get_if<instruction::Await>(&program.streams[s][over_[other]].what);
    if (await != nullptr && await->stream == at.stream && await->instructions <= over)
      agenda_.after(0, EventKind::ready, other);
  }
}

void ProgramRanks::ready(std::uint32_t stream) {
  const Place at = place(stream);
  if (over_[stream] == instructions(at).size()) return;
  const Instruction& instruction = present(stream);
  if (!is_there(at, instruction)) return;
  book(at, instruction, true);
  pass(stream, at, instruction);
  go_on(stream);
}

void ProgramRanks::finished(std::uint32_t index) {
  if (index >= all_streams()) return over_for_all(index - all_streams());
  if (repeats_.is_watching())
    if (const auto* part = std::get_if<instruction::TakePart>(&present(index).what)) {
      const std::uint32_t set = programs_.collectives[part->collective].set;
      const GroupSet& groups = programs_.sets[set];
      repeats_.departed(numbered(set, groups.group_of(Rank(place(index).rank))), part->number,
                        static_cast<std::uint32_t>(groups.members()), agenda_.now);
    }
  over(index);
}

void ProgramRanks::over(std::uint32_t stream) {
  const Place at = place(stream);
  const Instruction& instruction = present(stream);
  book(at, instruction, true);
  if (instruction.slows) slow(at.rank, false);
  if (const auto* spend = std::get_if<instruction::Spend>(&instruction.what);
      spend != nullptr && kernels_.any() && spend->rate < 1 && at.stream == 0)
    kernels_.end(at.rank, over_[at.rank * streams_ + spend->beside] >= spend->instructions, agenda_.now);
  if (const auto* send = std::get_if<instruction::Send>(&instruction.what)) deliver(at, *send);
  pass(stream, at, instruction);
  go_on(stream);
}

void ProgramRanks::send(std::uint32_t stream, Place at, const instruction::Send& send) {
  const Rank to(at.rank + static_cast<std::uint32_t>(send.offset));
  check(to.value() < programs_.ranks() && send.channel < programs_.channels, "a message goes to a rank that there is");
  const std::uint32_t flow = connections_.acquire();
  connections_.connect(flow, {Rank(at.rank), to, 0, stream, 0, 0}, send.size, send.traffic);
  connections_[flow].transfer = true;
  agenda_.send(flow, connections_[flow]);
}

void ProgramRanks::left(std::uint32_t flow) {
  agenda_.after(connections_[flow].latency, EventKind::finished, connections_.name(flow).op);
  connections_.release(flow);
}

void ProgramRanks::deliver(Place from, const instruction::Send& send) {
  const std::uint32_t to = from.rank + static_cast<std::uint32_t>(send.offset);
  const std::uint32_t arrived = ++arrived_[to * programs_.channels + send.channel];
  const Program& program = programs_.programs[program_of(to)];
  for (std::uint32_t s = 0; s < program.streams.size(); ++s) {
    const std::uint32_t stream = to * streams_ + s;
    if (over_[stream] == program.streams[s].size()) continue;
    const auto* receive = std::get_if<instruction::Receive>(&program.streams[s][over_[stream]].what);
    if (receive != nullptr && receive->channel == send.channel && receive->messages <= arrived)
      agenda_.after(0, EventKind::ready, stream);
  }
}

void ProgramRanks::take_part(std::uint32_t stream, Place at, const instruction::TakePart& part) {
  const Collective& collective = programs_.collectives[part.collective];
  const std::uint32_t set_number = collective.set;
  const GroupSet& set = programs_.sets[set_number];
  const Rank rank(at.rank);
  check(set.has(rank), "a rank takes part in what its group does");
  const std::uint32_t group = set.group_of(rank);
  std::uint32_t& first = forming_of_[numbered(set_number, group)];
  std::uint32_t id = first;
  while (id != none && formings_[id].number != part.number) id = formings_[id].next;
  if (id == none) id = first = new_forming(part, first);
  Forming& exchange = formings_[id];
  if (exchange.collective != part.collective) {
    agenda_.failure = describe(stream) + " has come to number " + std::to_string(part.number) +
                      " of its group, which to others is " + programs_.collectives[exchange.collective].name;
    return;
  }
  ++exchange.joined;
  if (exchange.exchange == Exchanges::none) {
    const std::uint32_t enough = collective.together ? static_cast<std::uint32_t>(set.members()) : 1;
    const Held held{set_number, group, at.stream, id};
    if (repeats_.may_repeat(numbered(set_number, group))) {
      if (exchange.joined == enough) held_.push_back(held);
      return;
    }
    if (exchange.joined < enough) return;
    if (collective.together) return begin_walking(held);
    exchange.exchange = open(part.collective, group, at.stream);
  }
  const std::uint32_t running = exchange.exchange;
  if (exchange.joined == static_cast<std::uint32_t>(set.members())) formed(numbered(set_number, group), id);
  exchanges_.ready(running, set.member(rank));
}

std::uint32_t ProgramRanks::new_forming(const instruction::TakePart& part, std::uint32_t next) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(formings_.size()));
    formings_.emplace_back();
  }
  const std::uint32_t id = free_.back();
  free_.pop_back();
  formings_[id] = {part.number, part.collective, Exchanges::none, 0, next};
  return id;
}

void ProgramRanks::formed(std::uint32_t numbered_group, std::uint32_t forming) {
  std::uint32_t* link = &forming_of_[numbered_group];
  while (*link != forming) link = &formings_[*link].next;
  *link = formings_[forming].next;
  free_.push_back(forming);
}

std::uint32_t ProgramRanks::open(std::uint32_t collective, std::uint32_t group, std::uint32_t stream) {
  const Collective& all = programs_.collectives[collective];
  const Pattern& pattern = programs_.pattern(all, group);
  const Group ranks = programs_.sets[all.set].group(group);
  check(pattern.size() == ranks.size(), "a pattern is of the groups of its set");
  ++opened_;
  // All members are on the same stream of theirs: what is finished follows from the rank.
  return exchanges_.open({&pattern, ranks[0].value() - pattern.group[0].value(), all.traffic,
                          ranks[0].value() * streams_ + stream, streams_, true});
}

bool ProgramRanks::begin_held() {
  if (held_.empty()) return false;
  for (const Held& held : held_) {
    const Forming& exchange = formings_[held.forming];
    const GroupSet& set = programs_.sets[held.set];
    const std::uint32_t group = numbered(held.set, held.group);
    stream_of_[held.set] = held.stream;
    if (exchange.joined == static_cast<std::uint32_t>(set.members())) {
      const Pattern& pattern = programs_.pattern(programs_.collectives[exchange.collective], held.group);
      const auto of_all = static_cast<std::uint32_t>(&pattern - programs_.patterns.data());
      if (const Ticks takes = repeats_.again(group, exchange.number, of_all, agenda_.now); takes >= 0) {
        ++opened_;
        formed(group, held.forming);
        agenda_.after(takes, EventKind::finished, all_streams() + group);
        continue;
      }
    }
    begin_walking(held);
  }
  held_.clear();
  return true;
}

void ProgramRanks::begin_walking(const Held& held) {
  Forming& exchange = formings_[held.forming];
  const Group ranks = programs_.sets[held.set].group(held.group);
  const std::uint32_t number = exchange.number, running = open(exchange.collective, held.group, held.stream);
  exchange.exchange = running;
  if (exchange.joined == static_cast<std::uint32_t>(ranks.size())) formed(numbered(held.set, held.group), held.forming);
  for (int member = 0; member < ranks.size(); ++member) {
    const Place at{ranks[member].value(), held.stream};
    const std::uint32_t stream = at.rank * streams_ + at.stream;
    if (over_[stream] == instructions(at).size()) continue;
    const auto* part = std::get_if<instruction::TakePart>(&present(stream).what);
    if (part != nullptr && part->number == number && programs_.collectives[part->collective].set == held.set)
      exchanges_.ready(running, member);
  }
}

void ProgramRanks::over_for_all(std::uint32_t numbered_group) {
  const auto [ranks, stream] = repeating(numbered_group);
  for (int member = 0; member < ranks.size(); ++member) over(ranks[member].value() * streams_ + stream);
}

ProgramRanks::Repeating ProgramRanks::repeating(std::uint32_t numbered_group) const {
  const auto after = std::upper_bound(first_group_.begin(), first_group_.end(), numbered_group);
  const auto set = static_cast<std::size_t>(after - first_group_.begin()) - 1;
  return {programs_.sets[set].group(numbered_group - first_group_[set]), stream_of_[set]};
}

void ProgramRanks::meet(const instruction::Meet& meet) {
  if (met_.size() <= meet.number) met_.resize(meet.number + std::size_t{1});
  if (++met_[meet.number] < programs_.ranks()) return;
  for (std::uint32_t rank = 0; rank < programs_.ranks(); ++rank)
    for (std::uint32_t s = 0; s < programs_.programs[program_of(rank)].streams.size(); ++s) {
      const std::uint32_t stream = rank * streams_ + s;
      if (over_[stream] < instructions({rank, s}).size() &&
          std::holds_alternative<instruction::Meet>(present(stream).what))
        agenda_.after(0, EventKind::ready, stream);
    }
}

void ProgramRanks::end(Place at) {
  --unfinished_;
  const SimTime now{Picoseconds(agenda_.now)};
  finish_ = now;
  if (at.stream != 0) return;
  ProgramTimes& times = times_[program_of(at.rank)];
  // Time does not go back: the first to end is the first that is seen to.
  if (ended_[program_of(at.rank)]++ == 0) times.first_end = now;
  times.last_end = now;
}

void ProgramRanks::book(Place at, const Instruction& instruction, bool over) {
  if (at.stream != 0) return;
  std::uint64_t& account = accounts_[program_of(at.rank) * std::size_t{programs_.accounts} + instruction.account];
  const auto now = static_cast<std::uint64_t>(agenda_.now);
  account += over ? now : ~now + 1;
}

ProgramsTimeline ProgramRanks::output() {
  ProgramsTimeline out;
  for (std::size_t p = 0; p < times_.size(); ++p)
    for (std::uint32_t a = 0; a < programs_.accounts; ++a)
      times_[p].accounts.emplace_back(static_cast<std::int64_t>(accounts_[p * programs_.accounts + a]));
  out.programs = std::move(times_);
  out.finish = finish_;
  out.exchanges = opened_;
  return out;
}

}  // namespace collcast::engine
