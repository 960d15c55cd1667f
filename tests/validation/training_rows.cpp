#include "training_rows.hpp"

#include <catch2/catch.hpp>

#include <utility>

#include "collcast/validation/machines.hpp"

namespace collcast::test {

const ScoredMachines& training_machines() {
  static const ScoredMachines all = [] {
    const SearchPath source_tree{{std::string(COLLCAST_SOURCE_DIR) + "/topologies"}, {}, {}, {}};
    const Result<Machines> shipped = Machines::shipped(source_tree);
    REQUIRE(shipped.ok());
    Result<ScoredMachines> made = ScoredMachines::load(shipped->specs(), source_tree);
    REQUIRE(made.ok());
    return std::move(made).value();
  }();
  return all;
}

TrainingRow gpt_row() {
  TrainingRow row;
  row.row_id = "r";
  row.source_id = "s";
  row.tier = "A";
  row.date = "2021-04";
  row.framework = "Megatron-LM";
  row.model_id = "gpt-3.6B";
  row.gpu = "A100-SXM4-80GB";
  row.intra_net = "NVLink3 300GB/s/dir";
  row.precision = "fp16";
  row.zero = "0";
  row.recompute = "full";
  row.layers = 30;
  row.hidden = 3072;
  row.ffn = 12288;
  row.heads = 32;
  row.vocab = 51200;
  row.seq = 2048;
  row.gpus = 64;
  row.gpus_per_node = 8;
  row.inter_gbps_per_gpu = 200;
  row.tp = 2;
  row.pp = row.cp = 1;
  row.dp = 32;
  row.mbs = 16;
  row.gbs = 512;
  row.iter_s = 4;
  return row;
}

}  // namespace collcast::test
