#include "cases.hpp"

#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "collcast/collective/collective.hpp"

namespace bench {

using namespace collcast;

namespace {

Rank rank(int host) { return Rank(static_cast<std::uint32_t>(host)); }

Fabric built(const TopologySpec& spec, int nodes) {
  auto fabric = Fabric::build(spec, nodes);
  if (!fabric) throw std::runtime_error(to_text(fabric.errors()));
  return std::move(fabric).value();
}

Fabric one_host_per_node(NetworkSpec network, int hosts) {
  TopologySpec spec;
  spec.name = spec.file = "bench";
  spec.devices = {{"host", DeviceKind::host, 1, {}}};
  spec.network_devices = "host";
  spec.network = std::move(network);
  return built(spec, hosts);
}

template <class Factor>
Fabric with_rates(const Fabric& fabric, Factor&& factor) {
  std::vector<Link> links(fabric.links().begin(), fabric.links().end());
  for (Link& link : links) link.bandwidth = Bandwidth(link.bandwidth.value() * factor());
  return fabric.with_links(std::move(links));
}

using Pairs = std::set<std::pair<int, int>>;

PeerMachine with_routes(const Fabric& fabric, const Pairs& pairs) {
  PeerMachine machine;
  machine.hosts = fabric.rank_count();
  for (const Link& link : fabric.links()) machine.links.push_back({link.bandwidth.value(), link.latency.count()});
  for (const auto& [from, to] : pairs) {
    std::vector<LinkId> route;
    fabric.route(rank(from), rank(to), 0, route);
    PeerRoute peer{from, to, {}};
    for (const LinkId link : route) peer.links.push_back(static_cast<int>(link.value()));
    machine.routes.push_back(std::move(peer));
  }
  return machine;
}

}  // namespace

std::vector<int> Dice::permutation(int size) {
  std::vector<int> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (int i = size - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(roll(i + 1))]);
  return order;
}

Fabric ring_machine(int hosts, double bandwidth, double latency, double spread) {
  const Fabric equal = one_host_per_node(TorusNetwork{{}, true, Bandwidth(bandwidth), Seconds(latency)}, hosts);
  if (spread == 0) return equal;
  Dice dice(1);
  return with_rates(equal, [&] { return 1 / dice.between(1, 1 + spread); });
}

Fabric star_machine(int hosts, double bandwidth) {
  return one_host_per_node(StarNetwork{Bandwidth(bandwidth), Seconds(0)}, hosts);
}

Fabric fat_tree(int hosts, double bandwidth, double oversubscription) {
  LeafSpineNetwork network;
  network.rail_optimized = false;
  network.nodes_per_leaf = 32;
  network.spines = 8;
  network.oversubscription = oversubscription;
  network.bandwidth = Bandwidth(bandwidth);
  return one_host_per_node(network, hosts);
}

Fabric random_machine(Dice& dice, int hosts) {
  const int switches = 1 + dice.roll(8);
  TopologySpec spec;
  spec.name = spec.file = "bench";
  spec.devices = {{"host", DeviceKind::host, hosts, {}}, {"switch", DeviceKind::nvswitch, switches, {}}};
  const auto cable = [&](const char* kind, int a, int b) {
    LinkGroup link;
    link.from = kind;
    link.to = "switch";
    link.wiring = Wiring::pairs;
    link.pairs = {{a, b}};
    link.bandwidth = Bandwidth(1e9);
    spec.links.push_back(std::move(link));
  };
  std::set<std::pair<int, int>> joined;
  for (int s = 1; s < switches; ++s) {
    const int above = dice.roll(s);
    joined.insert({s, above});
    cable("switch", s, above);
  }
  const bool mesh = dice.roll(2) == 0;
  for (int extra = mesh && switches > 2 ? dice.roll(2 * switches) : 0; extra > 0; --extra) {
    const int a = 1 + dice.roll(switches - 1), b = dice.roll(a);
    if (joined.insert({a, b}).second) cable("switch", a, b);
  }
  for (int h = 0; h < hosts; ++h) cable("host", h, dice.roll(switches));
  return with_rates(built(spec, 1), [&] { return dice.between(0.1, 10); });
}

Pattern ring_pattern(const std::vector<int>& members, std::int64_t message_bytes, int rounds) {
  std::vector<Rank> ranks;
  for (const int member : members) ranks.push_back(rank(member));
  const auto size = static_cast<std::int64_t>(ranks.size());
  auto made =
      make_pattern({CollectiveKind::all_reduce, Group::listed(std::move(ranks)), Bytes(message_bytes * size), 0, {}},
                   {"ring", 1, 1, {}});
  if (!made) throw std::runtime_error(to_text(made.errors()));
  Pattern pattern = std::move(made).value();
  if (rounds > 0) pattern.lanes.front().phases.front().rounds = rounds;
  return pattern;
}

Schedule as_schedule(const std::vector<PeerSender>& senders) {
  Schedule schedule;
  std::size_t operations = senders.size();
  for (const PeerSender& sender : senders) operations += sender.messages.size();
  schedule.reserve(operations);
  for (const PeerSender& sender : senders) {
    OpId before = schedule.add(Delay{Seconds(sender.start_s)});
    for (const PeerMessage& message : sender.messages) {
      const After after{before, Until::finished};
      before = schedule.add(Transfer{rank(sender.host), rank(message.to), Volume(message.bytes)}, {&after, 1});
    }
  }
  return schedule;
}

PeerMachine as_peer(const Fabric& fabric, const std::vector<PeerSender>& senders) {
  Pairs pairs;
  for (const PeerSender& sender : senders)
    for (const PeerMessage& message : sender.messages) pairs.insert({sender.host, message.to});
  return with_routes(fabric, pairs);
}

PeerMachine as_peer(const Fabric& fabric, const std::vector<int>& ring) {
  Pairs pairs;
  for (std::size_t i = 0; i < ring.size(); ++i) pairs.insert({ring[i], ring[(i + 1) % ring.size()]});
  return with_routes(fabric, pairs);
}

}  // namespace bench
