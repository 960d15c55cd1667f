#include "nccl/search.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "nccl/nearest_nics.hpp"
#include "nccl/search_speeds.hpp"
#include "nccl/terms.hpp"

namespace collcast::nccl {

namespace {

constexpr int most_channels = 32;  ///< of a search
constexpr int most_heads = 32;     ///< of NVLS

/// Channels of one speed, and how they run.
struct Rings {
  int count = 0;
  std::vector<std::vector<int>> order;
  std::vector<ChannelNics> nics = {};  ///< across nodes

  void keep(int channels) {
    count = channels;
    if (order.size() > static_cast<std::size_t>(channels)) order.resize(static_cast<std::size_t>(channels));
    if (nics.size() > static_cast<std::size_t>(channels)) nics.resize(static_cast<std::size_t>(channels));
  }
};

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

Rings rings_over_nvlinks(const System& system, const std::vector<int>& gpus, double speed) {
  std::map<std::pair<int, int>, double> left;
  for (const int a : gpus)
    for (const int b : gpus) left[{a, b}] = system.nvlinks[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
  Rings out;
  while (out.count < most_channels) {
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
  for (; out.count < most_channels; ++out.count) {
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
  if (gpus.size() == 1) return {most_channels, {static_cast<std::size_t>(most_channels), gpus}};
  if (system.nvswitch) {
    const int count = std::min(most_channels, static_cast<int>((system.nvlink_speed + slack) / speed));
    return {count, {static_cast<std::size_t>(count), gpus}};
  }
  if (system.has_nvlink()) {
    Rings out = rings_over_nvlinks(system, gpus, speed);
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
  if (system.nvswitch || (system.has_nvlink() && rings_over_nvlinks(system, gpus, 3).count > 0)) return PathType::nvl;
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

bool has_nvls(const System& system, const std::vector<int>& gpus) {
  return system.nvswitch && system.compute_capability >= 90 && gpus.size() > 1;
}

Graph nvls_graph(const std::vector<int>& gpus, double inside, double between, PathType network) {
  const int heads = std::min(most_heads, static_cast<int>(gpus.size()));
  Graph out{5, heads, of(inside), of(between), PathType::nvl, network, {}, {}};
  for (int head = 0; head < heads; ++head) out.order.push_back({gpus[static_cast<std::size_t>(head)]});
  return out;
}

Found search_inside(const System& system, const std::vector<int>& gpus, std::optional<int> exactly) {
  const auto list = speeds(system.compute_capability, false);
  const PathType type = type_inside(system, gpus);
  Best best = best_of(list, [&](double speed) { return cut(rings(system, gpus, speed), exactly); });
  if (!exactly) double_channels(system, best);
  Found out;
  out.nvlink = type == PathType::nvl;
  out.ring = {4, best.rings.count, of(best.speed), of(best.speed), type, PathType::pix, best.rings.order, {}};
  out.tree = out.ring;
  out.tree.pattern = 1;
  // As many trees as rings: behind a switch at a speed of the list, over straight links at the rings'.
  if (system.nvswitch && best.rings.count > 0) {
    const double speed = largest(list, system.nvlink_speed / best.rings.count);
    out.tree.inside = out.tree.between = of(speed);
  }
  if (has_nvls(system, gpus)) {
    const double speed = nvls_speed(system, list, std::min(most_heads, static_cast<int>(gpus.size())));
    if (speed > 0) out.nvls = nvls_graph(gpus, speed, speed, PathType::pix);
  }
  return out;
}

/// How many channels of a speed a GPU's links carry when every GPU but a channel's last sends it on.
bool fits_switch(const System& system, int channels, std::size_t gpus, double speed) {
  const int at_one_gpu = channels - channels / static_cast<int>(gpus);
  return at_one_gpu * speed <= system.nvlink_speed + slack;
}

/// Which NIC and GPU a channel comes in by.
struct Entry {
  int nic = 0, gpu = 0;
};

/// One after the other on each of the nearest NICs, and again while they have room: booked on the NIC and on the way to
/// its GPU with most left [search.cc: ncclTopoSearchRecNet begins at the channel's number].
std::vector<Entry> entries(const System& system, const Nearest& near, double speed) {
  Room room = room_of(system, near);
  std::vector<Entry> out;
  for (std::size_t before = 1; out.size() != before;) {
    before = out.size();
    for (const auto& [nic, ways] : near.gpus) {
      if (room.nics[nic] < speed - slack || static_cast<int>(out.size()) == most_channels) continue;
      const auto taken = std::max_element(ways.begin(), ways.end(), [&](const Nearest::Gpu& a, const Nearest::Gpu& b) {
        return room.ports[a.gpu] < room.ports[b.gpu] - slack;
      });
      if (room.ports[taken->gpu] < speed - slack) continue;
      if (taken->by_host) {
        double& link = room.links[static_cast<std::size_t>(*taken->by_host)];
        if (link < speed - slack) continue;
        link -= speed;
      }
      room.nics[nic] -= speed;
      room.ports[taken->gpu] -= speed;
      out.push_back({nic, taken->gpu});
    }
  }
  return out;
}

/// Paths over straight NVLinks, one per channel, through all GPUs; every channel books its speed on each link that it
/// takes. Depth first over all channels together: a channel whose links an earlier one took makes that one try others.
class Paths {
 public:
  /// Where a path ends. Trees end at any GPU. A ring goes on to a NIC with room beside its last GPU: to the one that it
  /// came in by, where that has another GPU, or, across, to any.
  enum class End { anywhere, home, across };
  Paths(const System& system, const std::vector<int>& gpus, const Nearest& near, End end)
      : gpus_(gpus),
        near_(near),
        end_(end),
        links_(system.nvlinks),
        left_(system.nvlinks),
        room_(room_of(system, near)) {}

  /// As many as were found before the steps were spent; `inside` is booked on NVLinks, `between` on NICs.
  Rings find(std::vector<Entry> entries, double inside, double between) {
    entries_ = std::move(entries);
    inside_ = inside;
    between_ = between;
    next_channel();
    return best_;
  }

 private:
  bool next_channel() {
    if (done_.count > best_.count) best_ = done_;
    if (next() == entries_.size()) return true;
    const Entry& entry = entries_[next()];
    std::vector<int> starts{entry.gpu};
    for (const Nearest::Gpu& one : near_.gpus.at(entry.nic))
      if (one.gpu != entry.gpu) starts.push_back(one.gpu);
    for (const int start : starts) {
      std::vector<int> path{start};
      if (go_on(path)) return true;
    }
    return false;
  }

  std::size_t next() const { return static_cast<std::size_t>(done_.count); }

  double& left(int a, int b) { return left_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]; }

  /// Wider links first, then those with most left.
  std::vector<int> neighbours(const std::vector<int>& path) {
    std::vector<int> out;
    const int at = path.back();
    for (const int gpu : gpus_)
      if (std::find(path.begin(), path.end(), gpu) == path.end() && left(at, gpu) >= inside_ - slack)
        out.push_back(gpu);
    const std::vector<double>& wide = links_[static_cast<std::size_t>(at)];
    std::stable_sort(out.begin(), out.end(), [&](int a, int b) {
      const double x = wide[static_cast<std::size_t>(a)], y = wide[static_cast<std::size_t>(b)];
      return x > y || (x == y && left(at, a) > left(at, b));
    });
    return out;
  }

  bool go_on(std::vector<int>& path) {
    if (--steps_ < 0) return false;
    if (path.size() == gpus_.size()) return go_out(path);
    const int at = path.back();
    for (const int gpu : neighbours(path)) {
      left(at, gpu) -= inside_;
      path.push_back(gpu);
      const bool all = go_on(path);
      path.pop_back();
      left(at, gpu) += inside_;
      if (all) return true;
    }
    return false;
  }

  bool go_out(const std::vector<int>& path) {
    const int came_by = entries_[next()].nic;
    // A tree's first GPU sends, too.
    if (end_ == End::anywhere) return keep(path, {came_by, came_by, near_.type, near_.type});
    const bool stays = end_ == End::home && near_.gpus.at(came_by).size() > 1;
    for (auto& [nic, room] : room_.nics) {
      const std::vector<Nearest::Gpu>& beside = near_.gpus.at(nic);
      if ((stays && nic != came_by) || room < between_ - slack) continue;
      if (std::none_of(beside.begin(), beside.end(), [&](const auto& one) { return one.gpu == path.back(); })) continue;
      double& port = room_.ports.at(path.back());
      if (port < between_ - slack) continue;
      room -= between_;
      port -= between_;
      const bool all = keep(path, {came_by, nic, near_.type, near_.type});
      room += between_;
      port += between_;
      if (all) return true;
    }
    return false;
  }

  bool keep(const std::vector<int>& path, const ChannelNics& nics) {
    done_.order.push_back(path);
    done_.nics.push_back(nics);
    ++done_.count;
    const bool all = next_channel();
    done_.keep(done_.count - 1);
    return all;
  }

  const std::vector<int>& gpus_;
  const Nearest& near_;
  End end_;
  const std::vector<std::vector<double>>& links_;
  std::vector<std::vector<double>> left_;
  Room room_;  ///< outwards: left on each NIC, and on the way to it from a GPU
  std::vector<Entry> entries_;
  double inside_ = 0, between_ = 0;
  int steps_ = 20'000;
  Rings done_, best_;
};

/// The most channels that straight NVLinks have room for; those that end where they began first.
Rings channels_over_nvlinks(const System& system, const std::vector<int>& gpus, const Nearest& near, double speed) {
  const std::vector<Entry> all = entries(system, near, speed);
  Rings found;
  for (const Paths::End end : {Paths::End::home, Paths::End::across}) {
    if (found.order.size() == all.size()) break;
    Rings other = Paths(system, gpus, near, end).find(all, speed, speed);
    if (other.count > found.count) found = std::move(other);
  }
  return found;
}

/// By which NIC a channel goes out whose last GPU this is: the one that it came in by where that has several GPUs
/// beside it, as NCCL's do that find such an order; else one with room left beside the last GPU (crossNic 2), if there
/// is any.
ChannelNics going_out(const System& system, const Nearest& near, Room& left, const Entry& entry, int last,
                      double speed) {
  std::optional<int> found;
  if (near.gpus.at(entry.nic).size() > 1) found = entry.nic;
  for (const auto& [nic, ways] : near.gpus) {
    const bool beside = std::any_of(ways.begin(), ways.end(), [&](const Nearest::Gpu& one) { return one.gpu == last; });
    if (!found && beside && left.nics.at(nic) >= speed - slack) found = nic;
  }
  const int nic = found.value_or(entry.nic);
  left.nics.at(nic) -= speed;
  return {entry.nic, nic, near.type, way_to_nic(system, near, last, nic)};
}

/// The GPUs in their order from the one that each channel comes in by.
Rings channels_in_order(const System& system, const std::vector<int>& gpus, const Nearest& near, double speed) {
  Rings out;
  Room left = room_of(system, near);
  for (const Entry& entry : entries(system, near, speed)) {
    std::vector<int> order;
    const auto at = std::find(gpus.begin(), gpus.end(), entry.gpu);
    order.insert(order.end(), at, gpus.end());
    order.insert(order.end(), gpus.begin(), at);
    out.nics.push_back(going_out(system, near, left, entry, order.back(), speed));
    out.order.push_back(std::move(order));
    ++out.count;
  }
  return out;
}

/// Channels through the nearest NICs.
Rings channels_of_nics(const System& system, const std::vector<int>& gpus, const Nearest& near, bool nvlink,
                       double speed) {
  Rings out;
  if (gpus.size() > 1 && nvlink && !system.nvswitch) {
    out = channels_over_nvlinks(system, gpus, near, speed);
  } else {
    out = channels_in_order(system, gpus, near, speed);
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
  out.p2p_nics = static_cast<int>(near.gpus.size());
  out.p2p_nic_rate = rate_of_nics(system, near, out.p2p_nics);
  // Trees: as many channels; inside they are raised step by step while the links allow it, until no slower than two
  // NICs. Over straight NVLinks before channels are doubled, as their ways are found with that.
  double inside = best.speed;
  out.trees_held_by_nics = out.held_by_nics;
  const bool straight = gpus.size() > 1 && out.nvlink && !system.nvswitch;
  Rings chains = best.rings;
  // A tree's first GPU sends, too.
  for (ChannelNics& one : chains.nics) one = {one.in, one.in, one.way_in, one.way_in};
  if (straight) {
    std::vector<Entry> all = entries(system, near, best.speed);
    if (static_cast<int>(all.size()) > best.rings.count) all.resize(static_cast<std::size_t>(best.rings.count));
    for (const double speed : list) {
      if (speed > 2 * best.speed + slack || speed <= best.speed + slack) continue;
      out.trees_held_by_nics = false;
      Rings found = Paths(system, gpus, near, Paths::End::anywhere).find(all, speed, best.speed);
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
  out.ring = {4, best.rings.count, of(best.speed), of(best.speed), type, near.type, best.rings.order, best.rings.nics};
  out.tree = out.ring;
  out.tree.pattern = gpus.size() == 1 ? 3 : 1;
  out.tree.inside = of(inside);
  out.tree.order = std::move(chains.order);
  out.tree.nics = std::move(chains.nics);
  if (has_nvls(system, gpus)) {
    const int heads = std::min(most_heads, static_cast<int>(gpus.size()));
    const double within = nvls_speed(system, list, heads);
    const double of_nics = out.nic_rate * static_cast<double>(near.gpus.size()) / heads;
    const double between = largest(list, std::min(of_nics, 2 * within));
    if (within > 0 && between > 0) out.nvls = nvls_graph(gpus, within, between, near.type);
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
