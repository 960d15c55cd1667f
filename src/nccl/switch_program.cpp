#include "nccl/switch_program.hpp"

#include <algorithm>
#include <cmath>

#include "collcast/collective/in_order_tree.hpp"
#include "nccl/channel_orders.hpp"
#include "nccl/nvls.hpp"
#include "nccl/switch_shape.hpp"

namespace collcast::nccl {

namespace {

/// The group's GPUs, then each node's members of the switch: ranks of the machine that `Rates::switch_members` makes.
Group with_switches(const Question& q, const ChannelOrders& orders) {
  const int gpus = q.fabric.ranks_per_node(), on_a_node = gpus + switch_members(q.c.most_on_a_node);
  const auto rank = [&](int node, int local) { return Rank(static_cast<std::uint32_t>(node * on_a_node + local)); };
  std::vector<Rank> out;
  for (int i = 0; i < q.group.size(); ++i)
    out.push_back(rank(static_cast<int>(q.fabric.node_of(q.group[i]).value()), gpu_in_node(q.fabric, q.group[i])));
  const std::vector<int> ranks = orders.ranks_of_nodes();
  for (std::size_t node = 0; node < ranks.size(); ++node)
    for (int member = 0; member < switch_members(ranks[node]); ++member)
      out.push_back(rank(orders.numbers()[node], gpus + member));
  return Group::listed(std::move(out));
}

/// A tree of one head: of every node its GPUs from the head on and around, then its members of the switch.
Lane lane_of(const Question& q, const ChannelOrders& orders, int head, bool second) {
  const std::vector<int> ranks = orders.ranks_of_nodes();
  std::vector<int> first_member, gpus_of_nodes;
  int next = q.group.size();
  for (const int gpus : ranks) {
    first_member.push_back(next);
    next += switch_members(gpus);
  }
  Lane lane;
  for (int place = 0; place < q.c.nodes; ++place) {
    const int node = second ? in_second_tree(q.c.nodes, place) : place, gpus = ranks[static_cast<std::size_t>(node)];
    gpus_of_nodes.push_back(gpus);
    const std::vector<int> from_head = orders.from_head(node, *q.c.nvls, head);
    lane.order.insert(lane.order.end(), from_head.begin(), from_head.end());
    for (int member = 0; member < switch_members(gpus); ++member)
      lane.order.push_back(first_member[static_cast<std::size_t>(node)] + member);
  }
  lane.phases = {switch_phase(q.kind, gpus_of_nodes)};
  return lane;
}

/// Channels are alike: a lane has what all of them move for one head, over several nodes on one of the two trees.
Pattern heads(const Question& q, const ChannelOrders& orders, int loops) {
  const int trees = q.c.nodes > 1 ? 2 : 1, heads = q.c.nvls->channels;
  Pattern out{std::string(to_string(q.plan.algorithm)), with_switches(q, orders), loops, {}};
  for (int head = 0; head < heads; ++head)
    for (int tree = 0; tree < trees; ++tree) {
      Lane lane = lane_of(q, orders, head, tree == 1);
      lane.block = Volume(q.bytes() / heads / trees);
      lane.route_lane = head;
      out.lanes.push_back(std::move(lane));
    }
  return out;
}

/// Of the way through a node, in times that a GPU's links take for all data of a loop: the stages one after the other,
/// and what the busier direction carries; links to and from members of the switch that are passed.
struct SwitchWay {
  double stages, load;
  int links;
};
SwitchWay way_of(CollectiveKind kind, double heads) {
  const double own = 1 / heads;
  switch (kind) {
    case CollectiveKind::all_gather:
      return {1 + own, 1, 4};
    case CollectiveKind::reduce_scatter:
      return {1 + own, 1, 2};
    default:
      return {2 + 2 * own, 1 + own, 6};
  }
}

/// On a chunk's way up a tree of heads: what comes into a node from below shares its NIC, so that all of it is there
/// after as many messages' time as the node has children; so on the way down, where what a node sends to them does. Of
/// the way that has most.
int messages_in_a_row(int nodes) {
  int most = 0;
  for (int x = 1; x < nodes; ++x) {
    int messages = 0;
    for (int at = x; at > 0; at = InOrderTree::parent(nodes, at))
      messages += InOrderTree::children(nodes, InOrderTree::parent(nodes, at));
    most = std::max(most, messages);
  }
  return most;
}

NvlsRun run_of(const Question& q) {
  return q.c.nodes > 1 ? nvls_tree_run(q.c, q.kind, q.size, q.plan) : nvls_run(q.c, q.kind, q.size, q.plan);
}

double whole_loops(const NvlsRun& run) { return std::max(1.0, std::ceil(run.loops)); }

}  // namespace

double switch_loops(const Question& q) { return whole_loops(run_of(q)); }

Result<Program> switch_program(const Question& q) {
  const Communicator& c = q.c;
  const ChannelOrders orders(q.fabric, q.group);
  const bool tree = c.nodes > 1;
  const NvlsRun run = run_of(q);
  const SwitchWay way = way_of(q.kind, c.nvls->channels);
  // A loop of all data; of a tree's as many, alike, as are simulated.
  const double share = 1 / (tree ? whole_loops(run) : std::max(1.0, run.loops));
  Rates rates;
  rates.switch_members = switch_members(c.most_on_a_node);
  rates.nvlink = way.load * q.bytes() / run.inside / c.gpu.nvlink.value();
  // What fills the pipe are the stages themselves, and the copies before and after, which no link is in use for.
  double seen = (way.stages / way.load * run.inside - run.data.seconds) * share;
  if (tree) {
    const double sends = tree_messages(c);
    rates.nic = sends * q.bytes() / run.between / nics_of_heads(c);
    rates.of_line = of_line(c, q.plan.protocol);
    rates.network = c.factors.network_hop;
    rates.way = c.factors.network_hop * c.network_latency.count();
    rates.beyond = run.hop - rates.way;
    // Down in a node the halves of the two trees come one after the other, at most a hop apart: of a single loop's last
    // stage, whose gap no other loop's data fill, one half is seen.
    if (whole_loops(run) == 1) seen -= std::min(run.inside * share / 2, run.hop);
    // Up and down, of each tree half of a loop: once messages_in_a_row of a loop.
    seen += messages_in_a_row(c.nodes) * run.between / sends * share;
  }
  // The rest of what the closed form, which is fitted, has before its data: so the two agree on how long a pipe takes
  // to fill by construction, and only what is subtracted is derived.
  rates.switch_link = std::max(0.0, run.before + run.filling - seen) / way.links;
  return assembled(q, rates, heads(q, orders, static_cast<int>(whole_loops(run))), run.start);
}

}  // namespace collcast::nccl
