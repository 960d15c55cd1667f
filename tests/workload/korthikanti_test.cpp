// Korthikanti et al. 2022, Table 4: one layer of the 22B model on one DGX A100 (TP 8, sequence 2048, micro-batch
// 4, fp16, unfused attention with dropout), forward and backward. Nothing is fitted to these times: the machine
// is its data sheet (topologies/dgx-a100.yaml), library nccl's constants come from nccl-tests of all machines, the
// kernels come from single GEMMs (topologies/kernels/a100.yaml).
#include <catch2/catch.hpp>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "collcast/base/csv.hpp"
#include "collcast/scenario/scenario.hpp"
#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

SearchPath shipped_machines() { return {{COLLCAST_SOURCE_DIR "/topologies"}, {}}; }

LayerTimes layer(bool sequence_parallel, Recompute recompute, Method method, Library library = Library::ideal) {
  const Result<TopologySpec> spec = load_topology("dgx-a100", shipped_machines());
  if (!spec) FAIL(to_text(spec.errors()));
  const Result<KernelModel> kernels = load_kernels(spec->gpu.kernels, shipped_machines());
  if (!kernels) FAIL(to_text(kernels.errors()));
  const Result<Fabric> fabric = Fabric::build(*spec, 1);
  if (!fabric) FAIL(to_text(fabric.errors()));

  StepInputs in = inputs(gpt_22b(), layout(8, 1, 1), 2048, 1);
  in.gpu = spec->gpu;
  in.kernels = *kernels;
  in.batch.micro_batch = in.batch.global_batch = 4;
  in.layout.sequence_parallel = sequence_parallel;
  in.options.precision = "fp16";
  in.options.attention = Attention::unfused;
  in.options.recompute = recompute;
  in.options.overlap_tp = TpOverlap::backward;
  in.options.fuse_accumulation = false;
  in.options.gradient_bytes = 2;
  in.options.embedding_and_logits = false;
  in.options.optimizer = false;
  CollectivePolicy policy;
  policy.library = library;
  const Result<StepResult> result = forecast_step(in, *fabric, policy, method);
  if (!result) FAIL(to_text(result.errors()));
  return result->layer;
}

/// A layer as it was measured.
struct Measured {
  bool sequence_parallel = false;
  Recompute recompute = Recompute::none;
  double forward_ms = 0, backward_ms = 0;
};

/// Cells of each row by the names of the first line.
std::vector<std::map<std::string, std::string>> rows_of(const std::string& file) {
  std::ifstream in(file);
  std::vector<std::map<std::string, std::string>> rows;
  std::vector<Cell> names;
  for (std::string line; std::getline(in, line);) {
    const std::vector<Cell> cells = read_csv_line(line).cells;
    if (names.empty()) {
      names = cells;
      continue;
    }
    REQUIRE(cells.size() == names.size());
    rows.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) rows.back()[names[i].text] = cells[i].text;
  }
  return rows;
}

/// The one with or without sequence parallelism.
Measured measured(bool sequence_parallel) {
  Measured out;
  out.sequence_parallel = sequence_parallel;
  int found = 0;
  for (const auto& row : rows_of(COLLCAST_SOURCE_DIR "/validation/data/korthikanti-2022/layer-times.csv")) {
    if (row.at("sequence_parallel") != (sequence_parallel ? "1" : "0")) continue;
    const std::string recompute = row.at("recompute"), quantity = row.at("quantity");
    REQUIRE((recompute == "none" || recompute == "selective"));
    out.recompute = recompute == "none" ? Recompute::none : Recompute::selective;
    REQUIRE((quantity == "layer forward" || quantity == "layer backward incl. recompute"));
    (quantity == "layer forward" ? out.forward_ms : out.backward_ms) = std::stod(row.at("value_ms"));
    ++found;
  }
  REQUIRE(found == 2);
  REQUIRE(out.forward_ms > 0);
  REQUIRE(out.backward_ms > 0);
  return out;
}

void within(double share, Seconds predicted, double measured_ms) {
  INFO("predicted " << predicted.count() * 1e3 << " ms, measured " << measured_ms << " ms, "
                    << 100 * (predicted.count() * 1e3 / measured_ms - 1) << " %");
  CHECK(predicted.count() * 1e3 == Approx(measured_ms).epsilon(share));
}

void within(double share, const Measured& m, Method method, Library library = Library::ideal) {
  const LayerTimes t = layer(m.sequence_parallel, m.recompute, method, library);
  within(share, t.forward, m.forward_ms);
  within(share, t.backward, m.backward_ms);
}

}  // namespace

TEST_CASE("the 22B layer with selective recomputation, forward and backward (kl7, kl8): within 15 %") {
  const Measured times = measured(false);
  CHECK(times.recompute == Recompute::selective);
  for (const Method method : {Method::estimate, Method::simulate}) within(0.15, times, method);
}

TEST_CASE("the 22B layer with sequence parallelism, forward and backward (kl3, kl4): within 15 %") {
  const Measured times = measured(true);
  CHECK(times.recompute == Recompute::none);
  for (const Method method : {Method::estimate, Method::simulate}) within(0.15, times, method);
}

TEST_CASE("the 22B layer with collectives as NCCL runs them, which is the default: within 5 %") {
  for (const bool sequence_parallel : {false, true})
    within(0.05, measured(sequence_parallel), Method::estimate, Library::nccl);
}
