// Ranks and instructions as people know them, for error messages.
#include <algorithm>
#include <variant>

#include "engine/program_ranks.hpp"

namespace collcast::engine {

namespace {

/// Ranks that are named where many wait.
constexpr int most_named = 4;

}  // namespace

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

std::string ProgramRanks::left_over() const {
  std::string out = std::to_string(unfinished_) + " streams never finished";
  int named = 0;
  for (std::uint32_t rank = 0; rank < programs_.ranks() && named < most_named; ++rank)
    for (std::uint32_t s = 0; s < programs_.programs[program_of(rank)].streams.size() && named < most_named; ++s) {
      const std::uint32_t stream = rank * streams_ + s;
      if (over_[stream] == instructions({rank, s}).size()) continue;
      out += "; " + waits_for(stream);
      ++named;
    }
  return out;
}

}  // namespace collcast::engine
