#include "nccl/pair_rates.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "collcast/nccl/links.hpp"
#include "collcast/topology/wiring.hpp"
#include "nccl/nearest_nics.hpp"
#include "nccl/nvlink_ways.hpp"
#include "nccl/terms.hpp"

namespace collcast::nccl {

namespace {

using Pairs = std::vector<std::pair<int, int>>;  // device to device

/// Seconds for each byte of every message that is under way at once, of the busiest link.
class Loads {
 public:
  Loads(const System& system, const std::vector<int>& gpus) : system_(system), gpus_(gpus) {
    const NvlinkSpeed one = nvlink_speed(system.compute_capability);
    of_counted_ = one.data_sheet.value() / one.counted.value();
  }

  void add(int from, int to, double parts = 1) {
    for (const auto& [a, b] : hops(from, to)) busy_[{a, b}] += parts / rate(a, b);
  }
  double busiest() const {
    double out = 0;
    for (const auto& [link, seconds] : busy_) out = std::max(out, seconds);
    return out;
  }

 private:
  Pairs hops(int from, int to) const {
    if (NvlinkWay found = nvlink_way(system_, gpus_, from, to); over_nvlink(found.type)) return std::move(found.hops);
    const auto over_pcie = way(system_, system_.first_gpu + from, system_.first_gpu + to);
    if (!over_pcie) return {};
    Pairs out;
    // Devices are numbered beyond the GPUs, whose own NVLinks these are not.
    for (const auto& [a, b] : over_pcie->hops) out.emplace_back(-1 - a, -1 - b);
    return out;
  }

  double rate(int from, int to) const {
    if (from >= 0)
      return system_.nvlinks[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] * of_counted_ * 1e9;
    double out = 0;
    for (const System::Edge& edge : system_.edges[static_cast<std::size_t>(-1 - from)])
      if (edge.to == -1 - to) out = std::max(out, edge.rate * 1e9);
    return out;
  }

