#include "cases.hpp"

#include <set>
#include <stdexcept>
#include <utility>

#include "collcast/collective/collective.hpp"
#include "support/small_fabrics.hpp"

namespace bench {

using namespace collcast;

namespace {

Rank rank(int host) { return Rank(static_cast<std::uint32_t>(host)); }

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

Fabric ring_machine(int hosts, double bandwidth, double latency, double spread) {
  const Fabric equal = test::ring_fabric(hosts, Bandwidth(bandwidth), Seconds(latency));
  if (spread == 0) return equal;
  Dice dice(1);
  return with_rates(equal, [&] { return 1 / dice.between(1, 1 + spread); });
}

Fabric star_machine(int hosts, double bandwidth) { return test::star_fabric(hosts, Bandwidth(bandwidth), Seconds(0)); }

Fabric fat_tree(int hosts, double bandwidth, double oversubscription) {
  LeafSpineNetwork network;
  network.rail_optimized = false;
  network.nodes_per_leaf = 32;
  network.spines = 8;
  network.oversubscription = oversubscription;
  network.bandwidth = Bandwidth(bandwidth);
  return test::teaching_fabric(hosts, network);
}

Fabric random_machine(Dice& dice, int hosts) {
  const int switches = 1 + dice.roll(8);
  std::vector<test::Cable> cables;
  const auto cable = [&](int a, int b) { cables.push_back({a, b, Bandwidth(1e9), Seconds(0)}); };
  Pairs joined;
  const auto join_switches = [&](int a, int b) {
    if (joined.insert({a, b}).second) cable(hosts + a, hosts + b);
  };
  for (int s = 1; s < switches; ++s) join_switches(s, dice.roll(s));
  const bool mesh = dice.roll(2) == 0;
  for (int extra = mesh && switches > 2 ? dice.roll(2 * switches) : 0; extra > 0; --extra) {
    const int a = 1 + dice.roll(switches - 1);
    join_switches(a, dice.roll(a));
  }
  for (int h = 0; h < hosts; ++h) cable(h, hosts + dice.roll(switches));
  return with_rates(test::cabled_fabric(hosts, switches, cables), [&] { return dice.between(0.1, 10); });
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

Schedule as_schedule(const std::vector<PeerSender>& senders, int weights) {
  Schedule schedule;
  std::size_t operations = senders.size();
  for (const PeerSender& sender : senders) operations += sender.messages.size();
  schedule.reserve(operations);
  for (const PeerSender& sender : senders) {
    OpId before = schedule.add(Delay{Seconds(sender.start_s)});
    const TrafficClass traffic(0, static_cast<std::uint16_t>(1 + sender.host % weights));
    for (const PeerMessage& message : sender.messages) {
      const After after{before, Until::finished};
      before =
          schedule.add(Transfer{rank(sender.host), rank(message.to), Volume(message.bytes), 0, traffic}, {&after, 1});
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
