#include "collcast/schedule/programs.hpp"

#include <algorithm>
#include <utility>

#include "collcast/base/check.hpp"

namespace collcast {

std::uint32_t GroupSet::fold_stride_of_groups() const {
  return static_cast<std::uint32_t>(fold_stride > stride ? fold_stride / size : fold_stride);
}

int GroupSet::folded_member(Rank rank, int alone) const {
  const auto digits = static_cast<std::uint32_t>(folded);
  const bool upper = rank.value() / static_cast<std::uint32_t>(fold_stride) % digits >= digits / 2;
  return fold_stride < stride ? 2 * alone + (upper ? 1 : 0) : alone + (upper ? (size - 1) / step + 1 : 0);
}

std::uint32_t GroupSet::folded_group(std::uint32_t alone) const {
  const auto digits = static_cast<std::uint32_t>(folded);
  const std::uint32_t low = fold_stride_of_groups(), d = alone / low % digits;
  return alone % low + low * (std::min(d, digits - 1 - d) + alone / (low * digits) * (digits / 2));
}

Group GroupSet::both_groups(std::uint32_t index) const {
  const auto digits = static_cast<std::uint32_t>(folded);
  const std::uint32_t low = fold_stride_of_groups(), half = digits / 2, d = index / low % half;
  const std::uint32_t rest = index % low + low * digits * (index / (low * half));
  std::vector<Rank> ranks = one_group(rest + low * d).ranks();
  const Group upper = one_group(rest + low * (digits - 1 - d));
  for (int i = 0; i < upper.size(); ++i) ranks.push_back(upper[i]);
  std::sort(ranks.begin(), ranks.end());
  return Group::listed(std::move(ranks));
}

void Program::await(std::size_t stream, std::size_t other, std::size_t instructions, std::uint8_t account) {
  check(instructions > 0 && instructions <= streams[other].size(), "a stream waits for instructions that are there");
  streams[other][instructions - 1].awaited = true;
  streams[stream].push_back(
      {instruction::Await{static_cast<std::uint32_t>(other), static_cast<std::uint32_t>(instructions)}, account});
}

std::uint32_t Programs::streams() const {
  std::size_t most = 0;
  for (const Program& program : programs) most = std::max(most, program.streams.size());
  return static_cast<std::uint32_t>(most);
}

bool Programs::slows() const {
  for (const Program& program : programs)
    for (const std::vector<Instruction>& stream : program.streams)
      if (std::any_of(stream.begin(), stream.end(), [](const Instruction& i) { return i.slows; })) return true;
  return false;
}

const Pattern& Programs::pattern(const Collective& collective, std::uint32_t group) const {
  const std::vector<std::uint16_t>& kinds = sets[collective.set].kind_of;
  return patterns[collective.patterns[kinds.empty() ? 0 : kinds[group]]];
}

ProgramTraffic traffic(const Programs& all) {
  std::vector<std::int64_t> of_pattern;
  for (const Pattern& pattern : all.patterns) of_pattern.push_back(traffic(pattern).messages);
  // How often each program runs each collective, then rank by rank: a group counts at its first member.
  std::vector<std::vector<std::int64_t>> runs;
  std::vector<std::int64_t> sends;
  for (const Program& program : all.programs) {
    runs.emplace_back(all.collectives.size());
    sends.push_back(0);
    for (const std::vector<Instruction>& stream : program.streams)
      for (const Instruction& i : stream) {
        if (const auto* part = std::get_if<instruction::TakePart>(&i.what)) ++runs.back()[part->collective];
        if (std::holds_alternative<instruction::Send>(i.what)) ++sends.back();
      }
  }
  ProgramTraffic sum;
  for (std::uint32_t r = 0; r < all.ranks(); ++r) {
    const std::size_t program = all.of_rank[r];
    sum.transfers += sends[program];
    for (std::size_t c = 0; c < all.collectives.size(); ++c) {
      const GroupSet& set = all.sets[all.collectives[c].set];
      if (runs[program][c] == 0 || !set.has(Rank(r)) || set.member(Rank(r)) != 0) continue;
      sum.exchanges += runs[program][c];
      const std::uint32_t group = set.group_of(Rank(r));
      const std::size_t kind = set.kind_of.empty() ? 0 : set.kind_of[group];
      sum.messages += runs[program][c] * of_pattern[all.collectives[c].patterns[kind]];
    }
  }
  sum.messages += sum.transfers;
  return sum;
}

}  // namespace collcast