  const System& system_;
  const std::vector<int>& gpus_;
  double of_counted_ = 1;
  std::map<std::pair<int, int>, double> busy_;
};

}  // namespace

bool lacks_nvlinks(const TopologySpec& spec) {
  std::map<int, std::set<int>> linked;
  for (const LinkGroup& link : spec.links) {
    const auto group = std::ranges::find(spec.devices, link.from, &DeviceGroup::name);
    if (link.kind != LinkKind::nvlink || link.from != link.to || group->kind != DeviceKind::gpu) continue;
    for (const auto& [a, b] : wired_pairs(link, group->count, group->count)) {
      linked[a].insert(b);
      linked[b].insert(a);
    }
  }
  // Two peers of one GPU that have no link of their own.
  return std::ranges::any_of(linked, [&](const auto& one) {
    const std::set<int>& peers = one.second;
    return std::ranges::any_of(peers, [&](int a) {
      return std::ranges::any_of(peers, [&](int b) { return a != b && !linked.at(a).contains(b); });
    });
  });
}

namespace {

/// The GPU beside the NIC that a ring leaves by, where its last one reaches that over NVLink.
std::optional<int> relay_of(const System& system, const Nearest& near, const ChannelNics& nics, int last) {
  if (nics.way_out != PathType::pxn || !near.gpus.contains(nics.out)) return std::nullopt;
  for (const Nearest::Gpu& one : near.gpus.at(nics.out))
    if (system.nvlinks[static_cast<std::size_t>(last)][static_cast<std::size_t>(one.gpu)] > 0) return one.gpu;
  return std::nullopt;
}

}  // namespace

std::optional<Bandwidth> ring_rate(const System& system, const std::vector<std::vector<int>>& orders,
                                   const std::vector<ChannelNics>& nics, int nodes) {
  if (!system.has_nvlink() || system.nvswitch || orders.empty()) return std::nullopt;
  const std::vector<int>& gpus = orders.front();
  if (gpus.size() < 2) return std::nullopt;
  const Nearest near = nodes > 1 ? nearest_nics(system, gpus) : Nearest{};
  Loads loads(system, gpus);
  for (std::size_t channel = 0; channel < orders.size(); ++channel) {
    const std::vector<int>& order = orders[channel];
    for (std::size_t i = 0; i + 1 < order.size(); ++i) loads.add(order[i], order[i + 1]);
    if (nodes > 1 && channel < nics.size())
      if (const auto relay = relay_of(system, near, nics[channel], order.back())) loads.add(order.back(), *relay);
    // The last one's next is on another node.
    if (nodes == 1) loads.add(order.back(), order.front());
  }
  return Bandwidth(static_cast<double>(orders.size()) / loads.busiest());
}

void add_ranks_by_nic(const System& system, const std::vector<int>& gpus, int most, double times,
                      std::map<int, double>& out) {
  const Nearest near = nearest_nics(system, gpus);
  for (const int gpu : gpus) {
    const std::vector<int> nics = nics_of_pairs(system, near, gpus, gpu);
    const std::size_t taken = std::min(nics.size(), static_cast<std::size_t>(most));
    for (std::size_t k = 0; k < taken; ++k) out[nics[k]] += times / static_cast<double>(taken);
  }
}

namespace {

/// By which GPU another one's parts reach a NIC: the widest way over NVLink, as the simulation's, through another where
/// it must. None where the GPU is beside it, or no other one is.
std::optional<int> relay_to(const System& system, const std::vector<int>& gpus, int from, int nic) {
  if (is_beside(system, from, nic)) return std::nullopt;
  std::optional<int> out;
  double widest = 0;
  for (const int gpu : gpus) {
    if (!is_beside(system, gpu, nic)) continue;
    const NvlinkWay found = nvlink_way(system, gpus, from, gpu);
    const double wide = found.speed / static_cast<double>(std::max<std::size_t>(1, found.hops.size()));
    if (wide > widest) out = gpu;
    widest = std::max(widest, wide);
  }
  return out;
}

}  // namespace

std::optional<Bandwidth> next_rate(const System& system, const NextOnNode& node) {
  if (!system.has_nvlink() || system.nvswitch || node.inside.empty()) return std::nullopt;
  Loads loads(system, node.gpus);
  for (const auto& [from, to] : node.inside) loads.add(from, to);
  return Bandwidth(1 / loads.busiest());
}

std::optional<PairRates> pair_rates(const System& system, const std::vector<int>& gpus, std::optional<int> root,
                                    const std::map<int, double>& beyond) {
  if (!system.has_nvlink() || system.nvswitch || gpus.size() < 2) return std::nullopt;
  const int of_root = root.value_or(gpus.front());
  const double peers = static_cast<double>(gpus.size()) - 1;
  Loads all(system, gpus), to_root(system, gpus), from_root(system, gpus);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (const int other : gpus)
      if (other != gpus[i]) all.add(gpus[i], other);
    for (const auto& [nic, parts] : beyond)
      if (const auto relay = relay_to(system, gpus, gpus[i], nic)) {
        all.add(gpus[i], *relay, parts);
        if (gpus[i] == of_root) from_root.add(gpus[i], *relay, parts);
      }
    if (gpus[i] == of_root) continue;
    // A pair's way is found from the receiver: both directions may have another GPU between them.
    to_root.add(gpus[i], of_root);
    from_root.add(of_root, gpus[i]);
  }
  return PairRates{Bandwidth(peers / all.busiest()), system.nvlink_rate, Bandwidth(peers / to_root.busiest()),
                   Bandwidth(peers / from_root.busiest())};
}

PairRates together(const std::vector<RatesOfNode>& nodes) {
  const auto peers = [](const RatesOfNode& node) { return static_cast<double>(node.gpus) - 1; };
  double most = 0, seconds = 0;
  for (const RatesOfNode& node : nodes) most = std::max(most, peers(node));
  PairRates out = uniform(Bandwidth(unlimited));
  for (const RatesOfNode& node : nodes) {
    if (node.gpus < 2) continue;
    seconds = std::max(seconds, peers(node) / node.rates.all.value());
    out.next = std::min(out.next, node.rates.next);
    if (!node.has_root) continue;
    out.gather = node.rates.gather;
    out.scatter = node.rates.scatter;
  }
  out.all = Bandwidth(most / seconds);
  return out;
}

}  // namespace collcast::nccl
