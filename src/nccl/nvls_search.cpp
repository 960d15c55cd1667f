#include "nccl/nvls_search.hpp"

#include <algorithm>

#include "nccl/heads.hpp"
#include "nccl/search_speeds.hpp"

namespace collcast::nccl {

namespace {

/// NCCL sets NVLS up for three GPUs of a node and more [src/transport/nvls.cc, ncclNvlsInit].
bool has_nvls(const System& system, const std::vector<int>& gpus) {
  return system.nvswitch && system.compute_capability >= 90 && gpus.size() > 2;
}

std::size_t most_heads(const std::vector<int>& gpus) { return std::min<std::size_t>(32, gpus.size()); }

/// Of so many heads: each one's GPU takes in from and hands out to all, and twice for itself.
double speed_inside(const System& system, std::span<const double> list, std::size_t heads) {
  return largest(list, system.nvlink_speed / static_cast<double>(heads + 1));
}

struct NvlsHeads {
  std::vector<Head> heads;
  double inside = 0, between = 0;
};

/// What heads have between nodes, while `allowed` says that NICs have it. On one node nothing holds it, and NCCL's
/// choice does not ask for it.
template <class Allowed>
void raise_between(std::span<const double> list, NvlsHeads& best, const Allowed& allowed) {
  best.between = best.inside;
  auto at = std::ranges::find(list, best.inside);
  while (at != list.begin() && best.between < 2 * best.inside - slack && allowed(*(at - 1))) best.between = *--at;
}

NvlsHeads fastest_heads(const System& system, const std::vector<int>& gpus, const Nearest& near,
                        std::span<const double> list) {
  NvlsHeads best;
  const std::size_t most = most_heads(gpus);
  for (const double speed : list) {
    if (!best.heads.empty() && speed <= 0.49 * best.inside) break;
    std::vector<Head> heads = heads_of(system, near, speed);
    if (heads.size() > most) heads.resize(most);
    while (!heads.empty() && static_cast<double>(heads.size() + 1) * speed > system.nvlink_speed + slack)
      heads.pop_back();
    const double together = static_cast<double>(heads.size()) * speed;
    const double best_together = static_cast<double>(best.heads.size()) * best.inside;
    if (heads.size() <= best.heads.size() && together <= best_together + slack) continue;
    best = {std::move(heads), speed, speed};
    if (best.heads.size() == most) break;
  }
  return best;
}

Graph nvls_graph(const NvlsHeads& found, PathType network) {
  const auto gb = [](double speed) { return Bandwidth(speed * 1e9); };
  Graph out{GraphPattern::nvls,
            static_cast<int>(found.heads.size()),
            gb(found.inside),
            gb(found.between),
            PathType::nvl,
            network,
            {},
            {}};
  for (const Head& head : found.heads) out.order.push_back({head.gpu});
  return out;
}

}  // namespace

std::optional<Graph> search_nvls(const System& system, const std::vector<int>& gpus) {
  if (!has_nvls(system, gpus)) return std::nullopt;
  const auto list = speeds(system.compute_capability, false);
  NvlsHeads found;
  for (std::size_t i = 0; i < most_heads(gpus); ++i) found.heads.push_back({gpus[i], 0});
  found.inside = speed_inside(system, list, found.heads.size());
  if (found.inside <= 0) return std::nullopt;
  raise_between(list, found, [](double) { return true; });
  return nvls_graph(found, PathType::pix);
}

std::optional<Graph> search_nvls(const System& system, const std::vector<int>& gpus, const Nearest& near) {
  if (!has_nvls(system, gpus)) return std::nullopt;
  const auto list = speeds(system.compute_capability, true);
  NvlsHeads found = fastest_heads(system, gpus, near, list);
  if (found.heads.empty()) return std::nullopt;
  raise_between(list, found, [&](double speed) { return heads_of(system, near, speed).size() >= found.heads.size(); });
  // NCCL begins with the NICs that its first GPU has nearest [ncclTopoSelectNets].
  std::ranges::sort(found.heads, {}, &Head::gpu);
  Graph out = nvls_graph(found, near.type);
  for (const Head& head : found.heads) out.nics.push_back({head.nic, head.nic, near.type, near.type});
  return out;
}

double nvls_link(const System& system, const std::vector<int>& gpus, std::span<const double> list) {
  if (!has_nvls(system, gpus)) return 0;
  const auto heads = static_cast<double>(most_heads(gpus));
  const double listed = speed_inside(system, list, most_heads(gpus));
  // So slow that the list's last speed is for fewer.
  const double speed = listed > 0 ? listed : system.nvlink_speed / (heads + 1);
  return speed * (heads - 1) * (1 + 1 / heads);
}

}  // namespace collcast::nccl
