// Attention between its projections, on one rank: products of queries with keys and of probabilities with values, and
// what context parallelism sends for them. Terms as in layer.cpp, bytes at least:
//   core, unfused      scores, softmax (2 w per element of the attention matrix), dropout (2 w + 1: its mask),
//                      values, their transpose to rows of all heads (2 w T a d/t:
//                      context_layer.permute().contiguous()); backward two GEMMs for each one, softmax 3 w, dropout 2 w
//                      + 1. Megatron's fused softmax (megatron/model/fused_softmax.py, is_kernel_available) takes four
//                      of a rank's b a/t matrices at a time: where there are not so many, PyTorch's runs, one after the
//                      other to 32 bit, scaled, masked, softmax, back to 16 bit (w + 4, 8, 8, 8, 4 + w); backward the
//                      same, softmax 12. Its limit on s is another in each version and left out
//   core, flash        w T (2a + 2k) d/t + 4 b a s/t; backward 2.5 x the FLOPs (five products against two), reads
//                      q k v, output and its gradient, writes three gradients
// Context parallelism over c ranks (Liu et al. 2023; Jacobs et al. 2023): b s/c tokens a rank, everything else as
// above.
//   ring     the core in c blocks of 1/c of its FLOPs, q and output of the rank with keys and values of one; beside all
//            but the last go the next keys and values, 2 w b (s/c) k d/t. Backward: beside the first block keys and
//            values, beside those between these and the gradients of the last, beside the last its, then home the last
//            gradients: 2c - 1 messages. Tokens lie so that causal work is equal (each rank an early and a late piece)
//   ulysses  an all-to-all of q, k and v before the core (w b (s/c) (a + 2k) d/t) and of its output behind it, backward
//            the same; the core has all tokens of a/(t c) heads, and where there are fewer KV heads than ranks copies
// Inference: new tokens attend to the keys and values of those before them, which are read from memory: over_cache.
// Full attention matrices are computed by unfused kernels, half of them (causal) by flash.
// Sliding window of W tokens: flash computes min(position, W) keys for each query, unfused kernels mask the rest of the
// full matrix. Left out: the tiles at both ends of the window, which are computed whole (128 x 128 or so: a window of
// 128 costs up to twice). Keys that an indexer chooses: indexer.hpp. A ring sends all keys and values all the same. A
// server reads and keeps W of them.
#include "workload/layer/attention_core.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace collcast::workload {

AttentionCore::AttentionCore(const StepInputs& in, const KernelTimer& timer, const Share& share, bool windowed)
    : in_(in),
      timer_(timer),
      share_(share),
      indexer_(in, timer, share),
      w_(timer.precision().activation),
      window_(windowed ? in.model.window.tokens : 0) {}

bool AttentionCore::cuts_keys() const {
  return window_ > 0 && window_ < in_.batch.context + std::int64_t{in_.batch.sequence};
}

/// Of products with queries or keys, and with values or their gradients.
Flops AttentionCore::flash_flops(double of_keys, double of_values) const {
  const double s = in_.batch.sequence, kept = in_.batch.context, products = of_keys + of_values * share_.of_values;
  if (cuts_keys()) return share_.core * (products * causal_keys(kept, s, window_) / (s * (s + kept)));
  return share_.core * (products * (in_.model.causal ? (2 * kept + s + 1) / (2 * (s + kept)) : 1.0));
}
/// Of two products of keys or of values one.
Operation AttentionCore::core_gemm(const char* name, bool of_values) const {
  const double elements = of_values ? share_.output + share_.value : share_.query + share_.key;
  const Flops flops = share_.core * (of_values ? share_.of_values : 1);
  const Volume bytes(w_ * (share_.tokens * elements + share_.scores));
  constexpr double row_bytes = 16;
  const int head_dim = of_values ? in_.model.value_dim() : in_.model.key_dim();
  const bool aligned = std::fmod(w_ * head_dim, row_bytes) == 0;
  return aligned ? timer_.core_gemm(name, flops, bytes) : timer_.unaligned_gemm(name, flops, bytes);
}

double AttentionCore::output_exchange() const { return ulysses() ? w_ * share_.tokens * share_.output : 0; }
double AttentionCore::query_exchange() const {
  return ulysses() ? w_ * share_.tokens * (share_.query + share_.core_key + share_.core_value) : 0;
}

/// A kernel of flash attention: forward, or the five products of the backward, which reads and writes twice as much.
Operation AttentionCore::flash(const std::string& name, bool backward) const {
  if (indexer_.chooses()) return indexer_.core(name, backward);
  // With Ulysses all tokens and a rank's share of the heads: as many elements as of its tokens and all heads.
  return flash_kernel(name, backward, 1, share_.tokens,
                      share_.query + share_.output + share_.core_key + share_.core_value);
}
/// The same with the keys and values of one rank of the ring.
Operation AttentionCore::flash_block(const std::string& name, bool backward) const {
  return flash_kernel(name, backward, 1.0 / in_.layout.cp, share_.tokens,
                      share_.query + share_.output + share_.key + share_.value);
}
Operation AttentionCore::flash_kernel(const std::string& name, bool backward, double part, double tokens,
                                      double elements) const {
  const double moved = backward ? 2 : 1;
  const Flops flops = backward ? flash_flops(3, 2) : flash_flops(1, 1);
  return timer_.flash(name, flops * part, Volume(w_ * tokens * moved * elements + 4 * moved * share_.lse), backward);
}
Segment AttentionCore::ring_segment(Category category, const Operation& block, int blocks, int messages) const {
  return {"attention ring",
          category,
          Operations(static_cast<std::size_t>(blocks), block),
          std::nullopt,
          messages,
          w_ * share_.tokens * (share_.key + share_.value),
          0};
}

