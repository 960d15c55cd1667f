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
// rows. Experts (Megatron-Core's all-to-all dispatcher), K of E for each of T' rows, over EP e and expert TP t_e:
//   router             a GEMM of T' h E, top-k 3 x 4 T'E
//   permute, unpermute w (T' + T'K) h each, both ways
//   dispatch, combine  all-to-all of w T'K h x load among e ranks; backward the same two
//   gather, scatter    w T'K t_e h x load among the t_e ranks of an expert; backward the same two
//   sort               2 w T'K t_e h x load before and after the experts of several ranks, both ways
//   experts            grouped GEMMs of T'K t_e x load rows against E/e matrices: a GEMM's overhead for each matrix,
//                      and the rate of one GEMM of all rows (SimuMax's measured ones, B200, 160 and 80 matrices of 5120
//                      x 3072 and 24640 rows: 1.73 and 0.89 ms; so counted 1.69 and 0.89)
//   shared experts     an MLP of all T tokens, with TP's gather and scatter; its gate is left out
// A server without sequence parallelism has all T tokens on every TP rank: no exchange, T K/e x load rows of a rank's
// E/e experts of width f_e/t_e (e t_e = t), and TP's all-reduce of w T h sums up the shared and the other experts at
// once. load: expert_load, of the busiest rank, whom the others wait for. Left out: hiding of these exchanges, tokens
// sent once to a node for several of its experts, loss of balance among the experts of one rank, the losses that keep
// the balance.
//
// Attention between its projections: attention_core.cpp. Sources: Korthikanti et al. 2022, Megatron-LM's fused kernels,
// Dao et al. 2022. Left out: launch gaps, casts.
#include <algorithm>
#include <cmath>
#include <utility>

#include "workload/attention_core.hpp"
#include "workload/parameters.hpp"
#include "workload/share.hpp"
#include "workload/wire.hpp"

