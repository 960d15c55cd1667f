#include "collcast/workload/memory_use.hpp"

#include <algorithm>
#include <cstdint>

#include "collcast/base/check.hpp"
#include "collcast/nccl/environment.hpp"
#include "collcast/workload/config.hpp"
#include "collcast/workload/groups.hpp"
#include "workload/plan.hpp"

namespace collcast {

std::string_view to_string(MemoryMoment moment) {
  switch (moment) {
    case MemoryMoment::forward:
      return "forward";
    case MemoryMoment::backward:
      return "backward";
    case MemoryMoment::optimizer:
      return "optimizer";
  }
  check(false, "a known moment");
  return {};
}

Communicators communicators(const ParallelLayout& l, int gpus_per_node) {
  Communicators out;
  const auto add = [&](int ranks, int times = 1) { (ranks <= gpus_per_node ? out.within : out.across) += times; };
  const auto add_group = [&](const Group& g) {
    if (g.size() > 1) add(static_cast<int>(g[g.size() - 1].value()) + (g.is_strided() ? g.stride() : 1));
  };
  if (l.world() == 1) return out;
  // Neighbours of a group are as far apart as all that varies faster; a group reaches over its neighbours' distance.
  const int inner = l.tp * l.cp;
  const bool tp_last = l.order == RankOrder::dp_pp_tp, stages_first = l.order == RankOrder::tp_pp_dp;
  const int tp_reach = tp_last ? l.world() : l.tp,
            replicas_apart = tp_last        ? 1
                             : stages_first ? inner * l.pp
                                            : inner,
            stages_apart = tp_last        ? l.dp
                           : stages_first ? inner
                                          : inner * l.dp;
  add(l.world());
  if (l.tp > 1) add(tp_reach);
  if (l.cp > 1) add(inner);
  // Experts cut the ranks of a stage anew.
  add_group(groups_of(l, Rank(0)).ep);
  if (l.experts_apart()) {
    add_group(expert_tp_group(l, Rank(0)));
    add_group(expert_replica_group(l, Rank(0)));
  }
  // With DualPipe that of replicas reaches over the stages that hold the same slices.
  if (l.twins() > 1)
    add(stages_apart * l.pp);
  else if (l.dp > 1)
    add(replicas_apart * l.dp);
  // Of HSDP the shards, and above the copies of each.
  if (l.dp_shard > 1 && l.dp_shard < l.dp) add(replicas_apart * l.dp_shard);
  // Stages, those of both ends, and each replica of the model.
  if (l.pp > 1) add(stages_apart * l.pp, l.tp > 1 && !tp_last ? 3 : 2);
  if (l.pp > 1 && l.tp > 1 && tp_last) add(l.world());
  return out;
}

NcclBuffers::NcclBuffers() : NcclBuffers(nccl::Environment{}) {}

NcclBuffers::NcclBuffers(const nccl::Environment& e) : simple(e.simple_buffer), ll(e.ll_buffer), ll128(e.ll128_buffer) {
  const auto within_limits = [&](int channels) {
    channels = std::min({channels, e.max_channels.value_or(channels), e.max_blocks.value_or(channels)});
    return std::max({channels, e.min_channels.value_or(1), e.min_blocks.value_or(1)});
  };
  channels_within = within_limits(24);
  channels_across = within_limits(8);
}

void add_runtime(MemoryUse& use, const ParallelLayout& layout, const NcclBuffers& nccl, int gpus_per_node, Bytes kept) {
  constexpr double context = 1573 * 0x1p20;
  const auto moving = static_cast<double>((use.allocated() - kept).value());
  use.fragments = workload::whole(moving / allocated_of_reserved - moving);
  const Communicators of = communicators(layout, gpus_per_node);
  const std::int64_t connections =
      std::int64_t{nccl.connections_within()} * of.within + std::int64_t{nccl.connections_across()} * of.across;
  use.nccl = workload::whole(static_cast<double>(nccl.connection().value()) * static_cast<double>(connections));
  use.context = workload::whole(context);
}

const MemoryPart& breaking_part(const MemoryUse& use) {
  Bytes sum;
  for (const bool outside : {true, false})
    for (const MemoryPart& part : memory_parts) {
      if ((part.size == &MemoryUse::nccl || part.size == &MemoryUse::context) != outside) continue;
      sum = sum + use.*part.size;
      if (sum > use.capacity) return part;
    }
  check(false, "a rank that does not fit has a part that is too much");
  return memory_parts.back();
}

const MemoryPart& largest_part(const MemoryUse& use) {
  return *std::ranges::max_element(memory_parts, {}, [&](const MemoryPart& part) { return use.*part.size; });
}

}  // namespace collcast
