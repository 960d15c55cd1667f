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
// Context parallelism over c ranks (Liu et al. 2023; Jacobs et al. 2023): b s/c tokens a rank, everything else as
// above.
//   ring     the core in c blocks of 1/c of its FLOPs, q and output of the rank with keys and values of one; beside all
//            but the last go the next keys and values, 2 w b (s/c) k d/t. Backward: beside the first block keys and
//            values, beside those between these and the gradients of the last, beside the last its, then home the last
//            gradients: 2c - 1 messages. Tokens lie so that causal work is equal (each rank an early and a late piece)
//   ulysses  an all-to-all of q, k and v before the core (w b (s/c) (a + 2k) d/t) and of its output behind it, backward
//            the same; the core has all tokens of a/(t c) heads, and where there are fewer KV heads than ranks copies
// Full attention matrices are computed by unfused kernels, half of them (causal) by flash. Sources: Korthikanti
// et al. 2022, Megatron-LM's fused kernels, Dao et al. 2022. Left out: launch gaps, transposes, casts.
#include <algorithm>
#include <cmath>
#include <utility>

#include "workload/parameters.hpp"
#include "workload/share.hpp"

namespace collcast::workload {

Share::Share(const StepInputs& in) {
  const TransformerConfig& m = in.model;
  const double t = in.layout.tp, c = in.layout.cp, b = in.batch.micro_batch, s = in.batch.sequence;
  tokens = b * s / c;
  rows = in.layout.sequence_parallel ? tokens / t : tokens;
  hidden = m.hidden;
  query = static_cast<double>(m.heads) * m.head_dim / t;
  key = static_cast<double>(kv_heads_per_rank(m, in.layout.tp)) * m.head_dim;
  ffn = m.ffn / t;
  vocab = m.vocab / t;
  lse = b * m.heads * s / (t * c);
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
    const auto stands_alone = [](const Segment& x) { return x.ring_messages > 0; };
    if (!result.empty() && !result.back().then && result.back().all_to_all_bytes == 0 && !stands_alone(result.back()) &&
        !stands_alone(s) && result.back().category == s.category) {
      std::vector<Operation>& operations = result.back().operations;
      operations.insert(operations.end(), s.operations.begin(), s.operations.end());
      result.back().then = s.then;
      result.back().all_to_all_bytes = s.all_to_all_bytes;
      result.back().name = s.name;
    } else {
      result.push_back(std::move(s));
    }
  }
  return result;
}

namespace {

using Operations = std::vector<Operation>;

template <class T>
void extend(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

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
    Operations before{linear_.forward(qkv_)};
    extend(before, rotary("rotary"));
    const Operations mlp{linear_.forward(up_), activation_forward(), linear_.forward(down_)};
    std::vector<Segment> all{{"attention norm", category, {norm_forward("attention norm")}, tp_.gather},
                             {"attention heads", category, before, std::nullopt, 0, 0, query_exchange()}};
    extend(all, core_forward(category, output_exchange()));
    all.push_back({"attention", category, {linear_.forward(projection_)}, tp_.reduce});
    all.push_back(
        {"mlp norm", category, {residual_forward("attention residual"), norm_forward("mlp norm")}, tp_.gather});
    all.push_back({"mlp", category, mlp, tp_.reduce});
    all.push_back({"residual", category, {residual_forward("mlp residual")}, std::nullopt});
    return joined(std::move(all));
  }

  /// Sequence parallelism gathers the gradient where the forward scattered, scatters where it gathered, and
  /// gathers the input of the column-parallel matrices once more for their weight gradients.
  std::vector<Segment> backward() const {
    Operations mlp = linear_backward(down_, 0);
    mlp.push_back(activation_backward());
    Operations between{norm_backward("mlp norm"), branch_sum("attention residual")};
    extend(between, residual_backward("attention residual"));
    std::vector<Segment> all{
        {"mlp residual", Category::backward, residual_backward("mlp residual"), tp_.gather},
        {"mlp down", Category::backward, mlp, splits() ? std::nullopt : tp_.gather},
        {"mlp", Category::backward, linear_backward(up_, up_.out), tp_.reduce},
        {"mlp norm", Category::backward, between, tp_.gather},
        {"projection", Category::backward, linear_backward(projection_, 0), std::nullopt, 0, 0, output_exchange()}};
    if (in_.options.recompute == Recompute::selective) extend(all, core_forward(Category::recompute, 0));
    extend(all, core_backward());
    all.push_back(
        {"attention core", Category::backward, rotary("rotary gradient"), splits() ? std::nullopt : tp_.gather});
    all.push_back({"attention", Category::backward, linear_backward(qkv_, qkv_.out), tp_.reduce});
    all.push_back({"attention norm",
                   Category::backward,
                   {norm_backward("attention norm"), branch_sum("layer input")},
                   std::nullopt});
    return joined(all);
  }

  /// What a zero-bubble backward leaves out, with the inputs that sequence parallelism gathers for it.
  std::vector<Segment> weights() const {
    if (!splits()) return {};
    Operations mlp = weight_gradients(up_, up_.out), attention = weight_gradients(qkv_, qkv_.out);
    extend(mlp, weight_gradients(down_, 0));
    extend(attention, weight_gradients(projection_, 0));
    return joined({{"mlp input", Category::backward, {}, tp_.gather},
                   {"mlp weights", Category::backward, mlp, tp_.gather},
                   {"attention weights", Category::backward, attention, std::nullopt}});
  }

