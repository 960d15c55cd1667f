// What is trained, how it is split, and with which options: the typed inputs of a step.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/topology/spec.hpp"
#include "collcast/workload/measured_gemms.hpp"
#include "collcast/workload/optimizer.hpp"
#include "collcast/workload/speculation.hpp"

namespace collcast {

/// Experts in the place of the MLP of some layers (a mixture of experts): a router sends each token to `top_k` of them,
/// and it passes the shared ones too. All are plain or gated as the model's MLP is.
struct Experts {
  int count = 0;                   ///< that tokens are sent to; 0: none, a dense model
  int top_k = 0;                   ///< of them for each token
  int ffn = 0;                     ///< width of one
  int shared_ffn = 0;              ///< of the shared ones together; 0: there are none
  bool shared_gate = false;        ///< what the shared ones give is scaled by token (Qwen2-MoE): h weights
  int dense_layers = 0;            ///< the first so many layers have an MLP
  int every = 1, phase = 0;        ///< of the others layer i has experts where i mod every is phase
  std::vector<int> dense_at = {};  ///< layers that have an MLP besides
  int groups = 1;                  ///< equal ones, of neighbours (DeepSeek's n_group)
  int group_top_k = 1;             ///< of them for each token, all of whose experts are theirs (topk_group)
  /// Elements of the rows that go to experts: tokens are brought down to them before they are dispatched, and what
  /// experts give is brought up again (Megatron-Core's moe_latent_size; LatentMoE). 0: none, rows are hidden states.
  int latent = 0;
  bool biases = false;  ///< of their products (gpt-oss); those of a model that has them everywhere do anyway
  bool clamp = false;   ///< what goes into the activation is cut off at a limit (gpt-oss' swiglu_limit)
};

/// Multi-head latent attention (DeepSeek-V2, -V3): queries, and keys and values together, are expanded from vectors of
/// a small rank; a part of each key that turns with the position is the same for all heads.
struct LatentAttention {
  int q_rank = 0;          ///< 0: queries come from the hidden state itself
  int kv_rank = 0;         ///< 0: ordinary attention
  int nope = 0, rope = 0;  ///< of a head's query and key: the part without positions, and that with them
  int value = 0;           ///< of a head's value
};

/// Layers whose queries meet the last `tokens` keys only, their own among them (sliding-window attention).
struct SlidingWindow {
  int tokens = 0;                 ///< 0: every layer attends to all tokens
  int full_first = 0;             ///< the first so many layers attend to all of them (Qwen's max_window_layers)
  int full_every = 0;             ///< of so many layers the last does (Gemma 2 and gpt-oss 2, Gemma 3 6); 0: none
  std::vector<int> full_at = {};  ///< layers that do besides
};

/// How a token changes the states of linear attention: by the gated delta rule (Gated DeltaNet, Yang et al. 2024, arXiv
/// 2412.06464; Qwen3-Next, Qwen3.5), or as a state space whose decay is one number (SSD, Dao and Gu 2024, arXiv
/// 2405.21060: Mamba-2; Nemotron-H, Nemotron 3).
enum class LinearRule { gated_delta, ssd };
std::string_view to_string(LinearRule);

/// Layers with a state of fixed size for each head in the place of kept keys and values. Mamba-2's names in brackets.
struct LinearAttention {
  int key_heads = 0;               ///< of queries and of keys (groups of C and B); 0: no layer has linear attention
  int value_heads = 0;             ///< a multiple of them (heads of x); the states are theirs
  int key_dim = 0, value_dim = 0;  ///< elements of a head's query and key, and of its value: a state has their product
  int conv = 4;                    ///< taps of the convolution over each channel of queries, keys and values
  int full_every = 0;              ///< of so many layers the last attends to keys (Qwen3-Next 4); 0: none
  std::vector<int> full_at = {};   ///< layers that do besides
  /// Elements of a token's queries (keys have as many) and values, of all heads.
  double keys() const { return 1.0 * key_heads * key_dim; }
  double values() const { return 1.0 * value_heads * value_dim; }
  LinearRule rule = LinearRule::gated_delta;
  bool is_ssd() const { return rule == LinearRule::ssd; }
  /// Channels of the convolution, and columns of the projection in: queries, keys, values; an output gate as wide as
  /// these; of each value head a step, and the delta rule's decay besides.
  double channels() const { return 2 * keys() + values(); }
  double columns() const { return channels() + values() + (is_ssd() ? 1.0 : 2.0) * value_heads; }
  /// Beside both projections: taps (SSD: and a bias) of each channel; of each value head a decay and a step's bias
  /// (SSD: and what of a value passes the states by); weights of the norm behind, one head's (SSD: all heads', split
  /// over TP).
  double split_vectors() const {
    return is_ssd() ? (conv + 1) * channels() + 3.0 * value_heads + values() : conv * channels() + 2.0 * value_heads;
  }
  double whole_vectors() const { return is_ssd() ? 0 : value_dim; }
  double state() const { return 1.0 * value_heads * key_dim * value_dim; }
};

/// Queries of all layers meet the keys that an indexer of small heads gives the highest scores (DeepSeek sparse
/// attention: DeepSeek-V3.2, GLM-5), of latent attention with compressed queries.
struct SparseAttention {
  int heads = 0;  ///< of the indexer
  int dim = 0;    ///< of its heads' queries, and of the one key that they share
  int top_k = 0;  ///< keys that a query meets at most; 0: every key before it and its own
  bool is_given() const { return heads != 0 || dim != 0 || top_k != 0; }
};

/// Attention and MLP of a layer that read the same input and add to it at once (GPT-J, GPT-NeoX, PaLM, Falcon).
struct ParallelMlp {
  int norms = 0;           ///< before them: one for both, or one for each; 0: one after the other
  bool one_reduce = true;  ///< what both give is summed up over the TP ranks together
};

/// A decoder-only transformer (MHA, GQA, MQA or latent attention; plain or gated MLP, or experts).
struct TransformerConfig {
  std::string name;
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;  ///< usually hidden / heads
  int ffn = 0;       ///< MLP width
  int vocab = 0;
  bool gated_mlp = false;  ///< three MLP matrices (SwiGLU) instead of two
  bool tied_embeddings = false;
  bool biases = false;  ///< biases in the linear layers, and two vectors per norm (LayerNorm)
  bool causal = true;
  int learned_positions = 0;  ///< rows of a learned position embedding; 0: rotary or none
  double dropout = 0.0;       ///< > 0 keeps dropout masks (1 byte per element)
  Experts experts = {};
  LatentAttention latent = {};
  SlidingWindow window = {};
  SparseAttention sparse = {};
  ParallelMlp parallel_mlp = {};
  LinearAttention linear = {};
  bool attention_gate = false;  ///< what attention gives is scaled by a gate as wide as its queries (Qwen3-Next)
  /// Of a hybrid model a letter for each layer, which is that alone, as Megatron-LM writes it: M linear attention, * to
  /// keys, - an MLP, E experts. Empty: every layer has a mixer and an MLP or experts.
  std::string pattern = {};
  /// Behind all others, on the stage with the head: layers of multi-token prediction, each of which gives one more
  /// token (DeepSeek-V3; Megatron-LM's mtp_num_layers). They have the numbers behind the model's.
  int mtp_layers = 0;
  int all_layers() const { return layers + mtp_layers; }

