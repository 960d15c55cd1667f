// Rank = mixed-radix number of its coordinates, the first named dimension fastest. A group of a dimension is
// the ranks that differ in that digit only: a strided range.
#include "collcast/workload/groups.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace collcast {

namespace {

/// One digit of the mixed-radix rank.
struct Digit {
  int stride = 1, size = 1;
  int of(Rank r) const { return static_cast<int>(r.value() / static_cast<std::uint32_t>(stride)) % size; }
};
struct Digits {
  Digit tp, cp, pp, dp;
};

Digits digits(const ParallelLayout& l) {
  if (l.order == RankOrder::tp_pp_dp) return {{1, l.tp}, {l.tp, l.cp}, {l.tp * l.cp, l.pp}, {l.tp * l.cp * l.pp, l.dp}};
  if (l.order == RankOrder::dp_pp_tp) return {{l.cp * l.dp * l.pp, l.tp}, {1, l.cp}, {l.cp * l.dp, l.pp}, {l.cp, l.dp}};
  return {{1, l.tp}, {l.tp, l.cp}, {l.tp * l.cp * l.dp, l.pp}, {l.tp * l.cp, l.dp}};
}

/// How the experts of a stage cut its ranks: digits beside those above.
struct ExpertDigits {
  Digit tp, ep, replicas;
};
ExpertDigits expert_digits(const ParallelLayout& l) {
  const int etp = l.expert_tp();
  if (l.order == RankOrder::tp_cp_ep_dp_pp)
    return {{1, etp}, {etp, l.ep}, {etp * l.ep, l.expert_replicas() / l.twins()}};
  const Digits d = digits(l);
  return {{d.tp.stride, etp}, {d.dp.stride, l.ep}, {d.dp.stride * l.ep, l.dp / l.ep}};
}

Group along(Rank rank, const Digit& digit) {
  const int first = static_cast<int>(rank.value()) - digit.of(rank) * digit.stride;
  return Group::strided(Rank(static_cast<std::uint32_t>(first)), digit.stride, digit.size);
}

}  // namespace

std::string_view to_string(Dimension dimension) {
  switch (dimension) {
    case Dimension::tp:
      return "tp";
    case Dimension::pp:
      return "pp";
    case Dimension::dp:
      return "dp";
    case Dimension::cp:
      return "cp";
    case Dimension::ep:
      return "ep";
  }
  check(false, "a known dimension");
  return {};
}

Coordinates coordinates(const ParallelLayout& l, Rank rank) {
  const Digits d = digits(l);
  return {d.tp.of(rank), d.pp.of(rank), d.dp.of(rank), d.cp.of(rank), expert_digits(l).ep.of(rank)};
}

Rank rank_at(const ParallelLayout& l, const Coordinates& c) {
  const Digits d = digits(l);
  return Rank(
      static_cast<std::uint32_t>(c.tp * d.tp.stride + c.cp * d.cp.stride + c.pp * d.pp.stride + c.dp * d.dp.stride));
}

RankGroups groups_of(const ParallelLayout& l, Rank rank) {
  const Digits d = digits(l);
  return {rank,
          along(rank, d.tp),
          along(rank, d.pp),
          along(rank, d.dp),
          along(rank, d.cp),
          along(rank, expert_digits(l).ep)};
}

namespace {

/// CP and then DP as one digit; with CP the two are neighbours (check_step).
Digit replica_digit(const ParallelLayout& l) {
  const Digits d = digits(l);
  return {l.cp > 1 ? d.cp.stride : d.dp.stride, l.dp * l.cp};
}

/// The ranks along a digit, with those of the stage that holds the same slices.
Group with_twins(const ParallelLayout& l, Rank rank, const Digit& digit) {
  const Group own = along(rank, digit);
  if (l.twins() == 1) return own;
  Coordinates at = coordinates(l, rank);
  at.pp = l.pp - 1 - at.pp;
  std::vector<Rank> ranks = own.ranks();
  const Group twins = along(rank_at(l, at), digit);
  for (int i = 0; i < twins.size(); ++i) ranks.push_back(twins[i]);
  std::sort(ranks.begin(), ranks.end());
  return Group::listed(std::move(ranks));
}

}  // namespace

Group replica_group(const ParallelLayout& l, Rank rank) {
  return with_twins(l, rank, {replica_digit(l).stride, l.dp * l.cp});
}

Group shard_group(const ParallelLayout& l, Rank rank) {
  return with_twins(l, rank, {replica_digit(l).stride, l.shards() / l.twins()});
}

Group shard_copies(const ParallelLayout& l, Rank rank) {
  return along(rank, {replica_digit(l).stride * (l.shards() / l.twins()), l.shard_copies()});
}

Group expert_tp_group(const ParallelLayout& l, Rank rank) { return along(rank, expert_digits(l).tp); }
Group expert_replica_group(const ParallelLayout& l, Rank rank) {
  return with_twins(l, rank, expert_digits(l).replicas);
}

bool shards_have_all_experts(const ParallelLayout& l) {
  const std::int64_t ranks = std::int64_t{l.tp} * l.cp * l.dp_shard, apart = std::int64_t{l.expert_tp()} * l.ep;
  return l.dp_shard <= 0 || !l.experts_apart() || ranks % apart == 0;
}
int expert_shard_copies(const ParallelLayout& l) { return l.dp_shard > 0 ? l.dp / l.dp_shard : 1; }
int expert_shards(const ParallelLayout& l) { return l.expert_replicas() / expert_shard_copies(l); }

Group expert_shard_group(const ParallelLayout& l, Rank rank) {
  return with_twins(l, rank, {expert_digits(l).replicas.stride, expert_shards(l) / l.twins()});
}

Group expert_copies_group(const ParallelLayout& l, Rank rank) {
  const int shards = expert_shards(l) / l.twins();
  return along(rank, {expert_digits(l).replicas.stride * shards, expert_shard_copies(l)});
}

}  // namespace collcast
