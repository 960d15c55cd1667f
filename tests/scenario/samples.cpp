#include "samples.hpp"

#include "scenario/parse.hpp"

namespace collcast::samples {

namespace {

const char* const leaf_spine = R"(
schema: collcast.topology.v1
name: cluster
title: "A cluster"
extends: other
systems: [one, two]
nccl_versions: {cluster: 2.7.3}
sources: ["a data sheet"]
teaching: false
nodes: {default: 2, max: 8}
gpu:
  model: G1
  memory: 80GB
  memory_bandwidth: 2TB/s
  peak: {fp32: 1TFLOP/s, tf32: 2TFLOP/s, fp16: 3TFLOP/s, bf16: 3TFLOP/s, fp8: 4TFLOP/s, fp4: 5TFLOP/s, int8: 4TFLOP/s}
  kernels: a100
  kernel_scale: 1.25
  power_limit: 70%
  source: "a data sheet"
host: {cpu: amd, source: "a data sheet"}
node:
  devices:
    gpu: {kind: gpu, count: 4}
    nic: {kind: nic, count: 4}
  links:
    - {from: gpu, to: gpu, wiring: ring, kind: nvlink, bandwidth: 300GB/s, latency: 500ns, source: s}
    - {from: gpu, to: nic, wiring: pairs, pairs: [[0, 1], [1, 0]], kind: pcie, bandwidth: 30GB/s, latency: 1us, source: s}
network:
  kind: leaf_spine
  attach: nic
  link: {bandwidth: 200Gb/s, latency: 1us}
  rail_optimized: true
  nodes_per_leaf: 4
  spines: 2
  oversubscription: 2
  spine_latency: 1us
  plugin: {latency: 75us, gpudirect: false, sockets: true, collnet: false, environment: {NCCL_PROTO: Simple}}
  source: s
)";

std::string small_machine(const std::string& network) {
  return "schema: collcast.topology.v1\nname: small\nnode:\n  devices:\n    host: {kind: host, count: 1}\nnetwork:\n" +
         network;
}

/// `text` with the path of a table of products where it says PRODUCTS.
std::string with_products(std::string text) {
  const std::string word = "PRODUCTS", path = COLLCAST_SOURCE_DIR "/tests/scenario/products.csv";
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += path.size())
    text.replace(at, word.size(), path);
  return text;
}

const std::string kernels = with_products(R"(
schema: collcast.kernels.v1
name: g1
sources: ["measured"]
gemm:
  bf16: {overhead: 5us, compute: 0.8, memory: 0.9, source: s, measured: {file: PRODUCTS, dtype: bfloat16, peak: 312TFLOP/s, memory_bandwidth: 2TB/s}, sustained: {compute: 0.7, source: s}}
  fp16: {overhead: 5us, compute: 0.8, memory: 0.9, source: s, measured: {file: PRODUCTS, dtype: bfloat16, peak: 312TFLOP/s, memory_bandwidth: 2TB/s}, sustained: {compute: 0.7, source: s}}
  fp32: {overhead: 5us, compute: 0.8, memory: 0.9, source: s, measured: {file: PRODUCTS, dtype: bfloat16, peak: 312TFLOP/s, memory_bandwidth: 2TB/s}, sustained: {compute: 0.7, source: s}}
  tf32: {overhead: 5us, compute: 0.8, memory: 0.9, source: s, measured: {file: PRODUCTS, dtype: bfloat16, peak: 312TFLOP/s, memory_bandwidth: 2TB/s}, sustained: {compute: 0.7, source: s}}
  fp8: {overhead: 5us, compute: 0.8, memory: 0.9, source: s, measured: {file: PRODUCTS, dtype: bfloat16, peak: 312TFLOP/s, memory_bandwidth: 2TB/s}, sustained: {compute: 0.7, source: s}}
  fp4: {overhead: 5us, compute: 0.8, memory: 0.9, source: s, measured: {file: PRODUCTS, dtype: bfloat16, peak: 312TFLOP/s, memory_bandwidth: 2TB/s}, sustained: {compute: 0.7, source: s}}
  int8: {overhead: 5us, compute: 0.8, memory: 0.9, source: s, measured: {file: PRODUCTS, dtype: bfloat16, peak: 312TFLOP/s, memory_bandwidth: 2TB/s}, sustained: {compute: 0.7, source: s}}
attention:
  bf16: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  fp16: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  fp32: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  tf32: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  fp8: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  fp4: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  int8: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
attention_gradient:
  bf16: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  fp16: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  fp32: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  tf32: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  fp8: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  fp4: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  int8: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
grouped_gemm:
  bf16: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  fp16: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  fp32: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  tf32: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  fp8: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  fp4: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  int8: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
grouped_gemm_gradient:
  bf16: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  fp16: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  fp32: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  tf32: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  fp8: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  fp4: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
  int8: {overhead: 5us, compute: 0.5, memory: 0.9, source: s}
memory_bound: {overhead: 5us, compute: 1, memory: 0.9, source: s}
beside_collectives: {compute: 0.8, source: s}
host_copies: {rate: 0.8, source: s}
)");