  /// Elements of a head's query and key, and of its value.
  int key_dim() const { return latent.kv_rank > 0 ? latent.nope + latent.rope : head_dim; }
  int value_dim() const { return latent.kv_rank > 0 ? latent.value : head_dim; }
  /// Elements of a row that goes to an expert.
  int expert_row() const { return experts.latent > 0 ? experts.latent : hidden; }
  bool experts_have_biases() const { return biases || experts.biases; }
};
/// Modules of multi-token prediction that a model may have.
inline constexpr int most_mtp_layers = 64;
/// What of a layer brings tokens together.
enum class Mixer { attention, linear_attention, none };
/// What of it takes each token by itself.
enum class FeedForward { experts, mlp, none };
/// What a layer is made of, whatever its window or its precision; in hybrid models of one of both.
struct LayerShape {
  Mixer mixer = Mixer::attention;
  FeedForward feed_forward = FeedForward::mlp;
  bool attends() const { return mixer == Mixer::attention; }
  bool is_linear() const { return mixer == Mixer::linear_attention; }
  bool has_experts() const { return feed_forward == FeedForward::experts; }
  bool has_mlp() const { return feed_forward == FeedForward::mlp; }
  bool has_mixer() const { return mixer != Mixer::none; }
  bool has_feed_forward() const { return feed_forward != FeedForward::none; }
  /// Each with a norm before it, and added to the residual stream.
  int branches() const { return (has_mixer() ? 1 : 0) + (has_feed_forward() ? 1 : 0); }
  friend bool operator==(const LayerShape&, const LayerShape&) = default;
};
inline constexpr LayerShape mlp_layer{};
inline constexpr LayerShape expert_layer{Mixer::attention, FeedForward::experts};
/// All that there can be: attention before linear attention, experts before an MLP; those of one branch behind.
inline constexpr std::array layer_shapes{expert_layer,
                                         mlp_layer,
                                         LayerShape{Mixer::linear_attention, FeedForward::experts},
                                         LayerShape{Mixer::linear_attention, FeedForward::mlp},
                                         LayerShape{Mixer::attention, FeedForward::none},
                                         LayerShape{Mixer::linear_attention, FeedForward::none},
                                         LayerShape{Mixer::none, FeedForward::experts},
                                         LayerShape{Mixer::none, FeedForward::mlp}};
/// One for each shape.
template <class T>
class PerShape {
 public:
  T& operator[](LayerShape shape) { return all_[place(shape)]; }
  const T& operator[](LayerShape shape) const { return all_[place(shape)]; }
  friend bool operator==(const PerShape&, const PerShape&) = default;

