// Which groups communicate beside a group on its nodes, and which messages beside one between two pipeline stages.
#include <algorithm>
#include <map>
#include <utility>

#include "collcast/evaluate/nodes.hpp"
#include "workload/plan.hpp"

namespace collcast::workload {

namespace {

/// Ranks of the layout on the nodes of `of`, ascending.
std::vector<Rank> ranks_on_nodes(const ParallelLayout& layout, const Fabric& fabric, const Group& of) {
  const auto per_node = static_cast<std::uint32_t>(fabric.ranks_per_node());
  std::vector<Rank> ranks;
  for (const NodeId node : nodes_of(fabric, of)) {
    for (std::uint32_t i = 0; i < per_node; ++i) {
      const Rank r(node.value() * per_node + i);
      if (r.value() < static_cast<std::uint32_t>(layout.world())) ranks.push_back(r);
    }
  }
  return ranks;
}

}  // namespace

GroupOf groups_along(Dimension dimension) {
  switch (dimension) {
    case Dimension::tp:
      return [](const ParallelLayout& l, Rank r) { return groups_of(l, r).tp; };
    case Dimension::pp:
      return [](const ParallelLayout& l, Rank r) { return groups_of(l, r).pp; };
    case Dimension::dp:
      return [](const ParallelLayout& l, Rank r) { return groups_of(l, r).dp; };
    case Dimension::cp:
      return [](const ParallelLayout& l, Rank r) { return groups_of(l, r).cp; };
    case Dimension::ep:
      return [](const ParallelLayout& l, Rank r) { return groups_of(l, r).ep; };
  }
  check(false, "a known dimension");
  return nullptr;
}

std::vector<Group> groups_alongside(const ParallelLayout& layout, const Fabric& fabric, GroupOf group_of,
                                    const Group& group) {
  std::vector<bool> known(static_cast<std::size_t>(layout.world()));  // in a group that was looked at
  const auto mark = [&](const Group& seen) {
    for (int i = 0; i < seen.size(); ++i) known[seen[i].value()] = true;
  };
  mark(group);
  std::vector<Group> groups;
  for (const Rank r : ranks_on_nodes(layout, fabric, group)) {
    if (known[r.value()]) continue;
    groups.push_back(group_of(layout, r));
    mark(groups.back());
  }
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a[0] < b[0]; });
  return groups;
}

std::vector<CollectiveRequest> stage_messages(const ParallelLayout& layout, const Fabric& fabric, int stage,
                                              Bytes message, std::optional<Rank> of) {
  const auto at_stage = [&](Rank r, int pp) {
    Coordinates c = coordinates(layout, r);
    c.pp = pp;
    return rank_at(layout, c);
  };
  const int next = (stage + 1) % layout.pp;
  const Group senders = groups_of(layout, of ? at_stage(*of, stage) : rank_at(layout, {0, stage, 0, 0, 0})).tp;
  std::vector<Rank> near = senders.ranks();
  for (const Rank r : senders.ranks()) near.push_back(at_stage(r, next));

  std::map<Rank, Group> pairs;  // of this boundary with a rank on these nodes, by sender
  for (const Rank r : ranks_on_nodes(layout, fabric, Group::listed(near))) {
    const int pp = coordinates(layout, r).pp;
    const Rank from = at_stage(r, stage);
    if (pp == stage || pp == next) pairs.emplace(from, Group::listed({from, at_stage(r, next)}));
  }
  std::vector<CollectiveRequest> requests;
  for (const Rank from : senders.ranks()) {
    std::vector<Group> alongside;
    for (const auto& [sender, pair] : pairs)
      if (sender != from) alongside.push_back(pair);
    requests.push_back({CollectiveKind::sendrecv, pairs.at(from), message, 0, std::move(alongside)});
  }
  return requests;
}

}  // namespace collcast::workload
