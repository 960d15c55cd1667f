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

/// Doubles the channels at half the speed where NCCL does.
double double_channels(const System& system, Best& best) {
  const bool stays = system.compute_capability > 80 && best.speed < 50 && best.rings.count > 4;
  if (best.speed < 25 || stays) return 1;
  twice(best.rings.order);
  twice(best.rings.nics);
  best.rings.count *= 2;
  best.speed /= 2;
  return 2;
}

Bandwidth of(double speed) { return Bandwidth(speed * 1e9); }

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
  Graph out{GraphPattern::nvls, heads, of(inside), of(between), PathType::nvl, network, {}, {}};
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
  out.ring = {
      GraphPattern::ring, best.rings.count, of(best.speed), of(best.speed), type, PathType::pix, best.rings.order, {}};
  out.tree = out.ring;
  out.tree.pattern = GraphPattern::balanced_tree;
  // As many trees as rings: behind a switch at a speed of the list, over straight links at the rings'.
  if (system.nvswitch && best.rings.count > 0) {
    const double speed = largest(list, system.nvlink_speed / best.rings.count);
    out.tree.inside = out.tree.between = of(speed);
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

/// Channels through the nearest NICs.
Rings channels_of_nics(const System& system, const std::vector<int>& gpus, const Nearest& near, bool nvlink,
                       double speed) {
  Rings out;
  if (gpus.size() > 1 && nvlink && !system.nvswitch) {
    out = rings_over_nvlinks(system, gpus, near, speed);
  } else {
    out = rings_in_order(system, gpus, near, speed);
    if (gpus.size() > 1 && nvlink) {
      while (out.count > 0 && !fits_switch(system, out.count, gpus.size(), speed)) --out.count;
    } else if (gpus.size() > 1) {
      out.count = std::min(out.count, rings(system, gpus, speed).count);
    }
  }
  const int nics = static_cast<int>(near.gpus.size());
  out.keep(out.count > nics ? out.count - out.count % nics : out.count);
  return out;
}

/// Whether channels through NICs and their ways to GPUs are no more where links inside nodes have all room.
bool nics_alone_have(const System& system, const Nearest& near, std::span<const double> list, const Best& best) {
  const int nics = static_cast<int>(near.gpus.size());
  const Best alone = best_of(list, [&](double speed) {
    if (speed > system.nic_speed + slack) return Rings{};
    const int count = static_cast<int>(entries(system, near, speed).size());
    return Rings{count > nics ? count - count % nics : count, {}, {}};
  });
  return alone.product() <= best.product() + slack;
}

std::optional<Found> search_across(const System& system, const std::vector<int>& gpus, std::optional<int> exactly) {
  const auto list = speeds(system.compute_capability, true);
  const PathType type = type_inside(system, gpus);
  Found out;
  out.nvlink = type == PathType::nvl;
  const Nearest near = nearest_nics(system, gpus);
  if (near.gpus.empty() || type == PathType::dis) return std::nullopt;
  Best best = best_of(list, [&](double speed) {
    if (speed > system.nic_speed + slack) return Rings{};
    return cut(channels_of_nics(system, gpus, near, out.nvlink, speed), exactly);
  });
  if (best.rings.count == 0 && exactly) return std::nullopt;
  if (best.rings.count == 0) {
    const int nic = near.gpus.begin()->first;
    best = {list.back(),
            {1,
             {gpus},
             {{nic, nic, way_to_nic(system, near, gpus.front(), nic), way_to_nic(system, near, gpus.back(), nic)}}}};
  }
  out.held_by_nics = nics_alone_have(system, near, list, best);
  out.nics = std::min(static_cast<int>(near.gpus.size()), best.rings.count);
  out.nic_rate = rate_of_nics(system, near, out.nics);
  out.of_pairs = pair_nics(system, near, gpus);
  std::map<int, int> beside;
  for (const auto& [nic, ways] : near.gpus)
    for (const Nearest::Gpu& one : ways) out.nics_beside = std::max(out.nics_beside, ++beside[one.gpu]);
  // Trees: as many channels; inside they are raised step by step while the links allow it, until no slower than two
  // NICs. Over straight NVLinks before channels are doubled, as their ways are found with that.
  double inside = best.speed;
  out.trees_held_by_nics = out.held_by_nics;
  const bool straight = gpus.size() > 1 && out.nvlink && !system.nvswitch;
  Rings chains = best.rings;
  // A tree's first GPU sends, too.
  for (ChannelNics& one : chains.nics) one = {one.in, one.in, one.way_in, one.way_in};
  // Behind a switch rings go down and up, trees' chains up.
  if (system.nvswitch)
    for (std::vector<int>& order : chains.order) order = upwards(gpus, order.front());
  if (straight) {
    std::vector<Entry> all = entries(system, near, best.speed);
    if (static_cast<int>(all.size()) > best.rings.count) all.resize(static_cast<std::size_t>(best.rings.count));
    for (const double speed : list) {
      if (speed > 2 * best.speed + slack || speed <= best.speed + slack) continue;
      out.trees_held_by_nics = false;
      Rings found = chains_over_nvlinks(system, gpus, near, all, speed, best.speed);
      if (found.count < best.rings.count) continue;
      out.trees_held_by_nics = speed >= largest(list, 2 * best.speed);
      inside = speed;
      chains = std::move(found);
      break;
    }
  }
  const double times = exactly ? 1 : double_channels(system, best);
  inside /= times;
  if (!straight && (out.nvlink || gpus.size() == 1)) {
    const auto fits = [&](double speed) {
      return gpus.size() == 1 || fits_switch(system, best.rings.count, gpus.size(), speed);
    };
    const auto from = std::find(list.begin(), list.end(), best.speed);
    for (auto next = from; next != list.end() && next != list.begin() && inside < 2 * best.speed - slack;) {
      --next;
      out.trees_held_by_nics = fits(*next);
      if (!out.trees_held_by_nics) break;
      inside = *next;
    }
  }
  if (times > 1) {
    twice(chains.order);
    twice(chains.nics);
  }
  PathType between = near.type;
  if (system.cross_nic == CrossNic::never)
    for (const ChannelNics& one : best.rings.nics) between = std::max(between, one.way_out);
  out.ring = {GraphPattern::ring, best.rings.count, of(best.speed), of(best.speed), type, between,
              best.rings.order,   best.rings.nics};
  out.tree = out.ring;
  out.tree.type_between = near.type;
  out.tree.pattern = gpus.size() == 1 ? GraphPattern::tree : GraphPattern::balanced_tree;
  out.tree.inside = of(inside);
  out.tree.order = std::move(chains.order);
  out.tree.nics = std::move(chains.nics);
  if (has_nvls(system, gpus)) {
    const int heads = std::min(most_heads, static_cast<int>(gpus.size()));
    const double within = nvls_speed(system, list, heads);
    // A head has one NIC, however many are beside its GPU; where there are fewer, heads share them.
    const double of_nics = out.nic_rate * std::min(static_cast<double>(near.gpus.size()), 1.0 * heads) / heads;
    const double outside = largest(list, std::min(of_nics, 2 * within));
    if (within > 0 && outside > 0) {
      out.nvls = nvls_graph(gpus, within, outside, near.type);
      out.nvls->nics = nics_of_heads(system, near, *out.nvls);
    }
  }
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