 private:
  static constexpr std::size_t place(LayerShape s) {
    return 3 * static_cast<std::size_t>(s.mixer) + static_cast<std::size_t>(s.feed_forward);
  }
  std::array<T, 9> all_{};
};
/// Of a layer, from 0; of those that predict further tokens it is the last one's, of a hybrid model attention with its
/// experts or its MLP.
LayerShape layer_shape(const TransformerConfig&, int layer);
/// Layers of each shape, and the shapes that some layer has.
PerShape<int> layers_by_shape(const TransformerConfig&);
std::vector<LayerShape> shapes_of(const TransformerConfig&);
/// Whether a layer (from 0) has experts instead of an MLP.
bool has_experts(const TransformerConfig&, int layer);
/// Layers that have an MLP, and layers that attend to keys.
int mlp_layers(const TransformerConfig&);
int attending_layers(const TransformerConfig&);
/// Layers that have them.
int expert_layers(const TransformerConfig&);
/// Whether the queries of a layer (from 0) meet those of a sliding window only.
bool has_window(const TransformerConfig&, int layer);
/// Layers where they do.
int windowed_layers(const TransformerConfig&);
/// Whether a layer (from 0) has linear attention, and layers that have it.
bool has_linear_attention(const TransformerConfig&, int layer);
int linear_layers(const TransformerConfig&);
/// Keys that `tokens` queries behind `kept` tokens meet together, of each head: causal, min(position, window) each.
double causal_keys(double kept, double tokens, int window = 0);
/// Of the whole model, replicas not counted.
double parameter_count(const TransformerConfig&);
/// Of these, what one token passes: of each layer's experts only the ones it is sent to.
double active_parameter_count(const TransformerConfig&);

/// How the ranks of a context-parallel group attend to each other's tokens: keys and values go round (with as much
/// work for each rank under a causal mask), or heads are exchanged for tokens (DeepSpeed-Ulysses).
enum class ContextExchange { ring, ulysses };
enum class RankOrder { tp_pp_dp, tp_cp_ep_dp_pp, dp_pp_tp };
/// The last four are a user's own (own_schedule.hpp): with whole backwards or such without weight gradients, round the
/// stages or in a V.
enum class PipelineSchedule {
  gpipe,
  one_f_one_b,
  interleaved,
  zb_h1,
  zb_h2,
  zb_1p,
  zb_2p,
  zb_v,
  dualpipe,
  dualpipe_v,
  own,
  own_split,
  own_v,
  own_v_split
};
/// Zero bubble: a backward's weight gradients are turns of their own.
bool splits_backward(PipelineSchedule);
/// Of zero bubble, ZB-1p and ZB-2p: the order of work is made for the times of the stages.
bool made_for_times(PipelineSchedule);
/// A stage holds two slices of the model, as far from its begin and from its end: it goes down the stages and up again
/// (ZB-V, DualPipeV), or micro-batches come from both ends of the pipeline (DualPipe).
bool goes_in_v(PipelineSchedule);
/// Of these, DualPipe: each slice is on two stages, one for either way.
bool from_both_ends(PipelineSchedule);
/// A forward of one chunk and a backward of the other are passed together: DualPipe, DualPipeV.
bool passes_pairs(PipelineSchedule);
/// The order of work is one that the user brings.
bool is_own(PipelineSchedule);
struct OwnSchedule;
enum class Recompute { none, selective, full };
/// What selective recomputation computes once more: the first seven by Megatron-Core's names (`recompute_modules`),
/// then single operations of attention and of an MLP by the names that their matrices have in a Hugging Face
/// checkpoint.
enum class RecomputeModule {
  core_attn,
  layernorm,
  mla_up_proj,
  mlp,
  moe_act,
  moe,
  shared_experts,
  q_proj,
  k_proj,
  v_proj,
  o_proj,
  gate_proj,
  up_proj,
  mlp_act
};
using RecomputeModules = std::vector<RecomputeModule>;
/// All of them, in this order.
RecomputeModules recompute_modules();
/// Of an operation of PyTorch's, which is computed once more with all others of its layer.
bool is_single_operation(RecomputeModule);
enum class Attention { unfused, flash };
/// What of TP runs beside the kernels of its own layer: nothing; in the backward what the column-parallel matrices
/// gather and reduce, beside the products that do not need it; or in rings besides, a piece of a product for each
/// message.
enum class TpOverlap { none, backward, ring };
/// How tokens get to their experts, and back: a row for each expert; or one for each node that has any of them, and
/// there one for each such rank (DeepEP, HybridEP).
enum class TokenDispatcher { alltoall, flex };

std::string_view to_string(ContextExchange);
std::string_view to_string(RankOrder);
std::string_view to_string(PipelineSchedule);
std::string_view to_string(Recompute);
std::string_view to_string(RecomputeModule);
std::string_view to_string(Attention);
std::string_view to_string(TpOverlap);
std::string_view to_string(TokenDispatcher);

struct ParallelLayout {
  int tp = 1, pp = 1, dp = 1;
  int vpp = 1;       ///< model chunks of a stage, as asked for; above 1 with schedule interleaved or one's own only
  int cp = 1;        ///< ranks that the tokens of a sample are split over
  int ep = 1;        ///< ranks that the experts of a layer are spread over
  int etp = 0;       ///< ranks that each expert is split over; 0: tp
  int dp_shard = 0;  ///< with ZeRO: the replicas that a state is split over, neighbours in dp (HSDP); 0: all
  bool sequence_parallel = false;
  bool uneven_stages = false;  ///< pp need not divide the layers: embedding and head count as a layer each where pp
                               ///< divides them so, else the first stages have one layer more
  ContextExchange cp_exchange = ContextExchange::ring;
  RankOrder order = RankOrder::tp_pp_dp;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::shared_ptr<const OwnSchedule> own = {};  ///< with a schedule of one's own: the order of work
  int world() const { return tp * pp * dp * cp; }
  /// Slices of the model that a stage holds: in a V always the one on the way down and the one on the way up.
  int chunks() const { return goes_in_v(schedule) ? 2 : vpp; }
  /// Stages that hold the same slices: with DualPipe i and pp - 1 - i.
  int twins() const { return from_both_ends(schedule) ? 2 : 1; }
  /// Slices that the model is cut into, on these stages or on others; of degrees that nobody has looked at more than
  /// 32 bits hold.
  std::int64_t slices() const { return slices_on(pp); }
  std::int64_t slices_on(int stages) const { return std::int64_t{stages} * chunks() / twins(); }
  /// Whether the last chunk of the model is on the first stage, as a V has it, and not on the last alone.
  bool ends_together() const { return pp == 1 || goes_in_v(schedule); }
  /// Ranks that have the same parameters, and so reduce gradients.
  int replicas() const { return dp * cp * twins(); }
  /// Ranks that a state is split over with ZeRO, and copies of each part.
  int shards() const { return (dp_shard > 0 ? dp_shard : dp) * cp * twins(); }
  int shard_copies() const { return replicas() / shards(); }
  int expert_tp() const { return etp > 0 ? etp : tp; }
  /// Ranks that have the same experts, and so reduce their gradients.
  int expert_replicas() const { return tp * cp * dp / expert_tp() / ep * twins(); }
  /// Experts are spread or split in their own way, so that their gradients go their own way too.
  bool experts_apart() const { return ep > 1 || expert_tp() != tp; }
};

struct Batch {
  int sequence = 0;      ///< tokens per sample
  int micro_batch = 1;   ///< samples per micro-batch and replica
  int global_batch = 0;  ///< samples per step over all replicas
  int context = 0;       ///< inference: tokens of each sample before these, whose keys and values are kept
  int micro_batches(const ParallelLayout& l) const { return global_batch / (micro_batch * l.dp); }
  /// Those that pass each slice of a stage: half of them come from either end with DualPipe.
  int passes(const ParallelLayout& l) const { return micro_batches(l) / l.twins(); }
};

/// A batch whose prompts come at once, or requests in flight, each followed by the next when it has its last token.
enum class Batching { at_once, continuous };
std::string_view to_string(Batching);

/// A run of requests against a replica that batches continuously: so many clients at once, each of which sends its next
/// request when it has the last token of the one before; all begin at once.
struct RequestLoad {
  int concurrency = 0;     ///< clients of a replica, those beyond its batch wait for a place; 0: as many as the batch
  int requests = 0;        ///< of the whole run; 0: ten of each client
  double range_ratio = 1;  ///< prompts and answers have between this share and all of their tokens, evenly drawn
  int max_batched_tokens = 8192;  ///< of prompts and answers together, in one pass of the model
  int recv_interval = 1;          ///< passes of tokens alone from one look for new requests to the next
  int seed = 1;                   ///< of the lengths that are drawn
};

/// Inference instead of training: the prompts of a batch pass the model together, then its tokens one after the other;
/// or prompts pass between the tokens of the requests in flight.
struct Serving {
  int batch = 1;          ///< sequences that a replica serves together: in flight, with continuous batching
  int prompt_tokens = 0;  ///< of each sequence
  int output_tokens = 0;  ///< of each sequence; the first of them comes with the prompt
  int micro_batches = 1;  ///< that the batch is cut into, to keep the stages of a pipeline busy
  double kv_bytes = 2;    ///< of an element of the kept keys and values
  bool kv_window = true;  ///< layers with a sliding window keep those of its tokens only
  Batching batching = Batching::at_once;
  bool cut_by_stages = false;  ///< nobody said how many micro-batches: cut() has them, of another layout or batch too
  std::optional<RequestLoad> load = {};  ///< of continuous batching; nothing: requests that have long been coming
  double state_bytes = 4;                ///< of an element of the kept states of linear attention
  std::optional<Speculation> speculation = {};  ///< nothing: a pass brings each sequence a token
  Seconds first_token_overhead{};               ///< what the host takes of a request's first token beyond the GPUs
  /// One for every stage, where the batch can be cut so and nobody said otherwise.
  void cut(const ParallelLayout& layout) {
    if (cut_by_stages) micro_batches = batch % layout.pp == 0 && !is_continuous() ? layout.pp : 1;
  }
  bool is_continuous() const { return batching == Batching::continuous; }
  /// Of the load: what nobody said follows the batch, whatever layouts and batches are tried.
  int clients() const { return load->concurrency > 0 ? load->concurrency : batch; }
  int run_requests() const { return load->requests > 0 ? load->requests : 10 * clients(); }
  /// Of prompts and answers, mean: what a pass is priced with.
  int mean_prompt_tokens() const { return load ? mean_of(prompt_tokens, 1) : prompt_tokens; }
  int mean_output_tokens() const { return load ? mean_of(output_tokens, 2) : output_tokens; }
  /// Of the mean length, that the fullest pass has room for; two where it has room for one or a part, as what a
  /// further prompt adds is read off them. Without a load each passes alone.
  int prompts_in_full_pass() const {
    return load ? std::max(2, std::min(batch, load->max_batched_tokens / mean_prompt_tokens())) : 1;
  }
  /// Tokens of a sequence in a pass of tokens, and how many it brings on the mean: no more than an answer has behind
  /// its first.
  int verified_tokens() const { return speculation ? 1 + speculation->tokens : 1; }
  double tokens_per_pass() const {
    return speculation ? std::min(speculation->tokens_per_pass(), mean_output_tokens() - 1.0) : 1;
  }
  /// Passes of tokens that an answer takes, on the mean; and of one, whole ones.
  double passes(int tokens) const { return (tokens - 1) / tokens_per_pass(); }
  std::int64_t whole_passes(int tokens) const {
    constexpr double rounding = 1e-9;
    return static_cast<std::int64_t>(std::ceil(passes(tokens) - rounding));
  }
  /// Requests come and go on their own, so that they are anywhere in their answers: not where a run begins with all.
  bool is_steady() const { return is_continuous() && !load; }
  /// Tokens of a sequence whose keys and values are kept: in the end, as the last one is no more attended to; of
  /// requests that are anywhere in their answers the mean. With those that are drafted.
  double kept_tokens() const {
    const double drafted = verified_tokens() - 1;
    return drafted + (is_steady() ? prompt_tokens + output_tokens / 2.0 : prompt_tokens + output_tokens - 1.0);
  }

