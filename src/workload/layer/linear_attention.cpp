// Linear attention by either of its rules, in chunks of C tokens (linear_chunk).
//
// The gated delta rule (Gated DeltaNet, Yang et al. 2024, arXiv 2412.06464), C = 64 as the WY form
// of Yang et al. 2024 (arXiv 2406.06484) computes it. For each token and head of values, keys of d_k and values of d_v
// elements, w bytes each, FLOPs:
//   keys with keys of the chunk     2 C d_k
//   inverse of a triangle           2/3 C^2
//   keys and values through it      2 C (d_k + d_v)
//   values less what the state has  2 d_k d_v
//   state                           2 d_k d_v
//   queries with the state          2 d_k d_v
//   queries with keys, and values   2 C (d_k + d_v)
// The backward computes the third to the fifth once more, as their results are not kept, and two gradients of each
// product. Bytes: each of the kernels (products of keys, inverse, W and U, states, output: flash-linear-attention's)
// reads and writes its operands once; w (7 d_k + 6 d_v + 2 d_k d_v / C), as each chunk leaves its state, and 12 C of
// the triangle, half of it in fp32; backward three times as many.
//   convolution   2 w of each channel, with its SiLU; backward 3 w
//   norms         of queries and keys 2 w; backward 3 w
//   gated norm    3 w of each value; backward 5 w
// SSD (Mamba-2, Dao and Gu 2024, arXiv 2405.21060), C = 128 (Megatron-Core, core/ssm/mamba_mixer.py: chunk_size), g
// groups of queries and keys (C and B) of d_k = N, heads of values (x) of d_v = P. For each token, FLOPs:
//   queries with keys of the chunk  2 C d_k g
//   these with values               2 C d_v of each head
//   states of chunks                2 d_k d_v
//   queries with the state          2 d_k d_v
// The backward computes the first and the third once more. Bytes, each kernel's operands once (products, states, their
// passing, scan: state-spaces/mamba, ops/triton/ssd_combined.py): w (4 d_k g + 5 d_v a_v) + 8 C g, scores in fp32, + (8
// + 2 w) d_k d_v a_v / C, states in fp32 until they are passed on; with the gate, which the scan applies. Backward
// three times as many. Norm behind: 2 w of each value, backward 5 w; no norms of queries and keys. A server's token
// reads and writes each state (fp32 unless said otherwise: `mamba_ssm_dtype` of Qwen3.5's config.json) and the last
// inputs of the convolution; 8 d_k d_v FLOPs (SSD 7). Left out: that states go from chunk to chunk one after the other,
// which a long sequence of few heads waits for; fp8 of anything but the projections. None of these kernels was
// measured: they take the efficiencies of GEMMs of attention, of attention over a cache and of memory-bound kernels.
#include "workload/layer/linear_attention.hpp"

