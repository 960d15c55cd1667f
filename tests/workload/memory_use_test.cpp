// What a GPU holds beside a step's own items, and which part is too much.
#include "collcast/workload/memory_use.hpp"

#include <catch2/catch.hpp>

#include <string>

#include "collcast/nccl/environment.hpp"
#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

double bytes(Bytes b) { return static_cast<double>(b.value()); }

Communicators of(ParallelLayout l, int gpus_per_node) { return communicators(l, gpus_per_node); }

StepInputs server(const ParallelLayout& l) {
  StepInputs in = inputs(small_model(), l, 512, 1);
  in.serving = Serving{16, 512, 16, 1, 2};
  return in;
}

/// Parts of 1, 2, 4 ... bytes, so that each sum of some is another.
MemoryUse powers_of_two() {
  MemoryUse use;
  std::int64_t size = 1;
  for (const MemoryPart& part : memory_parts) {
    use.*part.size = Bytes(size);
    size *= 2;
  }
  return use;
}

}  // namespace

TEST_CASE("a rank has a communicator of each group that it talks in, and the pipeline's two or three") {
  CHECK(of(layout(1, 1, 1), 8).within + of(layout(1, 1, 1), 8).across == 0);
  // All ranks, and one dimension that is the same ranks.
  CHECK(of(layout(8, 1, 1), 8).within == 2);
  CHECK(of(layout(8, 1, 1), 8).across == 0);
  // TP within a node; all ranks, DP, and stages, both ends and the replica across.
  CHECK(of(layout(8, 4, 2), 8).within == 1);
  CHECK(of(layout(8, 4, 2), 8).across == 5);
  CHECK(of(layout(1, 4, 2), 8).within == 4);  // without TP the replica is the stages
  // Replicas are neighbours, stages far apart: the pipeline's two across, DP with them or not.
  ParallelLayout far = layout(2, 4, 2);
  far.order = RankOrder::tp_cp_ep_dp_pp;
  CHECK(of(far, 8).within == 2);  // TP, DP
  CHECK(of(far, 8).across == 4);
  far.order = RankOrder::tp_pp_dp;
  CHECK(of(far, 8).within == 4);  // TP, the pipeline's
  CHECK(of(far, 8).across == 2);
  // TP ranks 8 apart, replicas of a stage neighbours: DP and stages within, TP, the replica and all ranks across.
  far.order = RankOrder::dp_pp_tp;
  CHECK(of(far, 8).within == 3);
  CHECK(of(far, 8).across == 3);
  // HSDP: all ranks, the copies of a shard, and the shards within a node.
  ParallelLayout sharded = layout(1, 1, 64);
  CHECK(of(sharded, 8).across == 2);
  sharded.dp_shard = 8;
  CHECK(of(sharded, 8).across == 2);
  CHECK(of(sharded, 8).within == 1);
  sharded.dp_shard = 64;
  CHECK(of(sharded, 8).within == 0);
  // A node that is a rack.
  CHECK(of(layout(8, 4, 2), 64).within == 6);
}

TEST_CASE("fragments are 6 % of what is reserved, NCCL has 9.1875 MiB a connection, CUDA 1573 MiB") {
  const StepInputs in = inputs(small_model(), layout(2, 4, 2), 512, 8);
  for (int stage = 0; stage < 4; ++stage) {
    const MemoryUse use = stage_memory(in, stage, 8);
    CHECK(bytes(use.allocated()) == Approx(0.94 * bytes(use.reserved())).margin(1));
    // TP, stages, both ends and the replica of 2 x 4 ranks within a node: 24 channels of a ring and two connections of
    // a tree. All 16 ranks, and DP's two that are 8 apart, across: 8 channels of a ring and three.
    CHECK(bytes(use.nccl) == Approx(9.1875 * mib * (4 * 24 * (1 + 2) + 2 * 8 * (1 + 3))));
    CHECK(bytes(use.context) == 1573 * mib);
    CHECK(use.peak() == use.reserved() + use.nccl + use.context);
    CHECK(use.kv_cache + use.framework == Bytes(0));
  }
  const MemoryUse alone = stage_memory(inputs(small_model(), layout(1, 1, 1), 512, 8), 0, 8);
  CHECK(alone.nccl == Bytes(0));
}

TEST_CASE("NCCL's buffers are those of the job's variables, on as many channels as these allow") {
  StepInputs in = inputs(small_model(), layout(2, 4, 2), 512, 8);
  const auto kept = [&](const nccl::Environment& environment) {
    in.nccl_buffers = NcclBuffers(environment);
    const MemoryUse training = stage_memory(in, 0, 8);
    CHECK(training.peak() == training.reserved() + training.nccl + training.context);
    return bytes(training.nccl);
  };
  // Four communicators within a node, two across.
  CHECK(kept({}) == 9.1875 * mib * (4 * 72 + 2 * 32));
  nccl::Environment environment;
  environment.simple_buffer = Bytes(64 << 20);
  CHECK(kept(environment) == (64 + 0.5 + 4.6875) * mib * (4 * 72 + 2 * 32));
  environment.ll_buffer = Bytes(1 << 20);
  environment.ll128_buffer = Bytes(2 << 20);
  CHECK(kept(environment) == 67 * mib * (4 * 72 + 2 * 32));
  environment.max_channels = 16;
  CHECK(kept(environment) == 67 * mib * (4 * 3 * 16 + 2 * 32));
  environment.max_blocks = 4;
  CHECK(kept(environment) == 67 * mib * (4 * 3 * 4 + 2 * 4 * 4));
  environment.max_channels = environment.max_blocks = {};
  environment.min_channels = 32;
  CHECK(kept(environment) == 67 * mib * (4 * 3 * 32 + 2 * 4 * 32));
}