const char* const step = R"(
schema: collcast.scenario.v1
name: inline
title: "A step"
topology: dgx-a100
nodes: 1
ranks: 8
model:
  name: tiny
  layers: 4
  hidden: 1024
  heads: 16
  kv_heads: 16
  head_dim: 64
  ffn: 4096
  vocab: 32000
  gated_mlp: true
  tied_embeddings: false
  biases: false
  causal: true
  learned_positions: 0
  dropout: 0.1
  experts: {count: 8, top_k: 2, ffn: 2048, shared_ffn: 1024, shared_gate: true, dense_layers: 1, every: 1, groups: 4, group_top_k: 2, latent: 512, biases: true, clamp: true}
  mla: {q_rank: 256, kv_rank: 128, nope: 48, rope: 16, value: 64}
  window: {tokens: 512, full_every: 2, full_first: 1, full_at: [2]}
  linear_attention: {key_heads: 4, value_heads: 8, key_dim: 64, value_dim: 32, conv: 4, rule: gated-delta, full_every: 2, full_at: [2]}
  mtp_num_layers: 1
  attention_gate: false
  hybrid_layer_pattern: "M*-E"
  parallel_mlp: {norms: 0, one_reduce: false}
layout: {tp: 8, pp: 1, dp: 1, cp: 1, ep: 1, etp: 8, cp_exchange: ring, dp_shard: 1, order: tp-pp-dp, sequence_parallel: true, uneven_stages: true, schedule: 1f1b, vpp: 1}
batch: {sequence: 2048, micro_batch: 1, global_batch: 8}
training:
  precision: fp8
  num_layers_at_start_in_bf16: 1
  num_layers_at_end_in_bf16: 0
  recompute: selective
  recompute_modules: [core_attn, layernorm]
  recompute_layers: 50%
  attention: flash
  zero: 1
  reshard_after_forward: true
  no_sync: false
  gradient_bytes: 2
  cross_entropy_loss_fusion: false
  moe_grouped_gemm: false
  moe_grouped_mlp_fusion: false
  gradient_accumulation_fusion: false
  cpu_offloading_num_layers: 0
  save_original_input: true
  overlap_dp: true
  align_grad_reduce: true
  overlap_tp: ring
  bucket: 40MB
  overlap_pp: false
  launch: 5us
  launch_backward: 2us
  overlap_cp: true
  overlap_ep: true
  moe_token_dispatcher: flex
  expert_imbalance: 1.2
  moe_capacity_factor: 1.5
  communication: {tp_gather: fp8, tp_reduce: bf16, ep_dispatch: fp8, ep_combine: fp16, parameters: bf16, gradients: bf16, scale_block: 128}
  gradient_compression: {method: ratio, ratio: 4, moved: 8, error_feedback: true}
  delayed_all_reduce: true
  lora: {rank: 16, target_modules: [linear_qkv, linear_fc2], base_weights: nf4}
  precision_aware_optimizer: {exp_avg_dtype: bf16, exp_avg_sq_dtype: fp8, main_params_dtype: fp32, store_param_remainders: true}
  optimizer_state_offload: {fraction: 0.5, chunk_size_mb: 256}
  optimizer: true
  embedding_and_logits: true
