// One transformer layer on one rank, kernel by kernel.
//
// With T = b s tokens, w bytes per element, T' = T (T/t with sequence parallelism), bytes at least:
//   norm               forward 2 w T' h; backward 5: x and dy for dx, x and dy again for the weights' gradient
//   linear layers      each operand once; backward two GEMMs of the forward's size
//   rotary             2 w T (a + k) d/t, both ways
//   core, unfused      scores, softmax (2 w per element of the attention matrix), dropout (2 w + 1: its mask),
//                      values; backward two GEMMs for each one, softmax 3 w, dropout 2 w + 1
//   core, flash        w T (2a + 2k) d/t + 4 b a s/t; backward 2.5 x the FLOPs (five products against two), reads
//                      q k v, output and its gradient, writes three gradients
//   activation         plain 2 w, gated 3 w per element of T f/t; backward 3 w and 5 w
//   residual           3 w T' h (+ 1: the dropout mask); backward dropout 2 w + 1, then the two branches' sum 3 w
//   bias gradients     one more read of the output gradient
// Full attention matrices are computed by unfused kernels, half of them (causal) by flash. Sources: Korthikanti
// et al. 2022, Megatron-LM's fused kernels, Dao et al. 2022. Left out: launch gaps, transposes, casts.
#include <utility>

#include "workload/parameters.hpp"
#include "workload/share.hpp"

namespace collcast::workload {

Share::Share(const StepInputs& in) {
  const TransformerConfig& m = in.model;
  const double t = in.layout.tp, b = in.batch.micro_batch, s = in.batch.sequence;
  tokens = b * s;
  rows = in.layout.sequence_parallel ? tokens / t : tokens;
  hidden = m.hidden;
  query = static_cast<double>(m.heads) * m.head_dim / t;
  key = static_cast<double>(kv_heads_per_rank(m, in.layout.tp)) * m.head_dim;
  ffn = m.ffn / t;
  vocab = m.vocab / t;
  lse = b * m.heads * s / t;
  scores = lse * s;
  core = Flops(2 * scores * m.head_dim);
}

Operation LinearKernels::forward(const Linear& l) const {
  const Precision& p = timer_.precision();
  return timer_.linear(l.name, Flops(2 * tokens_ * l.in * l.out),
                       Volume(p.operand * (tokens_ * l.in + l.in * l.out) + p.activation * tokens_ * l.out));
}

Operation LinearKernels::input_gradient(const Linear& l) const {
  const Precision& p = timer_.precision();
  return timer_.linear(std::string(l.name) + " input gradient", Flops(2 * tokens_ * l.in * l.out),
                       Volume(p.operand * (tokens_ * l.out + l.in * l.out) + p.activation * tokens_ * l.in));
}

Operation LinearKernels::weight_gradient(const Linear& l) const {
  const Precision& p = timer_.precision();
  const double accumulate = 2.0 * in_.options.gradient_bytes;
  return timer_.linear(std::string(l.name) + " weight gradient", Flops(2 * tokens_ * l.in * l.out),
                       Volume(p.operand * tokens_ * (l.in + l.out) + accumulate * l.in * l.out));
}

TpCollectives::TpCollectives(const ParallelLayout& layout) {
  if (layout.tp == 1) return;
  if (layout.sequence_parallel) gather = CollectiveKind::all_gather;
  reduce = layout.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
}

std::vector<Segment> joined(std::vector<Segment> segments) {
  std::vector<Segment> result;
  for (Segment& s : segments) {
    if (!result.empty() && !result.back().then && result.back().category == s.category) {
      std::vector<Operation>& operations = result.back().operations;
      operations.insert(operations.end(), s.operations.begin(), s.operations.end());
      result.back().then = s.then;
      result.back().name = s.name;
    } else {
      result.push_back(std::move(s));
    }
  }
  return result;
}

namespace {

using Operations = std::vector<Operation>;

void extend(Operations& to, const Operations& more) { to.insert(to.end(), more.begin(), more.end()); }

class Layer {
 public:
  explicit Layer(const StepInputs& in)
      : in_(in),
        timer_(in),
        share_(in),
        linear_(in, timer_, share_),
        tp_(in.layout),
        w_(timer_.precision().activation),
        qkv_{"qkv", share_.hidden, share_.query + 2 * share_.key},
        projection_{"projection", share_.query, share_.hidden},
        up_{in.model.gated_mlp ? "mlp up+gate" : "mlp up", share_.hidden, (in.model.gated_mlp ? 2 : 1) * share_.ffn},
        down_{"mlp down", share_.ffn, share_.hidden} {}