std::vector<Segment> AttentionCore::forward(Category category, double exchange) const {
  if (!ring()) return {{"attention core", category, kernels(), std::nullopt, 0, 0, exchange}};
  const int c = in_.layout.cp;
  const Operation block = flash_block("flash attention block", false);
  return {ring_segment(category, block, c - 1, c - 1), {"attention core", category, {block}, std::nullopt}};
}

std::vector<Segment> AttentionCore::backward() const {
  const Category backward = Category::backward;
  if (!ring()) return {{"attention core", backward, gradient_kernels(), std::nullopt, 0, 0, query_exchange()}};
  const int c = in_.layout.cp;
  const Operation block = flash_block("flash attention block gradient", true);
  std::vector<Segment> all{ring_segment(backward, block, 1, 1)};
  if (c > 2) all.push_back(ring_segment(backward, block, c - 2, 2 * (c - 2)));
  all.push_back(ring_segment(backward, block, 1, 1));
  all.push_back(ring_segment(backward, block, 0, 1));
  return all;
}

/// Inference: queries of the new tokens of b sequences meet the keys and values of c kept ones and their own, which are
/// read once. Latent attention keeps vectors of its small rank, the same for all heads, and multiplies queries and
/// output by the matrices that would expand them (DeepSeek-V2, section 2.1.3: absorbed).
Operation AttentionCore::over_cache() const {
  const double all = in_.batch.context + in_.batch.sequence, b = in_.batch.micro_batch;
  const int most = indexer_.exists() ? in_.model.sparse.top_k : cuts_keys() ? window_ : 0;
  const double kept = most > 0 ? std::min(all, most + in_.batch.sequence - 1.0) : all;
  const double of_keys = in_.serving->kv_bytes * b * kept;
  if (in_.model.latent.kv_rank == 0)
    return timer_.cached_attention(
        "attention over the cache", flash_flops(1, 1),
        Volume(w_ * share_.tokens * (share_.query + share_.output) + of_keys * (share_.key + share_.value)));
  const double rank = in_.model.latent.kv_rank, rope = in_.model.latent.rope;
  const double heads = static_cast<double>(in_.model.heads) / in_.layout.tp;
  return timer_.cached_attention("attention over the cache",
                                 Flops(2 * share_.tokens * heads * kept * (2 * rank + rope)),
                                 Volume(w_ * share_.tokens * heads * (2 * rank + rope) + of_keys * (rank + rope)));
}

bool AttentionCore::softmax_is_fused() const {
  constexpr int matrices_of_a_block = 4;
  constexpr double bytes_of_16_bit = 2;
  const std::int64_t matrices = std::int64_t{in_.batch.micro_batch} * (in_.model.heads / in_.layout.tp);
  return w_ != bytes_of_16_bit || matrices % matrices_of_a_block == 0;
}

AttentionCore::Operations AttentionCore::softmax() const {
  if (softmax_is_fused()) return {memory("softmax", 2 * w_ * share_.scores)};
  return {memory("softmax cast", (w_ + 4) * share_.scores), memory("softmax scale", 8 * share_.scores),
          memory("softmax mask", 8 * share_.scores), memory("softmax", 8 * share_.scores),
          memory("softmax cast back", (4 + w_) * share_.scores)};
}

AttentionCore::Operations AttentionCore::softmax_gradient() const {
  if (softmax_is_fused()) return {memory("softmax gradient", 3 * w_ * share_.scores)};
  return {memory("softmax gradient cast", (w_ + 4) * share_.scores), memory("softmax gradient", 12 * share_.scores),
          memory("softmax gradient mask", 8 * share_.scores), memory("softmax gradient scale", 8 * share_.scores),
          memory("softmax gradient cast back", (4 + w_) * share_.scores)};
}

AttentionCore::Operations AttentionCore::kernels() const {
  if (in_.batch.context > 0) return {over_cache()};
  if (in_.options.attention == Attention::flash) return {flash("flash attention", false)};
  Operations ops{core_gemm("scores", false)};
  const Operations probabilities = softmax();
  ops.insert(ops.end(), probabilities.begin(), probabilities.end());
  if (in_.model.dropout > 0) ops.push_back(memory("attention dropout", (2 * w_ + 1) * share_.scores));
  ops.push_back(core_gemm("values", true));
  ops.push_back(memory("heads transpose", 2 * w_ * share_.tokens * share_.output));
  return ops;
}

AttentionCore::Operations AttentionCore::gradient_kernels() const {
  if (in_.options.attention == Attention::flash) return {flash("flash attention gradient", true)};
  Operations ops{core_gemm("value gradient", true), core_gemm("probability gradient", true)};
  if (in_.model.dropout > 0) ops.push_back(memory("attention dropout gradient", (2 * w_ + 1) * share_.scores));
  const Operations of_softmax = softmax_gradient();
  ops.insert(ops.end(), of_softmax.begin(), of_softmax.end());
  ops.push_back(core_gemm("query gradient", false));
  ops.push_back(core_gemm("key gradient", false));
  return ops;
}

}  // namespace collcast::workload
