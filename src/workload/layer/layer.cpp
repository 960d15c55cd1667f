// One transformer layer on one rank, kernel by kernel.
//
// With T = b s tokens (b s/c on each of c context-parallel ranks), w bytes per element, T' = T (T/t with sequence
// parallelism), bytes at least:
//   norm               forward 2 w T' h; backward 5: x and dy for dx, x and dy again for the weights' gradient
//   linear layers      each operand once; backward two GEMMs of the forward's size
//   rotary             2 w T (a + k) d/t, both ways
//   activation         plain 2 w, gated 3 w per element of T f/t; backward 3 w and 5 w
//   residual           3 w T' h (+ 1: the dropout mask); backward dropout 2 w + 1, then the two branches' sum 3 w
//   bias gradients     one more read of the output gradient
//   qkv gradients      2 w T (a + 2k) d/t with unfused attention, whose code splits what the one product of queries,
//   keys
//                      and values gives into views: the backward of a split is a copy (Megatron-LM v2.x and v3.0,
//                      megatron/model/transformer.py: split_tensor_along_last_dim)
//   qkv bias           2 w T (a + 2k) d/t forward with unfused attention, whose code adds it by itself (Megatron-LM,
//                      megatron/core/tensor_parallel/layers.py); others are added by the kernel that follows
// Latent attention (DeepSeek-V2): down into the ranks r_q and r_kv + d_r on a rank's own rows (T'), by matrices that
// every TP rank has; TP gathers w T (r_q + r_kv + d_r) instead of hidden states; up to heads and the core with keys of
// d_n + d_r and values of d_v elements. Without a query rank the hidden states are gathered, and the way down is of T
// rows. Experts: layer_experts.cpp.
//
// A gate of what attention gives (Qwen3-Next): a d/t more columns of the first product; 3 w T a d/t, backward 5 w.
//
// Attention between its projections: attention_core.cpp, of linear attention linear_attention.cpp; the indexer of
// sparse attention: indexer.hpp. Sources: Korthikanti et al. 2022, Megatron-LM's fused kernels, Dao et al. 2022. Left
// out: launch gaps, casts.
#include "workload/layer/layer.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "workload/layer/host_copies.hpp"
#include "workload/wire.hpp"

