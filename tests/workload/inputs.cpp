#include "inputs.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <utility>

#include "collcast/workload/search.hpp"

namespace collcast::test {

namespace {

TransformerConfig gpt(const char* name, int layers, int hidden, int heads) {
  TransformerConfig m;
  m.name = name;
  m.layers = layers;
  m.hidden = hidden;
  m.heads = m.kv_heads = heads;
  m.head_dim = hidden / heads;
  m.ffn = 4 * hidden;
  m.vocab = 51200;
  m.biases = true;
  m.learned_positions = 2048;
  m.dropout = 0.1;
  return m;
}

TransformerConfig llama(const char* name, int layers, int hidden, int heads, int kv_heads, int ffn, int vocab) {
  TransformerConfig m;
  m.name = name;
  m.layers = layers;
  m.hidden = hidden;
  m.heads = heads;
  m.kv_heads = kv_heads;
  m.head_dim = hidden / heads;
  m.ffn = ffn;
  m.vocab = vocab;
  m.gated_mlp = true;
  return m;
}

LinkGroup link(std::string from, std::string to, Wiring wiring, LinkKind kind, Bandwidth bandwidth, Seconds latency) {
  LinkGroup group;
  group.from = std::move(from);
  group.to = std::move(to);
  group.wiring = wiring;
  group.kind = kind;
  group.bandwidth = bandwidth;
  group.latency = latency;
  return group;
}

}  // namespace

TransformerConfig gpt_22b() { return gpt("gpt-22b", 48, 6144, 64); }
TransformerConfig gpt_175b() { return gpt("gpt-175b", 96, 12288, 96); }
TransformerConfig llama_70b(int layers) { return llama("llama-70b", layers, 8192, 64, 8, 28672, 128256); }
TransformerConfig small_model() { return llama("small", 8, 1024, 16, 8, 4096, 32000); }

TransformerConfig small_experts() {
  TransformerConfig m = small_model();
  m.experts = {8, 2, 1024};
  return m;
}

TransformerConfig small_deepseek() {
  TransformerConfig m = small_experts();
  m.experts.shared_ffn = 512;
  m.experts.dense_layers = 2;
  m.latent = {384, 128, 64, 32, 64};
  m.kv_heads = m.heads;
  m.head_dim = 96;
  return m;
}

GpuSpec round_gpu() {
  GpuSpec gpu;
  gpu.model = "round";
  gpu.memory = Bytes(80'000'000'000);
  gpu.memory_bandwidth = Bandwidth(1e12);
  for (const char* precision : {"fp32", "tf32", "fp16", "bf16", "fp8"}) gpu.peak[precision] = FlopRate(100e12);
  gpu.kernels = "ideal";
  return gpu;
}

KernelModel ideal_kernels() {
  KernelModel kernels;
  kernels.name = "ideal";
  for (const char* precision : {"fp32", "fp16", "bf16", "fp8"}) kernels.gemm[precision] = {};
  for (const char* precision : {"fp16", "bf16"}) kernels.attention[precision] = {};
  return kernels;
}

StepInputs inputs(TransformerConfig model, ParallelLayout layout, int sequence, int micro_batches) {
  StepInputs in;
  in.model = std::move(model);
  in.layout = layout;
  in.batch.sequence = sequence;
  in.batch.micro_batch = 2;
  in.batch.global_batch = 2 * micro_batches * layout.dp;
  in.gpu = round_gpu();
  in.kernels = ideal_kernels();
  return in;
}

ParallelLayout layout(int tp, int pp, int dp) {
  ParallelLayout l;
  l.tp = tp;
  l.pp = pp;
  l.dp = dp;
  return l;
}

StepInputs spread(TransformerConfig model, int ep, int tp, int dp, int etp) {
  StepInputs in = inputs(std::move(model), layout(tp, 1, dp), 2048, 2);
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.layout.ep = ep;
  in.layout.etp = etp;
  in.layout.sequence_parallel = tp > 1;
  return in;
}

StepInputs small_step(int tp, int pp, int dp, int micro_batches) {
  return inputs(small_model(), layout(tp, pp, dp), 1024, micro_batches);
}

void draw_options(StepInputs& in, bool with_experts, const std::function<int(int)>& dice) {
  if (with_experts) {
    in.model.experts.count = 8;
    in.model.experts.top_k = 2;
    in.model.experts.ffn = 1024;
    in.layout.ep = 1 << dice(2);
    in.options.overlap_ep = dice(2) == 0;
  }
  in.options.zero = dice(2);
  in.options.recompute = static_cast<Recompute>(dice(3));
  in.options.overlap_dp = dice(3) > 0;
  in.options.overlap_pp = dice(3) > 0;
  in.options.overlap_tp = dice(2) == 0 ? TpOverlap::none : TpOverlap::backward;
  in.options.fuse_accumulation = dice(2) == 0;
}

Fabric cluster(int nodes, double speed) {
  TopologySpec spec;
  spec.name = "cluster";
  spec.file = "test.yaml";
  spec.devices = {
      {"gpu", DeviceKind::gpu, 8, {}}, {"nvswitch", DeviceKind::nvswitch, 1, {}}, {"nic", DeviceKind::nic, 8, {}}};
  spec.links = {link("gpu", "nvswitch", Wiring::all, LinkKind::nvlink, Bandwidth(300e9 * speed), Seconds(250e-9)),
                link("gpu", "nic", Wiring::one_to_one, LinkKind::pcie, Bandwidth(25e9 * speed), Seconds(300e-9))};
  spec.network_devices = "nic";
  spec.network = StarNetwork{Bandwidth(25e9 * speed), Seconds(300e-9)};
  Result<Fabric> fabric = Fabric::build(spec, nodes);
  if (!fabric) FAIL(to_text(fabric.errors()));
  return std::move(fabric).value();
}

const Fabric& four_nodes() {
  static const Fabric fabric = cluster(4);
  return fabric;
}

StepResult forecast(const StepInputs& in, const Fabric& fabric, Method method) {
  Result<StepResult> result = forecast_step(in, fabric, {}, method);
  if (!result) FAIL(to_text(result.errors()));
  return std::move(result).value();
}

StepResult forecast_on_two(const StepInputs& in, Method method) {
  static const Fabric fabric = cluster(2);
  return forecast(in, fabric, method);
}

CollectivePolicy rings(int chunks) {
  CollectivePolicy policy;
  policy.algorithm = "ring";
  policy.chunks = chunks;
  return policy;
}

double bytes(const std::vector<Operation>& operations, const std::string& name) {
  return named(operations, name).bytes.value();
}

void check_family(StepInputs in, int pp) {
  const Fabric fabric = cluster(2);
  const CollectiveTime prices = memoized(step_prices(fabric, {}));
  LayoutFamily family(in, fabric, prices);
  const LayoutChoice choice{2, pp, 2, 2, false, Recompute::selective, 1};
  const auto quick = family.estimate(choice);
  put(choice, in);
  REQUIRE(quick.ok());
  CHECK(quick->step.count() == Approx(forecast_on_two(in).step.count()).epsilon(1e-12));
}

bool has_kernel(const std::vector<Operation>& operations, const std::string& name) {
  return std::any_of(operations.begin(), operations.end(), [&](const Operation& op) { return op.name == name; });
}

const Operation& named(const std::vector<Operation>& operations, const std::string& name) {
  for (const Operation& op : operations)
    if (op.name == name) return op;
  FAIL("no operation is called " << name);
  throw 0;
}

std::vector<std::uint32_t> values(const Group& group) {
  std::vector<std::uint32_t> result;
  for (const Rank r : group.ranks()) result.push_back(r.value());
  return result;
}

}  // namespace collcast::test
