#include "evaluate/group_patterns.hpp"

#include <algorithm>

#include "collcast/evaluate/nodes.hpp"

namespace collcast {

Diagnostics wrong_with_ranks(const Fabric& fabric, const CollectiveRequest& request) {
  std::uint32_t largest = 0;
  const auto look = [&largest](const Group& group) {
    for (int i = 0; i < group.size(); ++i) largest = std::max(largest, group[i].value());
  };
  look(request.group);
  for (const Group& group : request.alongside) look(group);
  const int ranks = fabric.rank_count();
  if (largest < static_cast<std::uint32_t>(ranks)) return {};
  return {{{},
           "rank " + std::to_string(largest) + " is not in a machine of " + std::to_string(ranks) + " ranks",
           "name ranks from 0 to " + std::to_string(ranks - 1) + ", or take more nodes"}};
}

Result<std::vector<Pattern>> group_patterns(const Fabric& fabric, const CollectiveRequest& request,
                                            CollectiveOptions options) {
  std::vector<Group> groups{request.group};
  groups.insert(groups.end(), request.alongside.begin(), request.alongside.end());
  std::vector<Pattern> patterns;
  for (const Group& group : groups) {
    options.node_of = node_of_each(fabric, group);
    Result<Pattern> pattern = make_pattern({request.kind, group, request.size, request.root, {}}, options);
    if (!pattern) return pattern.errors();
    patterns.push_back(std::move(pattern).value());
  }
  return patterns;
}

}  // namespace collcast
