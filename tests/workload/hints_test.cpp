// What a hint offers in the place of one value works by itself: it is held to what else that value has to go with.
#include <catch2/catch.hpp>

#include <string>

#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

StepInputs sound() { return inputs(small_model(), layout(2, 2, 2), 1024, 4); }

/// Of the only thing that is wrong, in a layout that somebody wrote or that a search tried.
std::string only_hint(const StepInputs& in, int ranks = 64, bool written = false) {
  Origins origins;
  if (written) origins.set("layout", {"s.yaml", 1, 1});
  const Diagnostics found = check_step(in, ranks, origins);
  INFO(to_text(found));
  REQUIRE(found.size() == 1);
  return found.front().hint;
}

}  // namespace

TEST_CASE("a schedule without chunks is offered without them, and stages that chunks and micro-batches go into") {
  StepInputs in = sound();
  in.layout.schedule = PipelineSchedule::interleaved;
  in.layout.pp = 1;
  in.layout.vpp = 2;
  in.batch.global_batch = 16;  // 4 micro-batches
  CHECK(only_hint(in) == "use pp 2, or schedule: 1f1b with vpp: 1");
  in.layout.schedule = PipelineSchedule::one_f_one_b;
  CHECK(only_hint(in) == "use vpp 1");
  in.layout.pp = 2;
  CHECK(only_hint(in) == "use schedule: interleaved, or vpp 1");
  in.layout.vpp = 3;
  CHECK(only_hint(in) == "use vpp 1");
  in.layout.uneven_stages = true;
  CHECK(only_hint(in) == "use schedule: interleaved, or vpp 1");
  in.layout.schedule = PipelineSchedule::interleaved;
  in.layout.uneven_stages = false;
  in.layout.pp = 1;
  in.layout.vpp = 2;
  in.model.layers = 9;  // no stages whose layers two chunks divide
  CHECK(only_hint(in) == "use schedule: 1f1b with vpp: 1");
  in.layout.vpp = 1;
  CHECK(only_hint(in) == "use schedule: 1f1b");  // 4 micro-batches do not go round 3 stages, or 9
  in.batch.global_batch = 12;
  CHECK(only_hint(in) == "use pp 3, or schedule: 1f1b");
}

TEST_CASE("a cp of Ulysses divides heads and sequence, and a ring is offered where its pieces do") {
  StepInputs in = sound();
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.layout.pp = in.layout.dp = 1;
  in.layout.cp_exchange = ContextExchange::ulysses;
  in.model.heads = in.model.kv_heads = 40;
  in.layout.cp = 8;
  CHECK(only_hint(in) == "use cp 4, or cp_exchange: ring");
  in.batch.sequence = 1000;  // twice 8 does not divide it
  CHECK(only_hint(in) == "use cp 5 or 10");
  in.model.causal = false;
  CHECK(only_hint(in) == "use cp 5 or 10, or cp_exchange: ring");
  in.batch.sequence = 1004;
  in.layout.cp = 5;
  CHECK(only_hint(in) == "use cp 4");
}

TEST_CASE("so many replicas as GPUs have room for are those that samples, sharding groups and experts go into") {
  StepInputs in = sound();
  in.layout.dp = 8;
  in.batch.global_batch = 16;
  CHECK(only_hint(in, 30) == "use dp 4, or more nodes");
  in.batch.global_batch = 40 * 8;
  CHECK(only_hint(in, 30) == "use dp 5, or more nodes");
  in.layout.dp_shard = 4;
  CHECK(only_hint(in, 30) == "use dp 4, or more nodes");
  CHECK(only_hint(in, 15) == "use a smaller tp or pp, or more nodes");
  in.layout.dp_shard = 0;
  in.layout.sequence_parallel = true;
  in.model.experts = {8, 2, 512};
  in.layout.ep = 2;
  CHECK(only_hint(in, 30) == "use dp 4, or more nodes");
  // 12 micro-batches of all replicas: 4 replicas have 3 each, which do not go round 2 stages, nor come from either end.
  in = sound();
  in.layout.dp = 6;
  in.batch.global_batch = 24;
  CHECK(only_hint(in, 20) == "use dp 4, or more nodes");
  for (const PipelineSchedule schedule : {PipelineSchedule::interleaved, PipelineSchedule::dualpipe}) {
    in.layout.schedule = schedule;
    CHECK(only_hint(in, 20) == "use dp 3, or more nodes");
  }
}

TEST_CASE("of fewer replicas than fill an expert's TP none is offered") {
  StepInputs in = inputs(small_model(), layout(2, 4, 16), 1024, 64);
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.layout.sequence_parallel = true;
  in.model.experts.count = 8;
  in.model.experts.top_k = 2;
  in.model.experts.ffn = in.model.ffn;
  in.layout.ep = 8;
  in.layout.etp = 4;  // 32 ranks of a stage, which 8 x 4 fill: no fewer go
  CHECK(only_hint(in) == "use a smaller tp or pp, or more nodes");
}

TEST_CASE("products of degrees that 32 bits do not hold are counted all the same") {
  StepInputs in = sound();
  in.layout.dp = 65536;
  in.batch.micro_batch = 65536;  // together 2^32
  in.batch.global_batch = 1'000'000;
  const Diagnostics found = check_step(in, 64, {});
  CHECK(found.size() >= 2);
  CHECK(to_text(found).find("use ") != std::string::npos);
}

TEST_CASE("of a written layout a hint keeps the values that go with the rest") {
  StepInputs in = inputs(small_model(), layout(2, 1, 4), 1024, 4);
  in.model.experts = {8, 2, 512};
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.layout.sequence_parallel = true;
  in.layout.ep = 4;
  in.layout.etp = 3;
  // Etp 4 leaves 2 of the 8 ranks, which ep 4 does not divide.
  CHECK(only_hint(in) == "use etp 2 or 4");
  CHECK(only_hint(in, 64, true) == "use etp 2");
  in.layout.etp = 2;
  CHECK(check_step(in, 64, {}).empty());
  // A sharding group of 2 replicas of one GPU does not have all 4 ranks of the experts.
  in.layout = layout(1, 1, 8);
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.batch.global_batch = 32;
  in.layout.ep = 4;
  in.layout.dp_shard = 3;
  in.options.zero = 1;
  CHECK(only_hint(in, 64, true) == "use dp_shard 4");
  in.layout.dp_shard = 4;
  CHECK(check_step(in, 64, {}).empty());
}

TEST_CASE("where no value that is offered goes with the rest, expert TP and sharding groups are sought besides") {
  StepInputs in = inputs(small_model(), layout(2, 1, 4), 1024, 4);
  in.model.experts = {8, 2, 512};
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.layout.sequence_parallel = true;
  in.layout.ep = 8;
  in.layout.etp = 3;
  CHECK_THAT(only_hint(in, 8, true), Catch::StartsWith("use etp 2 or 4; the nearest layout that works: tp 2, pp 1, ") &&
                                         Catch::Contains(", etp "));
  in.layout = layout(1, 1, 8);
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.batch.global_batch = 32;
  in.layout.ep = 8;
  in.layout.dp_shard = 3;
  in.options.zero = 1;
  CHECK_THAT(only_hint(in, 8, true),
             Catch::StartsWith("use dp_shard 2 or 4; the nearest layout that works: tp 1, pp 1, ") &&
                 Catch::Contains(", dp_shard "));
}
