#include "agreement/answers.hpp"

#include <stdexcept>

#include "support/small_fabrics.hpp"

namespace collcast::test {

double longest_way(const Pattern& pattern) {
  double longest = 0;
  for (const Lane& lane : pattern.lanes) {
    double messages = 0;
    for (const Phase& phase : lane.phases) {
      if (phase.flow == Flow::forwarding)
        messages += phase.rounds + pattern.chunks - 1;
      else
        messages += static_cast<double>(phase.rounds) * pattern.chunks;
    }
    longest = std::max(longest, messages);
  }
  return longest;
}

Answers answers(const Fabric& fabric, const Pattern& pattern) {
  Answers a;
  a.estimate = estimate(fabric, pattern);
  a.simulated = to_seconds(simulate(fabric, pattern).value().finish).count();
  Schedule schedule;
  schedule.add_exchange(pattern);
  a.critical = to_seconds(critical_path(fabric, schedule)).count();
  if (const auto finish = recurrence(fabric, pattern)) a.recurrence = to_seconds(finish->finish).count();
  a.rounding = 2e-12 * longest_way(pattern);
  return a;
}

Fabric dedicated_fabric(int ranks, Bandwidth bandwidth, Seconds latency) {
  std::vector<Cable> cables;
  for (int a = 0; a < ranks; ++a)
    for (int b = a + 1; b < ranks; ++b) cables.push_back({a, b, bandwidth, latency});
  return cabled_fabric(ranks, 0, cables);
}

Fabric cluster_fabric(int nodes, int per_node, Bandwidth inside, Bandwidth across, Seconds latency) {
  TopologySpec spec;
  spec.name = spec.file = "cluster";
  spec.devices = {{"gpu", DeviceKind::gpu, per_node, {}},
                  {"nic", DeviceKind::nic, per_node, {}},
                  {"switch", DeviceKind::nvswitch, 1, {}}};
  const auto link = [](const char* from, const char* to, Wiring wiring, LinkKind kind, Bandwidth b, Seconds l) {
    LinkGroup group;
    group.from = from;
    group.to = to;
    group.wiring = wiring;
    group.kind = kind;
    group.bandwidth = b;
    group.latency = l;
    return group;
  };
  spec.links = {link("gpu", "switch", Wiring::all, LinkKind::nvlink, inside, latency),
                link("gpu", "nic", Wiring::one_to_one, LinkKind::pcie, across, latency)};
  spec.network_devices = "nic";
  spec.network = StarNetwork{across, latency};
  auto fabric = Fabric::build(spec, nodes);
  if (!fabric) throw std::runtime_error(to_text(fabric.errors()));
  return std::move(fabric).value();
}

}  // namespace collcast::test
