#include "workload/step_collectives.hpp"

#include <algorithm>
#include <utility>

#include "collcast/base/units.hpp"
#include "collcast/evaluate/nodes.hpp"

namespace collcast::workload {

namespace {

/// Nodes numbered in the order in which the group meets them: all that an algorithm sees of them.
std::vector<int> as_met(const std::vector<int>& nodes) {
  std::map<int, int> number;
  std::vector<int> out;
  for (const int node : nodes) out.push_back(number.emplace(node, static_cast<int>(number.size())).first->second);
  return out;
}

/// A pattern of one group is moved to those of its kind: their ranks are as far apart.
std::vector<int> kind_of_group(const Fabric& fabric, const Group& group) {
  std::vector<int> kind = as_met(node_of_each(fabric, group));
  if (group.is_strided()) {
    kind.push_back(group.stride());
    return kind;
  }
  for (int i = 1; i < group.size(); ++i) kind.push_back(static_cast<int>(group[i].value() - group[i - 1].value()));
  return kind;
}

/// They come to it at times of their own.
bool is_of_two_stages(const ParallelLayout& layout, const Group& group) {
  return coordinates(layout, group[0]).pp != coordinates(layout, group[group.size() - 1]).pp;
}

}  // namespace

StepCollectives::StepCollectives(const StepInputs& in, const Fabric& fabric, ForecastPrices& prices, Programs& programs)
    : in_(in), fabric_(fabric), prices_(prices), programs_(programs) {}

Result<std::uint32_t> StepCollectives::add(int stage, const GroupSet& set, const CollectiveRequest& request,
                                           const std::string& name, TrafficClass traffic) {
  const Result<CollectiveOptions> chosen = prices_.of(request).options(request);
  if (!chosen) return chosen.errors();
  const CollectiveOptions& options = *chosen;
  const std::uint32_t of = set_of(set);
  const auto [known, is_new] = known_.emplace(
      Key{of, request.kind, request.size.value(), options.algorithm, options.chunks, options.channels, traffic},
      static_cast<std::uint32_t>(programs_.collectives.size()));
  if (is_new)
    programs_.collectives.push_back(
        {name + " of " + format_bytes(request.size), of, {}, traffic, is_of_two_stages(in_.layout, request.group)});
  Collective& collective = programs_.collectives[known->second];
  if (Diagnostics wrong = make_patterns(collective, stage, request, options); !wrong.empty()) return wrong;
  return known->second;
}

std::uint32_t StepCollectives::set_of(GroupSet set) {
  for (std::uint32_t s = 0; s < programs_.sets.size(); ++s) {
    const GroupSet& known = programs_.sets[s];
    if (known.stride == set.stride && known.size == set.size && known.step == set.step && known.folded == set.folded)
      return s;
  }
  std::map<std::vector<int>, std::uint16_t> kinds;
  for (std::uint32_t g = 0; g < set.groups(programs_.ranks()); ++g) {
    check(kinds.size() < 65'535, "groups of a set lie on nodes in few ways");
    const auto kind = static_cast<std::uint16_t>(kinds.size());
    set.kind_of.push_back(kinds.emplace(kind_of_group(fabric_, set.group(g)), kind).first->second);
  }
  programs_.sets.push_back(std::move(set));
  return static_cast<std::uint32_t>(programs_.sets.size() - 1);
}

Diagnostics StepCollectives::make_patterns(Collective& collective, int stage, const CollectiveRequest& request,
                                           CollectiveOptions options) {
  const GroupSet& set = programs_.sets[collective.set];
  for (std::uint32_t g = 0; g < set.kind_of.size(); ++g) {
    const Group group = set.group(g);
    if (coordinates(in_.layout, group[0]).pp != stage && coordinates(in_.layout, group[group.size() - 1]).pp != stage)
      continue;
    const std::size_t kind = set.kind_of[g];
    collective.patterns.resize(std::max(collective.patterns.size(), kind + 1), unmade);
    if (collective.patterns[kind] != unmade) continue;
    options.node_of = node_of_each(fabric_, group);
    Result<Pattern> pattern = make_pattern({request.kind, group, request.size, request.root, {}}, options);
    if (!pattern) return pattern.errors();
    collective.patterns[kind] = static_cast<std::uint32_t>(programs_.patterns.size());
    programs_.patterns.push_back(std::move(pattern).value());
  }
  return {};
}

}  // namespace collcast::workload
