#include "agreement/sweep.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

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

std::optional<SweepPoint> point(const Machine& machine, const Fabric& fabric, const AlgorithmInfo& algorithm,
                                const CollectiveRequest& asked, int chunks) {
  const auto choices = choose(fabric, asked, {algorithm.name, chunks, 0});
  if (!choices) return std::nullopt;
  const Choice& choice = choices->front();
  const auto timeline = simulate(fabric, choice.pattern);
  return SweepPoint{machine.name,
                    algorithm.name,
                    std::string(to_string(asked.kind)),
                    asked.group.size(),
                    chunks,
                    asked.size.value(),
                    choice.estimate.shared,
                    choice.estimate.total.count(),
                    to_seconds(timeline.value().finish).count()};
}

/// The standard's distributions differ from library to library, its generators do not.
int below(int limit, std::mt19937& random) { return static_cast<int>(random() % static_cast<unsigned>(limit)); }

Group scrambled(int ranks, std::mt19937& random) {
  std::vector<Rank> all;
  for (int r = 0; r < ranks; ++r) all.emplace_back(static_cast<std::uint32_t>(r));
  for (int r = ranks; r > 1; --r)
    std::swap(all[static_cast<std::size_t>(r - 1)], all[static_cast<std::size_t>(below(r, random))]);
  all.resize(static_cast<std::size_t>(2 + below(ranks - 1, random)));
  return Group::listed(std::move(all));
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
            if (const auto one = point(machine, fabric, algorithm, request(kind, machine.ranks, bytes), chunks))
              points.push_back(*one);
          }
  }
  return points;
}

std::vector<SweepPoint> scrambled_sweep(int draws) {
  std::vector<SweepPoint> points;
  std::mt19937 random(1);
  for (const Machine& machine : machines) {
    if (machine.nodes == 1 || machine.ranks > 24) continue;
    const Fabric fabric = fabric_of(machine);
    for (int draw = 0; draw < draws; ++draw) {
      CollectiveRequest asked;
      asked.group = scrambled(machine.ranks, random);
      asked.size = Bytes(std::array{997, 65'537, 1'000'003, 123'456'789}[static_cast<std::size_t>(below(4, random))]);
      const int chunks = std::array{1, 2, 5}[static_cast<std::size_t>(below(3, random))];
      for (const AlgorithmInfo& algorithm : algorithms())
        for (const CollectiveKind kind : algorithm.kinds) {
          asked.kind = kind;
          if (const auto one = point(machine, fabric, algorithm, asked, algorithm.chunked ? chunks : 1))
            points.push_back(*one);
        }
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
