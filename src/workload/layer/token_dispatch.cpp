#include "workload/layer/token_dispatch.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "collcast/base/check.hpp"
#include "collcast/evaluate/nodes.hpp"

namespace collcast::workload {

namespace {

/// K of `all` experts without any of `these`.
double chance_of_none(int all, int these, int k) {
  double out = 1;
  for (int i = 0; i < k; ++i) out *= static_cast<double>(std::max(0, all - these - i)) / (all - i);
  return out;
}

/// By group, of the experts that EP rank `rank` of `ranks` has: neighbours.
void add_experts(const Experts& e, int rank, int ranks, std::vector<int>& in_group) {
  const int each = e.count / ranks, of_group = e.count / e.groups;
  for (int expert = rank * each; expert < (rank + 1) * each; ++expert)
    ++in_group[static_cast<std::size_t>(expert / of_group)];
}

}  // namespace

double chance_of_any(const Experts& e, const std::vector<int>& in_group) {
  const int open = e.group_top_k * (e.count / e.groups);
  const auto taken_at_most = static_cast<std::size_t>(e.group_top_k);
  // Group by group, those alone that have some of them: how many are taken, with how many of them in all.
  std::vector<std::map<int, double>> taken(taken_at_most + 1);
  taken[0][0] = 1;
  int seen = 0;
  for (const int here : in_group) {
    if (here == 0) continue;
    for (std::size_t c = taken_at_most + 1; c-- > 0;) {
      const double takes = static_cast<double>(e.group_top_k - static_cast<int>(c)) / (e.groups - seen);
      for (auto& [experts, chance] : taken[c]) {
        if (c < taken_at_most) taken[c + 1][experts + here] += chance * takes;
        chance *= 1 - takes;
      }
    }
    ++seen;
  }
  double none = 0;
  for (const auto& by_experts : taken)
    for (const auto& [experts, chance] : by_experts) none += chance * chance_of_none(open, experts, e.top_k);
  return 1 - none;
}

double dispatched_share(const StepInputs& in, const Fabric& fabric, const Group& ep) {
  const Experts& e = in.model.experts;
  const int ranks = ep.size();
  if (in.options.moe_token_dispatcher == TokenDispatcher::alltoall || ranks == 1) return 1;
  check(e.count % ranks == 0 && e.count % e.groups == 0, "whole experts on each rank, and in each group");
  const bool one_node = is_on_one_node(fabric, ep);
  // What a token is sent to once each: ranks, or nodes.
  struct Place {
    std::vector<int> in_group;  ///< its experts, by group
    int ranks = 0;
    double chance = 0;
  };
  std::map<std::uint32_t, Place> places;
  for (int i = 0; i < ranks; ++i) {
    Place& place = places[one_node ? static_cast<std::uint32_t>(i) : fabric.node_of(ep[i]).value()];
    place.in_group.resize(static_cast<std::size_t>(e.groups));
    add_experts(e, i, ranks, place.in_group);
    ++place.ranks;
  }
  double reached = 0;
  for (auto& [at, place] : places) reached += place.chance = chance_of_any(e, place.in_group);
  if (one_node) return reached / e.top_k;
  double busiest = 0, busiest_of_all = 0;  // of a rank's part of its node's network, in or out, in tokens of a rank
  for (const auto& [at, place] : places) {
    const int others = ranks - place.ranks;
    const double sent = reached - place.chance, received = others * place.chance / place.ranks;
    busiest = std::max({busiest, sent, received});
    busiest_of_all = std::max(busiest_of_all, static_cast<double>(e.top_k) * others / ranks);
  }
  return busiest / busiest_of_all;
}

}  // namespace collcast::workload
