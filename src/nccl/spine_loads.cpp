#include "nccl/spine_loads.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "collcast/collective/in_order_tree.hpp"
#include "nccl/channel_machine.hpp"
#include "nccl/channel_orders.hpp"
#include "nccl/groups_nodes.hpp"
#include "nccl/pat_shape.hpp"

namespace collcast::nccl {

namespace {

/// Of each link between a leaf and a spine that something passes, what does.
using UplinkLoads = std::map<LinkId, double>;

double most(const UplinkLoads& loads) {
  double out = 0;
  for (const auto& [link, load] : loads) out = std::max(out, load);
  return out;
}

/// Shares of so many.
std::vector<std::pair<LinkId, double>> by_link(const UplinkLoads& loads, double of = 1) {
  std::vector<std::pair<LinkId, double>> out;
  out.reserve(loads.size());
  for (const auto& [link, load] : loads) out.emplace_back(link, load / of);
  return out;
}

/// Whose sends are counted.
struct Job {
  const Fabric& fabric;
  const Group& group;
  const Communicator& c;
  ChannelOrders orders;
};

/// A machine of channels whose uplinks are counted; ranks are group indices.
class Uplinks {
 public:
  Uplinks(const Job& job, Fabric machine) : job_(job), machine_(std::move(machine)) {}

  int node(int member) const { return static_cast<int>(job_.fabric.node_of(job_.group[member]).value()); }
  /// Those of a send: none, or one up to a spine and one down.
  std::span<const LinkId> passed(int from, int to, int lane) {
    passed_.clear();
    if (node(from) == node(to)) return passed_;
    route_.clear();
    machine_.route(job_.fabric.on_machine(job_.group[from]), job_.fabric.on_machine(job_.group[to]), lane, route_);
    for (const LinkId link : route_) {
      if (!machine_.joins_leaf_to_spine(link)) continue;
      rate_ = machine_.links()[link.value()].bandwidth;
      passed_.push_back(link);
    }
    return passed_;
  }
  /// By how many uplinks a send goes.
  int add(int from, int to, int lane, double load, UplinkLoads& out) {
    for (const LinkId link : passed(from, to, lane)) out[link] += load;
    return static_cast<int>(passed_.size());
  }
  /// Of those that were met, which all have the same.
  Bandwidth rate() const { return rate_; }

