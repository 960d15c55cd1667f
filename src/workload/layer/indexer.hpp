// Sparse attention that an indexer chooses the keys of (DeepSeek sparse attention, DSA: DeepSeek-V3.2, GLM-5).
//
// The indexer has H small heads of d elements. Of a token t and each token s before it (and itself)
//   score(t, s) = sum over heads j of weight(t, j) x ReLU(query(t, j) . key(s))
// with the queries out of the compressed query rank (r_q x H d), one key for all heads out of the hidden state (h x d,
// then a LayerNorm), and the weights of the heads too (h x H). Attention of t reads the top_k tokens with the highest
// scores (DeepSeek-AI 2025, arXiv 2512.02556, section 2.1, equations 1 and 2). Every TP rank has all of it: scores of
// all heads are one sum (SGLang, nsa_indexer.py and TensorRT-LLM, dsa.py: replicated matrices).
//
// Kernels of a rank, T tokens in b samples, P pairs of a query with a key before it or its own:
//   keys and weights   GEMM T' x h x (d + H), on a rank's own rows; TP gathers d + H elements a token beside the ranks
//   queries            GEMM T x r_q x H d
//   norm and rotary    2 w T (H d + d)
//   scores             2 P H d FLOPs; reads queries and keys, writes a score in fp32 for each pair: 4 P bytes
//   choice             reads the scores, writes top_k places: 4 P + 4 T top_k
// Servers multiply in fp8 whatever the model's format, where the GPU has it, and keep keys in it (DeepGEMM,
// fp8_mqa_logits); training in the format of its attention core. Sums over heads are left out (1/d of the products),
// as are Hadamard transforms.
//
// The core is in the form that shares one key among all heads of a token (MQA; section 2.1): queries are multiplied by
// the matrix that would expand keys, and what comes out by that of values, the same FLOPs as expanding (r_kv a (d_n +
// d_v) a token); then each head does 2 (2 r_kv + d_r) FLOPs for each of min(position, top_k) keys, backward five
// products: 2 (5 r_kv + 3 d_r). Heads of a rank are filled up to a multiple of 64 (FlashMLA, flash_mla_sparse_fwd: 64
// on Hopper; on Blackwell 128, which is left out). What a gather of scattered keys takes beyond reading each once (from
// the L2 cache, as long as it holds them) is left out.
//
// Where no query has more than top_k keys there is nothing to choose: the core is that of latent attention without an
// indexer, expanded for prompts (SGLang: MHA up to index_topk tokens; vLLM alike) and in training. A prompt's keys are
// computed all the same, as tokens to come are scored against them; training runs nothing of the indexer. Tokens behind
// a prompt always run all of it (their graph is the same for every length). DeepSeek's own servers compute prompts
// somewhat longer than top_k expanded and masked (section 2.3): not modelled.
//
// Training: the indexer learns from a loss of its own alone (the divergence of its scores from the attention that the
// main model pays to the chosen tokens; section 2.1.1), so that no gradient goes from it to its inputs. Modelled are
// the gradients of its queries and keys over the chosen pairs (twice the scores' FLOPs of these) and those of its
// weights. Left out: that loss, which needs the attention of all heads once more, and the warm-up that trains the
// indexer alone under full attention.
#pragma once

#include <string>

#include "workload/layer/kernels.hpp"
#include "workload/layer/share.hpp"

namespace collcast::workload {

/// Parameters of an indexer: its three matrices, and its norm's two vectors.
double indexer_parameters(const TransformerConfig&);
/// Multiply-adds of a token in its matrices.
double indexer_products(const TransformerConfig&);

/// Whether the keys of queries are chosen: some query of a step or prompt has more than top_k, or a token is to come.
bool chooses_keys(const StepInputs&);
/// The same of whole samples of so many tokens.
bool chooses_keys(const TransformerConfig&, int tokens);
/// Keys that a query meets at most: of the chosen ones, or of a sliding window; 0: all.
int most_keys(const TransformerConfig&);

/// Elements of a token on one rank where the core shares keys among heads; 0 where it does not.
struct SharedKeyCore {
  double query = 0, output = 0;  ///< of all its heads, in the rank of keys and values
  explicit SharedKeyCore(const StepInputs&);
  /// Of what is kept for a backward keys and values, or in their place queries and outputs in that rank; keys that
  /// heads share are not expanded.
  double kept(double key, double value) const { return query == 0 ? key + value : (key > 0 ? query : 0) + output; }
};

/// What is kept of a token and layer by a server, in bytes: a key in fp8, with a scale of fp32 for 128 elements (vLLM
/// and SGLang: 132 bytes of 128 elements). 0 without an indexer.
double indexer_cache_bytes(const TransformerConfig&);
/// Bytes that training keeps of a layer and micro-batch for its backward: queries, keys before and behind their norm,
/// weights, and the chosen places; of frozen ones the places alone.
double kept_by_indexer(const StepInputs&);
/// Elements of their gradients, which wait for the gradients of weights (zero bubble).
double waiting_of_indexer(const StepInputs&);

/// Its kernels but for its matrix products. Inputs, timer and share must outlive it.
class Indexer {
 public:
  Indexer(const StepInputs& in, const KernelTimer& timer, const Share& share)
      : in_(in), timer_(timer), share_(share), of_(in.model.sparse), w_(timer.precision().activation) {}

  bool exists() const { return of_.top_k > 0; }
  bool chooses() const { return exists() && chooses_keys(in_); }
  /// Of queries and keys, or of keys alone.
  Operation norm_and_rotary() const;
  /// Scores of all pairs, and the choice: all that grows with the tokens kept.
  std::vector<Operation> choice() const;
  /// Of the chosen scores to queries and keys, then through rotary and norm.
  std::vector<Operation> gradients() const;
  /// The core over the chosen keys.
  Operation core(std::string name, bool backward) const;

 private:
  double pairs(int most) const;
  double position_bytes() const;

  const StepInputs& in_;
  const KernelTimer& timer_;
  const Share& share_;
  SparseAttention of_;
  double w_;
};

}  // namespace collcast::workload
