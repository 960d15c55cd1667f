#include "nccl/paths_to_nics.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "nccl/links_left.hpp"
#include "nccl/nvlink_ways.hpp"
#include "nccl/search_speeds.hpp"

namespace collcast::nccl {

namespace {

/// All by that GPU, if one is given.
std::vector<Entry> entries_by(std::optional<int> gpu, const System& system, const Nearest& near, double speed) {
  Room room = room_of(system, near);
  std::vector<Entry> out;
  for (std::size_t before = 1; out.size() != before;) {
    before = out.size();
    for (const auto& [nic, ways] : near.gpus) {
      if (room.nics[nic] < speed - slack || static_cast<int>(out.size()) == most_searched_channels) continue;
      const auto taken =
          gpu ? std::ranges::find(ways, *gpu, &Nearest::Gpu::gpu)
              : std::max_element(ways.begin(), ways.end(), [&](const Nearest::Gpu& a, const Nearest::Gpu& b) {
                  return room.ports[a.gpu] < room.ports[b.gpu] - slack;
                });
      if (taken == ways.end()) continue;
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

/// By one GPU where as many channels have room, as all pass the GPUs in one order then, which NCCL tries first at each
/// speed and keeps where unlike ones are no more [search.cc, ncclTopoCompute: sameChannels].
std::vector<Entry> entries_in_order(const System& system, const Nearest& near, double speed) {
  std::vector<Entry> all = entries(system, near, speed);
  if (all.empty()) return all;
  std::vector<Entry> same = entries_by(all.front().gpu, system, near, speed);
  return same.size() < all.size() ? all : same;
}

}  // namespace

std::vector<Entry> entries(const System& system, const Nearest& near, double speed) {
  return entries_by(std::nullopt, system, near, speed);
}

namespace {

/// What links of PCIe and between sockets have left for channels that go back to their NIC by the host.
class HostWays {
 public:
  explicit HostWays(const System& system) : system_(system), links_(system) {}
  bool book(int gpu, int nic, double speed) {
    const auto hops = way(system_, system_.first_gpu + gpu, system_.first_nic + nic);
    return hops && links_.book(*hops, speed);
  }
  void give_back(int gpu, int nic, double speed) {
    links_.give_back(*way(system_, system_.first_gpu + gpu, system_.first_nic + nic), speed);
  }

 private:
  const System& system_;
  LinksLeft links_;
};

/// Neither beside the NIC nor joined by NVLink to a GPU that is and relays.
bool is_by_host(const Nearest& near, PathType way) { return way > near.type && way != PathType::pxn; }

/// Paths over straight NVLinks, one per channel, through all GPUs; every channel books its speed on each link that it
/// takes. Depth first over all channels together: a channel whose links an earlier one took makes that one try others.
class Paths {
 public:
  /// Where a path ends. Trees end at any GPU. A ring goes on to a NIC with room beside its last GPU: to the one that it
  /// came in by, where that has another GPU, or, across, to any. Where it must not cross, or has no room to, a NIC with
  /// one GPU beside it is reached from any, over NVLink to that one (PXN) if GPUs relay, or by the host.
  enum class End { anywhere, home, across, same, host };
  Paths(const System& system, const std::vector<int>& gpus, const Nearest& near, End end, PathType worst)
      : system_(system),
        gpus_(gpus),
        near_(near),
        end_(end),
        worst_(worst),
        links_(system, gpus),
        room_(room_of(system, near)),
        host_(system) {}

  /// As many as were found before the steps were spent; `inside` is booked on NVLinks, `between` on NICs.
  Rings find(std::vector<Entry> entries, double inside, double between) {
    entries_ = std::move(entries);
    inside_ = inside;
    between_ = between;
    next_channel();
    best_.type = best_.count > 0 ? worst_ : PathType::dis;
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

  std::vector<int> neighbours(const std::vector<int>& path) {
    std::vector<int> others = gpus_;
    std::erase_if(others, [&](int gpu) { return std::find(path.begin(), path.end(), gpu) != path.end(); });
    return links_.onward(path.back(), std::move(others), inside_, worst_);
  }

  bool go_on(std::vector<int>& path) {
    if (--steps_ < 0) return false;
    if (path.size() == gpus_.size()) return go_out(path);
    const int at = path.back();
    for (const int gpu : neighbours(path)) {
      links_.book(at, gpu, inside_);
      path.push_back(gpu);
      const bool all = go_on(path);
      path.pop_back();
      links_.book(at, gpu, -inside_);
      if (all) return true;
    }
    return false;
  }

  bool go_out(const std::vector<int>& path) {
    const int came_by = entries_[next()].nic;
    // A tree's first GPU sends, too.
    if (end_ == End::anywhere) return keep(path, {came_by, came_by, near_.type, near_.type});
    const bool several = near_.gpus.at(came_by).size() > 1;
    const bool goes_back = end_ == End::same || end_ == End::host;
    if (goes_back && !several) return go_back(path, came_by);
    const bool stays = (end_ == End::home && several) || goes_back;
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

  bool go_back(const std::vector<int>& path, int nic) {
    const PathType way = way_to_nic(system_, near_, path.back(), nic);
    const bool by_host = is_by_host(near_, way);
    // Before longer ways NCCL takes relays for all rings.
    if (by_host && end_ == End::same && system_.relays && near_.type < PathType::pxn) return false;
    const int beside = near_.gpus.at(nic).front().gpu, last = path.back();
    const bool relayed = way == PathType::pxn;
    double& room = room_.nics.at(nic);
    double& port = room_.ports.at(beside);
    if (room < between_ - slack || port < between_ - slack) return false;
    if (relayed && links_.room(last, beside, PathType::nvl) < between_ - slack) return false;
    if (by_host && !host_.book(last, nic, between_)) return false;
    const auto book = [&](double speed) {
      room -= speed;
      port -= speed;
      if (relayed) links_.book(last, beside, speed);
    };
    book(between_);
    const bool all = keep(path, {nic, nic, near_.type, way});
    book(-between_);
    if (by_host) host_.give_back(last, nic, between_);
    return all;
  }

  bool keep(const std::vector<int>& path, const ChannelNics& nics) {
    done_.order.push_back(path);
    done_.nics.push_back(nics);
    ++done_.count;
    const bool all = next_channel();
    done_.keep(done_.count - 1);
    return all;
  }

  const System& system_;
  const std::vector<int>& gpus_;
  const Nearest& near_;
  End end_;
  PathType worst_;
  NvlinkWays links_;
  Room room_;  ///< outwards: left on each NIC, and on the way to it from a GPU
  HostWays host_;
  std::vector<Entry> entries_;
  double inside_ = 0, between_ = 0;
  int steps_ = 20'000;  ///< left: NCCL's search has 2^14 [NCCL_SEARCH_TIMEOUT], and takes the best until then, too
  Rings done_, best_;
};

}  // namespace

Rings chains_over_nvlinks(const System& system, const std::vector<int>& gpus, const Nearest& near,
                          std::vector<Entry> entries, double inside, double between) {
  Rings found;
  for (const PathType worst : nvlink_types) {
    found = Paths(system, gpus, near, Paths::End::anywhere, worst).find(entries, inside, between);
    if (found.count > 0) break;
  }
  return found;
}

Rings rings_over_nvlinks(const System& system, const std::vector<int>& gpus, const Nearest& near, double speed) {
  using End = Paths::End;
  const std::vector<Entry> all = entries(system, near, speed);
  // Where none ends beside a NIC, as one GPU is beside the only one, they go back to it over NVLink or the host.
  std::vector<End> ends{End::home, End::across, End::same, End::host};
  if (system.cross_nic == CrossNic::always) ends = {End::across, End::same, End::host};
  if (system.cross_nic == CrossNic::never) ends = {End::same, End::host};
  Rings found;
  for (const End end : ends) {
    if (found.order.size() == all.size() || (end == End::host && found.count > 0)) break;
    Rings of_end;
    for (const PathType worst : nvlink_types) {
      // Back to the NIC they came by, rings may go through GPUs whatever goes elsewhere, as with NCCL_CROSS_NIC=0.
      const bool would_take_longer_ways = end != End::same && found.count > 0 && worst > found.type;
      if (of_end.count > 0 || would_take_longer_ways) break;
      // A NIC from whose GPU no way leads past all others has no channel.
      std::vector<Entry> usable = all;
      std::erase_if(usable, [&](const Entry& one) {
        return Paths(system, gpus, near, end, worst).find({one}, speed, speed).count == 0;
      });
      of_end = Paths(system, gpus, near, end, worst).find(std::move(usable), speed, speed);
    }
    if (of_end.count > found.count) found = std::move(of_end);
  }
  return found;
}

std::vector<int> upwards(const std::vector<int>& gpus, int first) {
  std::vector<int> out = gpus;
  std::rotate(out.begin(), std::find(out.begin(), out.end(), first), out.end());
  return out;
}

namespace {

/// Whether the GPU that a channel comes in by is the only one beside its NIC.
bool is_alone(const Nearest& near, const Entry& entry) { return near.gpus.at(entry.nic).size() == 1; }

/// Of the GPUs beside a channel's NIC the first after the one that it comes in by whose port has `room` for it.
std::optional<int> other_beside(const Nearest& near, const Entry& entry, const std::map<int, double>& room,
                                double speed) {
  std::vector<Nearest::Gpu> beside = near.gpus.at(entry.nic);
  const auto own = std::ranges::find(beside, entry.gpu, &Nearest::Gpu::gpu);
  std::rotate(beside.begin(), own, beside.end());
  const auto has_room = [&](const Nearest::Gpu& one) { return room.at(one.gpu) >= speed - slack; };
  const auto found = std::find_if(beside.begin() + 1, beside.end(), has_room);
  if (found == beside.end()) return std::nullopt;
  return found->gpu;
}

/// Whether a channel goes out by the NIC that it came in by: where it must, or where that has several GPUs beside it.
bool stays(const System& system, const Nearest& near, const Entry& entry) {
  return system.cross_nic == CrossNic::never || !is_alone(near, entry);
}

/// By which NIC another one goes out whose last GPU this is: one beside that (crossNic 2), else its own, of those that
/// `owe` a channel, as no more go out by a NIC than come in by it.
int nic_across(const Nearest& near, const std::map<int, int>& owe, const Entry& entry, int last) {
  const auto owes = [&](const auto& nic) { return owe.at(nic.first) > 0; };
  const auto is_beside = [&](const auto& nic) {
    return owes(nic) && std::ranges::any_of(nic.second, [&](const Nearest::Gpu& one) { return one.gpu == last; });
  };
  if (const auto found = std::ranges::find_if(near.gpus, is_beside); found != near.gpus.end()) return found->first;
  if (owe.at(entry.nic) > 0) return entry.nic;
  const auto any = std::ranges::find_if(near.gpus, owes);
  return any == near.gpus.end() ? entry.nic : any->first;
}

void put_last(std::vector<int>& order, int gpu) {
  const auto found = std::find(order.begin(), order.end(), gpu);
  std::rotate(found, found + 1, order.end());
}

std::vector<int> downwards(const std::vector<int>& gpus, int first) {
  return upwards({gpus.rbegin(), gpus.rend()}, first);
}

/// Behind a switch channels pass the GPUs downwards, to another one beside their NIC where there is one. Where there is
/// none two channels change NICs with each other, of which the second goes back up; not where they may not. Over PCIe
/// all go upwards. Empty for one that no GPU's port beside its NIC has room for outwards.
std::vector<std::vector<int>> orders(const System& system, const std::vector<int>& gpus, const Nearest& near,
                                     const std::vector<Entry>& entries, double speed) {
  std::vector<std::vector<int>> out;
  std::map<int, double> room = room_of(system, near).ports;  // outwards
  for (const Entry& entry : entries)
    if (is_alone(near, entry)) room.at(entry.gpu) -= speed;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    out.push_back(system.nvswitch ? downwards(gpus, entry.gpu) : upwards(gpus, entry.gpu));
    if (!is_alone(near, entry)) {
      const auto last = other_beside(near, entry, room, speed);
      if (!last) {
        out.back().clear();
        continue;
      }
      room.at(*last) -= speed;
      put_last(out.back(), *last);
    }
    const bool change = system.nvswitch && system.cross_nic != CrossNic::never && i + 1 < entries.size() &&
                        is_alone(near, entry) && is_alone(near, entries[i + 1]) && entry.gpu != entries[i + 1].gpu;
    if (!change) continue;
    put_last(out.back(), entries[++i].gpu);
    out.emplace_back(out.back().rbegin(), out.back().rend());
  }
  return out;
}

/// A ring that must go back to its NIC by the host ends at the nearest GPU whose way there has room. Whether it gets
/// there, by that or otherwise.
bool goes_back(const System& system, const Nearest& near, HostWays& host, const Entry& entry, double speed,
               std::vector<int>& order) {
  const auto way_of = [&](int gpu) { return way_to_nic(system, near, gpu, entry.nic); };
  if (!is_by_host(near, way_of(order.back()))) return true;
  std::vector<int> last(order.rbegin(), order.rend() - 1);
  std::stable_sort(last.begin(), last.end(), [&](int a, int b) { return way_of(a) < way_of(b); });
  for (const int gpu : last) {
    if (!host.book(gpu, entry.nic, speed)) continue;
    put_last(order, gpu);
    return true;
  }
  return false;
}

}  // namespace

Rings rings_in_order(const System& system, const std::vector<int>& gpus, const Nearest& near, double speed) {
  Rings out;
  HostWays host(system);
  const std::vector<Entry> all = entries_in_order(system, near, speed);
  std::vector<Entry> kept;
  auto next = all.begin();
  for (std::vector<int>& order : orders(system, gpus, near, all, speed)) {
    const Entry& entry = *next++;
    if (order.empty()) continue;
    if (system.cross_nic == CrossNic::never && !goes_back(system, near, host, entry, speed, order)) continue;
    kept.push_back(entry);
    out.order.push_back(std::move(order));
    ++out.count;
  }
  std::map<int, int> owe;
  for (const auto& [nic, ways] : near.gpus) owe[nic] = 0;
  for (const Entry& entry : kept)
    if (!stays(system, near, entry)) ++owe[entry.nic];
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const Entry& entry = kept[i];
    const int last = out.order[i].back();
    const bool own = stays(system, near, entry);
    const int nic = own ? entry.nic : nic_across(near, owe, entry, last);
    if (!own) --owe[nic];
    out.nics.push_back({entry.nic, nic, near.type, way_to_nic(system, near, last, nic)});
  }
  return out;
}

}  // namespace collcast::nccl