search:
  tp: [1, 8]
  pp: [1, 2]
  dp: [1]
  micro_batch: [1, 2]
  sequence_parallel: [true, false]
  recompute: [none, full]
  zero: [0, 1]
  cp: [1]
  ep: [1, 2]
  vpp: [1, 2]
  values: all
collectives: {library: ideal, algorithm: ring, chunks: 4, channels: auto, sharing: max_min, priorities: [tp, dp], weights: {tp: 4, cp: 2, ep: 2, pp: 2, dp: 1}}
faults:
  - {gpu: 0-3, compute: 80%, jitter: 3%, distribution: exponential, seed: 7, from: 1s, until: 2s}
  - {link: node0.gpu1, bandwidth: 50GB/s, added_latency: 2us, failed: false, jitter: 20%, distribution: normal, seed: 7, from: 1s, until: 2s}
  - {node: 0, compute: 90%, jitter: 3%, distribution: normal, seed: 7, from: 1s, until: 2s}
placement: {nodes: random, seed: 7}
gates:
  step_s: {max: 16 s}
  tokens_per_s_per_gpu: {min: 900tokens/s}
  model_flops_per_s_per_gpu: {min: 300TFLOP/s}
  mfu: {min: 40 %}
  hfu: {min: 40%}
  peak_bytes: {max: 76GiB}
  tp_exposed_s: {max: 4s}
  pp_exposed_s: {max: 500ms}
  cp_exposed_s: {max: 500ms}
  ep_exposed_s: {max: 500ms}
  dp_exposed_s: {max: 500ms}
  bubble_s: {max: 1s}
sweep:
  layout.tp: [2, 4]
  batch.micro_batch: 1:2:x2
what_if:
  wide:
    title: "More tensor parallelism"
    set: {layout.tp: 4}
)";

const char* const served = R"(
schema: collcast.scenario.v1
name: served
topology: dgx-a100
model: {layers: 4, hidden: 1024, heads: 16, ffn: 4096, vocab: 32000, experts: {count: 8, top_k: 2, ffn: 2048}, window: {tokens: 256}}
layout: {tp: 2, pp: 2, dp: 2, ep: 2, sequence_parallel: true}
inference:
  batch: 8
  prompt_tokens: 512
  output_tokens: 16
  microbatches: 2
  precision: fp16
  kv_precision: fp8
  state_precision: bf16
  kv_window: false
  expert_imbalance: 1.2
  batching: static
  first_token_overhead: 30ms
  speculative: {method: ngram, num_speculative_tokens: 4, acceptance_length: 1.5}
search:
  tp: [1, 2, 4]
  pp: [1, 2]
  dp: [1, 2, 4]
  ep: [1, 2]
  micro_batch: [1, 2, 4]
  sequence_parallel: [true]
  batch: [8, 16]
gates:
  ttft_s: {max: 1s}
  tpot_s: {max: 100ms}
  tokens_per_s: {min: 1tokens/s}
)";

const char* const loaded = R"(
schema: collcast.scenario.v1
name: loaded
topology: dgx-a100
model:
  {layers: 4, hidden: 1024, heads: 16, ffn: 4096, vocab: 32000, mla: {q_rank: 256, kv_rank: 128, nope: 48, rope: 16, value: 64},
   sparse_attention: {heads: 4, dim: 64, top_k: 256}}
layout: {tp: 2, dp: 2}
inference:
  batch: 8
  prompt_tokens: 512
  output_tokens: 16
  batching: continuous
  load: {concurrency: 12, requests: 100, range_ratio: 0.8, max_batched_tokens: 1024, recv_interval: 10, seed: 3}
  speculative: {method: mtp, num_speculative_tokens: 3, acceptance_rate: 0.7}
