#include "nccl/search.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "nccl/crossed_rings.hpp"
#include "nccl/links_left.hpp"
#include "nccl/nearest_nics.hpp"
#include "nccl/nvlink_ways.hpp"
#include "nccl/nvls_search.hpp"
#include "nccl/paths_to_nics.hpp"
#include "nccl/search_speeds.hpp"
#include "nccl/terms.hpp"

namespace collcast::nccl {

namespace {

/// A way over straight NVLinks past all of `gpus` and back, which books its speed on each link that it takes. `path`
/// has its first GPU.
struct WayPastAll {
  const std::vector<int>& gpus;
  double speed = 0;
  PathType worst = PathType::nvl;
  int budget = 20'000;  ///< steps: NCCL's search gives up after 2^14 [NCCL_SEARCH_TIMEOUT]; then there is none

  bool find(NvlinkWays& ways, std::vector<int>& path) {
    if (--budget < 0) return false;
    if (path.size() == gpus.size()) {
      if (ways.room(path.back(), path.front(), worst) < speed - slack) return false;
      ways.book(path.back(), path.front(), speed);
      return true;
    }
    std::vector<int> others = gpus;
    std::erase_if(others, [&](int gpu) { return std::find(path.begin(), path.end(), gpu) != path.end(); });
    const int at = path.back();
    for (const int gpu : ways.onward(at, std::move(others), speed, worst)) {
      ways.book(at, gpu, speed);
      path.push_back(gpu);
      if (find(ways, path)) return true;
      path.pop_back();
      ways.book(at, gpu, -speed);
    }
    return false;
  }
};

/// With hops of this type at the worst.
Rings rounds_over_nvlinks(const System& system, const std::vector<int>& gpus, double speed, PathType worst) {
  NvlinkWays ways(system, gpus);
  Rings out;
  while (out.count < most_searched_channels) {
    std::vector<int> path{gpus.front()};
    if (!WayPastAll{gpus, speed, worst}.find(ways, path)) break;
    out.order.push_back(std::move(path));
    ++out.count;
  }
  if (out.count > 0) out.type = worst;
  return out;
}

/// Those that need no GPU between two others first.
Rings rounds_over_nvlinks(const System& system, const std::vector<int>& gpus, double speed) {
  Rings out;
  for (const PathType worst : nvlink_types) {
    out = rounds_over_nvlinks(system, gpus, speed, worst);
    if (out.count > 0) break;
  }
  return out;
}

std::optional<Way> way_between(const System& system, int a, int b) {
  return way(system, system.first_gpu + a, system.first_gpu + b);
}

/// GPUs in their order over PCIe.
Rings rings_over_pcie(const System& system, const std::vector<int>& gpus, double speed) {
  LinksLeft left(system);
  Rings out;
  out.type = PathType::loc;
  for (; out.count < most_searched_channels; ++out.count) {
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      const auto hop = way_between(system, gpus[i], gpus[(i + 1) % gpus.size()]);
      if (!hop) return {};
      out.type = std::max(out.type, hop->type);
      if (!left.book(*hop, speed, pcie_booked(system, hop->type))) return out;
    }
    out.order.push_back(gpus);
  }
  return out;
}

Rings rings(const System& system, const std::vector<int>& gpus, double speed) {
  const auto alike = [&gpus](int count, PathType type) {
    return Rings{count, {static_cast<std::size_t>(count), gpus}, {}, type};
  };
  if (gpus.size() == 1) return alike(most_searched_channels, PathType::loc);
  if (system.nvswitch)
    return alike(std::min(most_searched_channels, static_cast<int>((system.nvlink_speed + slack) / speed)),
                 PathType::nvl);
  if (system.has_nvlink()) {
    Rings out = rounds_over_nvlinks(system, gpus, speed);
    if (out.count > 0) return out;
  }
  return rings_over_pcie(system, gpus, speed);
}

struct Best {
  double speed = 0;
  Rings rings;
  double product() const { return rings.count * speed; }
};

/// The most channels x speed of a list, by what `fit` says of a speed.
template <class Fit>
Best best_of(std::span<const double> list, const Fit& fit) {
  Best best;
  for (const double speed : list) {
    if (best.rings.count > 0 && speed <= 0.49 * best.speed) break;
    Rings found = fit(speed);
    if (found.count * speed > best.product() + slack) best = {speed, std::move(found)};
  }
  return best;
}

/// All of them, or exactly so many, where there are as many.
Rings cut(Rings rings, std::optional<int> exactly) {
  if (!exactly) return rings;
  if (rings.count < *exactly) return {};
  rings.keep(*exactly);
  return rings;
}

/// All of them, and all again.
template <class T>
void twice(std::vector<T>& all) {
  const std::vector<T> once = all;
  all.insert(all.end(), once.begin(), once.end());
}

void twice(Rings& rings) {
  rings.count *= 2;
  twice(rings.order);
  twice(rings.nics);
}

/// Doubles the channels at half the speed where NCCL does; whether it does.
bool double_channels(const System& system, Best& best) {
  const bool stays = system.compute_capability > 80 && best.speed < 50 && best.rings.count > 4;
  if (best.speed < 25 || stays) return false;
  twice(best.rings);
  best.speed /= 2;
  return true;
}

Bandwidth bandwidth(double speed) { return Bandwidth(speed * 1e9); }

PathType type_over_pcie(const System& system, const std::vector<int>& gpus) {
  PathType worst = PathType::loc;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const auto hop = way_between(system, gpus[i], gpus[(i + 1) % gpus.size()]);
    worst = std::max(worst, hop ? hop->type : PathType::dis);
  }
  return worst;
}

