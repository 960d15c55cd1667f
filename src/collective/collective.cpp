// From a request to a Pattern: what is asked for is checked, the algorithm's plan is made once, and every
// channel gets a lane of it with its own order and its equal part of the data.
//
// Channels make sense for every algorithm (a lane may take another of equal ways through the fabric); only
// sendrecv keeps the group's order on all of them, because "the next rank" is part of what was asked.
#include "collcast/collective/collective.hpp"

#include <algorithm>
#include <array>

#include "collcast/collective/resize.hpp"
#include "collective/algorithm.hpp"
#include "collective/order.hpp"

namespace collcast {
namespace {

constexpr std::array<std::string_view, collective_kinds> kind_names{
    "broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter", "alltoall", "gather", "scatter", "sendrecv"};

/// k*k blocks must fit an int.
constexpr int most_in_alltoall = 46'340;

bool does(const Algorithm& a, CollectiveKind kind) {
  return std::find(a.info.kinds.begin(), a.info.kinds.end(), kind) != a.info.kinds.end();
}

const Algorithm* find_algorithm(std::string_view name) {
  for (const Algorithm& a : catalogue())
    if (a.info.name == name) return &a;
  return nullptr;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

Diagnostics wrong_with_algorithm(const std::string& name, CollectiveKind kind) {
  std::vector<std::string> all, fitting;
  for (const Algorithm& a : catalogue()) {
    all.push_back(a.info.name);
    if (does(a, kind)) fitting.push_back(a.info.name);
  }
  const Algorithm* algorithm = find_algorithm(name);
  if (algorithm == nullptr) return {{{}, "unknown algorithm '" + name + "'", expected_one_of(name, all)}};
  if (does(*algorithm, kind)) return {};
  return {{{},
           "algorithm '" + name + "' does not do " + std::string(to_string(kind)),
           "algorithms that do: " + joined(fitting)}};
}

std::optional<Diagnostic> rank_twice(const Group& group) {
  if (group.is_strided() && group.stride() != 0) return std::nullopt;
  std::vector<Rank> ranks = group.ranks();
  std::sort(ranks.begin(), ranks.end());
  const auto twice = std::adjacent_find(ranks.begin(), ranks.end());
  if (twice == ranks.end()) return std::nullopt;
  return Diagnostic{{}, "rank " + std::to_string(twice->value()) + " is in the group twice", "name each rank once"};
}

Diagnostics wrong_with_request(const CollectiveRequest& r, const CollectiveOptions& o) {
  Diagnostics wrong = wrong_with_algorithm(o.algorithm, r.kind);
  const int k = r.group.size();
  if (k < 1)
    wrong.push_back({{}, "the group has no ranks", "name at least one rank"});
  else if (const auto twice = rank_twice(r.group))
    wrong.push_back(*twice);
  if (r.kind == CollectiveKind::alltoall && k > most_in_alltoall)
    wrong.push_back({{},
                     "alltoall of " + std::to_string(k) + " ranks has too many blocks to number",
                     "expected at most " + std::to_string(most_in_alltoall) + " ranks"});
  if (is_rooted(r.kind) && k > 0 && (r.root < 0 || r.root >= k))
    wrong.push_back({{},
                     "root " + std::to_string(r.root) + " is not in a group of " + std::to_string(k),
                     "expected an index from 0 to " + std::to_string(k - 1)});
  if (r.size.value() < 0)
    wrong.push_back({{}, "size " + std::to_string(r.size.value()) + " B is negative", "expected 0 B or more"});
  if (o.chunks < 1) wrong.push_back({{}, "chunks " + std::to_string(o.chunks) + " is too few", "expected 1 or more"});
  if (o.channels < 1)
    wrong.push_back({{}, "channels " + std::to_string(o.channels) + " is too few", "expected 1 or more"});
  if (!o.node_of.empty() && static_cast<int>(o.node_of.size()) != k)
    wrong.push_back({{},
                     "nodes are given for " + std::to_string(o.node_of.size()) + " of " + std::to_string(k) + " ranks",
                     "expected one node per rank of the group"});
  return wrong;
}

std::optional<Diagnostic> irregular(const std::string& algorithm, const NodeRuns& runs) {
  if (runs.per_node() > 0) return std::nullopt;
  std::string found = "the ranks of one node are not next to each other in the group";
  if (runs.contiguous) {
    int least = runs.size(0), most = runs.size(0);
    for (int node = 1; node < runs.nodes(); ++node) {
      least = std::min(least, runs.size(node));
      most = std::max(most, runs.size(node));
    }
    found = "nodes hold from " + std::to_string(least) + " to " + std::to_string(most) + " ranks of the group";
  }
  return Diagnostic{{},
                    "algorithm '" + algorithm + "' needs equal nodes, but " + found,
                    "take as many ranks of every node, node by node, or another algorithm"};
}

std::vector<int> composed(const std::vector<int>& outer, const std::vector<int>& inner) {
  if (outer.empty()) return inner;
  if (inner.empty()) return outer;
  std::vector<int> result;
  result.reserve(inner.size());
  for (const int p : inner) result.push_back(outer[static_cast<std::size_t>(p)]);
  return result;
}

}  // namespace

std::string_view to_string(CollectiveKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

std::optional<CollectiveKind> parse_collective(std::string_view name) {
  const auto at = std::find(kind_names.begin(), kind_names.end(), name);
  if (at == kind_names.end()) return std::nullopt;
  return static_cast<CollectiveKind>(at - kind_names.begin());
}

std::vector<std::string> collective_names() { return {kind_names.begin(), kind_names.end()}; }

std::optional<double> bus_weight(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::alltoall:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return 1;
    default:
      return std::nullopt;
  }
}

double bus_factor(CollectiveKind kind, int ranks) {
  const std::optional<double> weight = bus_weight(kind);
  return weight ? *weight * (static_cast<double>(ranks - 1) / ranks) : 1;
}

bool is_rooted(CollectiveKind kind) {
  using enum CollectiveKind;
  return kind == broadcast || kind == reduce || kind == gather || kind == scatter;
}

bool reduces(CollectiveKind kind) {
  using enum CollectiveKind;
  return kind == reduce || kind == all_reduce || kind == reduce_scatter;
}

Result<Pattern> make_pattern(const CollectiveRequest& request, const CollectiveOptions& options) {
  if (Diagnostics wrong = wrong_with_request(request, options); !wrong.empty()) return wrong;
  const Algorithm& algorithm = *find_algorithm(options.algorithm);
  const int k = request.group.size();
  const NodeRuns runs = node_runs(options.node_of, k);
  if (algorithm.regular_nodes)
    if (const auto why = irregular(options.algorithm, runs)) return *why;

  const std::vector<LanePlan> plans = algorithm.plan({request.kind, k, runs.nodes(), runs.per_node()});
  const auto root = is_rooted(request.kind) ? std::optional(request.root) : std::nullopt;
  Pattern pattern{algorithm.info.name, request.group, options.chunks, {}};
  for (int channel = 0; channel < options.channels; ++channel) {
    const std::vector<int> order = request.kind == CollectiveKind::sendrecv
                                       ? std::vector<int>{}
                                       : channel_order(runs, algorithm.arrangement, root, channel, options.channels);
    // Route lanes count channels first: the channels of one plan then keep to different NICs (decision 0002).
    int route_lane = channel;
    for (const LanePlan& plan : plans) {
      pattern.lanes.push_back({composed(order, plan.order), plan.blocks, Volume{}, route_lane, plan.phases});
      route_lane += options.channels;
    }
  }
  resize(pattern, request.kind, request.size);
  return pattern;
}

// Blocks stand for equal parts of all bytes together; see algorithm.hpp for what they are.
void resize(Pattern& pattern, CollectiveKind kind, Bytes size) {
  const bool per_rank = kind == CollectiveKind::alltoall || kind == CollectiveKind::sendrecv;
  const double counted = static_cast<double>(size.value()) * (per_rank ? pattern.size() : 1);
  const double share = counted / static_cast<double>(pattern.lanes.size());
  for (Lane& lane : pattern.lanes) lane.block = Volume(share / lane.blocks);
}

}  // namespace collcast
