#include "nccl/collnet_tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "nccl/collnet_search.hpp"
#include "nccl/terms.hpp"

namespace collcast::nccl {

namespace {

double gb(Bandwidth rate) { return rate.value() / 1e9; }

int unlike_heads(const Graph& graph) {
  std::set<int> heads;
  for (const std::vector<int>& channel : graph.order) heads.insert(channel.front());
  return static_cast<int>(heads.size());
}

}  // namespace

int collnet_heads(const Communicator& c, Algorithm a) {
  if (a == Algorithm::nvls) return c.nvls->channels;
  return a == Algorithm::collnet_direct ? unlike_heads(*c.collnet->direct) : 1;
}

std::string collnet_refusal(const Communicator& c, CollectiveKind kind, Algorithm a) {
  if (is_nvls_over_network(c, a)) {
    // Described and switched on it has reasons of its own; else NVLS says what it is without.
    if (!c.collnet) return "across nodes it needs a reduction in the network";
  } else if (!c.collnet) {
    return c.without_collnet;
  } else if (a == Algorithm::collnet_direct && !c.collnet->direct) {
    if (c.ranks_per_node > most_direct_gpus) return fmt::format("needs {} GPUs on a node at most", most_direct_gpus);
    return c.nvswitch ? "needs a NIC beside a GPU" : "needs an NVSwitch";
  }
  if (const Reduced& r = c.environment.launch.reduced; reduces(kind) && !r.by_network())
    return fmt::format("the network has no {}", text_of(r));
  // What the network gathers or scatters it does for the same head of every node.
  if (kind != CollectiveKind::all_reduce && collnet_heads(c, a) * c.nodes < c.ranks)
    return "needs a head for every GPU of a node";
  return {};
}

double collnet_bandwidth(const Communicator& c, CollectiveKind kind, Algorithm a) {
  const double per_node = mean_on_a_node(c);
  if (a == Algorithm::collnet_chain) return 0.5 * c.collnet->chain.channels * gb(c.collnet->chain.inside);
  const Graph& direct = *c.collnet->direct;
  if (kind != CollectiveKind::all_reduce) return per_node * std::min(gb(direct.inside), 0.9 * gb(direct.between));
  // Full rate with a NIC for each GPU.
  const double gpus_per_nic = per_node / direct.channels, factor = gpus_per_nic - (gpus_per_nic - 1) / 2;
  const double of_new = c.compute_capability >= 90 ? 0.85 : 1;
  return 0.5 * direct.channels * gb(direct.inside) / factor * of_new;
}

double collnet_latency(const Communicator& c, Algorithm a, double hop_in, double hop_out) {
  const int others = c.ranks_per_node - 1;
  if (a == Algorithm::collnet_chain) return 2 * others * hop_in + hop_out;
  constexpr double each = 0.4;  // of the other GPUs, that a head serves one after the other
  return 2 * (std::min(1, others) * hop_in + each * others) + hop_out;
}

void reduce_collnet_work(const Communicator& c, Bytes size, Plan& plan) {
  const double bytes = static_cast<double>(size.value());
  double threshold = 512;
  plan.channels = c.channels;
  plan.threads = 640;
  if (plan.algorithm == Algorithm::collnet_chain) {
    const auto too_little = [&] { return bytes < plan.channels * plan.threads * threshold; };
    while (plan.channels > 1 && too_little()) --plan.channels;
    while (plan.threads % 128 == 0 && too_little()) plan.threads /= 2;
    return;
  }
  const int heads = collnet_heads(c, plan.algorithm);
  const auto too_little = [&] { return bytes < plan.channels * plan.threads * heads * threshold; };
  // From 24, 12, 6 and 3 channels on half of the bytes are enough.
  for (int down_to = 16; down_to >= 1 && too_little(); down_to /= 2)
    while (plan.channels > down_to && too_little()) {
      if (plan.channels == down_to + down_to / 2) threshold /= 2;
      --plan.channels;
    }
}

}  // namespace collcast::nccl
