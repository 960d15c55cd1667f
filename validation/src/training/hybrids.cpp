// Nemotron 3: dimensions of huggingface.co/nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16, config.json, which Nemotron 3.5
// Lightning 30B-A3B shares, with a layer besides that predicts a second token. Super and Ultra predict two more: the
// FLOPs of a token that their rows count (tflops_gpu x time: 84 and 361 G) have these in them.
#include "training/hybrids.hpp"

#include <utility>

#include "collcast/base/words.hpp"
#include "gpu_name.hpp"

namespace collcast {

namespace {

TransformerConfig nemotron_3_nano() {
  TransformerConfig m;
  m.layers = 52;
  m.pattern = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME";
  m.hidden = 2688;
  m.heads = 32;
  m.kv_heads = 2;
  m.head_dim = 128;
  m.ffn = 1856;
  m.vocab = 131'072;
  m.experts.count = 128;
  m.experts.top_k = 6;
  m.experts.ffn = 1856;
  m.experts.shared_ffn = 3712;
  m.linear.rule = LinearRule::ssd;
  m.linear.key_heads = 8;
  m.linear.key_dim = 128;
  m.linear.value_heads = 64;
  m.linear.value_dim = 64;
  return m;
}

/// 88 layers whose experts work on rows of 1024 elements (NVIDIA-NeMo/Megatron-Bridge,
/// src/megatron/bridge/models/nemotronh/nemotron_h_provider.py at 160cccc: Nemotron3SuperProvider).
TransformerConfig nemotron_3_super() {
  TransformerConfig m = nemotron_3_nano();
  m.pattern = "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME";
  m.layers = static_cast<int>(m.pattern.size());
  m.hidden = 4096;
  m.ffn = 2688;
  m.experts.count = 512;
  m.experts.top_k = 22;
  m.experts.ffn = 2688;
  m.experts.shared_ffn = 5376;
  m.experts.latent = 1024;
  m.linear.value_heads = 128;
  return m;
}

/// 108 layers, rows of 2048 elements (NVIDIA/Megatron-LM, examples/post_training/modelopt/conf/nvidia).
TransformerConfig nemotron_3_ultra() {
  TransformerConfig m = nemotron_3_super();
  m.pattern =
      "MEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME";
  m.layers = static_cast<int>(m.pattern.size());
  m.hidden = 8192;
  m.heads = 64;
  m.ffn = 5120;
  m.experts.ffn = 5120;
  m.experts.shared_ffn = 10'240;
  m.experts.latent = 2048;
  m.linear.value_heads = 256;
  return m;
}

/// The model with layers behind that predict `tokens` more, of attention and experts each
/// (mtp_hybrid_override_pattern).
TransformerConfig predicting(TransformerConfig m, int tokens) {
  m.mtp_layers = tokens;
  return m;
}

}  // namespace

std::optional<TransformerConfig> hybrid_model(const std::string& model_id) {
  const std::string id = lower(model_id);
  if (id.starts_with("nemotron_3_nano")) return nemotron_3_nano();
  if (id.starts_with("nemotron_3_5_lightning")) return predicting(nemotron_3_nano(), 1);
  if (id.starts_with("nemotron_3_super")) return predicting(nemotron_3_super(), 2);
  if (id.starts_with("nemotron_3_ultra")) return predicting(nemotron_3_ultra(), 2);
  return std::nullopt;
}

}  // namespace collcast
