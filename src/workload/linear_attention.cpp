// The gated delta rule (Gated DeltaNet, Yang et al. 2024, arXiv 2412.06464), in chunks of C = 64 tokens as the WY form
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
// A server's token reads and writes each state (fp32 unless said otherwise: `mamba_ssm_dtype` of Qwen3.5's config.json)
// and the last inputs of the convolution; 8 d_k d_v FLOPs. Left out: that states go from chunk to chunk one after the
// other, which a long sequence of few heads waits for; fp8 of anything but the projections. None of these kernels was
// measured: they take the efficiencies of GEMMs of attention, of attention over a cache and of memory-bound kernels.
#include "workload/linear_attention.hpp"

namespace collcast::workload {

LinearShare::LinearShare(const StepInputs& in) {
  const LinearAttention& l = in.model.linear;
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
double kept_by_linear_attention(const LinearShare& s) {
  return s.columns + s.channels + 2 * s.keys + linear_chunk * s.heads + 2 * s.values;
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
  return {memory("convolution", 2 * w_ * tokens_ * share_.channels + before),
          memory("query and key norms", 4 * w_ * tokens_ * share_.keys)};
}

std::vector<Operation> LinearCore::prepare_gradient() const {
  return {memory("query and key norms gradient", 6 * w_ * tokens_ * share_.keys),
          memory("convolution gradient", 3 * w_ * tokens_ * share_.channels)};
}

namespace {

constexpr double C = linear_chunk;

struct RuleFlops {  ///< of a token and head
  double all = 0, again = 0;
  double backward() const { return 2 * all + again; }
};
RuleFlops rule_flops(const LinearAttention& l) {
  const double k = l.key_dim, v = l.value_dim;
  const double through = 2 * C * (k + v), states = 4 * k * v;
  return {2 * C * k + 2.0 / 3 * C * C + through + states + 2 * k * v + 2 * C * (k + v), through + states};
}

double rule_bytes(const LinearAttention& l, double w) {
  const double k = l.key_dim, v = l.value_dim;
  return w * (7 * k + 6 * v + 2 * k * v / C) + 12 * C;
}

}  // namespace

Operation LinearCore::rule_in_chunks() const {
  const double rows = tokens_ * share_.heads;
  // A server keeps the last state.
  const double last = in_.serving ? in_.serving->state_bytes * sequences_ * share_.state : 0;
  return timer_.core_gemm(delta_rule, Flops(rows * rule_flops(in_.model.linear).all),
                          Volume(rows * rule_bytes(in_.model.linear, w_) + last), delta_rule_kernels);
}

Operation LinearCore::rule_token_by_token() const {
  return timer_.cached_attention("gated delta rule over the states", Flops(8 * tokens_ * share_.state),
                                 Volume(2 * in_.serving->state_bytes * sequences_ * share_.state +
                                        w_ * tokens_ * (share_.channels + share_.values)));
}

Segment LinearCore::forward(Category category) const {
  return {"linear attention",
          category,
          {from_states() ? rule_token_by_token() : rule_in_chunks(),
           memory("gated norm", 3 * w_ * tokens_ * share_.values)},
          std::nullopt};
}

Segment LinearCore::backward() const {
  const double rows = tokens_ * share_.heads;
  return {"linear attention",
          Category::backward,
          {memory("gated norm gradient", 5 * w_ * tokens_ * share_.values),
           timer_.core_gemm("gated delta rule gradient", Flops(rows * rule_flops(in_.model.linear).backward()),
                            Volume(3 * rows * rule_bytes(in_.model.linear, w_)), 2 * delta_rule_kernels)},
          std::nullopt};
}

}  // namespace collcast::workload