namespace collcast::workload {

double linear_chunk(LinearRule rule) { return rule == LinearRule::ssd ? 128 : 64; }

LinearShare::LinearShare(const StepInputs& in) {
  const LinearAttention& l = in.model.linear;
  rule = l.rule;
  const double t = in.layout.tp;
  columns = l.columns() / t;
  channels = l.channels() / t;
  keys = l.keys() / t;
  values = l.values() / t;
  heads = l.value_heads / t;
  state = l.state() / t;
  inputs = (l.conv - 1) * channels;
}

// What the projection gives; the convolution's output; queries and keys behind their norm; the triangle's inverse; what
// the rule gives, and the norm behind it (flash-linear-attention, ops/gated_delta_rule/chunk.py: save_for_backward).
// All in w bytes, in fp8 and fp4 too; the states are computed once more. Left out: decays and steps in fp32.
// SSD: what the projection gives, what the scan gives before its gate and behind it, and the norm (Megatron-Core's
// mamba_split_conv1d_scan_combined, whose backward runs the convolution once more).
double kept_by_linear_attention(const LinearShare& s) {
  if (s.rule == LinearRule::ssd) return s.columns + 3 * s.values;
  return s.columns + s.channels + 2 * s.keys + linear_chunk(s.rule) * s.heads + 2 * s.values;
}

LinearCore::LinearCore(const StepInputs& in, const KernelTimer& timer, const Share& share)
    : in_(in),
      timer_(timer),
      tokens_(share.tokens),
      sequences_(in.batch.micro_batch),
      w_(timer.precision().activation),
      share_(in) {}

std::vector<Operation> LinearCore::prepare() const {
  const double before = from_states() ? 2 * w_ * sequences_ * share_.inputs : 0;
  const Operation convolution = memory("convolution", 2 * w_ * tokens_ * share_.channels + before);
  if (is_ssd()) return {convolution};
  return {convolution, memory("query and key norms", 4 * w_ * tokens_ * share_.keys)};
}

std::vector<Operation> LinearCore::prepare_gradient() const {
  const Operation convolution = memory("convolution gradient", 3 * w_ * tokens_ * share_.channels);
  if (is_ssd()) return {convolution};
  return {memory("query and key norms gradient", 6 * w_ * tokens_ * share_.keys), convolution};
}

namespace {

struct Rule {  ///< of a token and rank
  double flops = 0, again = 0, bytes = 0;
  int kernels = 0;
  double backward_flops() const { return 2 * flops + again; }
};

Rule delta_rule_of(const LinearAttention& l, double heads, double w) {
  const double k = l.key_dim, v = l.value_dim, C = linear_chunk(l.rule);
  const double through = 2 * C * (k + v), states = 4 * k * v;
  return {heads * (2 * C * k + 2.0 / 3 * C * C + through + states + 2 * k * v + 2 * C * (k + v)),
          heads * (through + states), heads * (w * (7 * k + 6 * v + 2 * k * v / C) + 12 * C), delta_rule_kernels};
}

Rule ssd_of(const LinearAttention& l, const LinearShare& share, double w) {
  const double C = linear_chunk(l.rule), groups = share.keys / l.key_dim;
  const double scores = 2 * C * share.keys, states = 2 * share.state;
  return {scores + 2 * C * share.values + 2 * states, scores + states,
          w * (4 * share.keys + 5 * share.values) + 8 * C * groups + (8 + 2 * w) * share.state / C, ssd_kernels};
}

Rule rule_of(const LinearAttention& l, const LinearShare& share, double w) {
  return l.is_ssd() ? ssd_of(l, share, w) : delta_rule_of(l, share.heads, w);
}

}  // namespace

Operation LinearCore::rule_in_chunks() const {
  const Rule rule = rule_of(in_.model.linear, share_, w_);
  // A server keeps the last state.
  const double last = in_.serving ? in_.serving->state_bytes * sequences_ * share_.state : 0;
  return timer_.core_gemm(is_ssd() ? ssd_scan : delta_rule, Flops(tokens_ * rule.flops),
                          Volume(tokens_ * rule.bytes + last), rule.kernels);
}

Operation LinearCore::rule_token_by_token() const {
  return timer_.cached_attention(std::string(is_ssd() ? ssd_scan : delta_rule) + " over the states",
                                 Flops((is_ssd() ? 7 : 8) * tokens_ * share_.state),
                                 Volume(2 * in_.serving->state_bytes * sequences_ * share_.state +
                                        w_ * tokens_ * (share_.channels + share_.values)));
}

Operation LinearCore::norm() const {
  return is_ssd() ? memory("value norm", 2 * w_ * tokens_ * share_.values)
                  : memory("gated norm", 3 * w_ * tokens_ * share_.values);
}

Segment LinearCore::forward(Category category) const {
  return {
      "linear attention", category, {from_states() ? rule_token_by_token() : rule_in_chunks(), norm()}, std::nullopt};
}

Segment LinearCore::backward() const {
  const Rule rule = rule_of(in_.model.linear, share_, w_);
  return {
      "linear attention",
      Category::backward,
      {memory(is_ssd() ? "value norm gradient" : "gated norm gradient", 5 * w_ * tokens_ * share_.values),
       timer_.core_gemm(std::string(is_ssd() ? ssd_scan : delta_rule) + " gradient",
                        Flops(tokens_ * rule.backward_flops()), Volume(3 * tokens_ * rule.bytes), 2 * rule.kernels)},
      std::nullopt};
}

}  // namespace collcast::workload
