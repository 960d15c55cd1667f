#include "nccl/collnet_program.hpp"

#include <algorithm>

#include "nccl/channel_orders.hpp"
#include "nccl/collnet.hpp"
#include "nccl/collnet_shape.hpp"

namespace collcast::nccl {

namespace {

InsideNode inside_of(Algorithm a) {
  if (a == Algorithm::nvls) return InsideNode::by_switch;
  return a == Algorithm::collnet_chain ? InsideNode::chain : InsideNode::direct;
}

/// The group's GPUs, and beside them every node's members of its switch and of the network.
class Members {
 public:
  explicit Members(const Question& q)
      : q_(q),
        orders_(q.fabric, q.group),
        of_switch_(members_of_switch(inside_of(q.plan.algorithm), q.c.ranks_per_node)),
        of_network_(q.fabric.nics_per_node()) {}

  bool equal() const {
    const std::vector<int> ranks = orders_.ranks_of_nodes();
    return std::ranges::count(ranks, ranks.front()) == std::ssize(ranks);
  }
  int of_switch() const { return of_switch_; }
  int of_network() const { return of_network_; }

  /// Ranks of the machine that these members are on.
  Group group() const {
    const int gpus = q_.fabric.ranks_per_node(), further = of_switch_ + of_network_;
    std::vector<Rank> out;
    const auto add = [&](int node, int local) {
      out.emplace_back(static_cast<std::uint32_t>(node * (gpus + further) + local));
    };
    for (int i = 0; i < q_.group.size(); ++i)
      add(static_cast<int>(q_.fabric.node_of(q_.group[i]).value()), gpu_in_node(q_.fabric, q_.group[i]));
    for (const int node : orders_.numbers())
      for (int member = 0; member < further; ++member) add(node, gpus + member);
    return Group::listed(std::move(out));
  }

  /// A channel of chains: every node's GPUs as they follow one another from the NIC on.
  std::vector<int> chain(int channel) const {
    std::vector<int> out;
    for (int node = 0; node < orders_.nodes(); ++node)
      append(node, orders_.of_node(node, q_.c.collnet->chain, channel), channel, out);
    return out;
  }

  /// A head of every node, of `first` on and around, each with its node's other GPUs.
  std::vector<int> head(int head, int first = 0) const {
    const Algorithm algorithm = q_.plan.algorithm;
    const Graph& graph = algorithm == Algorithm::nvls ? *q_.c.nvls : *q_.c.collnet->direct;
    const int channel = collnet_head_channels(q_.c, algorithm)[static_cast<std::size_t>(head)];
    std::vector<int> out;
    for (int i = 0; i < orders_.nodes(); ++i) {
      const int node = (first + i) % orders_.nodes();
      append(node, orders_.from_head(node, graph, channel), head, out);
    }
    return out;
  }

 private:
  void append(int node, const std::vector<int>& gpus, int head, std::vector<int>& out) const {
    const int first = q_.group.size() + node * (of_switch_ + of_network_);
    out.insert(out.end(), gpus.begin(), gpus.end());
    for (int member = 0; member < of_switch_; ++member) out.push_back(first + member);
    const int own = collnet_nic(q_.c, q_.plan, head), networks = first + of_switch_;
    out.push_back(networks + own);
    for (int nic = 0; nic < of_network_; ++nic)
      if (nic != own) out.push_back(networks + nic);
  }

