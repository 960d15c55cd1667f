#include "nccl/search.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "nccl/nearest_nics.hpp"
#include "nccl/paths_to_nics.hpp"
#include "nccl/search_speeds.hpp"
#include "nccl/terms.hpp"

namespace collcast::nccl {

namespace {

constexpr int most_heads = 32;  ///< of NVLS

/// One closed round over straight NVLinks that have `speed` left: wider links first, then those with most left.
bool close_round(const System& system, const std::vector<int>& gpus, std::map<std::pair<int, int>, double>& left,
                 double speed, std::vector<int>& path, int& budget) {
  if (--budget < 0) return false;
  const auto room = [&](int a, int b) { return left[{a, b}]; };
  if (path.size() == gpus.size()) return room(path.back(), path.front()) >= speed - slack;
  std::vector<int> next;
  for (const int gpu : gpus)
    if (std::find(path.begin(), path.end(), gpu) == path.end() && room(path.back(), gpu) >= speed - slack)
      next.push_back(gpu);
  const int at = path.back();
  std::stable_sort(next.begin(), next.end(), [&](int a, int b) {
    const auto& wide = system.nvlinks[static_cast<std::size_t>(at)];
    const double x = wide[static_cast<std::size_t>(a)], y = wide[static_cast<std::size_t>(b)];
    return x > y || (x == y && room(at, a) > room(at, b));
  });
  for (const int gpu : next) {
    path.push_back(gpu);
    if (close_round(system, gpus, left, speed, path, budget)) return true;
    path.pop_back();
  }
  return false;
}

Rings rounds_over_nvlinks(const System& system, const std::vector<int>& gpus, double speed) {
  std::map<std::pair<int, int>, double> left;
  for (const int a : gpus)
    for (const int b : gpus) left[{a, b}] = system.nvlinks[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
  Rings out;
  while (out.count < most_searched_channels) {
    std::vector<int> path{gpus.front()};
    int budget = 20'000;
    if (!close_round(system, gpus, left, speed, path, budget)) break;
    for (std::size_t i = 0; i < path.size(); ++i) left[{path[i], path[(i + 1) % path.size()]}] -= speed;
    out.order.push_back(std::move(path));
    ++out.count;
  }
  return out;
}

std::optional<Way> way_between(const System& system, int a, int b) {
  return way(system, system.first_gpu + a, system.first_gpu + b);
}

/// GPUs in their order over PCIe.
Rings rings_over_pcie(const System& system, const std::vector<int>& gpus, double speed) {
  std::map<std::pair<int, int>, double> left;
  for (std::size_t device = 0; device < system.edges.size(); ++device)
    for (const System::Edge& edge : system.edges[device]) left[{static_cast<int>(device), edge.to}] = edge.speed;
  Rings out;
  for (; out.count < most_searched_channels; ++out.count) {
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      const auto hop = way_between(system, gpus[i], gpus[(i + 1) % gpus.size()]);
      if (!hop) return {};
      for (std::size_t h = 0; h < hop->hops.size(); ++h) {
        const double booked = hop->kinds[h] == LinkKind::pcie ? speed * pcie_booked(system, hop->type) : speed;
        double& room = left[hop->hops[h]];
        if (room < booked - slack) return out;
        room -= booked;
      }
    }
    out.order.push_back(gpus);
  }
  return out;
}

Rings rings(const System& system, const std::vector<int>& gpus, double speed) {
  if (gpus.size() == 1) return {most_searched_channels, {static_cast<std::size_t>(most_searched_channels), gpus}};
  if (system.nvswitch) {
    const int count = std::min(most_searched_channels, static_cast<int>((system.nvlink_speed + slack) / speed));
    return {count, {static_cast<std::size_t>(count), gpus}};
  }
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

/// The largest speed of a list that does not pass `most`; 0: none.
double largest(std::span<const double> list, double most) {
  for (const double speed : list)
    if (speed <= most + slack) return speed;
  return 0;
}

PathType type_inside(const System& system, const std::vector<int>& gpus) {
  if (gpus.size() == 1) return PathType::loc;
  if (system.nvswitch || (system.has_nvlink() && rounds_over_nvlinks(system, gpus, 3).count > 0)) return PathType::nvl;
  PathType worst = PathType::loc;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const auto hop = way_between(system, gpus[i], gpus[(i + 1) % gpus.size()]);
    worst = std::max(worst, hop ? hop->type : PathType::dis);
  }
  return worst;
}

/// Every head's GPU takes in from and hands out to all, and twice for itself.
double nvls_speed(const System& system, std::span<const double> list, int heads) {
  return largest(list, system.nvlink_speed / (heads + 1));
}

/// Of heads on one node, what they would have between nodes: its last pass raises that step by step until it is no less
/// than twice what they have inside, and here nothing holds it. NCCL's choice does not ask for it.
double nvls_raised(std::span<const double> list, double inside) {
  auto at = std::ranges::find(list, inside);
  while (at != list.begin() && *at < 2 * inside - slack) --at;
  return *at;
}

/// NCCL sets NVLS up for three GPUs of a node and more [src/transport/nvls.cc, ncclNvlsInit].
bool has_nvls(const System& system, const std::vector<int>& gpus) {
  return system.nvswitch && system.compute_capability >= 90 && gpus.size() > 2;
}

Graph nvls_graph(const std::vector<int>& gpus, double inside, double between, PathType network) {
  const int heads = std::min(most_heads, static_cast<int>(gpus.size()));
  Graph out{GraphPattern::nvls, heads, bandwidth(inside), bandwidth(between), PathType::nvl, network, {}, {}};
  for (int head = 0; head < heads; ++head) out.order.push_back({gpus[static_cast<std::size_t>(head)]});
  return out;
}

/// Each head's own: the first of its nearest, over which heads that share several are spread.
std::vector<ChannelNics> nics_of_heads(const System& system, const Nearest& near, const Graph& nvls) {
  std::vector<ChannelNics> out;
  std::map<int, int> taken;
  for (const std::vector<int>& head : nvls.order) {
    const auto rank = [&](int nic) { return std::pair(way_to_nic(system, near, head.front(), nic), taken[nic]); };
    int best = near.gpus.begin()->first;
    for (const auto& [nic, ways] : near.gpus)
      if (rank(nic) < rank(best)) best = nic;
    ++taken[best];
    const PathType way = way_to_nic(system, near, head.front(), best);
    out.push_back({best, best, way, way});
  }
  return out;
}

Found search_inside(const System& system, const std::vector<int>& gpus, std::optional<int> exactly) {
  const auto list = speeds(system.compute_capability, false);
  const PathType type = type_inside(system, gpus);
  Best best = best_of(list, [&](double speed) { return cut(rings(system, gpus, speed), exactly); });
  if (!exactly) double_channels(system, best);
  Found out;
  out.nvlink = type == PathType::nvl;
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
  if (has_nvls(system, gpus)) {
    const double speed = nvls_speed(system, list, std::min(most_heads, static_cast<int>(gpus.size())));
    if (speed > 0) out.nvls = nvls_graph(gpus, speed, nvls_raised(list, speed), PathType::pix);
  }
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
  PathType type = PathType::dis;  ///< between the GPUs
  std::span<const double> list;   ///< of speeds

  bool nvlink() const { return type == PathType::nvl; }
  bool straight_nvlinks() const { return gpus.size() > 1 && nvlink() && !system.nvswitch; }
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
    if (of.gpus.size() > 1 && of.nvlink()) {
      while (out.count > 0 && !fits_switch(of.system, out.count, of.gpus.size(), speed)) --out.count;
    } else if (of.gpus.size() > 1) {
      out.count = std::min(out.count, rings(of.system, of.gpus, speed).count);
    }
  }
  out.keep(of.spread(out.count));
  return out;
}

/// One channel of the slowest speed, where none fits: by the first NIC.
Best one_channel(const OfSeveral& of) {
  const int nic = of.near.gpus.begin()->first;
  const auto way = [&](int gpu) { return way_to_nic(of.system, of.near, gpu, nic); };
  return {of.list.back(), {1, {of.gpus}, {{nic, nic, way(of.gpus.front()), way(of.gpus.back())}}}};
}

/// Nothing where exactly so many are asked for, and do not fit.
std::optional<Best> rings_across(const OfSeveral& of, std::optional<int> exactly) {
  Best best = best_of(of.list, [&](double speed) {
    if (speed > of.system.nic_speed + slack) return Rings{};
    return cut(channels_of_nics(of, speed), exactly);
  });
  // Where no ring ends beside a NIC, as of two GPUs of which one alone has a NIC near, they go back from farther.
  if (best.rings.count == 0 && of.straight_nvlinks())
    best = best_of(of.list, [&](double speed) {
      if (speed > of.system.nic_speed + slack) return Rings{};
      return cut(rings_back_to_nics(of.system, of.gpus, of.near, speed), exactly);
    });
  if (best.rings.count > 0) return best;
  if (exactly) return std::nullopt;
  return one_channel(of);
}

/// Whether channels through NICs and their ways to GPUs are no more where links inside nodes have all room.
bool nics_alone_have(const OfSeveral& of, const Best& best) {
  const Best alone = best_of(of.list, [&](double speed) {
    if (speed > of.system.nic_speed + slack) return Rings{};
    const int count = static_cast<int>(entries(of.system, of.near, speed).size());
    return Rings{of.spread(count), {}, {}};
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
void raise_behind_switch(const OfSeveral& of, const Best& best, Chains& chains) {
  const auto fits = [&](double speed) {
    return of.gpus.size() == 1 || fits_switch(of.system, best.rings.count, of.gpus.size(), speed);
  };
  auto next = std::ranges::find(of.list, best.speed);
  while (next != of.list.end() && next != of.list.begin() && chains.inside < 2 * best.speed - slack) {
    --next;
    chains.held_by_nics = fits(*next);
    if (!chains.held_by_nics) return;
    chains.inside = *next;
  }
}

Graph ring_graph(const OfSeveral& of, const Best& best) {
  PathType between = of.near.type;
  if (of.system.cross_nic == CrossNic::never || of.straight_nvlinks())
    for (const ChannelNics& one : best.rings.nics) between = std::max(between, one.way_out);
  const Bandwidth speed = bandwidth(best.speed);
  return {GraphPattern::ring, best.rings.count, speed, speed, of.type, between, best.rings.order, best.rings.nics};
}

/// Beside rings of this speed.
Graph tree_graph(const OfSeveral& of, double between, Chains chains) {
  return {of.gpus.size() == 1 ? GraphPattern::tree : GraphPattern::balanced_tree,
          chains.rings.count,
          bandwidth(chains.inside),
          bandwidth(between),
          of.type,
          of.near.type,
          std::move(chains.rings.order),
          std::move(chains.rings.nics)};
}

std::optional<Graph> nvls_across(const OfSeveral& of, double nic_rate) {
  if (!has_nvls(of.system, of.gpus)) return std::nullopt;
  const int heads = std::min(most_heads, static_cast<int>(of.gpus.size()));
  const double inside = nvls_speed(of.system, of.list, heads);
  // A head has one NIC, however many are beside its GPU; where there are fewer, heads share them.
  const double of_nics = nic_rate * std::min(of.nics(), heads) / heads;
  const double between = largest(of.list, std::min(of_nics, 2 * inside));
  if (inside <= 0 || between <= 0) return std::nullopt;
  Graph out = nvls_graph(of.gpus, inside, between, of.near.type);
  out.nics = nics_of_heads(of.system, of.near, out);
  return out;
}

std::optional<Found> search_across(const System& system, const std::vector<int>& gpus, std::optional<int> exactly) {
  const OfSeveral of{system, gpus, nearest_nics(system, gpus), type_inside(system, gpus),
                     speeds(system.compute_capability, true)};
  if (of.near.gpus.empty() || of.type == PathType::dis) return std::nullopt;
  std::optional<Best> best = rings_across(of, exactly);
  if (!best) return std::nullopt;
  Found out;
  out.nvlink = of.nvlink();
  put_nics(of, *best, out);
  Chains chains = begin_chains(of, *best, out.held_by_nics);
  // Over straight NVLinks trees are raised beside rings as they are before these are doubled, else beside doubled ones.
  if (of.straight_nvlinks()) raise_over_nvlinks(of, *best, chains);
  if (!exactly && double_channels(system, *best)) {
    twice(chains.rings);
    chains.inside /= 2;
  }
  if (!of.straight_nvlinks() && (of.nvlink() || gpus.size() == 1)) raise_behind_switch(of, *best, chains);
  out.trees_held_by_nics = chains.held_by_nics;
  out.ring = ring_graph(of, *best);
  out.tree = tree_graph(of, best->speed, std::move(chains));
  out.nvls = nvls_across(of, out.nic_rate);
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
