// What is trained, how it is split, and with which options: the typed inputs of a step.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/topology/spec.hpp"

namespace collcast {

/// A dense decoder-only transformer (MHA, GQA or MQA; plain or gated MLP).
struct TransformerConfig {
  std::string name;
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;  ///< usually hidden / heads
  int ffn = 0;       ///< MLP width
  int vocab = 0;
  bool gated_mlp = false;  ///< three MLP matrices (SwiGLU) instead of two
  bool tied_embeddings = false;
  bool biases = false;  ///< biases in the linear layers, and two vectors per norm (LayerNorm)
  bool causal = true;
  int learned_positions = 0;  ///< rows of a learned position embedding; 0: rotary or none
  double dropout = 0.0;       ///< > 0 keeps dropout masks (1 byte per element)
};
/// Of the whole model, replicas not counted.
double parameter_count(const TransformerConfig&);

enum class RankOrder { tp_pp_dp, tp_cp_ep_dp_pp };
enum class PipelineSchedule { gpipe, one_f_one_b, interleaved };
enum class Recompute { none, selective, full };
enum class Attention { unfused, flash };

std::string_view to_string(RankOrder);
std::string_view to_string(PipelineSchedule);
std::string_view to_string(Recompute);
std::string_view to_string(Attention);

struct ParallelLayout {
  int tp = 1, pp = 1, dp = 1;
  int vpp = 1;         ///< model chunks of a stage; above 1 with schedule interleaved only
  int cp = 1, ep = 1;  ///< carried for outputs; only 1 is modelled yet
  bool sequence_parallel = false;
  RankOrder order = RankOrder::tp_pp_dp;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int world() const { return tp * pp * dp * cp; }
};

struct Batch {
  int sequence = 0;      ///< tokens per sample
  int micro_batch = 1;   ///< samples per micro-batch and replica
  int global_batch = 0;  ///< samples per step over all replicas
  int micro_batches(const ParallelLayout& l) const { return global_batch / (micro_batch * l.dp); }
};

struct TrainingOptions {
  std::string precision = "bf16";  ///< of GEMMs and activations: a key of GpuSpec::peak
  Recompute recompute = Recompute::none;
  Attention attention = Attention::flash;
  int zero = 0;                      ///< 0: replicated optimizer; 1: distributed optimizer
  int gradient_bytes = 4;            ///< per parameter, as kept and as reduced (Megatron 4; 2)
  bool overlap_dp = true;            ///< gradient buckets under the last backward
  Bytes bucket{40'000'000};          ///< gradient bucket size
  bool overlap_pp = true;            ///< asynchronous pipeline transfers
  bool optimizer = true;             ///< false: no optimizer step and no optimizer state
  bool embedding_and_logits = true;  ///< false: transformer layers only (layer benchmarks)
};

/// What TrainingOptions::precision can be.
std::vector<std::string> training_precisions();

/// What attention and logits run in: fp8 is for the linear layers only, the rest of an fp8 step is bf16.
std::string core_precision(const TrainingOptions&);

/// How far below its data sheet a GPU's kernels run: time = overhead + max(flops/(compute*peak),
/// bytes/(memory*bandwidth)). From measured kernels; the file says which and how they were fitted.
struct KernelEfficiency {
  Seconds overhead{};
  double compute = 1.0;
  double memory = 1.0;
  std::string source;
};
struct KernelModel {
  std::string name;
  std::string file;
  std::map<std::string, KernelEfficiency> gemm;       ///< per precision
  std::map<std::string, KernelEfficiency> attention;  ///< flash attention per precision
  KernelEfficiency memory_bound;                      ///< norm, softmax, activation, optimizer
};

}  // namespace collcast