Found search_inside(const System& system, const std::vector<int>& gpus, std::optional<int> exactly) {
  const auto list = speeds(system.compute_capability, false);
  Best best = best_of(list, [&](double speed) { return cut(rings(system, gpus, speed), exactly); });
  if (!exactly) double_channels(system, best);
  const PathType type = best.rings.type;
  Found out;
  out.nvlink = over_nvlink(type);
  out.ring = {GraphPattern::ring,
              best.rings.count,
              bandwidth(best.speed),
              bandwidth(best.speed),
              type,
              PathType::pix,
              best.rings.order,
              {}};
  out.tree = out.ring;
  out.tree.pattern = GraphPattern::balanced_tree;
  // As many trees as rings: behind a switch at a speed of the list, over straight links at the rings'.
  if (system.nvswitch && best.rings.count > 0) {
    const double speed = largest(list, system.nvlink_speed / best.rings.count);
    out.tree.inside = out.tree.between = bandwidth(speed);
  }
  out.nvls = search_nvls(system, gpus);
  out.nvls_link = nvls_link(system, gpus, list);
  return out;
}

/// How many channels of a speed a GPU's links carry when every GPU but a channel's last sends it on.
bool fits_switch(const System& system, int channels, std::size_t gpus, double speed) {
  const int at_one_gpu = channels - channels / static_cast<int>(gpus);
  return at_one_gpu * speed <= system.nvlink_speed + slack;
}

/// GPUs of one of several nodes, and what a search goes by there.
struct OfSeveral {
  const System& system;
  const std::vector<int>& gpus;
  Nearest near;
  std::span<const double> list;  ///< of speeds
  bool nvlink = false;           ///< channels pass the GPUs over it, else over PCIe; not of one GPU

  bool straight_nvlinks() const { return nvlink && !system.nvswitch; }
  /// Of channels that pass the GPUs in their order; of those over straight NVLinks their ways say it.
  PathType type_in_order() const {
    return gpus.size() == 1 ? PathType::loc : nvlink ? PathType::nvl : type_over_pcie(system, gpus);
  }
  int nics() const { return static_cast<int>(near.gpus.size()); }
  /// As many on each NIC, where there are more channels than NICs.
  int spread(int channels) const { return channels > nics() ? channels - channels % nics() : channels; }
};

/// Channels through the nearest NICs.
Rings channels_of_nics(const OfSeveral& of, double speed) {
  Rings out;
  if (of.straight_nvlinks()) {
    out = rings_over_nvlinks(of.system, of.gpus, of.near, speed);
  } else {
    out = rings_in_order(of.system, of.gpus, of.near, speed);
    out.type = of.type_in_order();
    if (of.nvlink) {
      while (out.count > 0 && !fits_switch(of.system, out.count, of.gpus.size(), speed)) --out.count;
    } else if (of.gpus.size() > 1) {
      out.count = std::min(out.count, rings_over_pcie(of.system, of.gpus, speed).count);
      Rings crossed = crossed_over_pcie(of.system, of.gpus, of.near, speed);
      if (of.spread(crossed.count) > of.spread(out.count)) out = std::move(crossed);
    }
  }
  out.keep(of.spread(out.count));
  return out;
}