 private:
  const Job& job_;
  Fabric machine_;
  std::vector<LinkId> route_, passed_;
  Bandwidth rate_{};
};

/// What the sections below add to.
struct Counted {
  SpineLoads loads;
  Bandwidth rate{};
  void meet(const Uplinks& uplinks) { rate = std::max(rate, uplinks.rate()); }
};

/// The machine, on which channels go these ways: whole, so that links have the numbers that other groups see.
std::optional<Uplinks> uplinks_of(const Job& job, CollectiveKind kind, const Plan& plan, const Rates& ways) {
  Result<Fabric> machine = machine_of_channels({job.fabric, job.group, job.c, kind, Bytes(1), plan, 0}, ways);
  if (!machine) return std::nullopt;
  return Uplinks(job, std::move(machine).value());
}

/// Each channel by the NICs of its own.
Rates by_channels() {
  Rates out;
  out.drive = 1;
  return out;
}

Plan plan_with(const Communicator& c, Algorithm a) {
  Plan out;
  out.algorithm = a;
  out.channels = std::max(1, c.channels);
  return out;
}

void add_rings(const Job& job, Counted& out) {
  const Plan plan = plan_with(job.c, Algorithm::ring);
  auto uplinks = uplinks_of(job, CollectiveKind::all_gather, plan, by_channels());
  if (!uplinks) return;
  UplinkLoads loads, broadcasts, reduces;
  int between = 0, over = 0;
  for (int channel = 0; channel < plan.channels; ++channel) {
    const std::vector<int> order = job.orders.ring(job.c.ring, channel);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int from = order[i], to = order[(i + 1) % order.size()];
      if (uplinks->node(from) == uplinks->node(to)) continue;
      ++between;
      over += uplinks->add(from, to, channel, 1, loads) > 0 ? 1 : 0;
      if (to != 0) uplinks->add(from, to, channel, 1, broadcasts);
      if (from != 0) uplinks->add(from, to, channel, 1, reduces);
    }
    out.loads.rings.busiest.push_back(most(loads));
    out.loads.broadcasts.busiest.push_back(most(broadcasts));
    out.loads.reduces.busiest.push_back(most(reduces));
  }
  out.loads.rings.by_link = by_link(loads);
  out.loads.broadcasts.by_link = by_link(broadcasts);
  out.loads.reduces.by_link = by_link(reduces);
  out.loads.ring_share = between > 0 ? static_cast<double>(over) / between : 0;
  out.meet(*uplinks);
}

/// Up and down between the nodes' members, by their places; the most messages over spines on a way up.
int add_tree(Uplinks& uplinks, const std::vector<int>& heads, int lane, UplinkLoads& out) {
  const int nodes = static_cast<int>(heads.size());
  std::vector<int> above(heads.size());
  for (int x = 1; x < nodes; ++x) {
    const int child = heads[static_cast<std::size_t>(x)];
    const int parent = heads[static_cast<std::size_t>(InOrderTree::parent(nodes, x))];
    above[static_cast<std::size_t>(x)] = uplinks.add(child, parent, lane, 1, out) > 0 ? 1 : 0;
    uplinks.add(parent, child, lane, 1, out);
  }
  int longest = 0;
  for (int x = 1; x < nodes; ++x) {
    int over = 0;
    for (int at = x; at > 0; at = InOrderTree::parent(nodes, at)) over += above[static_cast<std::size_t>(at)];
    longest = std::max(longest, over);
  }
  return longest;
}

void add_trees(const Job& job, Counted& out) {
  const Plan plan = plan_with(job.c, Algorithm::tree);
  auto uplinks = uplinks_of(job, CollectiveKind::all_reduce, plan, by_channels());
  if (!uplinks) return;
  UplinkLoads loads;
  for (int channel = 0; channel < plan.channels; ++channel) {
    std::vector<int> heads;
    for (const std::vector<int>& chain : job.orders.tree(job.c.tree, channel, on_second_tree(job.c.tree, channel)))
      heads.push_back(chain.front());
    add_tree(*uplinks, heads, channel, loads);
    out.loads.trees.busiest.push_back(most(loads));
  }
  out.loads.trees.by_link = by_link(loads);
  out.meet(*uplinks);
}

void add_nvls_trees(const Job& job, Counted& out) {
  if (!job.c.nvls) return;
  const Plan plan = plan_with(job.c, Algorithm::nvls_tree);
  auto uplinks = uplinks_of(job, CollectiveKind::all_reduce, plan, {});
  if (!uplinks) return;
  UplinkLoads loads;
  int way = 0;
  for (int head = 0; head < job.c.nvls->channels; ++head)
    for (const bool second : {false, true}) {
      std::vector<int> heads;
      for (int place = 0; place < job.c.nodes; ++place)
        heads.push_back(
            job.orders.from_head(second ? in_second_tree(job.c.nodes, place) : place, *job.c.nvls, head).front());
      way = std::max(way, add_tree(*uplinks, heads, head, loads));
    }
  out.loads.nvls_trees = {{most(loads)}, by_link(loads)};
  out.loads.nvls_tree_way = way;
  out.meet(*uplinks);
}

/// Either way, gathers forwards and scatters backwards, whichever is more.
void add_pat(const Job& job, Counted& out) {
  if (job.c.most_on_a_node > 1) return;
  const Plan plan = plan_with(job.c, Algorithm::pat);
  out.loads.pat.busiest.resize(static_cast<std::size_t>(plan.channels));
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    auto uplinks = uplinks_of(job, kind, plan, by_channels());
    if (!uplinks) return;
    const Phase phase = pat_phase(kind, job.c.ranks);
    UplinkLoads loads;
    for (int channel = 0; channel < plan.channels; ++channel) {
      for (int member = 0; member < job.c.ranks; ++member)
        for (int hop = 0; hop < phase.shape->sends(phase, member); ++hop) {
          const Hop sent = phase.shape->send(phase, member, hop);
          uplinks->add(member, static_cast<int>(sent.peer), channel, sent.blocks, loads);
        }
      double& of_channels = out.loads.pat.busiest[static_cast<std::size_t>(channel)];
      of_channels = std::max(of_channels, most(loads));
    }
    out.loads.pat.by_link = by_link(loads);
    out.meet(*uplinks);
  }
}

