#include "engine/own_links.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

namespace collcast::engine {

namespace {

/// Runs of one collective from which on it pays to know.
constexpr int often = 3;

/// What the programs do with the sets.
struct Uses {
  std::vector<std::vector<std::uint32_t>> collectives;  ///< by program, each once
  std::vector<std::vector<std::int32_t>> sends;         ///< by program: offsets, each once
  std::vector<bool> is_candidate;                       ///< by set
};

Uses uses_of(const Programs& all) {
  Uses out;
  constexpr std::uint32_t none = ~std::uint32_t{0};
  std::vector<std::uint32_t> stream_of(all.sets.size(), none);
  std::vector<bool> is_often(all.sets.size()), is_on_many(all.sets.size());
  for (const Program& program : all.programs) {
    std::map<std::uint32_t, int> runs;
    std::vector<std::int32_t>& sends = out.sends.emplace_back();
    for (std::uint32_t s = 0; s < program.streams.size(); ++s)
      for (const Instruction& i : program.streams[s]) {
        if (const auto* send = std::get_if<instruction::Send>(&i.what)) sends.push_back(send->offset);
        const auto* part = std::get_if<instruction::TakePart>(&i.what);
        if (part == nullptr) continue;
        const std::uint32_t set = all.collectives[part->collective].set;
        const std::uint32_t before = std::exchange(stream_of[set], s);
        is_on_many[set] = is_on_many[set] || (before != none && before != s);
        if (++runs[part->collective] >= often) is_often[set] = true;
      }
    std::sort(sends.begin(), sends.end());
    sends.erase(std::unique(sends.begin(), sends.end()), sends.end());
    std::vector<std::uint32_t>& collectives = out.collectives.emplace_back();
    for (const auto& [collective, times] : runs) collectives.push_back(collective);
  }
  for (std::size_t set = 0; set < all.sets.size(); ++set) out.is_candidate.push_back(is_often[set] && !is_on_many[set]);
  return out;
}

/// Gives links to who uses them, and takes groups whose links others use off the list.
class Claims {
 public:
  Claims(const Fabric& fabric, std::vector<std::uint8_t>& is_alone)
      : fabric_(fabric), is_alone_(is_alone), owner_(fabric.links().size(), nobody) {}

  void group(std::uint32_t number, const Pattern& pattern, std::uint32_t shift) {
    for (const Lane& lane : pattern.lanes)
      for (const Phase& phase : lane.phases)
        for (Position v = 0; v < pattern.size(); ++v)
          for (int hop = 0, ways = phase.ways(v); hop < ways; ++hop) {
            const auto rank = [&](Position at) { return Rank(pattern.rank(lane, at).value() + shift); };
            claim(rank(v), rank(phase.shape->send(phase, v, hop).peer), lane.route_lane, number);
          }
  }
  void single(Rank from, Rank to) { claim(from, to, 0, many); }

  const std::vector<std::uint32_t>& owners() const { return owner_; }

 private:
  static constexpr std::uint32_t nobody = ~std::uint32_t{0}, many = nobody - 1;

  void claim(Rank from, Rank to, int lane, std::uint32_t who) {
    route_.clear();
    fabric_.route(from, to, lane, route_);
    for (const LinkId link : route_) {
      std::uint32_t& owner = owner_[link.value()];
      if (owner == who) continue;
      if (owner == nobody) {
        owner = who;
        continue;
      }
      if (owner != many) is_alone_[owner] = 0;
      if (who != many) is_alone_[who] = 0;
      owner = many;
    }
  }

  const Fabric& fabric_;
  std::vector<std::uint8_t>& is_alone_;
  std::vector<std::uint32_t> owner_;
  std::vector<LinkId> route_;
};

}  // namespace

OwnLinks::OwnLinks(const Fabric& fabric, const Programs& all, std::span<const std::uint32_t> first_group,
                   std::uint32_t groups) {
  const Uses uses = uses_of(all);
  is_alone_.assign(groups, 0);
  for (std::size_t set = 0; set < all.sets.size(); ++set)
    if (uses.is_candidate[set])
      std::fill_n(is_alone_.begin() + first_group[set], all.sets[set].groups(all.ranks()), std::uint8_t{1});
  const auto none_left = [this] { return std::find(is_alone_.begin(), is_alone_.end(), 1) == is_alone_.end(); };
  if (none_left()) {
    is_alone_.clear();
    return;
  }

  Claims claims(fabric, is_alone_);
  for (std::uint32_t r = 0; r < all.ranks(); ++r) {
    const std::size_t program = all.of_rank[r];
    for (const std::int32_t offset : uses.sends[program])
      claims.single(Rank(r), Rank(r + static_cast<std::uint32_t>(offset)));
    for (const std::uint32_t c : uses.collectives[program]) {
      const Collective& collective = all.collectives[c];
      const GroupSet& set = all.sets[collective.set];
      if (!set.has(Rank(r)) || set.member(Rank(r)) != 0) continue;
      const std::uint32_t group = set.group_of(Rank(r));
      const Pattern& pattern = all.pattern(collective, group);
      claims.group(first_group[collective.set] + group, pattern, r - pattern.group[0].value());
    }
  }
  if (none_left()) {
    is_alone_.clear();
    return;
  }

  // Links by group: counted, then put in place.
  first_.assign(groups + std::size_t{1}, 0);
  const auto owned = [&](std::uint32_t owner) { return owner < groups && is_alone_[owner] != 0; };
  for (const std::uint32_t owner : claims.owners())
    if (owned(owner)) ++first_[owner + std::size_t{1}];
  for (std::uint32_t g = 0; g < groups; ++g) first_[g + std::size_t{1}] += first_[g];
  links_.resize(first_.back());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (std::uint32_t link = 0; link < claims.owners().size(); ++link)
    if (const std::uint32_t owner = claims.owners()[link]; owned(owner)) links_[next[owner]++] = link;
}

}  // namespace collcast::engine
