#include "collcast/evaluate/symmetry.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "collcast/evaluate/by_nccl.hpp"
#include "collcast/evaluate/prepared.hpp"
#include "evaluate/candidates.hpp"
#include "evaluate/group_patterns.hpp"
#include "evaluate/request_key.hpp"
#include "evaluate/smaller_machines.hpp"

namespace collcast {
namespace {

/// First and last node that a request has a rank on.
struct Span {
  int first = 0, last = 0;
};

Span span_of(const Fabric& fabric, const CollectiveRequest& request) {
  std::uint32_t least = ~std::uint32_t{0}, most = 0;
  const auto look = [&](const Group& group) {
    for (int i = 0; i < group.size(); ++i) {
      least = std::min(least, group[i].value());
      most = std::max(most, group[i].value());
    }
  };
  look(request.group);
  for (const Group& group : request.alongside) look(group);
  if (least > most) return {};
  const auto node = [&](std::uint32_t rank) { return static_cast<int>(fabric.node_of(Rank(rank)).value()); };
  return {node(least), node(most)};
}

/// Nodes by which everything in the span can move down.
struct Shift {
  Span span;
  int operator()(const std::monostate&) const { return span.first; }
  int operator()(const StarNetwork&) const { return span.first; }
  int operator()(const TorusNetwork&) const { return span.first == span.last ? span.first : 0; }
  int operator()(const LeafSpineNetwork& net) const {
    const int pod = span.first / net.nodes_per_leaf;
    return pod == span.last / net.nodes_per_leaf ? span.first : pod * net.nodes_per_leaf;
  }
};

Group moved(const Group& group, std::uint32_t ranks) {
  if (group.is_strided()) {
    if (group.size() == 0) return group;
    return Group::strided(Rank(group[0].value() - ranks), group.stride(), group.size());
  }
  std::vector<Rank> members = group.ranks();
  for (Rank& r : members) r = Rank(r.value() - ranks);
  return Group::listed(std::move(members));
}

/// What groups are asked about, each looked at once whatever the sizes.
class PreparedAtFront {
 public:
  PreparedAtFront(const Fabric& fabric, CollectivePolicy policy, GoesOn goes_on)
      : fabric_(fabric), machines_(fabric), policy_(std::move(policy)), goes_on_(std::move(goes_on)) {}

  Result<Seconds> operator()(const CollectiveRequest& request) {
    if (takes_no_time(request)) return Seconds(0);
    RequestKey key = key_of_groups(request);
    if (const auto known = find(key); known && request.size > Bytes(0)) return time(*known, request.size);
    if (goes_on_ && !goes_on_()) return ended(request);  // before a machine is built
    const Fabric& machine = machines_.of(span_of(fabric_, request).last + 1);
    Result<PreparedCollective> made = PreparedCollective::make(machine, request, policy_, goes_on_);
    if (!made) return made.errors();
    const Result<Seconds> first = time(*made, request.size);
    keep(std::move(key), std::move(made).value());
    return first;
  }

 private:
  /// Links that the hops of all that is kept cross: 200 MB or so.
  static constexpr std::size_t most_crossings = std::size_t{1} << 23;

  Result<Seconds> time(const PreparedCollective& prepared, Bytes size) const {
    const Result<Choice> choice = prepared.fastest(size, goes_on_);
    if (!choice) return choice.errors();
    return policy_.stretched(size, choice->estimate.total + policy_.base_latency);
  }

  std::optional<PreparedCollective> find(const RequestKey& key) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(key);
    if (found == known_.end()) return std::nullopt;
    return found->second;
  }
  void keep(RequestKey key, PreparedCollective prepared) {
    const std::lock_guard lock(mutex_);
    crossings_ += prepared.crossings();
    if (crossings_ > most_crossings) {
      known_.clear();
      crossings_ = prepared.crossings();
    }
    known_.emplace(std::move(key), std::move(prepared));
  }

  const Fabric& fabric_;
  SmallerMachines machines_;
  CollectivePolicy policy_;
  GoesOn goes_on_;
  std::mutex mutex_;
  std::map<RequestKey, PreparedCollective> known_;
  std::size_t crossings_ = 0;
};

}  // namespace

CollectiveRequest moved_to_front(const Fabric& fabric, const CollectiveRequest& request) {
  if (fabric.is_placed()) return request;
  const int nodes = std::visit(Shift{span_of(fabric, request)}, fabric.spec().network);
  if (nodes == 0) return request;
  const auto ranks = static_cast<std::uint32_t>(nodes) * static_cast<std::uint32_t>(fabric.ranks_per_node());
  CollectiveRequest front{request.kind, moved(request.group, ranks), request.size, request.root, {}};
  for (const Group& group : request.alongside) front.alongside.push_back(moved(group, ranks));
  return front;
}

CollectiveTime by_estimate_at_front(const Fabric& fabric, CollectivePolicy policy, GoesOn goes_on) {
  if (policy.library == Library::nccl) return by_nccl(fabric, policy);
  return [prepared = std::make_shared<PreparedAtFront>(fabric, std::move(policy), std::move(goes_on))](
             const CollectiveRequest& request) { return (*prepared)(request); };
}

}  // namespace collcast