TEST_CASE("what is taken once breaks into no fragments") {
  MemoryUse use;
  use.parameters = Bytes(1000);
  use.activations = Bytes(940);
  add_runtime(use, layout(1, 1, 1), {}, 8, use.parameters);
  CHECK(use.fragments == Bytes(60));
}

TEST_CASE("the part that breaks the limit: NCCL and context first, then as tables have them, fragments last") {
  MemoryUse use = powers_of_two();
  const auto size = [&](const std::string& name) {
    for (const MemoryPart& part : memory_parts)
      if (name == part.name) return use.*part.size;
    return Bytes(0);
  };
  Bytes sum;
  for (const char* name : {"NCCL's buffers", "CUDA context", "parameters", "KV cache", "gradients", "optimizer state",
                           "gradient copies", "activations", "buffers", "framework", "fragments"}) {
    sum = sum + size(name);
    // One byte less than the parts so far: this one is too much; as many: the next.
    use.capacity = sum - Bytes(1);
    CHECK(std::string(breaking_part(use).name) == name);
    CHECK_FALSE(use.fits());
  }
  CHECK(sum == use.peak());
  use.capacity = sum;
  CHECK(use.fits());
}

TEST_CASE("the largest part is the one that is more than each other, of several the first") {
  for (const MemoryPart& part : memory_parts) {
    MemoryUse use = powers_of_two();
    use.*part.size = use.peak();
    CHECK(std::string(largest_part(use).name) == part.name);
  }
  CHECK(std::string(largest_part(MemoryUse()).name) == memory_parts.front().name);
}

TEST_CASE("a step that fits but for what CUDA and NCCL take does not fit") {
  StepInputs in = inputs(small_model(), layout(2, 4, 2), 512, 8);
  const MemoryUse whole = peak_memory(in, 8);
  in.gpu.memory = whole.peak();
  CHECK(peak_memory(in, 8).fits());
  in.gpu.memory = whole.peak() - Bytes(1);
  CHECK_FALSE(peak_memory(in, 8).fits());
  CHECK(std::string(breaking_part(peak_memory(in, 8)).name) == "fragments");
  in.gpu.memory = whole.allocated();
  CHECK_FALSE(peak_memory(in, 8).fits());
}

TEST_CASE("experts cut the ranks of a stage anew, and have communicators where those are") {
  ParallelLayout l = layout(8, 1, 1);
  l.order = RankOrder::tp_cp_ep_dp_pp;
  l.sequence_parallel = true;
  l.etp = 1;
  l.ep = 8;
  CHECK(of(l, 8).within == 3);  // all ranks, TP, EP: the same eight
  CHECK(of(l, 8).across == 0);
  l.ep = 4;
  CHECK(of(l, 8).within == 4);  // EP of 0-3, and the two ranks with the same experts, 4 apart
  l.etp = 2;
  l.ep = 2;
  CHECK(of(l, 8).within == 5);  // and those that share an expert
  // Ranks 0-7 of a stage of 16 are an EP group, two of them 8 apart have the same experts.
  l = layout(2, 4, 8);
  l.order = RankOrder::tp_cp_ep_dp_pp;
  l.etp = 1;
  l.ep = 8;
  CHECK(of(l, 8).within == 2);  // TP, EP
  CHECK(of(l, 8).across == 6);  // all ranks, DP, expert DP, and the pipeline's three
  // With context parallelism an EP group goes over CP first.
  l = layout(1, 1, 8);
  l.order = RankOrder::tp_cp_ep_dp_pp;
  l.cp = 2;
  l.ep = 8;
  CHECK(of(l, 8).within == 2);  // CP, EP
  CHECK(of(l, 8).across == 3);  // all ranks, DP, expert DP
}

TEST_CASE("without ZeRO nothing is split, and shards have no communicators") {
  StepInputs in = inputs(small_model(), layout(1, 1, 16), 512, 1);
  in.options.zero = 0;
  in.layout.dp_shard = 8;
  CHECK(of(talking_layout(in), 8).within == 0);
  CHECK(of(talking_layout(in), 8).across == 2);  // all ranks, DP
  StepInputs unsharded = in;
  unsharded.layout.dp_shard = 0;
  CHECK(peak_memory(in, 8).nccl == peak_memory(unsharded, 8).nccl);
  in.options.zero = 1;
  CHECK(of(talking_layout(in), 8).within == 1);  // the shards; the copies of each instead of DP
  CHECK(peak_memory(in, 8).nccl > peak_memory(unsharded, 8).nccl);
}

TEST_CASE("ranks of a server that have the same tokens exchange none, and replicas talk where they share experts") {
  ParallelLayout l = layout(8, 1, 1);
  l.order = RankOrder::tp_cp_ep_dp_pp;
  l.etp = 1;
  l.ep = 8;
  CHECK(of(talking_layout(server(l)), 8).within == 2);  // all ranks and TP
  CHECK(of(talking_layout(server(l)), 8).across == 0);
  l.dp = 4;
  CHECK(of(talking_layout(server(l)), 8).across == 0);
  l = layout(1, 1, 16);
  l.order = RankOrder::tp_cp_ep_dp_pp;
  l.ep = 8;
  CHECK(talking_layout(server(l)).dp == 8);
  CHECK(of(talking_layout(server(l)), 8).within == 3);  // all ranks, EP, DP
}