  std::vector<Segment> forward(Category category) const {
    Operations attention{linear_.forward(qkv_)};
    extend(attention, rotary("rotary"));
    extend(attention, core_forward());
    attention.push_back(linear_.forward(projection_));
    const Operations mlp{linear_.forward(up_), activation_forward(), linear_.forward(down_)};
    return joined(
        {{"attention norm", category, {norm_forward("attention norm")}, tp_.gather},
         {"attention", category, attention, tp_.reduce},
         {"mlp norm", category, {residual_forward("attention residual"), norm_forward("mlp norm")}, tp_.gather},
         {"mlp", category, mlp, tp_.reduce},
         {"residual", category, {residual_forward("mlp residual")}, std::nullopt}});
  }

  /// Sequence parallelism gathers the gradient where the forward scattered, scatters where it gathered, and
  /// gathers the input of the column-parallel matrices once more for their weight gradients.
  std::vector<Segment> backward() const {
    Operations mlp = linear_backward(down_, 0);
    mlp.push_back(activation_backward());
    Operations between{norm_backward("mlp norm"), branch_sum("attention residual")};
    extend(between, residual_backward("attention residual"));
    std::vector<Segment> all{{"mlp residual", Category::backward, residual_backward("mlp residual"), tp_.gather},
                             {"mlp down", Category::backward, mlp, tp_.gather},
                             {"mlp", Category::backward, linear_backward(up_, up_.out), tp_.reduce},
                             {"mlp norm", Category::backward, between, tp_.gather},
                             {"projection", Category::backward, linear_backward(projection_, 0), std::nullopt}};
    if (in_.options.recompute == Recompute::selective)
      all.push_back({"attention core", Category::recompute, core_forward(), std::nullopt});
    Operations core = core_backward();
    extend(core, rotary("rotary gradient"));
    all.push_back({"attention core", Category::backward, core, tp_.gather});
    all.push_back({"attention", Category::backward, linear_backward(qkv_, qkv_.out), tp_.reduce});
    all.push_back({"attention norm",
                   Category::backward,
                   {norm_backward("attention norm"), branch_sum("layer input")},
                   std::nullopt});
    return joined(all);
  }

  Segments all() const {
    Segments segments{forward(Category::forward), {}};
    if (in_.options.recompute == Recompute::full) segments.backward = forward(Category::recompute);
    for (Segment& s : backward()) segments.backward.push_back(std::move(s));
    return segments;
  }

 private:
  double per_row() const { return share_.rows * share_.hidden; }
  Operation memory(std::string name, double bytes) const { return timer_.memory(std::move(name), Volume(bytes)); }

  Operation norm_forward(const char* name) const { return memory(name, 2 * w_ * per_row()); }
  Operation norm_backward(const char* name) const {
    return memory(std::string(name) + " gradient", 5 * w_ * per_row());
  }
  Operation residual_forward(const char* name) const {
    return memory(name, (3 * w_ + (in_.model.dropout > 0 ? 1 : 0)) * per_row());
  }
  /// Dropout and the row-parallel bias before it; without them the gradient passes as it is.
  Operations residual_backward(const char* name) const {
    Operations ops;
    if (in_.model.dropout > 0) ops.push_back(memory(std::string(name) + " dropout gradient", (2 * w_ + 1) * per_row()));
    if (in_.model.biases) ops.push_back(memory(std::string(name) + " bias gradient", w_ * per_row()));
    return ops;
  }
  Operation branch_sum(const char* name) const {
    return memory(std::string(name) + " gradient sum", 3 * w_ * per_row());
  }