namespace collcast::workload {

namespace {

using Operations = std::vector<Operation>;

template <class T>
void extend(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

class Layer {
 public:
  Layer(const StepInputs& in, LayerKind kind)
      : in_(in),
        with_experts_(kind.experts),
        latent_(in.model.latent.kv_rank > 0),
        timer_(in),
        share_(in),
        linear_(in, timer_, share_),
        core_(in, timer_, share_, kind.windowed),
        tp_(in.layout),
        w_(timer_.precision().activation),
        qkv_{"qkv", share_.hidden, share_.query + 2 * share_.key},
        projection_{"projection", share_.output, share_.hidden},
        up_{in.model.gated_mlp ? "mlp up+gate" : "mlp up", share_.hidden, (in.model.gated_mlp ? 2 : 1) * share_.ffn},
        down_{"mlp down", share_.ffn, share_.hidden} {
    if (latent_) take_latent();
    if (with_experts_) take_experts();
  }

  std::vector<Segment> forward(Category category) const {
    std::vector<Segment> all = attention_forward(category);
    extend(all, with_experts_ ? experts_forward(category) : mlp_forward(category));
    return joined(std::move(all));
  }

  /// Sequence parallelism gathers the gradient where the forward scattered, scatters where it gathered, and
  /// gathers the input of the column-parallel matrices once more for their weight gradients.
  std::vector<Segment> backward() const {
    std::vector<Segment> all = with_experts_ ? experts_backward() : mlp_backward();
    Operations between;
    if (has_mlp_norm()) between.push_back(norm_backward("mlp norm"));
    between.push_back(branch_sum("attention residual"));
    extend(between, residual_backward("attention residual"));
    if (one_reduce())
      all.push_back({"projection", Category::backward, joined_projection_backward(between), std::nullopt});
    else
      extend(all, row_backward("mlp norm", between, "projection", projection_));
    all.back().all_to_all_bytes = core_.output_exchange();
    if (in_.options.recompute == Recompute::selective) extend(all, core_.forward(Category::recompute, 0));
    extend(all, core_.backward());
    extend(all, heads_backward());
    return joined(all);
  }

  /// What a zero-bubble backward leaves out, with the inputs that sequence parallelism gathers for it.
  std::vector<Segment> weights() const {
    if (!splits()) return {};
    const bool tp_inputs = !with_experts_ || share_.shared > 0;
    return joined({{"mlp input", Category::backward, {}, tp_inputs ? tp_.gather : std::nullopt},
                   {"mlp weights", Category::backward, mlp_weights(), tp_.gather, 0, 0, 0, heads_bytes()},
                   {"attention weights", Category::backward, attention_weights(), std::nullopt}});
  }

  Segments all() const {
    if (in_.serving) return {forward(Category::forward), {}, {}};
    Segments segments{forward(Category::forward), {}, weights()};
    if (in_.options.recompute == Recompute::full) segments.backward = forward(Category::recompute);
    for (Segment& s : backward()) segments.backward.push_back(std::move(s));
    put_on_wire(in_, timer_, segments);
    cast_gathered_weights(in_, timer_, with_experts_, segments);
    return segments;
  }

 private:
  // --- latent attention ---

  bool compresses_queries() const { return latent_ && in_.model.latent.q_rank > 0; }
  /// Into the small ranks each rank works on the rows that it has; of queries that are not compressed it needs all.
  double rows_down() const { return compresses_queries() ? share_.rows : share_.tokens; }
  /// Of what TP gathers before the heads; 0: the hidden states.
  double heads_bytes() const { return compresses_queries() ? w_ * share_.tokens * share_.latent : 0; }

  void take_latent() {
    const LatentAttention& a = in_.model.latent;
    const double q = a.q_rank, kv = a.kv_rank, heads = static_cast<double>(in_.model.heads) / in_.layout.tp;
    q_down_ = {"q down", share_.hidden, q};
    kv_down_ = {"kv down", share_.hidden, kv + a.rope};
    q_up_ = {q > 0 ? "q up" : "q", q > 0 ? q : share_.hidden, share_.query};
    kv_up_ = {"kv up", kv, heads * a.nope + share_.value};
  }

  Operation latent_norm(const char* name, double passes) const {
    return memory(name, passes * w_ * rows_down() * (in_.model.latent.q_rank + in_.model.latent.kv_rank));
  }
  Operations down_forward() const {
    Operations ops;
    if (compresses_queries()) ops.push_back(linear_.forward(q_down_, rows_down()));
    ops.push_back(linear_.forward(kv_down_, rows_down()));
    ops.push_back(latent_norm("latent norm", 2));
    return ops;
  }
  Operations down_backward() const {
    Operations ops{latent_norm("latent norm gradient", 5)};
    for (const Linear* l : {&kv_down_, &q_down_}) {
      if (l == &q_down_ && !compresses_queries()) continue;
      ops.push_back(linear_.input_gradient(*l, rows_down()));
      if (!splits()) ops.push_back(linear_.weight_gradient(*l, rows_down()));
    }
    return ops;
  }

  // --- attention ---

  bool splits_qkv() const { return in_.options.attention == Attention::unfused && !latent_; }
  bool adds_qkv_bias() const { return in_.model.biases && in_.options.attention == Attention::unfused; }

  std::vector<Segment> attention_forward(Category category) const {
    Operations norm{norm_forward("attention norm")}, before;
    if (compresses_queries()) extend(norm, down_forward());
    if (latent_) {
      before.push_back(linear_.forward(q_up_));
      if (!compresses_queries()) extend(before, down_forward());
      before.push_back(linear_.forward(kv_up_));
    } else {
      before.push_back(linear_.forward(qkv_));
      if (adds_qkv_bias()) before.push_back(memory("qkv bias", 2 * w_ * share_.tokens * qkv_.out));
    }
    extend(before, rotary("rotary"));
    std::vector<Segment> all;
    if (rings() && !latent_) {
      all = {{"attention norm", category, norm, std::nullopt}};
      extend(all, gathered_in_ring("attention heads", category, linear_.forward(qkv_, rows_of_piece())));
      before.erase(before.begin());
    } else {
      all = {{"attention norm", category, norm, tp_.gather, 0, 0, 0, heads_bytes()}};
    }
    all.push_back({"attention heads", category, before, std::nullopt, 0, 0, core_.query_exchange()});
    extend(all, core_.forward(category, core_.output_exchange()));
    if (one_reduce())
      all.push_back({"attention", category, {linear_.forward(projection_)}, std::nullopt});
    else if (rings())
      extend(all, reduced_in_ring("attention", category, linear_.forward(projection_, rows_of_piece())));
    else
      all.push_back({"attention", category, {linear_.forward(projection_)}, tp_.reduce});
    return all;
  }

  /// From the gradients of queries, keys and values to that of the layer's input.
  std::vector<Segment> heads_backward() const {
    Operations inputs, weights, norm;
    if (latent_) {
      inputs = {linear_.input_gradient(kv_up_)};
      if (!compresses_queries()) extend(inputs, down_backward());
      inputs.push_back(linear_.input_gradient(q_up_));
      if (compresses_queries()) norm = down_backward();
    } else {
      inputs = {linear_.input_gradient(qkv_)};
    }
    if (!splits()) weights = heads_weights();
    extend(norm, {norm_backward("attention norm"), branch_sum("layer input")});
    if (!splits()) extend(norm, accumulation());
    Operations first = rotary("rotary gradient");
    if (splits_qkv()) first.push_back(memory("qkv gradients joined", 2 * w_ * share_.tokens * qkv_.out));
    std::vector<Segment> all =
        column_backward(in_, {"attention core", first, "attention", inputs, weights, heads_bytes()});
    all.push_back({"attention norm", Category::backward, norm, std::nullopt});
    return all;
  }

  /// Of the column-parallel matrices.
  Operations heads_weights() const {
    if (!latent_) return weight_gradients(qkv_, qkv_.out);
    Operations ops = weight_gradients(kv_up_, 0);
    extend(ops, weight_gradients(q_up_, 0));
    return ops;
  }

  Operations accumulation() const {
    return gradient_accumulation(in_, timer_,
                                 with_experts_ ? expert_layer_parameters(in_.model, in_.layout).total()
                                               : layer_parameters(in_.model, in_.layout.tp).total());
  }

  Operations attention_weights() const {
    Operations ops;
    if (latent_) {
      ops = weight_gradients(q_up_, 0);
      extend(ops, weight_gradients(kv_up_, 0));
      if (compresses_queries()) ops.push_back(linear_.weight_gradient(q_down_, rows_down()));
      ops.push_back(linear_.weight_gradient(kv_down_, rows_down()));
    } else {
      ops = weight_gradients(qkv_, qkv_.out);
    }
    extend(ops, weight_gradients(projection_, 0));
    extend(ops, accumulation());
    return ops;
  }

  // --- the MLP, behind attention or beside it ---

  bool has_mlp_norm() const { return in_.model.parallel_mlp.norms != 1; }
  /// What attention and MLP give is summed up over the TP ranks together, and its gradient gathered for both.
  bool one_reduce() const {
    return in_.model.parallel_mlp.norms > 0 && in_.model.parallel_mlp.one_reduce && in_.layout.tp > 1;
  }
  Operations joined_projection_backward(Operations between) const {
    extend(between, linear_backward(projection_, 0));
    return between;
  }

  std::vector<Segment> mlp_forward(Category category) const {
    Operations mlp{linear_.forward(up_), activation_forward("activation", share_.tokens, share_.ffn),
                   linear_.forward(down_)};
    Operations norm;
    // What attention gives is added to the ranks' own parts of what the MLP does, or to the residual.
    if (one_reduce())
      mlp.push_back(memory("branches sum", 3 * w_ * share_.tokens * share_.hidden));
    else
      norm.push_back(residual_forward("attention residual"));
    if (has_mlp_norm()) norm.push_back(norm_forward("mlp norm"));
    const Segment residual{"residual", category, {residual_forward("mlp residual")}, std::nullopt};
    if (!rings()) return {{"mlp norm", category, norm, tp_.gather}, {"mlp", category, mlp, tp_.reduce}, residual};
    std::vector<Segment> all{{"mlp norm", category, norm, std::nullopt}};
    extend(all, gathered_in_ring("mlp up", category, linear_.forward(up_, rows_of_piece())));
    all.push_back({"mlp", category, {mlp[1]}, std::nullopt});
    if (one_reduce()) all.push_back({"branches", category, {mlp.back()}, std::nullopt});
    extend(all, reduced_in_ring("mlp", category, linear_.forward(down_, rows_of_piece())));
    all.push_back(residual);
    return all;
  }

  std::vector<Segment> mlp_backward() const {
    std::vector<Segment> all = row_backward("mlp residual", residual_backward("mlp residual"), "mlp down", down_);
    extend(all, column_backward(in_, {"mlp down",
                                      {activation_backward("activation", share_.tokens, share_.ffn)},
                                      "mlp",
                                      {linear_.input_gradient(up_)},
                                      splits() ? Operations() : weight_gradients(up_, up_.out)}));
    return all;
  }

  // --- TP in rings: products in t pieces of T/t rows, all but one of them beside the t - 1 messages of a gather or of
  // a reduction (Wang et al. 2023; Transformer Engine's ring exchange) ---

  bool rings() const { return in_.options.overlap_tp == TpOverlap::ring && tp_.gather && !in_.serving; }
  double rows_of_piece() const { return share_.tokens / in_.layout.tp; }
  Segment ring_pieces(std::string name, Category category, const Operation& piece, CollectiveKind beside) const {
    Segment s{std::move(name), category, Operations(static_cast<std::size_t>(in_.layout.tp - 1), piece), std::nullopt};
    s.under = TpBeside{beside};
    return s;
  }
  /// A rank begins with its own rows, and the next come meanwhile; the last piece has nothing beside it.
  std::vector<Segment> gathered_in_ring(const char* name, Category category, const Operation& piece) const {
    return {ring_pieces(std::string(name) + " ring", category, piece, *tp_.gather),
            {name, category, {piece}, std::nullopt}};
  }
  /// Sums go on while the next piece is computed; the first has nothing beside it.
  std::vector<Segment> reduced_in_ring(const char* name, Category category, const Operation& piece) const {
    return {{name, category, {piece}, std::nullopt},
            ring_pieces(std::string(name) + " ring", category, piece, *tp_.reduce)};
  }

  /// Backward of a row-parallel matrix behind `before`: with sequence parallelism gradients are gathered for it.
  std::vector<Segment> row_backward(const char* before, Operations first, const char* name, const Linear& l) const {
    if (!rings())
      return {{before, Category::backward, std::move(first), tp_.gather},
              {name, Category::backward, linear_backward(l, 0), std::nullopt}};
    std::vector<Segment> all{{before, Category::backward, std::move(first), std::nullopt}};
    extend(all, gathered_in_ring(name, Category::backward, linear_.input_gradient(l, rows_of_piece())));
    if (!splits()) extend(all.back().operations, weight_gradients(l, 0));
    return all;
  }

  Operations mlp_weights() const {
    Operations ops;
    if (!with_experts_ || share_.shared > 0) {
      ops = weight_gradients(up_, with_experts_ ? 0 : up_.out);
      extend(ops, weight_gradients(down_, 0));
    }
    if (with_experts_) {
      ops.push_back(grouped_weights(expert_up_));
      ops.push_back(grouped_weights(expert_down_));
      ops.push_back(router_gemm("router weight gradient"));
    }
    return ops;
  }

  // --- experts ---

  void take_experts() {
    const bool gated = in_.model.gated_mlp;
    up_ = {gated ? "shared up+gate" : "shared up", share_.hidden, (gated ? 2 : 1) * share_.shared};
    down_ = {"shared down", share_.shared, share_.hidden};
    expert_up_ = {gated ? "experts up+gate" : "experts up", share_.hidden, (gated ? 2 : 1) * share_.expert};
    expert_down_ = {"experts down", share_.expert, share_.hidden};
  }

  /// Dispatch: between ranks that have other experts.
  std::optional<ExpertExchange> all_to_all() const {
    if (in_.layout.ep == 1) return std::nullopt;
    return ExpertExchange{false, CollectiveKind::alltoall, dispatch_bytes(in_)};
  }
  std::optional<ExpertExchange> combine() const {
    std::optional<ExpertExchange> back = all_to_all();
    if (back) back->combines = true;
    return back;
  }
  /// Ranks that share an expert compute the rows of all of them.
  std::optional<ExpertExchange> within_expert(CollectiveKind kind) const {
    if (in_.layout.expert_tp() == 1) return std::nullopt;
    return ExpertExchange{true, kind, w_ * share_.taken * share_.hidden};
  }

  /// Between dispatch and combine of a pass.
  std::vector<Segment> between_exchanges(Category category, const Operations& ops) const {
    const auto segment = [&](const char* name, Operations kernels, std::optional<ExpertExchange> exchange) {
      return Segment{name, category, std::move(kernels), std::nullopt, 0, 0, 0, 0, exchange};
    };
    return {segment("experts gather", {}, within_expert(CollectiveKind::all_gather)),
            segment("experts scatter", ops, within_expert(CollectiveKind::reduce_scatter)),
            segment("experts combine", {}, combine())};
  }

  /// Of a server's ranks that have the same tokens: no exchange, and one sum of what all experts give.
  std::vector<Segment> replicated_experts(Category category) const {
    const bool shared = share_.shared > 0;
    Operations ops;
    if (shared)
      ops = {linear_.forward(up_), activation_forward("shared activation", share_.tokens, share_.shared),
             linear_.forward(down_)};
    extend(ops, {router_gemm("router"), memory("top-k", 3 * 4 * share_.rows * in_.model.experts.count),
                 permutation("permute"), grouped(expert_up_),
                 activation_forward("experts activation", share_.taken, share_.expert), grouped(expert_down_),
                 permutation("unpermute")});
    if (shared) ops.push_back(memory("shared experts sum", 3 * w_ * per_row()));
    return {{"mlp norm", category, {residual_forward("attention residual"), norm_forward("mlp norm")}, std::nullopt},
            {"experts", category, ops, tp_.reduce},
            {"residual", category, {residual_forward("mlp residual")}, std::nullopt}};
  }

  std::vector<Segment> experts_forward(Category category) const {
    if (replicates_tokens(in_)) return replicated_experts(category);
    const bool shared = share_.shared > 0;
    std::vector<Segment> all{{"mlp norm",
                              category,
                              {residual_forward("attention residual"), norm_forward("mlp norm")},
                              shared ? tp_.gather : std::nullopt}};
    if (shared)
      all.push_back({"shared experts",
                     category,
                     {linear_.forward(up_), activation_forward("shared activation", share_.tokens, share_.shared),
                      linear_.forward(down_)},
                     tp_.reduce});
    all.push_back({"experts dispatch",
                   category,
                   {router_gemm("router"), memory("top-k", 3 * 4 * share_.rows * in_.model.experts.count),
                    permutation("permute")},
                   std::nullopt,
                   0,
                   0,
                   0,
                   0,
                   all_to_all()});
    Operations experts = sorting("sort by expert");
    extend(experts, {grouped(expert_up_), activation_forward("experts activation", share_.taken, share_.expert),
                     grouped(expert_down_)});
    extend(experts, sorting("sort by rank"));
    extend(all, between_exchanges(category, experts));
    Operations last{permutation("unpermute")};
    if (shared) last.push_back(memory("shared experts sum", 3 * w_ * per_row()));
    last.push_back(residual_forward("mlp residual"));
    all.push_back({"residual", category, last, std::nullopt});
    return all;
  }

  std::vector<Segment> experts_backward() const {
    const bool shared = share_.shared > 0;
    Operations first = residual_backward("mlp residual");
    first.push_back(permutation("unpermute gradient"));
    std::vector<Segment> all{{"experts dispatch", Category::backward, first, std::nullopt, 0, 0, 0, 0, all_to_all()}};
    Operations experts = sorting("sort by expert");
    extend(experts, grouped_backward(expert_down_));
    experts.push_back(activation_backward("experts activation", share_.taken, share_.expert));
    extend(experts, grouped_backward(expert_up_));
    extend(experts, sorting("sort by rank"));
    extend(all, between_exchanges(Category::backward, experts));
    Operations router{permutation("permute gradient"), router_gemm("router input gradient")};
    if (!splits()) router.push_back(router_gemm("router weight gradient"));
    all.push_back({"router", Category::backward, router, shared ? tp_.gather : std::nullopt});
    if (!shared) return all;
    Operations down = linear_backward(down_, 0);
    down.push_back(activation_backward("shared activation", share_.tokens, share_.shared));
    extend(all, column_backward(in_, {"shared down",
                                      down,
                                      "shared experts",
                                      {linear_.input_gradient(up_)},
                                      splits() ? Operations() : weight_gradients(up_, 0)}));
    return all;
  }

  Operation grouped(const Linear& l) const { return linear_.forward(l, share_.taken, matrices()); }
  /// Of the experts of a rank those that some row goes to, if rows go anywhere: the few of a token leave some out.
  double matrices() const {
    const double all = share_.local_experts;
    return in_.serving ? all * (1 - std::pow(1 - 1 / all, share_.taken)) : all;
  }
  Operation grouped_weights(const Linear& l) const {
    return linear_.weight_gradient(l, share_.taken, share_.local_experts);
  }
  Operations grouped_backward(const Linear& l) const {
    Operations ops{linear_.input_gradient(l, share_.taken, share_.local_experts)};
    if (!splits()) ops.push_back(grouped_weights(l));
    return ops;
  }

  Operation router_gemm(const char* name) const {
    const double experts = in_.model.experts.count, rows = share_.rows, h = share_.hidden;
    return timer_.core_gemm(name, Flops(2 * rows * h * experts),
                            Volume(w_ * (rows * h + h * experts + rows * experts)));
  }
  /// Each row to the places of its experts, or back from them.
  Operation permutation(const char* name) const {
    return memory(name, w_ * (share_.rows + share_.sent) * share_.hidden);
  }
  /// What came from several ranks, by its expert, and back.
  Operations sorting(const char* name) const {
    if (share_.local_experts <= 1 || (in_.layout.ep == 1 && in_.layout.expert_tp() == 1)) return {};
    return {memory(name, 2 * w_ * share_.taken * share_.hidden)};
  }

  // --- kernels of all of them ---

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

  Operation activation_forward(const char* name, double rows, double width) const {
    return memory(name, (in_.model.gated_mlp ? 3 : 2) * w_ * rows * width);
  }
  Operation activation_backward(const char* name, double rows, double width) const {
    return memory(std::string(name) + " gradient", (in_.model.gated_mlp ? 5 : 3) * w_ * rows * width);
  }
  /// Models with learned positions have none.
  Operations rotary(const char* name) const {
    if (in_.model.learned_positions > 0) return {};
    return {memory(name, 2 * w_ * share_.tokens * (share_.query + share_.key))};
  }

  const StepInputs& in_;
  bool with_experts_, latent_;
  KernelTimer timer_;
  Share share_;
  LinearKernels linear_;
  AttentionCore core_;
  TpCollectives tp_;
  double w_;
  Linear qkv_, projection_;
  Linear up_, down_;  ///< of the MLP, or of the shared experts
  Linear q_down_{}, kv_down_{}, q_up_{}, kv_up_{};
  Linear expert_up_{}, expert_down_{};
};

}  // namespace

Launches launches(const std::vector<Segment>& segments) {
  Launches count;
  for (const Segment& s : segments) {
    (s.category == Category::backward ? count.of_gradients : count.by_model) += static_cast<int>(s.operations.size());
    count.by_model += (s.then ? 1 : 0) + (s.exchange ? 1 : 0) + (s.under ? 1 : 0);
  }
  return count;
}

Seconds launch_wait(const StepInputs& in, Launches launches, Seconds busy) {
  const Seconds launch = in.options.launch, of_gradients = in.options.launch_backward.value_or(launch);
  return std::max(launches.by_model * launch + launches.of_gradients * of_gradients - busy, Seconds{});
}

Segments layer_segments(const StepInputs& in, LayerKind kind) { return Layer(in, kind).all(); }

double dispatch_bytes(const StepInputs& in) {
  const Share share(in);
  return KernelTimer(in).precision().activation * share.sent * share.hidden * expert_load(in.options, in.layout);
}

}  // namespace collcast::workload

namespace collcast {

LayerOperations layer_operations(const StepInputs& in) {
  const workload::Segments segments = workload::layer_segments(in, workload::shown_kind(in.model));
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
