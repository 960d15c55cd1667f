#include "nccl/nearest_nics.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

#include "nccl/terms.hpp"

namespace collcast::nccl {

double pcie_booked(const System& system, PathType type) {
  return type == PathType::phb && is_intel(system.cpu) ? 1.2 : 1;
}

namespace {

/// What a flow from a NIC books besides on the way out of the GPU that it goes to, before Ampere [followPath].
double booked_back(const System& system) { return system.compute_capability < 80 ? 0.125 : 0; }

/// Without GPUDirect RDMA: where the ways of GPU and NIC to the host join, which both directions take twice.
std::optional<Nearest::Link> joined_way(const System& system, int gpu, int nic) {
  std::optional<Way> of_gpu, of_nic;
  for (std::size_t device = 0; device < system.kinds.size(); ++device) {
    if (system.kinds[device] != DeviceKind::cpu) continue;
    auto a = way(system, gpu, static_cast<int>(device)), b = way(system, nic, static_cast<int>(device));
    if (!a || !b || (of_gpu && of_gpu->hops.size() <= a->hops.size())) continue;
    of_gpu = std::move(a);
    of_nic = std::move(b);
  }
  if (!of_gpu) return std::nullopt;
  for (const auto& hop : of_gpu->hops)
    if (std::find(of_nic->hops.begin(), of_nic->hops.end(), hop) != of_nic->hops.end())
      for (const System::Edge& edge : system.edges[static_cast<std::size_t>(hop.first)])
        if (edge.to == hop.second) return Nearest::Link{hop, edge.speed, edge.rate};
  return std::nullopt;
}

/// Of a NIC's own links together, mostly one: its slot. GPUs that are on the network themselves have none.
double at_nic(const System& system, int nic, double System::Edge::*of) {
  const std::size_t device = static_cast<std::size_t>(system.first_nic) + static_cast<std::size_t>(nic);
  if (system.kinds[device] != DeviceKind::nic) return system.nic_speed;
  double sum = 0;
  for (const System::Edge& edge : system.edges[device]) sum += edge.*of;
  return sum;
}

}  // namespace

Nearest nearest_nics(const System& system, const std::vector<int>& gpus) {
  Nearest out;
  for (int nic = 0; nic < system.nics; ++nic) {
    for (const int gpu : gpus) {
      const auto found = way(system, system.first_nic + nic, system.first_gpu + gpu);
      if (!found) continue;
      const bool by_host = found->type > system.gpudirect && found->type < PathType::p2c;
      const PathType type = by_host ? PathType::phb : found->type;
      if (type > out.type) continue;
      if (type < out.type) {
        out.gpus.clear();
        out.links.clear();
      }
      out.type = type;
      Nearest::Gpu& one = out.gpus[nic].emplace_back(Nearest::Gpu{gpu, found->speed, found->rate, {}});
      if (!by_host) continue;
      const auto link = joined_way(system, system.first_gpu + gpu, system.first_nic + nic);
      if (!link) continue;
      const auto known = std::find_if(out.links.begin(), out.links.end(),
                                      [&](const Nearest::Link& other) { return other.hop == link->hop; });
      one.by_host = static_cast<int>(known - out.links.begin());
      if (known == out.links.end()) out.links.push_back(*link);
    }
  }
  return out;
}

PathType way_to_nic(const System& system, const Nearest& near, int gpu, int nic) {
  const auto known = near.gpus.find(nic);
  const auto beside = [&](const auto& is) {
    return known != near.gpus.end() && std::any_of(known->second.begin(), known->second.end(), is);
  };
  if (beside([&](const Nearest::Gpu& one) { return one.gpu == gpu; })) return near.type;
  if (nic >= system.nics) return PathType::dis;
  const auto found = way(system, system.first_gpu + gpu, system.first_nic + nic);
  const PathType own = found ? found->type : PathType::dis;
  const bool passed_on = system.relays && near.type < PathType::pxn && beside([&](const Nearest::Gpu& one) {
                           const auto& links = system.nvlinks[static_cast<std::size_t>(gpu)];
                           return system.nvswitch || links[static_cast<std::size_t>(one.gpu)] > 0;
                         });
  if (own > PathType::pxn && passed_on) return PathType::pxn;
  const bool by_host = own > system.gpudirect && own < PathType::p2c;
  return by_host ? PathType::phb : own;
}

Room room_of(const System& system, const Nearest& near) {
  const double booked = pcie_booked(system, near.type);
  std::set<int> gpus;
  for (const auto& [nic, ways] : near.gpus)
    for (const Nearest::Gpu& one : ways) gpus.insert(one.gpu);
  // A channel of one GPU takes in and hands out by the same port.
  const double at_port = booked + (gpus.size() == 1 ? booked_back(system) : 0);
  Room out;
  for (const auto& [nic, ways] : near.gpus) {
    out.nics[nic] = std::min(system.nic_speed, at_nic(system, nic, &System::Edge::speed) / booked);
    for (const Nearest::Gpu& one : ways) out.ports.emplace(one.gpu, one.speed / at_port);
  }
  for (const Nearest::Link& link : near.links) out.links.push_back(link.speed / (1 + booked));
  return out;
}

namespace {

/// As nearest_nics() has it: without GPUDirect RDMA a NIC beside the GPU is over the host.
std::optional<Way> own_way(const System& system, int gpu, int nic) {
  auto found = way(system, system.first_nic + nic, system.first_gpu + gpu);
  if (found && found->type > system.gpudirect && found->type < PathType::p2c) found->type = PathType::phb;
  return found;
}

/// NICs by GPU: its nearest ones, and how near they are.
struct OwnNics {
  PathType type = PathType::dis;
  std::vector<int> nics;
  double rate = 0;
};
/// By PXN, where none is nearer: all that other GPUs are beside, which are equally near [src/graph/paths.cc,
/// ncclTopoComputePaths]; what that GPU's links carry is NVLink's.
OwnNics nics_by_relays(const System& system, const Nearest& near, int gpu) {
  OwnNics out{PathType::pxn, {}, unlimited};
  for (const auto& [nic, ways] : near.gpus)
    if (way_to_nic(system, near, gpu, nic) == PathType::pxn) out.nics.push_back(nic);
  return out;
}

OwnNics without_relays(const System& system, int gpu) {
  OwnNics out;
  for (int nic = 0; nic < system.nics; ++nic) {
    const auto found = own_way(system, gpu, nic);
    if (!found || found->type > out.type) continue;
    if (found->type < out.type) out = {found->type, {}, 0};
    out.nics.push_back(nic);
    out.rate = std::max(out.rate, found->rate);
  }
  return out;
}

OwnNics own_nics(const System& system, const Nearest& near, int gpu) {
  OwnNics out = without_relays(system, gpu);
  if (out.type <= PathType::pxn) return out;
  OwnNics relayed = nics_by_relays(system, near, gpu);
  return relayed.nics.empty() ? out : relayed;
}

/// The bits of a number below a power of two in reverse.
std::size_t mirrored(std::size_t value, std::size_t power) {
  std::size_t out = 0;
  for (std::size_t bit = 1, back = power / 2; bit < power; bit *= 2, back /= 2)
    if ((value & bit) != 0) out |= back;
  return out;
}

/// With the one that its first channel takes in front.
OwnNics in_turn(OwnNics own, int gpu) {
  const std::size_t all = own.nics.size(), number = static_cast<std::size_t>(gpu);
  if (all == 0) return own;
  const std::size_t first = (std::has_single_bit(all) ? mirrored(number, all) : number) % all;
  std::rotate(own.nics.begin(), own.nics.begin() + static_cast<std::ptrdiff_t>(first), own.nics.end());
  return own;
}

/// Those of the GPUs that none of them is nearer to the NIC than.
std::size_t nearest_gpus(const System& system, const std::vector<int>& gpus, int nic) {
  std::vector<PathType> types;
  for (const int gpu : gpus)
    if (const auto found = own_way(system, gpu, nic)) types.push_back(found->type);
  return static_cast<std::size_t>(
      std::count(types.begin(), types.end(), *std::min_element(types.begin(), types.end())));
}

}  // namespace

std::vector<int> nics_of_pairs(const System& system, const Nearest& near, const std::vector<int>& gpus, int gpu) {
  std::vector<int> out = in_turn(own_nics(system, near, gpu), gpu).nics;
  if (out.empty()) return out;
  const std::size_t sharing = nearest_gpus(system, gpus, *std::ranges::min_element(out));
  out.resize((out.size() + sharing - 1) / sharing);
  return out;
}

PairNics pair_nics(const System& system, const Nearest& near, const std::vector<int>& gpus) {
  PairNics out{0, 1, true, system.nic_speed, unlimited};
  std::vector<std::vector<int>> of_gpus;
  for (const int gpu : gpus) {
    std::vector<int> nics = nics_of_pairs(system, near, gpus, gpu);
    if (nics.empty()) continue;
    for (const int nic : nics) out.nic_rate = std::min(out.nic_rate, at_nic(system, nic, &System::Edge::rate));
    out.gpu_rate = std::min(out.gpu_rate, own_nics(system, near, gpu).rate);
    out.of_gpu = std::max(out.of_gpu, static_cast<int>(nics.size()));
    of_gpus.push_back(std::move(nics));
  }
  const auto most = static_cast<std::size_t>(out.of_gpu);
  out.even = std::ranges::all_of(of_gpus, [&](const auto& nics) { return nics.size() == most; });
  // GPUs of the busiest NIC where each takes so many.
  const auto busiest = [&](std::size_t taken) {
    std::map<int, double> gpus_of_nic;
    double all = 0;
    for (const std::vector<int>& nics : of_gpus)
      for (std::size_t k = 0; k < std::min(taken, nics.size()); ++k)
        all = std::max(all, gpus_of_nic[nics[k]] += 1.0 / static_cast<double>(std::min(taken, nics.size())));
    return all;
  };
  const double of_all = busiest(most);
  for (std::size_t taken = 1; taken < most; ++taken)
    out.even = out.even && std::abs(busiest(taken) * static_cast<double>(taken) - of_all * out.of_gpu) < 1e-9;
  const auto count = static_cast<double>(gpus.size());
  double by_host = 0;
  for (const Nearest::Link& link : near.links) by_host += link.rate / 2;
  if (of_all > 0) out.nics = count / of_all;
  if (by_host > 0) out.gpu_rate = std::min(out.gpu_rate, by_host / count);
  return out;
}

bool is_beside(const System& system, int gpu, int nic) {
  const std::vector<int> nics = without_relays(system, gpu).nics;
  return std::ranges::find(nics, nic) != nics.end();
}

std::vector<int> relayed_nics(const System& system, int gpu) {
  OwnNics own = without_relays(system, gpu);
  return own.type < PathType::pxn ? std::move(own.nics) : std::vector<int>();
}

double rate_of_nics(const System& system, const Nearest& near, int nics) {
  double each = system.nic_speed;
  std::map<int, double> ports;
  for (const auto& [nic, ways] : near.gpus) {
    each = std::min(each, at_nic(system, nic, &System::Edge::rate));
    for (const Nearest::Gpu& one : ways) {
      double& port = ports[one.gpu];
      port = std::max(port, one.rate);
    }
  }
  double together = 0;
  for (const auto& [gpu, port] : ports) together += port;
  if (!near.links.empty()) {
    double by_host = 0;
    for (const Nearest::Link& link : near.links) by_host += link.rate / 2;
    together = std::min(together, by_host);
  }
  return std::min(each, together / nics);
}

}  // namespace collcast::nccl
