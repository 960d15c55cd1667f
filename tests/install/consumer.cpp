// A program of somebody else's: 1 GiB broadcast along a ring of 8, by both methods.
#include <cmath>
#include <collcast/evaluate/evaluate.hpp>
#include <cstdio>

int main() {
  using namespace collcast;
  TopologySpec ring;
  ring.name = "ring";
  ring.devices = {{"gpu", DeviceKind::gpu, 1, {}}};
  ring.network_devices = "gpu";
  ring.network = TorusNetwork{{}, true, Bandwidth(10e9), Seconds(0)};
  const auto fabric = Fabric::build(ring, 8);
  if (!fabric) {
    std::fputs(to_text(fabric.errors()).c_str(), stderr);
    return 1;
  }
  const CollectiveRequest request{
      CollectiveKind::broadcast, Group::strided(Rank(0), 1, 8), Bytes(std::int64_t{1} << 30), 0, {}};
  const CollectivePolicy policy{"ring", 64, 1};
  const auto estimated = by_estimate(fabric.value(), policy)(request);
  const auto simulated = by_simulation(fabric.value(), policy)(request);
  if (!estimated || !simulated) return 1;
  // N(S+k-2)/(S*B)
  const double expected = 1073741824.0 * (64 + 8 - 2) / (64 * 10e9);
  std::printf("estimate %.9f s, simulation %.9f s, textbook %.9f s\n", estimated.value().count(),
              simulated.value().count(), expected);
  return std::abs(simulated.value().count() - expected) < 1e-9 && std::abs(estimated.value().count() - expected) < 1e-12
             ? 0
             : 1;
}
