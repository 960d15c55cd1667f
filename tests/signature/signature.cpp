// The behaviour signature: one line per fixed run with the finish time, the counters and a digest of every
// participant's times and every link's bytes. Any change of the engine's or the algorithms' behaviour shows.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "collcast/collective/collective.hpp"
#include "collcast/engine/engine.hpp"

namespace {

using namespace collcast;

/// FNV-1a over 64-bit words.
class Digest {
 public:
  void add(std::int64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      state_ ^= static_cast<std::uint64_t>(value >> (8 * byte)) & 0xffU;
      state_ *= 0x100000001b3U;
    }
  }
  void add(double value) {
    std::int64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    add(bits);
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325U;
};

struct Machine {
  const char* name;
  TopologySpec spec;
  int nodes;
};

TopologySpec endpoints(NetworkSpec network) {
  TopologySpec spec;
  spec.name = "signature";
  spec.devices = {{"gpu", DeviceKind::gpu, 1, {}}};
  spec.network_devices = "gpu";
  spec.network = std::move(network);
  return spec;
}

std::vector<Machine> machines() {
  LeafSpineNetwork fat;
  fat.rail_optimized = false;
  fat.nodes_per_leaf = 4;
  fat.spines = 2;
  fat.oversubscription = 4;
  fat.bandwidth = Bandwidth(12.5e9);
  fat.latency = Seconds(700e-9);
  fat.spine_latency = Seconds(300e-9);
  return {{"ring", endpoints(TorusNetwork{{}, true, Bandwidth(10e9), Seconds(1e-6)}), 12},
          {"star", endpoints(StarNetwork{Bandwidth(10e9), Seconds(0)}), 12},
          {"mesh", endpoints(TorusNetwork{{3, 4}, false, Bandwidth(7e9), Seconds(1.3e-6)}), 12},
          {"leaf-spine", endpoints(fat), 12}};
}

void run(const Machine& machine, CollectiveKind kind, const AlgorithmInfo& algorithm, int chunks, Sharing sharing) {
  const Fabric fabric = Fabric::build(machine.spec, machine.nodes).value();
  CollectiveOptions options;
  options.algorithm = algorithm.name;
  options.chunks = chunks;
  for (int i = 0; i < 12; ++i) options.node_of.push_back(i / 4);
  const auto pattern = make_pattern({kind, Group::strided(Rank(0), 1, 12), Bytes(12'345'678), 0, {}}, options);
  if (!pattern) return;
  const Timeline timeline = simulate(fabric, pattern.value(), {sharing}).value();
  Digest digest;
  for (const Interval& op : timeline.ops) {
    digest.add(op.start.time_since_epoch().count());
    digest.add(op.finish.time_since_epoch().count());
  }
  for (const LinkUse& link : timeline.links) {
    digest.add(link.carried.value());
    digest.add(link.busy.count());
  }
  std::printf("%s %s %s chunks %d sharing %d: finish %lld ps, %lld messages, %016llx\n", machine.name,
              std::string(to_string(kind)).c_str(), algorithm.name.c_str(), chunks, static_cast<int>(sharing),
              static_cast<long long>(timeline.finish.time_since_epoch().count()),
              static_cast<long long>(timeline.counters.messages), static_cast<unsigned long long>(digest.value()));
}

}  // namespace

int main() {
  for (const Machine& machine : machines())
    for (const AlgorithmInfo& algorithm : algorithms())
      for (const CollectiveKind kind : algorithm.kinds)
        for (const Sharing sharing : {Sharing::max_min, Sharing::fifo})
          run(machine, kind, algorithm, sharing == Sharing::fifo ? 1 : 3, sharing);
  return 0;
}