  Operations linear_backward(const Linear& l, double sharded_bias) const {
    Operations ops{linear_.input_gradient(l), linear_.weight_gradient(l)};
    if (in_.model.biases && sharded_bias > 0)
      ops.push_back(memory(std::string(l.name) + " bias gradient", w_ * share_.tokens * sharded_bias));
    return ops;
  }

  Operation activation_forward() const {
    return memory("activation", (in_.model.gated_mlp ? 3 : 2) * w_ * share_.tokens * share_.ffn);
  }
  Operation activation_backward() const {
    return memory("activation gradient", (in_.model.gated_mlp ? 5 : 3) * w_ * share_.tokens * share_.ffn);
  }
  /// Models with learned positions have none.
  Operations rotary(const char* name) const {
    if (in_.model.learned_positions > 0) return {};
    return {memory(name, 2 * w_ * share_.tokens * (share_.query + share_.key))};
  }

  Flops flash_flops(double products) const {
    const double s = in_.batch.sequence;
    return share_.core * (products * (in_.model.causal ? (s + 1) / (2 * s) : 1.0));
  }
  Operation core_gemm(const char* name, double head_elements) const {
    return timer_.core_gemm(name, share_.core, Volume(w_ * (share_.tokens * head_elements + share_.scores)));
  }

  Operations core_forward() const {
    const double q = share_.query, k = share_.key;
    if (in_.options.attention == Attention::flash)
      return {timer_.flash("flash attention", flash_flops(2),
                           Volume(w_ * share_.tokens * (2 * q + 2 * k) + 4 * share_.lse))};
    Operations ops{core_gemm("scores", q + k), memory("softmax", 2 * w_ * share_.scores)};
    if (in_.model.dropout > 0) ops.push_back(memory("attention dropout", (2 * w_ + 1) * share_.scores));
    ops.push_back(core_gemm("values", q + k));
    return ops;
  }

  Operations core_backward() const {
    const double q = share_.query, k = share_.key;
    if (in_.options.attention == Attention::flash)
      return {timer_.flash("flash attention gradient", flash_flops(5),
                           Volume(w_ * share_.tokens * (4 * q + 4 * k) + 8 * share_.lse))};
    Operations ops{core_gemm("value gradient", q + k), core_gemm("probability gradient", q + k)};
    if (in_.model.dropout > 0) ops.push_back(memory("attention dropout gradient", (2 * w_ + 1) * share_.scores));
    ops.push_back(memory("softmax gradient", 3 * w_ * share_.scores));
    ops.push_back(core_gemm("query gradient", q + k));
    ops.push_back(core_gemm("key gradient", q + k));
    return ops;
  }

  const StepInputs& in_;
  KernelTimer timer_;
  Share share_;
  LinearKernels linear_;
  TpCollectives tp_;
  double w_;
  Linear qkv_, projection_, up_, down_;
};

}  // namespace

Segments layer_segments(const StepInputs& in) { return Layer(in).all(); }

}  // namespace collcast::workload

namespace collcast {

LayerOperations layer_operations(const StepInputs& in) {
  const workload::Segments segments = workload::layer_segments(in);
  LayerOperations all;
  const auto extend = [](std::vector<Operation>& to, const workload::Segment& s) {
    to.insert(to.end(), s.operations.begin(), s.operations.end());
  };
  for (const workload::Segment& s : segments.forward) extend(all.forward, s);
  for (const workload::Segment& s : segments.backward)
    extend(s.category == Category::recompute ? all.recompute : all.backward, s);
  return all;
}

}  // namespace collcast