/// Everybody by what their ways over spines go by.
struct Everybody {
  /// Of one pod and one GPU, on nodes that have the same GPUs: they send by the same leaves.
  struct Alike {
    std::vector<int> members;
    std::set<int> nodes;
  };
  std::map<int, std::vector<Alike>> pods;
  /// Of one place in a pod and one GPU, where nodes have the same GPUs, by pod: from other pods they are reached by the
  /// same spine.
  std::vector<std::map<int, int>> places;
};

Everybody everybody_of(const Job& job, const Uplinks& uplinks, int nodes_per_leaf) {
  const GroupsNodes nodes = by_node(job.fabric, job.group);
  const std::vector<std::vector<int>> unlike = unlike_nodes(nodes);
  std::map<std::tuple<int, int, std::ptrdiff_t>, Everybody::Alike> senders;
  std::map<std::tuple<int, int, std::ptrdiff_t>, std::map<int, int>> receivers;
  for (int i = 0; i < job.group.size(); ++i) {
    const auto rank = static_cast<int>(job.fabric.on_machine(job.group[i]).value());
    const int gpus = job.fabric.ranks_per_node(), gpu = rank % gpus, node = rank / gpus, pod = node / nodes_per_leaf;
    const auto kind = std::ranges::find(unlike, nodes.at(job.fabric.node_of(job.group[i]))) - unlike.begin();
    Everybody::Alike& one = senders[{pod, gpu, kind}];
    one.members.push_back(i);
    one.nodes.insert(uplinks.node(i));
    receivers[{node % nodes_per_leaf, gpu, kind}][pod] = i;
  }
  Everybody out;
  for (auto& [key, one] : senders) out.pods[std::get<0>(key)].push_back(std::move(one));
  for (auto& [key, by_pod] : receivers) out.places.push_back(std::move(by_pod));
  return out;
}

double members_of(const std::vector<Everybody::Alike>& all) {
  std::size_t out = 0;
  for (const Everybody::Alike& one : all) out += one.members.size();
  return static_cast<double>(out);
}

/// Up from a pod, to those of one place in all others, and down to each of these, from all of other pods.
void add_between_pods(const Everybody& all, Uplinks& uplinks, int ranks, int lane, UplinkLoads& out) {
  for (const auto& [pod, senders] : all.pods)
    for (const std::map<int, int>& to : all.places) {
      const std::size_t others = to.size() - to.count(pod);
      if (others == 0) continue;
      const int other = to.begin()->first != pod ? to.begin()->second : std::next(to.begin())->second;
      for (const Everybody::Alike& from : senders)
        out[uplinks.passed(from.members.front(), other, lane).front()] +=
            static_cast<double>(from.members.size() * others);
    }
  if (all.pods.size() < 2) return;
  for (const std::map<int, int>& receivers : all.places)
    for (const auto& [pod, to] : receivers) {
      const auto& [there, senders] = *(all.pods.begin()->first != pod ? all.pods.begin() : std::next(all.pods.begin()));
      out[uplinks.passed(senders.front().members.front(), to, lane).back()] += ranks - members_of(all.pods.at(pod));
    }
}

/// Of everybody to everybody, one turn's.
void add_alltoall(const Everybody& all, Uplinks& uplinks, int ranks, int lane, UplinkLoads& out) {
  add_between_pods(all, uplinks, ranks, lane, out);
  // In a pod from leaf to leaf.
  for (const std::map<int, int>& receivers : all.places)
    for (const auto& [pod, to] : receivers)
      for (const Everybody::Alike& one : all.pods.at(pod)) {
        const int node = uplinks.node(to);
        // One for all, of another node.
        const auto from = std::ranges::find_if(one.members, [&](int i) { return uplinks.node(i) != node; });
        if (from == one.members.end()) continue;
        const double others = static_cast<double>(one.members.size()) - (one.nodes.contains(node) ? 1 : 0);
        uplinks.add(*from, to, lane, others, out);
      }
}