/// One channel of the slowest speed, where none fits: by the first NIC.
Best one_channel(const OfSeveral& of) {
  const int nic = of.near.gpus.begin()->first;
  const auto way = [&](int gpu) { return way_to_nic(of.system, of.near, gpu, nic); };
  return {of.list.back(), {1, {of.gpus}, {{nic, nic, way(of.gpus.front()), way(of.gpus.back())}}, of.type_in_order()}};
}

/// Nothing where none fit, or not exactly as many as are asked for.
std::optional<Best> rings_across(const OfSeveral& of, std::optional<int> exactly) {
  const Best best = best_of(of.list, [&](double speed) {
    if (speed > of.system.nic_speed + slack) return Rings{};
    return cut(channels_of_nics(of, speed), exactly);
  });
  if (best.rings.count > 0) return best;
  return std::nullopt;
}

/// Whether channels through NICs and their ways to GPUs are no more where links inside nodes have all room.
bool nics_alone_have(const OfSeveral& of, const Best& best) {
  const Best alone = best_of(of.list, [&](double speed) {
    if (speed > of.system.nic_speed + slack) return Rings{};
    const int count = static_cast<int>(entries(of.system, of.near, speed).size());
    return Rings{of.spread(count), {}, {}, PathType::dis};
  });
  return alone.product() <= best.product() + slack;
}

void put_nics(const OfSeveral& of, const Best& best, Found& out) {
  out.held_by_nics = nics_alone_have(of, best);
  out.nics = std::min(of.nics(), best.rings.count);
  out.nic_rate = rate_of_nics(of.system, of.near, out.nics);
  out.of_pairs = pair_nics(of.system, of.near, of.gpus);
  std::map<int, int> beside;
  for (const auto& [nic, ways] : of.near.gpus)
    for (const Nearest::Gpu& one : ways) out.nics_beside = std::max(out.nics_beside, ++beside[one.gpu]);
}

/// Of trees, as many as rings: inside nodes they are raised step by step while the links allow it, until no slower than
/// two NICs.
struct Chains {
  Rings rings;
  double inside = 0;
  bool held_by_nics = false;
};

Chains begin_chains(const OfSeveral& of, const Best& best, bool held_by_nics) {
  Chains out{best.rings, best.speed, held_by_nics};
  // A tree's first GPU sends, too.
  for (ChannelNics& one : out.rings.nics) one = {one.in, one.in, one.way_in, one.way_in};
  // Behind a switch rings go down and up, trees' chains up.
  if (of.system.nvswitch)
    for (std::vector<int>& order : out.rings.order) order = upwards(of.gpus, order.front());
  return out;
}

/// Over straight NVLinks their ways are found anew for each speed.
void raise_over_nvlinks(const OfSeveral& of, const Best& best, Chains& chains) {
  std::vector<Entry> all = entries(of.system, of.near, best.speed);
  if (static_cast<int>(all.size()) > best.rings.count) all.resize(static_cast<std::size_t>(best.rings.count));
  for (const double speed : of.list) {
    if (speed > 2 * best.speed + slack || speed <= best.speed + slack) continue;
    chains.held_by_nics = false;
    Rings found = chains_over_nvlinks(of.system, of.gpus, of.near, all, speed, best.speed);
    if (found.count < best.rings.count) continue;
    chains = {std::move(found), speed, speed >= largest(of.list, 2 * best.speed)};
    return;
  }
}

/// Behind a switch; or of one GPU, which no links hold.
bool links_have(const OfSeveral& of, int channels, double speed) {
  return of.gpus.size() == 1 || fits_switch(of.system, channels, of.gpus.size(), speed);
}