 private:
  int mean_of(int all, int least) const {
    return std::max(least, static_cast<int>(std::lround((1 + load->range_ratio) / 2 * all)));
  }
};

/// Number formats of what is sent.
enum class WireFormat { fp8, bf16, fp16, fp32 };
std::string_view to_string(WireFormat);

/// What is sent in a narrower format than it is computed in, or kept in; nothing: as it is.
struct CommunicationFormats {
  std::optional<WireFormat> tp_gather, tp_reduce;     ///< activations of layers, and their gradients
  std::optional<WireFormat> ep_dispatch, ep_combine;  ///< rows on their way to the experts, and back
  std::optional<WireFormat> parameters;               ///< weights of layers that ZeRO gathers
  std::optional<WireFormat> gradients;                ///< of weights
  int scale_block = 128;                              ///< elements of an activation in fp8 that share a scale of fp32
  friend bool operator==(const CommunicationFormats&, const CommunicationFormats&) = default;
};

/// PowerSGD: matrices by two of a low rank each (Vogels et al. 2019; PyTorch's powerSGD_hook). ratio: as many times
/// fewer bytes, by kernels that move so many bytes for each gradient.
enum class CompressionMethod { none, powersgd, ratio };
std::string_view to_string(CompressionMethod);

/// Of the gradients that replicas exchange, and of them in the format in which they are sent.
struct GradientCompression {
  CompressionMethod method = CompressionMethod::none;
  int rank = 1;                 ///< PowerSGD
  double min_rate = 2;          ///< PowerSGD: matrices that become smaller by less go as they are
  double ratio = 1;             ///< of bytes kept to bytes sent
  double moved = 0;             ///< ratio: bytes read and written for each gradient, to compress it and to restore it
  bool error_feedback = false;  ///< what was lost is kept, and added to the gradients of the next step
};

/// Matrices of a layer that low-rank adapters can be beside, by Megatron-Core's names: queries, keys and values
/// together; in their place with latent attention queries (from the hidden states, or down and up), and keys and values
/// down and up; the projection; up (and gate) of the MLP, of each expert and of the shared ones, and their down.
enum class AdapterModule {
  linear_qkv,
  linear_q_proj,
  linear_q_down_proj,
  linear_q_up_proj,
  linear_kv_down_proj,
  linear_kv_up_proj,
  linear_proj,
  linear_fc1,
  linear_fc2
};
std::string_view to_string(AdapterModule);
/// All of them, in this order, and those that a model's layers have.
std::vector<AdapterModule> adapter_modules();
std::vector<AdapterModule> adapter_modules(const TransformerConfig&);

/// How frozen weights are kept: as the step computes with them; or the matrices of its layers as QLoRA has them
/// (Dettmers et al. 2023, arXiv 2305.14314), which every pass brings back to 16 bit before its product.
enum class BaseWeights { as_computed, nf4 };
std::string_view to_string(BaseWeights);

/// LoRA (Hu et al. 2021): beside each named matrix of every layer two of a low rank, which are trained in the place of
/// the model's weights. Formulas: src/workload/layer/adapters.hpp.
struct LowRankAdapters {
  int rank = 0;                                                   ///< 0: none, and the model's weights are trained
  std::optional<std::vector<AdapterModule>> target_modules = {};  ///< nothing: all that the layers have
  BaseWeights base_weights = BaseWeights::as_computed;
  std::vector<AdapterModule> targets(const TransformerConfig& model) const {
    return target_modules ? *target_modules : adapter_modules(model);
  }
};

/// Of gradients, where no other size is asked for: as large as a usual model's need it, and larger where those of a
/// rank would be cut into too many.
inline constexpr Bytes default_bucket{40'000'000};

struct TrainingOptions {
  std::string precision = "bf16";                   ///< of GEMMs and activations: a key of GpuSpec::peak
  int bf16_first_layers = 0, bf16_last_layers = 0;  ///< of fp8 and fp4: so many layers are computed in bf16
  Recompute recompute = Recompute::none;
  RecomputeModules recompute_modules = {RecomputeModule::core_attn};  ///< of `selective`
  double recompute_layers = 1;  ///< share of the layers that this is done in, evenly spread over the model
  Attention attention = Attention::flash;
  int zero = 0;  ///< split over the shards, 1: optimizer state, 2: gradients too, 3: weights too (FSDP)
  bool reshard_after_forward = true;  ///< ZeRO-3: weights are gathered again for the backward
  bool no_sync = false;               ///< ZeRO-3: gradients are summed up whole and reduced in the last backward only
  int gradient_bytes = 4;             ///< per parameter, as kept and as reduced (Megatron 4; 2)
  bool moe_grouped_gemm = true;       ///< the experts of a rank in one kernel, where its times are known; else one each
  /// Biases, clamp and activation of experts within the kernels of their products (expert_kernels.hpp).
  bool moe_grouped_mlp_fusion = false;
  bool fuse_loss = true;  ///< the loss reads logits three times; else it is kernels of one operation each
  /// fp8 and fp4: the inputs of products are kept for the backward as they were, not as the products read them
  /// (Transformer Engine's Linear has this name; torchao).
  bool save_original_input = false;
  bool fuse_accumulation = true;  ///< products of weight gradients add to what is summed up; else kernels behind them
  bool overlap_dp = true;         ///< gradient buckets under the last backward, ZeRO-3's gathers beside computing
  bool align_grad_reduce = true;  ///< of 1F1B, GPipe and interleaved: stages reduce gradients at the same time
  std::optional<Bytes> bucket = {};  ///< gradient bucket size, used as it is; nothing: default_bucket, or more
  bool overlap_pp = true;            ///< asynchronous pipeline transfers
  TpOverlap overlap_tp = TpOverlap::none;
  Seconds launch{};  ///< between the host's kernel launches; 0: CUDA graphs, or a host that keeps up
  std::optional<Seconds> launch_backward = {};  ///< between those of gradients' kernels; nothing: as `launch`
  bool overlap_cp = true;                       ///< keys and values of the next block under the attention of one
  bool overlap_ep = false;                      ///< exchange of experts under the computing of another micro-batch
  bool optimizer = true;                        ///< false: no optimizer step and no optimizer state
  bool embedding_and_logits = true;             ///< false: transformer layers only (layer benchmarks)
  TokenDispatcher moe_token_dispatcher = TokenDispatcher::alltoall;
  double expert_imbalance = 1;     ///< tokens of the busiest expert-parallel rank over the mean
  double moe_capacity_factor = 0;  ///< tokens that an expert takes at most, over the mean; 0: all of them
  CommunicationFormats communication = {};
  GradientCompression compression = {};
  bool delayed_all_reduce = false;  ///< gradients are exchanged under the next step, whose optimizer applies them
  LowRankAdapters lora = {};
  /// Layers, the first ones, whose activations go to the host's memory until their backward, beside the computing
  /// (Megatron-Core has this name; one pipeline stage, nothing recomputed).
  int cpu_offloading_num_layers = 0;
  std::optional<PrecisionAwareOptimizer> precision_aware_optimizer = {};  ///< nothing: all states in fp32
  std::optional<OptimizerStateOffload> optimizer_state_offload = {};      ///< nothing: all states stay on the GPU
};

/// Whether layer (from 0) is among those in which things are computed once more, if any are.
bool recomputes_layer(const TrainingOptions&, int layer);
/// Of a precision-aware optimizer: whether fp32 parameters are kept as the 16 bits that the weights do not have.
bool keeps_remainders(const TrainingOptions&);
/// Whether recomputation is selective and names the module.
bool recomputes(const TrainingOptions&, RecomputeModule);

/// What TrainingOptions::precision can be.
std::vector<std::string> training_precisions();

/// Tokens that the busiest expert-parallel rank takes, over the mean: everybody waits for it. With all experts on each
/// rank 1, and never above ep.
double expert_load(const TrainingOptions&, const ParallelLayout&);

/// What attention and logits run in: fp8 is for the linear layers only, the rest of an fp8 step is bf16.
std::string core_precision(const TrainingOptions&);

/// How far below its data sheet a GPU's kernels run: time = overhead + max(flops/(compute*peak),
/// bytes/(memory*bandwidth)). From measured kernels; the file says which and how they were fitted.
struct KernelEfficiency {
  Seconds overhead{};
  double compute = 1.0;
  double memory = 1.0;
  std::string source;
  double sustained = 1;  ///< of products: of the peak compute rate, at most, for as long as a step takes
  std::string sustained_source = {};
};
/// Measured products of one precision, each against the roofline of the GPU that it was measured on.
struct GemmTables {
  std::string file;
  MeasuredGemms any;                          ///< whatever they are for
  std::map<GemmPass, MeasuredGemms> of_pass;  ///< of one pass: asked first
  /// By how much to multiply the roofline's time, beyond the products, too; nothing where there are none. What a pass
  /// takes longer than `any` at the edge of its own products, it does beyond. No pass: of none in particular.
  std::optional<MeasuredGemms::AtEdge> ratio(std::optional<GemmPass>, const GemmShape&) const;
  /// The same from products of other (n, k) only; no pass: of none in particular.
  std::optional<double> ratio_of_unseen(std::optional<GemmPass>, const GemmShape&) const;
  std::size_t products() const;
  std::string name() const;  ///< of the file, without its folders
};
struct KernelModel {
  std::string name;
  std::string file;
  std::map<std::string, KernelEfficiency> gemm;                   ///< per precision
  std::map<std::string, GemmTables> measured_gemm;                ///< per precision, where there are any
  std::map<std::string, KernelEfficiency> attention;              ///< flash attention per precision
  std::map<std::string, KernelEfficiency> attention_gradient;     ///< its backward, where that is known by itself
  std::map<std::string, KernelEfficiency> grouped_gemm;           ///< all experts' products in one kernel
  std::map<std::string, KernelEfficiency> grouped_gemm_gradient;  ///< of their weights, where that is known by itself
  KernelEfficiency memory_bound;                                  ///< norm, softmax, activation, optimizer
  double beside_collectives = 1;  ///< rate of a product or attention while a collective runs
  std::string beside_source;
  double host_copies = 1;  ///< rate of copies to the host's memory and from there, of the line rate of the way
  std::string host_copies_source = {};
};

/// Of attention over kept keys and values: it streams as kernels do that are bound by memory, and computes as flash
/// attention of that precision, which the table has.
KernelEfficiency cached_attention_efficiency(const KernelModel&, const std::string& precision);

}  // namespace collcast