gates:
  ttft_s: {max: 1s, p50: {max: 1s}, p90: {max: 2s}, p99: {max: 3s}, longest: {max: 4s}}
  tpot_s: {p50: {max: 1s}, p90: {max: 1s}, p99: {max: 1s}, longest: {max: 1s}}
)";

const char* const from_config = R"(
schema: collcast.scenario.v1
name: from-config
topology: dgx-h100
model: {config: models/llama3-8b/config.json}
batch: {sequence: 2048, global_batch: 8}
training: {gradient_compression: {method: powersgd, rank: 2, min_rate: 2}}
)";

const char* const tasks = R"(
schema: collcast.scenario.v1
name: measured
topology: dgx-a100
tasks:
  overlap: false
  list:
    - {name: a, stream: compute, duration: 10ms, category: compute}
    - {name: b, stream: tp, duration: 5ms, after: [a], category: tp}
gates: {step_s: {max: 20ms}}
)";

const char* const schedule = R"(
schema: collcast.schedule.v1
name: mine
title: "1F1B on two stages"
micro_batches: 2
chunks: 1
placement: loop
stages:
  - [F0, F1, B0, B1]
  - [F0, B0, F1, B1]
)";

Reading read_with(const std::string& text, const std::function<void(input::Reader&, const input::Node&)>& read) {
  const Result<input::Node> tree = input::parse_yaml(text, "f.yaml");
  if (!tree) return {tree.errors(), {}};
  input::Reader reader;
  reader.error(input::repeated_keys(*tree));
  read(reader, *tree);
  std::vector<input::KnownKey> known = reader.known();
  return {reader.take(), std::move(known)};
}

Reading topology_of(const std::string& text) {
  return read_with(text, [](input::Reader& r, const input::Node& tree) { input::read_topology(r, tree, "f.yaml"); });
}
Reading kernels_of(const std::string& text) {
  return read_with(text, [](input::Reader& r, const input::Node& tree) { input::read_kernels(r, tree, "f.yaml"); });
}
Reading schedule_of(const std::string& text) {
  return read_with(text, [](input::Reader& r, const input::Node& tree) { input::read_schedule(r, tree, "f.yaml"); });
}
Reading scenario_of(const std::string& text) {
  return read_with(text, [](input::Reader& r, const input::Node& tree) {
    ScenarioOptions options;
    options.search = shipped();
    if (const input::Node* what_if = tree.find("what_if")) input::read_variants(r, *what_if);
    if (const input::Node* sweep = tree.find("sweep")) input::read_sweep(r, *sweep);
    input::read_scenario(r, tree, "f.yaml", options, {});
  });
}

}  // namespace

SearchPath shipped() { return {{COLLCAST_SOURCE_DIR "/topologies"}, {COLLCAST_SOURCE_DIR "/scenarios"}}; }

std::vector<Sample> all() {
  const std::string link = "  attach: host\n  source: s\n  link: {bandwidth: 1GB/s, latency: 0s}\n";
  return {{"leaf_spine", leaf_spine, topology_of},
          {"torus", small_machine("  kind: torus\n  dims: [2, 3]\n" + link), topology_of},
          {"mesh", small_machine("  kind: mesh\n  dims: [2, 3]\n" + link), topology_of},
          {"ring", small_machine("  kind: ring\n" + link), topology_of},
          {"star", small_machine("  kind: star\n" + link), topology_of},
          {"no network", small_machine("  kind: none\n"), topology_of},
          {"kernels", kernels, kernels_of},
          {"schedule", schedule, schedule_of},
          {"step", step, scenario_of},
          {"served", served, scenario_of},
          {"a run of requests", loaded, scenario_of},
          {"from config", from_config, scenario_of},
          {"tasks", tasks, scenario_of}};
}

}  // namespace collcast::samples