/// Of trees beside so many rings: half of what these had before they were doubled may be none of the list, which NCCL
/// searches trees by.
double listed_speed(const OfSeveral& of, const Best& best) {
  if (std::ranges::find(of.list, best.speed) != of.list.end()) return best.speed;
  const int channels = best.rings.count;
  const auto found = std::ranges::find_if(of.list, [&](double speed) {
    return links_have(of, channels, speed) && static_cast<int>(entries(of.system, of.near, speed).size()) >= channels;
  });
  return found == of.list.end() ? best.speed : *found;
}

void raise_behind_switch(const OfSeveral& of, double between, Chains& chains) {
  chains.inside = between;
  auto next = std::ranges::find(of.list, between);
  while (next != of.list.end() && next != of.list.begin() && chains.inside < 2 * between - slack) {
    --next;
    chains.held_by_nics = links_have(of, chains.rings.count, *next);
    if (!chains.held_by_nics) return;
    chains.inside = *next;
  }
}

Graph ring_graph(const OfSeveral& of, const Best& best) {
  PathType between = of.near.type;
  // Over straight NVLinks a ring may go back to its NIC from farther away whatever the variable says.
  if (of.system.cross_nic == CrossNic::never || of.straight_nvlinks())
    for (const ChannelNics& one : best.rings.nics) between = std::max(between, one.way_out);
  const Bandwidth speed = bandwidth(best.speed);
  return {GraphPattern::ring, best.rings.count, speed, speed, best.rings.type, between,
          best.rings.order,   best.rings.nics};
}

/// Beside rings of this speed.
Graph tree_graph(const OfSeveral& of, double between, Chains chains) {
  return {of.gpus.size() == 1 ? GraphPattern::tree : GraphPattern::balanced_tree,
          chains.rings.count,
          bandwidth(chains.inside),
          bandwidth(between),
          chains.rings.type,
          of.near.type,
          std::move(chains.rings.order),
          std::move(chains.rings.nics)};
}

std::optional<Found> search_across(const System& system, const std::vector<int>& gpus, std::optional<int> exactly) {
  OfSeveral of{system, gpus, nearest_nics(system, gpus), speeds(system.compute_capability, true),
               gpus.size() > 1 && system.has_nvlink()};
  if (of.near.gpus.empty()) return std::nullopt;
  std::optional<Best> best = rings_across(of, exactly);
  // Straight NVLinks may have no way past all GPUs, or none that goes from NIC to NIC.
  if (!best && of.straight_nvlinks()) {
    of.nvlink = false;
    best = rings_across(of, exactly);
  }
  if (!best && of.type_in_order() == PathType::dis) return std::nullopt;
  if (!best && !exactly) best = one_channel(of);
  if (!best) return std::nullopt;
  Found out;
  out.nvlink = of.nvlink;
  put_nics(of, *best, out);
  Chains chains = begin_chains(of, *best, out.held_by_nics);
  // Over straight NVLinks trees are raised beside rings as they are before these are doubled, else beside doubled ones.
  if (of.straight_nvlinks()) raise_over_nvlinks(of, *best, chains);
  if (!exactly && double_channels(system, *best)) {
    twice(chains.rings);
    chains.inside /= 2;
  }
  double between = best->speed;
  if (!of.straight_nvlinks() && (of.nvlink || gpus.size() == 1)) {
    between = listed_speed(of, *best);
    raise_behind_switch(of, between, chains);
  }
  out.trees_held_by_nics = chains.held_by_nics;
  out.ring = ring_graph(of, *best);
  out.tree = tree_graph(of, between, std::move(chains));
  out.nvls = search_nvls(system, gpus, of.near);
  out.nvls_link = nvls_link(system, gpus, of.list);
  return out;
}

}  // namespace

std::optional<Found> search(const System& system, const std::vector<int>& gpus, int nodes) {
  if (nodes > 1) return search_across(system, gpus, {});
  Found found = search_inside(system, gpus, {});
  found.nic_rate = system.nic_speed;
  if (found.ring.channels == 0) return std::nullopt;
  return found;
}

std::optional<Graph> trees(const System& system, const std::vector<int>& gpus, int nodes, int channels) {
  const auto found = nodes > 1 ? search_across(system, gpus, channels) : search_inside(system, gpus, channels);
  if (!found || found->tree.channels == 0) return std::nullopt;
  return found->tree;
}

}  // namespace collcast::nccl
