// Ranks and instructions as people know them, for error messages.
#include <variant>

#include "engine/program_ranks.hpp"

namespace collcast::engine {

namespace {

/// Ranks that are named where many wait.
constexpr int most_named = 4;

}  // namespace

std::string ProgramRanks::text(Place at, const Instruction& instruction) const {
  if (std::holds_alternative<instruction::Spend>(instruction.what)) return "computing";
  if (const auto* part = std::get_if<instruction::TakePart>(&instruction.what)) {
    const Collective& collective = programs_.collectives[part->collective];
    const Group group = programs_.sets[collective.set].group(programs_.sets[collective.set].group_of(Rank(at.rank)));
    return collective.name + " among " + std::to_string(group.size()) + " ranks from rank " +
           std::to_string(group[0].value()) + " on, number " + std::to_string(part->number) + " of the group";
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

std::string ProgramRanks::describe(std::uint32_t stream) const {
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