  Segments all() const {
    Segments segments{forward(Category::forward), {}, weights()};
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

  bool splits() const { return splits_backward(in_.layout.schedule); }

  Operations linear_backward(const Linear& l, double sharded_bias) const {
    Operations ops{linear_.input_gradient(l)};
    if (!splits()) extend(ops, weight_gradients(l, sharded_bias));
    return ops;
  }
  Operations weight_gradients(const Linear& l, double sharded_bias) const {
    Operations ops{linear_.weight_gradient(l)};
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
    const Volume bytes(w_ * (share_.tokens * head_elements + share_.scores));
    constexpr double row_bytes = 16;
    const bool aligned = std::fmod(w_ * in_.model.head_dim, row_bytes) == 0;
    return aligned ? timer_.core_gemm(name, share_.core, bytes) : timer_.unaligned_gemm(name, share_.core, bytes);
  }

  bool ring() const { return in_.layout.cp > 1 && in_.layout.cp_exchange == ContextExchange::ring; }
  bool ulysses() const { return in_.layout.cp > 1 && in_.layout.cp_exchange == ContextExchange::ulysses; }
  double output_exchange() const { return ulysses() ? w_ * share_.tokens * share_.query : 0; }
  double query_exchange() const {
    const double keys = std::max(share_.key, static_cast<double>(in_.layout.cp) * in_.model.head_dim);
    return ulysses() ? w_ * share_.tokens * (share_.query + 2 * keys) : 0;
  }

  /// A kernel of flash attention that reads and writes `moved` times queries and so often keys.
  Operation flash(const std::string& name, double products, double moved) const {
    double q = share_.query, k = share_.key, tokens = share_.tokens;
    if (ulysses()) {
      const double c = in_.layout.cp;
      q /= c;
      k = std::max(k / c, static_cast<double>(in_.model.head_dim));
      tokens *= c;
    }
    return timer_.flash(name, flash_flops(products),
                        Volume(w_ * tokens * (moved * q + moved * k) + 2 * moved * share_.lse));
  }
  /// The same with the keys and values of one rank of the ring.
  Operation flash_block(const std::string& name, double products, double moved) const {
    const double q = share_.query, k = share_.key;
    return timer_.flash(name, flash_flops(products) * (1.0 / in_.layout.cp),
                        Volume(w_ * share_.tokens * (moved * q + moved * k) + 2 * moved * share_.lse));
  }
  Segment ring_segment(Category category, const Operation& block, int blocks, int messages) const {
    return {"attention ring",
            category,
            Operations(static_cast<std::size_t>(blocks), block),
            std::nullopt,
            messages,
            2 * w_ * share_.tokens * share_.key,
            0};
  }

  std::vector<Segment> core_forward(Category category, double exchange) const {
    if (!ring()) return {{"attention core", category, core_kernels(), std::nullopt, 0, 0, exchange}};
    const int c = in_.layout.cp;
    const Operation block = flash_block("flash attention block", 2, 2);
    return {ring_segment(category, block, c - 1, c - 1), {"attention core", category, {block}, std::nullopt}};
  }

  std::vector<Segment> core_backward() const {
    const Category backward = Category::backward;
    if (!ring()) return {{"attention core", backward, core_gradient_kernels(), std::nullopt, 0, 0, query_exchange()}};
    const int c = in_.layout.cp;
    const Operation block = flash_block("flash attention block gradient", 5, 4);
    std::vector<Segment> all{ring_segment(backward, block, 1, 1)};
    if (c > 2) all.push_back(ring_segment(backward, block, c - 2, 2 * (c - 2)));
    all.push_back(ring_segment(backward, block, 1, 1));
    all.push_back(ring_segment(backward, block, 0, 1));
    return all;
  }

  Operations core_kernels() const {
    const double q = share_.query, k = share_.key;
    if (in_.options.attention == Attention::flash) return {flash("flash attention", 2, 2)};
    Operations ops{core_gemm("scores", q + k), memory("softmax", 2 * w_ * share_.scores)};
    if (in_.model.dropout > 0) ops.push_back(memory("attention dropout", (2 * w_ + 1) * share_.scores));
    ops.push_back(core_gemm("values", q + k));
    return ops;
  }

  Operations core_gradient_kernels() const {
    const double q = share_.query, k = share_.key;
    if (in_.options.attention == Attention::flash) return {flash("flash attention gradient", 5, 4)};
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

int launches(const std::vector<Segment>& segments) {
  std::size_t count = 0;
  for (const Segment& s : segments) count += s.operations.size() + (s.then ? 1 : 0);
  return static_cast<int>(count);
}

Seconds launch_wait(const StepInputs& in, int launches, Seconds busy) {
  return std::max(launches * in.options.launch - busy, Seconds{});
}

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
  for (const workload::Segment& s : segments.weights) extend(all.backward, s);
  return all;
}

}  // namespace collcast