  const Question& q_;
  ChannelOrders orders_;
  int of_switch_, of_network_;
};

/// Channels of a head are alike: a lane has what all of them move. What is gathered or scattered has a lane for every
/// rank that it is of.
Pattern lanes_of_heads(const Question& q, const Members& members, const Phase& phase) {
  const int heads = collnet_heads(q.c, q.plan.algorithm);
  const int owners = q.kind == CollectiveKind::all_reduce ? 1 : q.c.nodes;
  Pattern out{std::string(to_string(q.plan.algorithm)), members.group(), 1, {}};
  for (int head = 0; head < heads; ++head)
    for (int node = 0; node < owners; ++node) {
      Lane lane;
      lane.block = Volume(q.bytes() / heads / owners);
      lane.route_lane = head;
      lane.order = members.head(head, node);
      lane.phases = {phase};
      out.lanes.push_back(std::move(lane));
    }
  return out;
}

Pattern lanes_of_chains(const Question& q, const Members& members, const Phase& phase) {
  Pattern out{std::string(to_string(q.plan.algorithm)), members.group(), 1, {}};
  for (int channel = 0; channel < q.plan.channels; ++channel) {
    Lane lane;
    lane.block = Volume(q.bytes() / q.plan.channels);
    lane.route_lane = channel;
    lane.order = members.chain(channel);
    lane.phases = {phase};
    out.lanes.push_back(std::move(lane));
  }
  return out;
}

Rates rates_of_network(const Question& q, const CollnetRun& run) {
  const double way = q.c.factors.network_hop * q.c.network_latency.count();
  Rates rates;
  rates.reduces = true;
  rates.nic = run.nic_load / run.count / run.network;
  rates.hop = run.hop;
  rates.way = way;
  rates.beyond = run.network_hop - way - run.hop;
  return rates;
}

/// NVLink at what is reached of it, or PCIe; what threads send, through NICs and inside the node, passes a GPU's port.
void add_links(const Question& q, double threads, Rates& rates) {
  const Limits l = limits(q.c, q.plan, false);
  if (q.c.nvlink) {
    if (q.c.ranks_per_node > 1) rates.nvlink = l.gpu / q.c.gpu.nvlink.value();
    rates.port = threads;
  } else {
    rates.pcie = fitted::pcie_efficiency;
    rates.port = std::min(threads, l.gpu);
  }
}

Rates rates_of_direct(const Question& q, const CollnetRun& run) {
  Rates rates = rates_of_network(q, run);
  add_links(q, q.plan.channels * limits(q.c, q.plan, false).channel, rates);
  return rates;
}

Rates rates_of_chains(const Question& q, const CollnetRun& run) {
  Rates rates = rates_of_network(q, run);
  add_links(q, unlimited, rates);
  // Up and down; the network's members have no threads.
  rates.drive = limits(q.c, q.plan, false).channel;
  rates.between = unlimited;
  return rates;
}

/// The switch's links have the rate that a node's run says; what fills the node's pipe are its stages, and beyond them
/// what no link is in use for.
Rates rates_of_nvls(const Question& q, const CollnetRun& run, int members) {
  const bool two_ways = q.kind == CollectiveKind::all_reduce;
  const double gpus = q.c.ranks_per_node;
  // A GPU sends its parts of other heads, or receives them; and as a head the sum.
  const double load = two_ways ? 1 : (gpus - 1) / gpus;
  const int links = two_ways ? 8 : 4;  // to and from members of the switch
  Rates rates = rates_of_network(q, run);
  rates.nvlink = load * q.bytes() / run.count / run.inside / q.c.gpu.nvlink.value();
  rates.switch_members = members;
  rates.switch_link = std::max(0.0, run.in_switch - (two_ways ? run.inside : 0)) / links;
  return rates;
}

Rates rates_of(const Question& q, const CollnetRun& run, const Members& members) {
  switch (inside_of(q.plan.algorithm)) {
    case InsideNode::direct:
      return rates_of_direct(q, run);
    case InsideNode::chain:
      return rates_of_chains(q, run);
    case InsideNode::by_switch:
      return rates_of_nvls(q, run, members.of_switch());
  }
  check(false, "a way inside a node is one of these");
  return {};
}

}  // namespace

double collnet_chunks(const Question& q) { return collnet_run(q.c, q.kind, q.size, q.plan).count; }

Result<Program> collnet_program(const Question& q) {
  const Members members(q);
  if (!members.equal())
    return Diagnostic{{}, "the group has unlike numbers of ranks on its nodes", "CollNet over them is not simulated"};
  const CollnetRun run = collnet_run(q.c, q.kind, q.size, q.plan);
  const bool chains = q.plan.algorithm == Algorithm::collnet_chain;
  const Phase phase =
      collnet_phase(q.kind, inside_of(q.plan.algorithm), q.c.nodes, q.c.ranks_per_node, members.of_network());
  Pattern pattern = chains ? lanes_of_chains(q, members, phase) : lanes_of_heads(q, members, phase);
  pattern.chunks = static_cast<int>(run.count);
  return assembled(q, rates_of(q, run, members), std::move(pattern), run.start);
}

}  // namespace collcast::nccl
