// Ranks and instructions as people know them, for error messages.
#include <algorithm>
#include <variant>

#include "engine/program_ranks.hpp"
#include "engine/standstill.hpp"

namespace collcast::engine {

/// Whether the rank takes part in it, or has.
bool ProgramRanks::has_come(std::uint32_t rank, const instruction::TakePart& part) const {
  const Program& program = programs_.programs[program_of(rank)];
  const std::uint32_t set = programs_.collectives[part.collective].set;
  for (std::uint32_t s = 0; s < program.streams.size(); ++s) {
    const std::vector<Instruction>& all = program.streams[s];
    const std::size_t begun = std::min<std::size_t>(over_[rank * streams_ + s] + std::size_t{1}, all.size());
    for (std::size_t i = 0; i < begun; ++i) {
      const auto* own = std::get_if<instruction::TakePart>(&all[i].what);
      if (own != nullptr && own->number == part.number && programs_.collectives[own->collective].set == set)
        return true;
    }
  }
  return false;
}

/// ", to which ranks 3, 5 have not come", or nothing if all have.
std::string ProgramRanks::who_lacks(const Group& group, const instruction::TakePart& part) const {
  std::string out;
  int lacking = 0;
  for (int member = 0; member < group.size(); ++member) {
    if (has_come(group[member].value(), part)) continue;
    if (++lacking <= most_named) out += (out.empty() ? "" : ", ") + std::to_string(group[member].value());
  }
  if (lacking == 0) return {};
  if (lacking > most_named) out += " and " + std::to_string(lacking - most_named) + " more";
  return ", to which " + std::string(lacking == 1 ? "rank " : "ranks ") + out + (lacking == 1 ? " has" : " have") +
         " not come";
}

std::string ProgramRanks::text(Place at, const Instruction& instruction) const {
  if (std::holds_alternative<instruction::Spend>(instruction.what)) return "computing";
  if (const auto* part = std::get_if<instruction::TakePart>(&instruction.what)) {
    const Collective& collective = programs_.collectives[part->collective];
    const Group group = programs_.sets[collective.set].group(programs_.sets[collective.set].group_of(Rank(at.rank)));
    return collective.name + " among " + std::to_string(group.size()) + " ranks from rank " +
           std::to_string(group[0].value()) + " on, number " + std::to_string(part->number) + " of the group" +
           who_lacks(group, *part);
  }
  if (const auto* send = std::get_if<instruction::Send>(&instruction.what))
    return "message to rank " + std::to_string(at.rank + static_cast<std::uint32_t>(send->offset));
  if (const auto* receive = std::get_if<instruction::Receive>(&instruction.what))
    return "message " + std::to_string(receive->messages) + " on channel " + std::to_string(receive->channel) +
           ", where " + std::to_string(arrived_[at.rank * programs_.channels + receive->channel]) + " have come";
  if (const auto* await = std::get_if<instruction::Await>(&instruction.what))
    return "the first " + std::to_string(await->instructions) + " instructions of its stream " +
           std::to_string(await->stream) + ", of which " + std::to_string(over_[at.rank * streams_ + await->stream]) +
           " are over";
  const std::uint32_t number = std::get<instruction::Meet>(instruction.what).number;
  return "all ranks at meeting " + std::to_string(number) + ", to which " + std::to_string(met_[number]) + " have come";
}

std::string ProgramRanks::describe(std::uint32_t index) const {
  if (index >= all_streams()) {
    const auto [ranks, stream] = repeating(index - all_streams());
    return describe(ranks[0].value() * streams_ + stream);
  }
  const std::uint32_t stream = index;
  const Place at = place(stream);
  std::string out = "rank " + std::to_string(at.rank) + ", stream " + std::to_string(at.stream);
  if (over_[stream] == instructions(at).size()) return out;
  return out + ", instruction " + std::to_string(over_[stream]) + " (" + text(at, present(stream)) + ")";
}

std::string ProgramRanks::waits_for(std::uint32_t stream) const {
  const Place at = place(stream);
  return "rank " + std::to_string(at.rank) + ", stream " + std::to_string(at.stream) + ", instruction " +
         std::to_string(over_[stream]) + ", waits for " + text(at, present(stream));
}

/// A stream of the rank that is not at its end; none: all are.
std::uint32_t ProgramRanks::unfinished_stream_of(std::uint32_t rank) const {
  for (std::uint32_t s = 0; s < programs_.programs[program_of(rank)].streams.size(); ++s)
    if (over_[rank * streams_ + s] < instructions({rank, s}).size()) return rank * streams_ + s;
  return none;
}

/// The stream of a rank that is to send to this one on the channel, and has not come to it; none: there is none.
std::uint32_t ProgramRanks::sender_to(std::uint32_t rank, std::uint32_t channel) const {
  for (std::uint32_t other = 0; other < programs_.ranks(); ++other) {
    const auto& streams = programs_.programs[program_of(other)].streams;
    for (std::uint32_t s = 0; s < streams.size(); ++s)
      for (std::size_t i = over_[other * streams_ + s]; i < streams[s].size(); ++i) {
        const auto* send = std::get_if<instruction::Send>(&streams[s][i].what);
        if (send != nullptr && send->channel == channel && other + static_cast<std::uint32_t>(send->offset) == rank)
          return other * streams_ + s;
      }
  }
  return none;
}

/// A stream that this one waits for; none: nobody's, or a meeting, which is for all.
std::uint32_t ProgramRanks::awaits(std::uint32_t stream) const {
  const Place at = place(stream);
  if (over_[stream] == instructions(at).size()) return none;
  const Instruction& now = present(stream);
  if (const auto* await = std::get_if<instruction::Await>(&now.what)) return at.rank * streams_ + await->stream;
  if (const auto* receive = std::get_if<instruction::Receive>(&now.what)) return sender_to(at.rank, receive->channel);
  const auto* part = std::get_if<instruction::TakePart>(&now.what);
  if (part == nullptr) return none;
  const GroupSet& set = programs_.sets[programs_.collectives[part->collective].set];
  const Group group = set.group(set.group_of(Rank(at.rank)));
  for (int member = 0; member < group.size(); ++member)
    if (!has_come(group[member].value(), *part)) return unfinished_stream_of(group[member].value());
  return none;
}

std::string ProgramRanks::left_over() const {
  std::string out = std::to_string(unfinished_) + " streams never finished";
  int named = 0;
  std::vector<std::uint32_t> circle;
  for (std::uint32_t rank = 0; rank < programs_.ranks() && named < most_named; ++rank)
    for (std::uint32_t s = 0; s < programs_.programs[program_of(rank)].streams.size() && named < most_named; ++s) {
      const std::uint32_t stream = rank * streams_ + s;
      if (over_[stream] == instructions({rank, s}).size()) continue;
      out += "; " + waits_for(stream);
      if (circle.empty()) circle = circle_from(stream, none, [this](std::uint32_t of) { return awaits(of); });
      ++named;
    }
  if (circle.empty()) return out;
  const auto name = [this](std::uint32_t stream) {
    return "rank " + std::to_string(place(stream).rank) + ", stream " + std::to_string(place(stream).stream);
  };
  out += "; in a circle: ";
  for (const std::uint32_t stream : circle) out += name(stream) + " waits for ";
  return out + name(circle.front());
}

}  // namespace collcast::engine
