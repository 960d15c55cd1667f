#include "agreement/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "collcast/evaluate/evaluate.hpp"
#include "collcast/scenario/scenario.hpp"
#include "support/patterns.hpp"

namespace collcast::test {
namespace {

struct Machine {
  const char* name;
  int nodes, ranks;
};

// Few ranks and many, powers of two and others, one node and several; every network that is shipped.
constexpr Machine machines[] = {{"star", 5, 5},
                                {"star", 12, 12},
                                {"star", 16, 16},
                                {"star", 33, 33},
                                {"ring", 6, 6},
                                {"ring", 16, 16},
                                {"mesh", 6, 6},
                                {"mesh", 16, 16},
                                {"pcie-a100", 1, 8},
                                {"pcie-a100", 2, 16},
                                {"pcie-a100", 3, 24},
                                {"dgx-a100", 1, 8},
                                {"dgx-h100", 1, 6},
                                {"dgx-h100", 2, 16},
                                {"dgx-h100", 3, 24},
                                {"dgx-h100", 4, 32},
                                {"dgx-h100", 16, 128},
                                {"ethernet-hosts", 8, 8},
                                {"ethernet-hosts", 64, 64}};

Fabric fabric_of(const Machine& machine) {
  const auto spec = load_topology(machine.name, {{COLLCAST_SOURCE_DIR "/topologies"}, {}});
  if (!spec) throw std::runtime_error(to_text(spec.errors()));
  auto fabric = Fabric::build(*spec, machine.nodes);
  if (!fabric) throw std::runtime_error(to_text(fabric.errors()));
  return std::move(fabric).value();
}

}  // namespace

double SweepPoint::distance() const { return std::abs(std::log(ratio())); }

std::string SweepPoint::text() const {
  return algorithm + " " + kind + " on " + machine + ", k=" + std::to_string(ranks) + " N=" + std::to_string(bytes) +
         " S=" + std::to_string(chunks);
}

std::vector<SweepPoint> sweep(int most_ranks) {
  std::vector<SweepPoint> points;
  for (const Machine& machine : machines) {
    if (machine.ranks > most_ranks) continue;
    const Fabric fabric = fabric_of(machine);
    for (const AlgorithmInfo& algorithm : algorithms())
      for (const CollectiveKind kind : algorithm.kinds)
        for (const std::int64_t bytes : {1LL << 10, 1LL << 20, 64LL << 20, 1LL << 30})
          for (const int chunks : {1, 4, 32}) {
            if (chunks > 1 && !algorithm.chunked) continue;
            const auto choices = choose(fabric, request(kind, machine.ranks, bytes), {algorithm.name, chunks, 0});
            if (!choices) continue;
            const Choice& choice = choices->front();
            const auto timeline = simulate(fabric, choice.pattern);
            points.push_back({machine.name, algorithm.name, std::string(to_string(kind)), machine.ranks, chunks, bytes,
                              choice.estimate.shared, choice.estimate.total.count(),
                              to_seconds(timeline.value().finish).count()});
          }
  }
  return points;
}

Spread spread(std::vector<SweepPoint> points) {
  Spread out;
  out.points = static_cast<int>(points.size());
  if (points.empty()) return out;
  std::sort(points.begin(), points.end(),
            [](const SweepPoint& a, const SweepPoint& b) { return a.distance() < b.distance(); });
  const auto at = [&](std::size_t i) { return std::exp(points[i].distance()) - 1; };
  out.median = at(points.size() / 2);
  out.tenth = at((points.size() * 9) / 10);
  out.worst = at(points.size() - 1);
  out.worst_point = points.back();
  return out;
}

}  // namespace collcast::test
