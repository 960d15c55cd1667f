#include "nccl/collnet_search.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "nccl/heads.hpp"
#include "nccl/nearest_nics.hpp"
#include "nccl/search_speeds.hpp"
#include "nccl/terms.hpp"

namespace collcast::nccl {

namespace {

/// Whether a GPU's links carry channels of that speed inside the node.
bool fits(const System& system, const std::vector<Head>& heads, std::size_t gpus, double speed) {
  if (gpus < 2) return true;
  std::map<int, int> own;
  for (const Head& head : heads) ++own[head.gpu];
  int most = 0;
  for (const auto& [gpu, count] : own) most = std::max(most, count);
  const double others = static_cast<double>(heads.size()) - most;
  return speed * (most + others / static_cast<double>(gpus - 1)) <= system.nvlink_speed + slack;
}

struct Channels {
  std::vector<Head> heads;
  double inside = 0, between = 0;
};

Channels fastest(const System& system, const std::vector<int>& gpus, const Nearest& near,
                 std::span<const double> list) {
  Channels best;
  for (const double speed : list) {
    if (!best.heads.empty() && speed <= 0.49 * best.between) break;
    if (speed > system.nic_speed + slack) continue;
    std::vector<Head> heads = heads_of(system, near, speed);
    if (heads.size() > most_direct_gpus) heads.resize(most_direct_gpus);
    while (!heads.empty() && !fits(system, heads, gpus.size(), speed)) heads.pop_back();
    if (static_cast<double>(heads.size()) * speed <= static_cast<double>(best.heads.size()) * best.between + slack)
      continue;
    best = {std::move(heads), speed, speed};
  }
  return best;
}

/// As other patterns' channels [ncclTopoDupChannels], but no more than there are GPUs.
void double_channels(const System& system, std::size_t gpus, Channels& channels) {
  const std::size_t count = channels.heads.size(), twice = std::min(2 * count, gpus);
  const bool enough = system.compute_capability > 80 && channels.inside < 50 && count > 4;
  if (channels.inside < 25 || enough || twice == count) return;
  for (std::size_t i = 0; count + i < twice; ++i) channels.heads.push_back(channels.heads[i]);
  channels.inside /= 2;
  channels.between /= 2;
}

/// Step by step up the list, until no slower than two NICs.
void raise_inside(const System& system, std::size_t gpus, std::span<const double> list, Channels& channels) {
  auto next = std::ranges::find_if(list, [&](double speed) { return speed <= channels.between + slack; });
  while (next != list.begin() && channels.inside < 2 * channels.between - slack) {
    --next;
    if (!fits(system, channels.heads, gpus, *next)) return;
    channels.inside = *next;
  }
}

std::optional<Graph> search_direct(const System& system, const std::vector<int>& gpus) {
  const Nearest near = nearest_nics(system, gpus);
  if (!system.nvswitch || gpus.size() > most_direct_gpus || near.gpus.empty()) return std::nullopt;
  const auto list = speeds(system.compute_capability, true);
  Channels found = fastest(system, gpus, near, list);
  if (found.heads.empty()) return std::nullopt;
  double_channels(system, gpus.size(), found);
  raise_inside(system, gpus.size(), list, found);
  const auto gb = [](double speed) { return Bandwidth(speed * 1e9); };
  Graph out{gpus.size() == 1 ? GraphPattern::tree : GraphPattern::collnet_direct,
            static_cast<int>(found.heads.size()),
            gb(found.inside),
            gb(found.between),
            gpus.size() == 1 ? PathType::loc : PathType::nvl,
            near.type,
            {},
            {}};
  for (const Head& head : found.heads) {
    std::vector<int> order{head.gpu};
    std::ranges::copy_if(gpus, std::back_inserter(order), [&](int gpu) { return gpu != head.gpu; });
    out.order.push_back(std::move(order));
    out.nics.push_back({head.nic, head.nic, near.type, near.type});
  }
  return out;
}

}  // namespace

Collnet search_collnet(const System& system, const std::vector<int>& gpus, const Graph& trees) {
  Collnet out{trees, search_direct(system, gpus)};
  out.chain.pattern = GraphPattern::tree;
  return out;
}

}  // namespace collcast::nccl
