#include "workload/faults/rank_classes.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "workload/plan.hpp"

namespace collcast::workload {

namespace {

using Numbers = std::vector<std::uint32_t>;

/// Ranks that groups join, directly or through others.
class Unions {
 public:
  explicit Unions(const ParallelLayout& layout)
      : layout_(layout), parent_(static_cast<std::size_t>(layout.world())), size_(parent_.size(), 1) {
    std::iota(parent_.begin(), parent_.end(), 0U);
  }

  void join(GroupOf group_of) {
    for (std::uint32_t r = 0; r < parent_.size(); ++r) {
      const std::uint32_t first = group_of(layout_, Rank(r))[0].value();
      if (first != r) unite(first, r);
    }
  }

  Numbers numbers() {
    Numbers out(parent_.size());
    for (std::uint32_t r = 0; r < parent_.size(); ++r) out[r] = find(r);
    return out;
  }

 private:
  std::uint32_t find(std::uint32_t r) {
    while (parent_[r] != r) r = parent_[r] = parent_[parent_[r]];
    return r;
  }
  void unite(std::uint32_t a, std::uint32_t b) {
    a = find(a);
    b = find(b);
    if (a == b) return;
    if (size_[a] < size_[b]) std::swap(a, b);
    parent_[b] = a;
    size_[a] += size_[b];
  }

  const ParallelLayout& layout_;
  Numbers parent_, size_;
};

Numbers joined_by(const ParallelLayout& layout, std::initializer_list<GroupOf> groups) {
  Unions unions(layout);
  for (const GroupOf group_of : groups) unions.join(group_of);
  return unions.numbers();
}

/// Gives each distinct key a number, in the order in which they are met.
class Numbering {
 public:
  std::uint32_t operator()(const Numbers& key) {
    return known_.emplace(key, static_cast<std::uint32_t>(known_.size())).first->second;
  }
  std::size_t size() const { return known_.size(); }

 private:
  std::map<Numbers, std::uint32_t> known_;
};

/// By rank, the set of classes in its group as a number.
Numbers class_sets(const Numbers& group, const Numbers& class_of) {
  std::vector<Numbers> members(group.size());
  for (std::size_t r = 0; r < group.size(); ++r) members[group[r]].push_back(class_of[r]);
  Numbering numbering;
  Numbers number(group.size()), out(group.size());
  for (std::size_t g = 0; g < members.size(); ++g) {
    if (members[g].empty()) continue;
    std::sort(members[g].begin(), members[g].end());
    members[g].erase(std::unique(members[g].begin(), members[g].end()), members[g].end());
    number[g] = numbering(members[g]);
  }
  for (std::size_t r = 0; r < group.size(); ++r) out[r] = number[group[r]];
  return out;
}

/// The rank with the same place on another stage.
std::uint32_t on_stage(const ParallelLayout& layout, std::size_t rank, int stage) {
  Coordinates at = coordinates(layout, Rank(static_cast<std::uint32_t>(rank)));
  at.pp = stage;
  return rank_at(layout, at).value();
}

/// For each rank whom it exchanges messages with: of the stage before and after, and of the other end.
struct Neighbours {
  std::vector<std::uint32_t> before, after, end;
};

Neighbours neighbours(const ParallelLayout& layout, bool tied) {
  Neighbours out;
  const int stages = layout.pp;
  for (std::size_t r = 0; r < static_cast<std::size_t>(layout.world()); ++r) {
    const int stage = coordinates(layout, Rank(static_cast<std::uint32_t>(r))).pp;
    out.before.push_back(on_stage(layout, r, (stage + stages - 1) % stages));
    out.after.push_back(on_stage(layout, r, (stage + 1) % stages));
    const bool at_end = tied && (stage == 0 || stage + 1 == stages);
    out.end.push_back(at_end ? on_stage(layout, r, stages - 1 - stage) : static_cast<std::uint32_t>(r));
  }
  return out;
}

Folding numbered(const Numbers& class_of) {
  Folding out;
  std::map<std::uint32_t, std::uint32_t> number;
  for (std::size_t r = 0; r < class_of.size(); ++r) {
    const auto [found, is_new] = number.emplace(class_of[r], static_cast<std::uint32_t>(number.size()));
    if (is_new) {
      out.first.emplace_back(static_cast<std::uint32_t>(r));
      out.ranks.push_back(0);
    }
    out.class_of.push_back(found->second);
    ++out.ranks[found->second];
  }
  return out;
}

}  // namespace

RankJoins joins_of(const ParallelLayout& layout, int zero) {
  // Without experts, and where those are as their layer, the groups below are the others again.
  const bool apart = layout.experts_apart();
  RankJoins out;
  out.tp = joined_by(layout, {groups_along(Dimension::tp)});
  out.cp = joined_by(layout, {groups_along(Dimension::cp)});
  const GroupOf ep = groups_along(Dimension::ep);
  out.ep = apart || layout.ep > 1 ? joined_by(layout, {ep, expert_tp_group}) : joined_by(layout, {ep});
  out.dp = apart ? joined_by(layout, {replica_group, expert_replica_group}) : joined_by(layout, {replica_group});
  if (zero == 0)
    out.shard = out.dp;
  else
    out.shard = apart ? joined_by(layout, {shard_group, expert_shard_group}) : joined_by(layout, {shard_group});
  return out;
}

Folding fold(const ParallelLayout& layout, const RankJoins& joins, const std::vector<std::uint32_t>& kind, bool tied) {
  const Neighbours beside = neighbours(layout, tied);
  Numbers class_of = kind;
  for (std::size_t classes = 0;;) {
    const Numbers tp = class_sets(joins.tp, class_of), cp = class_sets(joins.cp, class_of),
                  ep = class_sets(joins.ep, class_of), dp = class_sets(joins.dp, class_of),
                  shard = class_sets(joins.shard, class_of);
    Numbering numbering;
    Numbers next;
    for (std::size_t r = 0; r < class_of.size(); ++r)
      next.push_back(numbering({class_of[r], tp[r], cp[r], ep[r], dp[r], shard[r], tp[beside.before[r]],
                                tp[beside.after[r]], class_of[beside.end[r]]}));
    class_of = std::move(next);
    if (numbering.size() == classes) return numbered(class_of);
    classes = numbering.size();
  }
}

Folding unfolded(const ParallelLayout& layout) {
  Numbers all(static_cast<std::size_t>(layout.world()));
  std::iota(all.begin(), all.end(), 0U);
  return numbered(all);
}

}  // namespace collcast::workload
