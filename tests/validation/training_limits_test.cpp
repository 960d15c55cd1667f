// Rows of training steps whose numbers are beyond what is counted with.
#include <catch2/catch.hpp>

#include <string>

#include "training_rows.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

std::string refusal(const TrainingRow& row) {
  const Result<ScoredPlace> place = training_machines().place(row);
  REQUIRE(place.ok());
  const Result<TrainingStep> step = training_step(row, *place);
  return step ? std::string() : step.errors().front().message;
}

}  // namespace

TEST_CASE(
    "degrees, chunks and samples of a row that 32 bits do not hold are its reason, and nothing is divided by them") {
  TrainingRow row = gpt_row();
  row.tp = row.pp = 65536;
  row.dp.reset();
  CHECK(refusal(row) == "tp 65536 x pp 65536 x cp 1 x dp 1 are more than 10000000 GPUs");
  row = gpt_row();
  row.cp = row.dp = 65536;
  CHECK(refusal(row) == "tp 2 x pp 1 x cp 65536 x dp 65536 are more than 10000000 GPUs");
  // DP that counts the replicas of experts: 2 x 2^16 x 2^16 is 0 in 32 bits.
  row = gpt_row();
  row.experts = 8;
  row.topk = 2;
  row.ep = row.dp = 65536;
  CHECK(refusal(row) == "tp 2 x pp 1 x cp 1 x dp 65536 are 131072 GPUs, not 64");
  row = gpt_row();
  row.zero = "hsdp";
  row.tp = row.cp = 65536;
  CHECK(refusal(row) == "tp 65536 x pp 1 x cp 65536 x dp 32 are more than 10000000 GPUs");
  row = gpt_row();
  row.pp = 64;
  row.tp = row.dp = 1;
  row.vpp = "67108864";
  row.schedule = "interleaved";
  CHECK(refusal(row) == "vpp is '67108864', no whole number from 1 to 10000");
  row = gpt_row();
  row.seq = 10'000'000;
  row.mbs = 100'000;
  CHECK(refusal(row) == "seq 10000000 x mbs 100000 are more than 1000000000 tokens");
}

TEST_CASE("what a machine sets for jobs of several nodes sizes the buffers of NCCL that a row's rank keeps") {
  TrainingRow row = gpt_row();
  ScoredPlace place = training_machines().place(row).value();
  CHECK(training_step(row, place)->inputs.nccl_buffers == NcclBuffers());
  place.machine.plugin.environment = {{"NCCL_BUFFSIZE", "8388608"}};
  CHECK(training_step(row, place)->inputs.nccl_buffers.simple == Bytes(8 << 20));
  place.nodes = 1;
  CHECK(training_step(row, place)->inputs.nccl_buffers == NcclBuffers());
}

TEST_CASE("a row's likest machine lends its hardware, not its provider's variables of NCCL") {
  for (const char* gpu : {"A100-SXM4-80GB", "A100-SXM4-40GB", "H100-SXM5-80GB"}) {
    TrainingRow row = gpt_row();
    row.gpu = gpu;
    row.gpus = 64;
    for (const double rate : {50.0, 100.0, 200.0, 400.0}) {
      row.inter_gbps_per_gpu = rate;
      const auto place = training_machines().place(row);
      REQUIRE(place.ok());
      CHECK(place->machine.plugin.environment.empty());
    }
  }
}