namespace collcast::workload {

Layer::Layer(const StepInputs& in, LayerKind kind)
    : in_(in),
      shape_(kind.shape),
      latent_(in.model.latent.kv_rank > 0 && kind.shape.attends()),
      frozen_(is_frozen(in.options)),
      recompute_(kind.whole ? Recompute::none : in.options.recompute),
      timer_(in),
      share_(in),
      linear_(in, timer_, share_),
      adapters_(in, timer_),
      core_(in, timer_, share_, kind.windowed),
      linear_core_(in, timer_, share_),
      indexer_(in, timer_, share_),
      expert_kernels_(in, timer_, share_),
      tp_(in.layout),
      w_(timer_.precision().activation),
      qkv_{"qkv", share_.hidden, share_.query + share_.gate + 2 * share_.key},
      projection_{"projection", share_.output, share_.hidden},
      up_{in.model.gated_mlp ? "mlp up+gate" : "mlp up", share_.hidden, (in.model.gated_mlp ? 2 : 1) * share_.ffn},
      down_{"mlp down", share_.ffn, share_.hidden} {
  if (latent_) take_latent();
  if (shape_.is_linear()) {
    const LinearShare linear(in);
    qkv_ = {"linear attention in", share_.hidden, linear.columns};
    projection_ = {"linear attention out", linear.values, share_.hidden};
  }
  if (indexer_.exists()) take_indexer();
  if (shape_.has_experts()) take_experts();
  if (frozen_) take_adapters();
}

std::vector<Segment> Layer::forward(Category category) const {
  std::vector<Segment> all;
  if (shape_.has_mixer()) all = attention_forward(category);
  if (shape_.has_experts()) extend(all, experts_forward(category));
  if (shape_.has_mlp()) extend(all, mlp_forward(category));
  if (!shape_.has_feed_forward())
    all.push_back({"residual", category, {residual_forward("attention residual")}, std::nullopt});
  return joined(std::move(all));
}

std::vector<Segment> Layer::backward() const {
  std::vector<Segment> all = mlp_again();
  if (shape_.has_experts()) extend(all, experts_backward());
  if (shape_.has_mlp()) extend(all, mlp_backward());
  Operations between;
  if (shape_.has_feed_forward()) {
    if (has_mlp_norm()) between.push_back(norm_backward("mlp norm"));
    between.push_back(branch_sum(shape_.has_mixer() ? "attention residual" : "layer input"));
  }
  if (!shape_.has_mixer()) {
    if (!splits()) extend(between, accumulation());
    all.push_back({"mlp norm", Category::backward, between, std::nullopt});
    return joined(all);
  }
  extend(between, residual_backward("attention residual"));
  if (one_reduce())
    all.push_back({"projection", Category::backward, joined_projection_backward(between), std::nullopt});
  else
    extend(all, row_backward("mlp norm", between, "projection", projection_));
  extend(all.back().operations, gate_backward());
  all.back().all_to_all_bytes = core_.output_exchange();
  extend(all, attention_again());
  extend(all, core_backward());
  if (const Operations ops = indexer_backward(); !ops.empty())
    all.push_back({"attention core", Category::backward, ops, std::nullopt});
  extend(all, heads_backward());
  return joined(all);
}

std::vector<Segment> Layer::weights() const {
  if (!splits()) return {};
  const bool mlp_inputs = has_mlp_matrices() && gathers_input(up_);
  const bool heads_inputs = shape_.has_mixer() && gathers_heads_input();
  Operations last = shape_.has_mixer() ? attention_weights() : Operations();
  extend(last, accumulation());
  return joined({{"mlp input", Category::backward, {}, mlp_inputs ? tp_.gather : std::nullopt},
                 {"mlp weights", Category::backward, mlp_weights(), heads_inputs ? tp_.gather : std::nullopt, 0, 0, 0,
                  heads_input_bytes()},
                 {"attention weights", Category::backward, last, std::nullopt}});
}

Segments Layer::all() const {
  if (in_.serving) return {forward(Category::forward), {}, {}};
  Segments segments{forward(Category::forward), {}, weights()};
  if (recompute_ == Recompute::full) segments.backward = forward(Category::recompute);
  for (Segment& s : backward()) segments.backward.push_back(std::move(s));
  put_on_wire(in_, timer_, segments);
  cast_gathered_weights(in_, timer_, shape_, segments);
  return segments;
}

void Layer::take_adapters() {
  using enum AdapterModule;
  const std::pair<Linear*, AdapterModule> all[] = {
      {&qkv_, linear_qkv},
      {&q_down_, linear_q_down_proj},
      {&q_up_, compresses_queries() ? linear_q_up_proj : linear_q_proj},
      {&kv_down_, linear_kv_down_proj},
      {&kv_up_, linear_kv_up_proj},
      {&projection_, linear_proj},
      {&up_, linear_fc1},
      {&down_, linear_fc2},
      {&expert_up_, linear_fc1},
      {&expert_down_, linear_fc2},
  };
  for (const auto& [matrix, module] : all) matrix->adapter = has_adapter(in_, module);
}

// --- latent attention ---

void Layer::take_latent() {
  const LatentAttention& a = in_.model.latent;
  const double q = a.q_rank, kv = a.kv_rank, heads = static_cast<double>(in_.model.heads) / in_.layout.tp;
  q_down_ = {"q down", share_.hidden, q};
  kv_down_ = {"kv down", share_.hidden, kv + a.rope};
  q_up_ = {q > 0 ? "q up" : "q", q > 0 ? q : share_.hidden, share_.query};
  kv_up_ = {"kv up", kv, heads * a.nope + share_.value};
}

Operation Layer::latent_norm(const char* name, double passes) const {
  return memory(name, passes * w_ * rows_down() * (in_.model.latent.q_rank + in_.model.latent.kv_rank));
}

Operations Layer::down_forward() const {
  Operations ops;
  if (compresses_queries()) extend(ops, forward_of(q_down_, rows_down()));
  extend(ops, forward_of(kv_down_, rows_down()));
  ops.push_back(latent_norm("latent norm", 2));
  return ops;
}

Operations Layer::down_backward() const {
  Operations ops{latent_norm("latent norm gradient", frozen_ ? 3 : 5)};
  for (const Linear* l : {&kv_down_, &q_down_}) {
    if (l == &q_down_ && !compresses_queries()) continue;
    extend(ops, input_gradients(*l, rows_down()));
    if (!splits()) extend(ops, gradients_of(*l, rows_down()));
  }
  return ops;
}

// --- attention ---

std::vector<Segment> Layer::attention_forward(Category category) const {
  Operations norm{norm_forward("attention norm")}, before;
  if (latent_) extend(norm, down_forward());
  extend(norm, indexer_keys());
  if (latent_) {
    extend(before, forward_of(q_up_));
    extend(before, forward_of(kv_up_));
  } else {
    extend(before, forward_of(qkv_));
    if (adds_qkv_bias()) before.push_back(memory("qkv bias", 2 * w_ * share_.tokens * qkv_.out));
  }
  extend(before, prepared_heads());
  extend(before, indexer_choice());
  std::vector<Segment> all;
  if (rings() && !latent_) {
    all = {{"attention norm", category, norm, std::nullopt}};
    extend(all, gathered_in_ring("attention heads", category, linear_.forward(qkv_, rows_of_piece())));
    before.erase(before.begin());
  } else {
    all = {{"attention norm", category, norm, tp_.gather, 0, 0, 0, heads_bytes() + indexer_bytes()}};
  }
  all.push_back({"attention heads", category, before, std::nullopt, 0, 0, core_.query_exchange()});
  extend(all, core_forward(category, core_.output_exchange()));
  if (one_reduce())
    all.push_back({"attention", category, forward_of(projection_), std::nullopt});
  else if (rings())
    extend(all, reduced_in_ring("attention", category, projection_));
  else
    all.push_back({"attention", category, forward_of(projection_), tp_.reduce});
  return all;
}

Operations Layer::prepared_heads() const { return shape_.is_linear() ? linear_core_.prepare() : rotary("rotary"); }
Operations Layer::prepared_heads_gradient() const {
  return shape_.is_linear() ? linear_core_.prepare_gradient() : rotary("rotary gradient");
}

std::vector<Segment> Layer::core_forward(Category category, double exchange) const {
  if (shape_.is_linear()) return {linear_core_.forward(category)};
  std::vector<Segment> all = core_.forward(category, exchange);
  if (share_.gate > 0) all.back().operations.push_back(memory("attention gate", 3 * w_ * share_.tokens * share_.gate));
  return all;
}
std::vector<Segment> Layer::core_backward() const {
  if (shape_.is_linear()) return {linear_core_.backward()};
  return core_.backward();
}
Operations Layer::gate_backward() const {
  if (shape_.is_linear() || share_.gate == 0) return {};
  return {memory("attention gate gradient", 5 * w_ * share_.tokens * share_.gate)};
}

std::vector<Segment> Layer::heads_backward() const {
  Operations inputs, weights, norm;
  if (latent_) {
    inputs = input_gradients(kv_up_);
    extend(inputs, input_gradients(q_up_));
    norm = down_backward();
  } else {
    inputs = input_gradients(qkv_);
  }
  if (!splits()) weights = heads_weights();
  extend(norm, {norm_backward("attention norm"), branch_sum("layer input")});
  if (!splits()) extend(norm, accumulation());
  Operations first = prepared_heads_gradient();
  if (splits_qkv()) first.push_back(memory("qkv gradients joined", 2 * w_ * share_.tokens * qkv_.out));
  std::vector<Segment> all =
      column_backward(in_, {"attention core", first, "attention", inputs, weights, heads_bytes(),
                            heads_products().out > 0 || !gathers_heads_input(), heads_input_bytes()});
  all.push_back({"attention norm", Category::backward, norm, std::nullopt});
  return all;
}

Operations Layer::heads_weights() const {
  if (!latent_) return weight_gradients(qkv_, qkv_.out);
  Operations ops = weight_gradients(kv_up_, 0);
  extend(ops, weight_gradients(q_up_, 0));
  extend(ops, indexer_weights());
  return ops;
}

Operations Layer::accumulation() const {
  if (frozen_) return gradient_accumulation(in_, timer_, layer_adapters(in_, shape_).total());
  return gradient_accumulation(in_, timer_, layer_parameters(in_.model, in_.layout, shape_).total());
}

Operations Layer::attention_weights() const {
  Operations ops;
  if (latent_) {
    ops = weight_gradients(q_up_, 0);
    extend(ops, weight_gradients(kv_up_, 0));
    if (compresses_queries()) extend(ops, gradients_of(q_down_, rows_down()));
    extend(ops, gradients_of(kv_down_, rows_down()));
    extend(ops, indexer_weights());
  } else {
    ops = weight_gradients(qkv_, qkv_.out);
  }
  extend(ops, weight_gradients(projection_, 0));
  return ops;
}

// --- the MLP, behind attention or beside it ---

bool Layer::one_reduce() const {
  return in_.model.parallel_mlp.norms > 0 && in_.model.parallel_mlp.one_reduce && in_.layout.tp > 1;
}

Operations Layer::joined_projection_backward(Operations between) const {
  extend(between, linear_backward(projection_, 0));
  return between;
}

std::vector<Segment> Layer::mlp_forward(Category category) const {
  Operations norm;
  if (shape_.has_mixer() && !one_reduce()) norm.push_back(residual_forward("attention residual"));
  if (has_mlp_norm()) norm.push_back(norm_forward("mlp norm"));
  std::vector<Segment> all = mlp_module(category, norm);
  all.push_back({"residual", category, {residual_forward("mlp residual")}, std::nullopt});
  return all;
}

std::vector<Segment> Layer::mlp_module(Category category, const Operations& before) const {
  Operations mlp = mlp_products_forward();
  // What attention gives is added to the ranks' own parts of what the MLP does, or to the residual.
  if (one_reduce()) mlp.push_back(memory("branches sum", 3 * w_ * share_.tokens * share_.hidden));
  if (!rings()) return {{"mlp norm", category, before, tp_.gather}, {"mlp", category, mlp, tp_.reduce}};
  std::vector<Segment> all{{"mlp norm", category, before, std::nullopt}};
  extend(all, gathered_in_ring("mlp up", category, linear_.forward(up_, rows_of_piece())));
  Operations between = adapters_.forward(up_, share_.tokens);
  between.push_back(activation_forward("activation", share_.tokens, share_.ffn));
  all.push_back({"mlp", category, between, std::nullopt});
  if (one_reduce()) all.push_back({"branches", category, {mlp.back()}, std::nullopt});
  extend(all, reduced_in_ring("mlp", category, down_));
  return all;
}

std::vector<Segment> Layer::mlp_backward() const {
  std::vector<Segment> all = row_backward("mlp residual", residual_backward("mlp residual"), "mlp down", down_);
  extend(all, column_backward(in_, {"mlp down",
                                    {activation_backward("activation", share_.tokens, share_.ffn)},
                                    "mlp",
                                    input_gradients(up_),
                                    splits() ? Operations() : weight_gradients(up_, up_.out),
                                    0,
                                    mlp_products().out > 0 || !gathers_input(up_)}));
  return all;
}

// --- TP in rings: products in t pieces of T/t rows, all but one of them beside the t - 1 messages of a gather or of
// a reduction (Wang et al. 2023; Transformer Engine's ring exchange) ---

Segment Layer::ring_pieces(std::string name, Category category, const Operation& piece, CollectiveKind beside) const {
  Segment s{std::move(name), category, Operations(static_cast<std::size_t>(in_.layout.tp - 1), piece), std::nullopt};
  s.under = TpBeside{beside};
  return s;
}

std::vector<Segment> Layer::gathered_in_ring(const char* name, Category category, const Operation& piece) const {
  return {ring_pieces(std::string(name) + " ring", category, piece, *tp_.gather),
          {name, category, {piece}, std::nullopt}};
}

std::vector<Segment> Layer::reduced_in_ring(const char* name, Category category, const Linear& l) const {
  const Operation piece = linear_.forward(l, rows_of_piece());
  Operations first = adapters_.forward(l, share_.tokens);
  first.push_back(piece);
  return {{name, category, first, std::nullopt},
          ring_pieces(std::string(name) + " ring", category, piece, *tp_.reduce)};
}

std::vector<Segment> Layer::row_backward(const char* before, Operations first, const char* name,
                                         const Linear& l) const {
  if (!rings())
    return {{before, Category::backward, std::move(first), tp_.gather},
            {name, Category::backward, linear_backward(l, 0), std::nullopt}};
  std::vector<Segment> all{{before, Category::backward, std::move(first), std::nullopt}};
  extend(all, gathered_in_ring(name, Category::backward, linear_.input_gradient(l, rows_of_piece())));
  extend(all.back().operations, adapters_.input_gradient(l, share_.tokens));
  if (!splits()) extend(all.back().operations, weight_gradients(l, 0));
  return all;
}

Operations Layer::mlp_weights() const {
  Operations ops;
  if (has_mlp_matrices()) {
    ops = weight_gradients(up_, shape_.has_experts() ? 0 : up_.out);
    extend(ops, weight_gradients(down_, 0));
  }
  if (shape_.has_experts()) {
    extend(ops, grouped_weights(expert_up_));
    extend(ops, grouped_weights(expert_down_));
    extend(ops, latent_weights(expert_latent_down_));
    extend(ops, latent_weights(expert_latent_up_));
    if (!frozen_) ops.push_back(router_gemm("router weight gradient"));
  }
  return ops;
}

// --- matrices, with the adapters beside them ---

Operations Layer::as_read(const Linear& l, double matrices) const {
  if (!is_quantised(in_.options)) return {};
  return {timer_.memory(std::string(l.name) + " dequantisation", Volume((nf4_bytes + w_) * matrices * l.in * l.out),
                        timer_.kernels_of_experts(matrices))};
}

Operations Layer::forward_of(const Linear& l, double rows, double matrices) const {
  Operations ops = as_read(l, matrices);
  ops.push_back(linear_.forward(l, rows, matrices));
  extend(ops, adapters_.forward(l, rows, matrices));
  return ops;
}

Operations Layer::input_gradients(const Linear& l, double rows, double matrices) const {
  Operations ops = as_read(l, matrices);
  ops.push_back(linear_.input_gradient(l, rows, matrices));
  extend(ops, adapters_.input_gradient(l, rows, matrices));
  return ops;
}

Operations Layer::gradients_of(const Linear& l, double rows, double matrices) const {
  return frozen_ ? adapters_.weight_gradient(l, rows, matrices)
                 : Operations{linear_.weight_gradient(l, rows, matrices)};
}

bool Layer::gathers_heads_input() const {
  if (!latent_) return gathers_input(qkv_);
  return gathers_input(q_up_) || gathers_input(kv_up_);
}

double Layer::heads_bytes() const {
  if (!latent_) return 0;
  return w_ * share_.tokens * (share_.latent + (compresses_queries() ? 0 : share_.hidden));
}

double Layer::heads_input_bytes() const {
  if (!latent_ || compresses_queries() || gathers_input(q_up_)) return heads_bytes();
  return w_ * share_.tokens * share_.latent;
}

Operations Layer::mlp_products_forward() const {
  Operations ops = forward_of(up_);
  ops.push_back(activation_forward("activation", share_.tokens, share_.ffn));
  extend(ops, forward_of(down_));
  return ops;
}

// --- kernels of all of them ---

Operation Layer::norm_backward(const char* name) const {
  return memory(std::string(name) + " gradient", (frozen_ ? 3 : 5) * w_ * per_row());
}

Operation Layer::residual_forward(const char* name) const {
  return memory(name, (3 * w_ + (in_.model.dropout > 0 ? 1 : 0)) * per_row());
}

Operations Layer::residual_backward(const char* name) const {
  Operations ops;
  if (in_.model.dropout > 0) ops.push_back(memory(std::string(name) + " dropout gradient", (2 * w_ + 1) * per_row()));
  if (in_.model.biases && !frozen_) ops.push_back(memory(std::string(name) + " bias gradient", w_ * per_row()));
  return ops;
}

Operation Layer::branch_sum(const char* name) const {
  return memory(std::string(name) + " gradient sum", 3 * w_ * per_row());
}

Operations Layer::linear_backward(const Linear& l, double sharded_bias) const {
  Operations ops = input_gradients(l);
  if (!splits()) extend(ops, weight_gradients(l, sharded_bias));
  return ops;
}

Operations Layer::weight_gradients(const Linear& l, double sharded_bias) const {
  Operations ops = gradients_of(l);
  if (in_.model.biases && sharded_bias > 0 && !frozen_)
    ops.push_back(memory(std::string(l.name) + " bias gradient", w_ * share_.tokens * sharded_bias));
  return ops;
}

Operation Layer::activation_forward(const char* name, double rows, double width) const {
  return memory(name, (in_.model.gated_mlp ? 3 : 2) * w_ * rows * width);
}

Operation Layer::activation_backward(const char* name, double rows, double width) const {
  return memory(std::string(name) + " gradient", (in_.model.gated_mlp ? 5 : 3) * w_ * rows * width);
}

Operations Layer::rotary(const char* name) const {
  if (in_.model.learned_positions > 0) return {};
  return {memory(name, 2 * w_ * share_.tokens * (share_.query + share_.key))};
}

Launches launches(const std::vector<Segment>& segments) {
  Launches count;
  for (const Segment& s : segments) {
    for (const Operation& op : s.operations)
      (s.category == Category::backward ? count.of_gradients : count.by_model) += op.kernels;
    count.by_model += (s.then ? 1 : 0) + (s.exchange ? 1 : 0) + (s.under ? 1 : 0);
  }
  return count;
}

Seconds launch_wait(const StepInputs& in, Launches launches, Seconds busy) {
  const Seconds launch = in.options.launch, of_gradients = in.options.launch_backward.value_or(launch);
  return std::max(launches.by_model * launch + launches.of_gradients * of_gradients - busy, Seconds{});
}

Segments layer_segments(const StepInputs& in, LayerKind kind) {
  const auto of = [&](const StepInputs& inputs) {
    Segments all = Layer(inputs, kind).all();
    all.copies = host_copies(in);
    return all;
  };
  if (!kind.bf16) return of(in);
  StepInputs otherwise = in;
  otherwise.options.precision = "bf16";
  return of(otherwise);
}

double dispatch_bytes(const StepInputs& in) {
  const Share share(in);
  return KernelTimer(in).precision().activation * share.sent * share.expert_row * expert_load(in.options, in.layout);
}

}  // namespace collcast::workload

namespace collcast {

namespace {

LayerOperations operations_of(const StepInputs& in, workload::LayerKind kind) {
  const workload::Segments segments = workload::layer_segments(in, kind);
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

/// Of the first kind of layers of such a shape that the model has; empty without.
LayerOperations first_operations(const StepInputs& in, const std::function<bool(LayerShape)>& takes) {
  for (const workload::LayerKind& kind : workload::layer_kinds())
    for (int layer = 0; takes(kind.shape) && layer < in.model.layers; ++layer)
      if (workload::kind_of_layer(in, layer) == kind) return operations_of(in, kind);
  return {};
}

}  // namespace

LayerOperations layer_operations(const StepInputs& in) { return operations_of(in, workload::shown_kind(in)); }

LayerOperations linear_attention_operations(const StepInputs& in) {
  if (linear_layers(in.model) == 0 || workload::shown_kind(in).shape.is_linear()) return {};
  return first_operations(in, &LayerShape::is_linear);
}

LayerOperations feed_forward_operations(const StepInputs& in) {
  if (in.model.pattern.empty() || !workload::shown_kind(in).shape.has_mixer()) return {};
  return first_operations(in, [](LayerShape shape) { return !shape.has_mixer(); });
}

}  // namespace collcast
