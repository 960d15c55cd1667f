// One transformer layer on one rank: what its kernels and their order are made of. Formulas: layer.cpp, of experts
// layer_experts.cpp, of what is computed once more layer_recompute.cpp.
#pragma once

#include <string>
#include <vector>

#include "workload/layer/adapters.hpp"
#include "workload/layer/attention_core.hpp"
#include "workload/layer/expert_kernels.hpp"
#include "workload/layer/linear_attention.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/layer/share.hpp"

namespace collcast::workload {

using Operations = std::vector<Operation>;

template <class T>
void extend(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

class Layer {
 public:
  Layer(const StepInputs& in, LayerKind kind);

  std::vector<Segment> forward(Category category) const;

  /// Sequence parallelism gathers the gradient where the forward scattered, scatters where it gathered, and
  /// gathers the input of the column-parallel matrices once more for their weight gradients.
  std::vector<Segment> backward() const;

  /// What a zero-bubble backward leaves out, with the inputs that sequence parallelism gathers for it.
  std::vector<Segment> weights() const;

  Segments all() const;

 private:
  // --- what selective recomputation computes once more ---

  bool again(RecomputeModule module) const {
    return recompute_ == Recompute::selective && recomputes(in_.options, module);
  }
  /// Before the backward of the MLP or the experts, and before that of the attention core.
  std::vector<Segment> mlp_again() const;
  std::vector<Segment> attention_again() const;
  /// Single products of the input that they share; Linear::out is 0 where there are none.
  Linear heads_products() const;
  Linear mlp_products() const;
  std::vector<Segment> products_again(const char* norm, const Operations& before, const char* name,
                                      const Operations& products) const;

  // --- latent attention ---

  bool compresses_queries() const { return latent_ && in_.model.latent.q_rank > 0; }
  /// Into the small ranks each rank works on the rows that it has.
  double rows_down() const { return share_.rows; }
  /// Of what TP gathers before the heads: the small ranks, and hidden states for queries that are not compressed; 0:
  /// hidden states alone.
  double heads_bytes() const;
  /// Of that what gradients of weights read once more.
  double heads_input_bytes() const;

  void take_latent();
  void take_adapters();

  // --- the indexer of sparse attention ---

  void take_indexer();
  /// A server computes its keys where there is nothing to choose, too.
  bool runs_indexer() const;
  /// Of what TP gathers of it beside the small ranks.
  double indexer_bytes() const;
  /// On a rank's own rows, and of all queries.
  Operations indexer_keys() const;
  Operations indexer_choice() const;
  Operations indexer_backward() const;
  Operations indexer_weights() const;

  Operation latent_norm(const char* name, double passes) const;
  Operations down_forward() const;
  Operations down_backward() const;

  // --- attention ---

  /// An MLP, or that of shared experts.
  bool has_mlp_matrices() const { return shape_.has_mlp() || (shape_.has_experts() && share_.shared > 0); }
  bool splits_qkv() const { return in_.options.attention == Attention::unfused && !latent_ && shape_.attends(); }
  bool adds_qkv_bias() const { return in_.model.biases && in_.options.attention == Attention::unfused; }

  std::vector<Segment> attention_forward(Category category) const;
  /// Between the projection of queries, keys and values and the core, and back.
  Operations prepared_heads() const;
  Operations prepared_heads_gradient() const;
  /// The core, of attention with the gate of what it gives.
  std::vector<Segment> core_forward(Category category, double exchange) const;
  std::vector<Segment> core_backward() const;
  Operations gate_backward() const;

  /// From the gradients of queries, keys and values to that of the layer's input.
  std::vector<Segment> heads_backward() const;

  /// Of the column-parallel matrices.
  Operations heads_weights() const;

  Operations accumulation() const;

  Operations attention_weights() const;

  // --- the MLP, behind attention or beside it ---

  bool has_mlp_norm() const { return in_.model.parallel_mlp.norms != 1; }
  /// What attention and MLP give is summed up over the TP ranks together, and its gradient gathered for both.
  bool one_reduce() const;
  Operations joined_projection_backward(Operations between) const;

  std::vector<Segment> mlp_forward(Category category) const;
  /// From what is done before its input is gathered to the sum of what it gives over the TP ranks.
  std::vector<Segment> mlp_module(Category category, const Operations& before) const;

  std::vector<Segment> mlp_backward() const;

  // --- TP in rings: products in t pieces of T/t rows, all but one of them beside the t - 1 messages of a gather or of
  // a reduction (Wang et al. 2023; Transformer Engine's ring exchange) ---

  bool rings() const { return in_.options.overlap_tp == TpOverlap::ring && tp_.gather && !in_.serving; }
  double rows_of_piece() const { return share_.tokens / in_.layout.tp; }
  Segment ring_pieces(std::string name, Category category, const Operation& piece, CollectiveKind beside) const;
  /// A rank begins with its own rows, and the next come meanwhile; the last piece has nothing beside it.
  std::vector<Segment> gathered_in_ring(const char* name, Category category, const Operation& piece) const;
  /// Sums go on while the next piece is computed; the first has nothing beside it.
  std::vector<Segment> reduced_in_ring(const char* name, Category category, const Linear& l) const;

  /// Backward of a row-parallel matrix behind `before`: with sequence parallelism gradients are gathered for it.
  std::vector<Segment> row_backward(const char* before, Operations first, const char* name, const Linear& l) const;

  Operations mlp_weights() const;

  // --- experts ---

  void take_experts();

  /// Dispatch: between ranks that have other experts.
  std::optional<ExpertExchange> all_to_all() const;
  std::optional<ExpertExchange> combine() const;
  /// Ranks that share an expert compute the rows of all of them.
  std::optional<ExpertExchange> within_expert(CollectiveKind kind) const;

  /// Between dispatch and combine of a pass.
  std::vector<Segment> between_exchanges(Category category, const Operations& ops) const;

  /// Of a server's ranks that have the same tokens: no exchange, and one sum of what all experts give.
  std::vector<Segment> replicated_experts(Category category) const;

  std::vector<Segment> experts_forward(Category category) const;
  Operations before_experts() const;
  /// The same from what is done before, to what they give in its rows.
  std::vector<Segment> experts_module(Category category, const Operations& before) const;
  /// An MLP beside the experts.
  Segment shared_experts(Category category) const;
  /// From the router to the rows in the places of their experts, and from there to what a token's give together.
  Operations routed() const;
  Operations combined() const;
  /// Up, activation and down of it, and of the experts.
  Operations shared_products() const;
  Operations expert_products() const;
  /// Between the products of experts, with what goes into it cut off.
  Operations experts_activation() const;
  Operations experts_activation_gradient() const;

  std::vector<Segment> experts_backward() const;

  Operations grouped(const Linear& l) const { return forward_of(l, share_.taken, matrices()); }
  /// Of the experts of a rank those that some row goes to, if rows go anywhere: the few of a token leave some out.
  double matrices() const;
  Operations grouped_weights(const Linear& l) const;
  Operations grouped_backward(const Linear& l) const;

  Operation router_gemm(const char* name) const;
  /// Of a matrix into the latent of experts or out of it, on a rank's own rows; nothing where there is none.
  Operations latent_forward(const Linear& l) const;
  Operations latent_backward(const Linear& l) const;
  Operations latent_weights(const Linear& l) const;
  /// Each row to the places of its experts, or back from them.
  Operation permutation(const char* name) const;
  /// What came from several ranks, by its expert, and back.
  Operations sorting(const char* name) const;

  // --- matrices, with the adapters beside them ---

  /// Weights that are kept quantised are brought back before each product with them.
  Operations as_read(const Linear& l, double matrices) const;
  Operations forward_of(const Linear& l) const { return forward_of(l, share_.tokens); }
  Operations forward_of(const Linear& l, double rows, double matrices = 1) const;
  Operations input_gradients(const Linear& l) const { return input_gradients(l, share_.tokens); }
  Operations input_gradients(const Linear& l, double rows, double matrices = 1) const;
  /// Of frozen weights their adapter's alone.
  Operations gradients_of(const Linear& l) const { return gradients_of(l, share_.tokens); }
  Operations gradients_of(const Linear& l, double rows, double matrices = 1) const;
  /// Up, activation and down of the MLP.
  Operations mlp_products_forward() const;
  /// Whether the gradients of weights read the input of a column-parallel matrix, which TP then gathers once more.
  bool gathers_input(const Linear& l) const { return !frozen_ || l.adapter; }
  bool gathers_heads_input() const;

  // --- kernels of all of them ---

  double per_row() const { return share_.rows * share_.hidden; }
  Operation memory(std::string name, double bytes) const { return timer_.memory(std::move(name), Volume(bytes)); }

  Operation norm_forward(const char* name) const { return memory(name, 2 * w_ * per_row()); }
  Operation norm_backward(const char* name) const;
  Operation residual_forward(const char* name) const;
  /// Dropout and the row-parallel bias before it; without them the gradient passes as it is.
  Operations residual_backward(const char* name) const;
  Operation branch_sum(const char* name) const;

  bool splits() const { return splits_backward(in_.layout.schedule); }

  Operations linear_backward(const Linear& l, double sharded_bias) const;
  Operations weight_gradients(const Linear& l, double sharded_bias) const;

  Operation activation_forward(const char* name, double rows, double width) const;
  Operation activation_backward(const char* name, double rows, double width) const;
  /// Models with learned positions have none.
  Operations rotary(const char* name) const;

  const StepInputs& in_;
  LayerShape shape_;
  bool latent_, frozen_;
  Recompute recompute_;  ///< of this layer
  KernelTimer timer_;
  Share share_;
  LinearKernels linear_;
  AdapterKernels adapters_;
  AttentionCore core_;
  LinearCore linear_core_;
  Indexer indexer_;
  ExpertKernels expert_kernels_;
  TpCollectives tp_;
  double w_;
  Linear qkv_, projection_;
  Linear up_, down_;  ///< of the MLP, or of the shared experts
  Linear q_down_{}, kv_down_{}, q_up_{}, kv_up_{};
  Linear index_queries_{}, index_keys_{};
  Linear expert_up_{}, expert_down_{};
  Linear expert_latent_down_{}, expert_latent_up_{};
};

}  // namespace collcast::workload