void add_pairs(const Job& job, int nodes_per_leaf, Counted& out) {
  Plan plan;
  plan.point_to_point = true;
  Rates ways;
  ways.by_receivers_rail = job.c.pairs.relayed;
  auto uplinks = uplinks_of(job, CollectiveKind::alltoall, plan, ways);
  if (!uplinks) return;
  const Everybody everybody = everybody_of(job, *uplinks, nodes_per_leaf);
  UplinkLoads alltoall, next, scatter, gather;
  const PairTerms& pairs = job.c.pairs;
  const int lanes = pairs.loads.empty() ? pairs.nics_of_gpu : pairs.loads.back().lanes;
  for (int turn = 0; turn < lanes; ++turn) {
    // So many lanes further a GPU's next NIC is taken.
    const int lane = turn * job.fabric.ranks_per_node();
    add_alltoall(everybody, *uplinks, job.c.ranks, lane, alltoall);
    for (int i = 0; i < job.c.ranks; ++i) {
      uplinks->add(i, (i + 1) % job.c.ranks, lane, 1, next);
      if (i == 0) continue;
      uplinks->add(0, i, lane, 1, scatter);
      uplinks->add(i, 0, lane, 1, gather);
    }
    const auto put = [turns = turn + 1](const UplinkLoads& loads, SpineLoad& of_kind) {
      of_kind.busiest.push_back(most(loads) / turns);
      of_kind.by_link = by_link(loads, turns);
    };
    put(alltoall, out.loads.alltoall);
    put(next, out.loads.next);
    put(scatter, out.loads.scatter);
    put(gather, out.loads.gather);
  }
  out.meet(*uplinks);
}

/// On the links that it has itself; as busy as the busiest of these is then, of however many channels.
void add(const SpineLoad& other, SpineLoad& load) {
  double alone = 0, together = 0;
  auto at = other.by_link.begin();
  for (auto& [link, own] : load.by_link) {
    alone = std::max(alone, own);
    while (at != other.by_link.end() && at->first < link) ++at;
    if (at != other.by_link.end() && at->first == link) own += at->second;
    together = std::max(together, own);
  }
  if (!(together > alone)) return;
  for (double& busiest : load.busiest) busiest *= together / alone;
}

}  // namespace

bool has_thin_uplinks(const LeafSpineNetwork& network, int nics) {
  return network.spines > 0 && nics > 0 && network.oversubscription > widest_oversubscription(network, nics);
}

void add_alongside(const SpineLoads& other, SpineLoads& loads) {
  for (const auto kind :
       {&SpineLoads::rings, &SpineLoads::broadcasts, &SpineLoads::reduces, &SpineLoads::trees, &SpineLoads::pat,
        &SpineLoads::nvls_trees, &SpineLoads::alltoall, &SpineLoads::next, &SpineLoads::scatter, &SpineLoads::gather})
    add(other.*kind, loads.*kind);
}

std::optional<SpineLoads> spine_loads(const Fabric& fabric, const Group& group, const Communicator& c) {
  const auto* network = std::get_if<LeafSpineNetwork>(&fabric.spec().network);
  if (network == nullptr || c.nodes < 2 || !has_thin_uplinks(*network, fabric.nics_per_node())) return std::nullopt;
  Counted out;
  const Job job{fabric, group, c, ChannelOrders(fabric, group)};
  add_rings(job, out);
  add_trees(job, out);
  add_nvls_trees(job, out);
  add_pat(job, out);
  add_pairs(job, network->nodes_per_leaf, out);
  if (!(out.rate > Bandwidth())) return std::nullopt;
  out.loads.uplink = out.rate;
  return out.loads;
}

}  // namespace collcast::nccl
