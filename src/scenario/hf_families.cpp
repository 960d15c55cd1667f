// What config.json says of the members of each family of models.
//
// The Llama family (Llama, Mistral, Qwen2, Qwen3, Gemma) shares one set of keys, to which mixtures of experts (Mixtral,
// MiniMax-M2, gpt-oss, Grok-1, Qwen2-MoE, Qwen3-MoE, Qwen3-Next, DeepSeek-V2, -V3 and -V3.2, GLM-5) and Nemotron-H add
// theirs; GPT-2, GPT-NeoX, Falcon and MPT have their own. Defaults are those of the transformers library, because
// config.json leaves them out. Left out: Qwen2's biases on Q, K, V (counted as none), Qwen3's and Gemma 3's Q and K
// norms, DeepSeek-V3's and GLM-4.5's biases of the router, OLMo 2's norms of Q and K (its two norms a layer are behind
// attention and MLP, and count as if before), layers that predict further tokens (the main model alone is read;
// model.mtp_num_layers of a scenario adds them), gpt-oss' biases of attention and sinks, Gemma 2's and 3's norms behind
// attention and MLP and caps of logits.
#include "scenario/hf_families.hpp"

#include <algorithm>
#include <utility>

#include "collcast/workload/limits.hpp"

namespace collcast::input {

namespace {

constexpr AsNumber dropout{0, 1, false, true};

/// What members of the Llama family do not share: keys whose default in transformers is the first model's of its kind,
/// so that they must be there, and whether the output layer is the embedding where the file does not say.
struct LlamaFamily {
  bool states_heads = true;
  bool states_kv_heads = false;
  bool states_head_dim = false;
  bool tied = false;
  bool states_ffn = true;
  bool states_vocab = true;
};

/// RMSNorm, gated MLP, rotary positions, no biases. Absent key and value heads are as many as the heads.
TransformerConfig read_family(Object& o, const LlamaFamily& family) {
  TransformerConfig m;
  m.gated_mlp = true;
  m.tied_embeddings = family.tied;
  const auto count = [&](const char* key, bool required, int& out) {
    required ? o.required(key, out, AsCount{}) : o.optional(key, out, AsCount{});
  };
  count("num_hidden_layers", true, m.layers);
  count("hidden_size", true, m.hidden);
  count("num_attention_heads", family.states_heads, m.heads);
  count("num_key_value_heads", family.states_kv_heads, m.kv_heads);
  count("head_dim", family.states_head_dim, m.head_dim);
  if (family.states_ffn) count("intermediate_size", true, m.ffn);
  count("vocab_size", family.states_vocab, m.vocab);
  o.optional("tie_word_embeddings", m.tied_embeddings, AsTruth{});
  return m;
}
TransformerConfig read_llama(Object& o) { return read_family(o, {}); }
TransformerConfig read_mistral(Object& o) { return read_family(o, {.states_kv_heads = true}); }
TransformerConfig read_qwen3(Object& o) { return read_family(o, {.states_kv_heads = true, .states_head_dim = true}); }
/// Attention and MLP read the output of one norm; each sums up by itself over TP ranks (vLLM,
/// vllm/model_executor/models/commandr.py).
TransformerConfig read_cohere(Object& o) {
  TransformerConfig m = read_family(o, {.tied = true});
  m.parallel_mlp = {1, false};
  return m;
}
TransformerConfig read_gemma(Object& o) {
  return read_family(o, {.states_kv_heads = true, .states_head_dim = true, .tied = true});
}

/// Published files leave out what is as transformers has it (configuration_gemma3.py: Gemma3TextConfig; google/
/// gemma-3-4b-it has no heads, all models of images and text no vocab_size).
TransformerConfig read_gemma3(Object& o) {
  TransformerConfig m = read_family(o, {.states_heads = false, .tied = true, .states_vocab = false});
  const auto absent = [](int& value, int usual) {
    if (value == 0) value = usual;
  };
  absent(m.heads, 8);
  absent(m.kv_heads, 4);
  absent(m.head_dim, 256);
  absent(m.vocab, 262'208);
  return m;
}

/// A plain MLP.
TransformerConfig read_nemotron(Object& o) {
  TransformerConfig m = read_llama(o);
  m.gated_mlp = false;
  return m;
}

TransformerConfig read_nemotron_h(Object& o) {
  o.allow({"attention_head_dim"});
  TransformerConfig m = read_mistral(o);
  m.gated_mlp = false;
  return m;
}

/// All MLPs are experts.
TransformerConfig read_all_experts(Object& o, TransformerConfig m, const char* count) {
  o.required(count, m.experts.count, AsCount{});
  o.required("num_experts_per_tok", m.experts.top_k, AsCount{});
  m.experts.ffn = m.ffn;
  return m;
}
TransformerConfig read_mixtral(Object& o) { return read_all_experts(o, read_mistral(o), "num_local_experts"); }
TransformerConfig read_grok(Object& o) { return read_all_experts(o, read_mistral(o), "num_experts"); }
/// Heads have a size of their own (MiniMax-M2, gpt-oss).
TransformerConfig read_mixtral_with_heads(Object& o) { return read_all_experts(o, read_qwen3(o), "num_local_experts"); }
/// Biases of the experts' products, and what goes into their activation is cut off at swiglu_limit (transformers,
/// modeling_gpt_oss.py: GptOssExperts).
TransformerConfig read_gpt_oss(Object& o) {
  TransformerConfig m = read_mixtral_with_heads(o);
  m.experts.biases = m.experts.clamp = true;
  return m;
}

/// Beside those that tokens are sent to, with a gate of what they give.
void read_shared_expert(Object& o, Experts& e) {
  o.required("shared_expert_intermediate_size", e.shared_ffn, AsCount{});
  e.shared_gate = true;
}

void read_qwen_experts(Object& o, Experts& e) {
  o.required("num_experts", e.count, AsCount{});
  o.required("num_experts_per_tok", e.top_k, AsCount{});
  o.required("moe_intermediate_size", e.ffn, AsCount{});
  if (o.optional("decoder_sparse_step", e.every, AsCount{})) e.phase = e.every - 1;
  o.optional("mlp_only_layers", e.dense_at, AsList<AsCount, int>{{0, max_count}});
}
TransformerConfig read_qwen2_moe(Object& o) {
  TransformerConfig m = read_mistral(o);
  read_qwen_experts(o, m.experts);
  read_shared_expert(o, m.experts);
  return m;
}
/// Three layers of linear attention to one that attends to keys, with a gate of what that gives (hf_layers.hpp).
TransformerConfig read_qwen3_next(Object& o) {
  TransformerConfig m = read_qwen3(o);
  read_qwen_experts(o, m.experts);
  read_shared_expert(o, m.experts);
  return m;
}
/// The same; where all MLPs are experts the file need not say how wide another would be.
TransformerConfig read_qwen35_moe(Object& o) {
  if (o.node().find("intermediate_size") != nullptr) return read_qwen3_next(o);
  TransformerConfig m = read_family(o, {.states_kv_heads = true, .states_head_dim = true, .states_ffn = false});
  read_qwen_experts(o, m.experts);
  read_shared_expert(o, m.experts);
  m.ffn = m.experts.ffn;
  return m;
}
TransformerConfig read_qwen3_moe(Object& o) {
  TransformerConfig m = read_qwen3(o);
  read_qwen_experts(o, m.experts);
  return m;
}

/// Layers of experts by their numbers, else each `interleave_moe_layer_step`-th (transformers,
/// configuration_llama4.py).
void read_llama4_expert_layers(Object& o, int layers, Experts& e) {
  o.allow({"moe_layers", "interleave_moe_layer_step"});
  o.optional("interleave_moe_layer_step", e.every, AsCount{});
  e.phase = e.every - 1;
  std::vector<int> at;
  if (!o.optional("moe_layers", at, AsList<AsCount, int>{{0, max_count}})) return;
  std::ranges::sort(at);
  bool as_step = true;
  std::vector<int> others;
  for (int i = 0; i < layers && layers <= most_layers; ++i) {
    const bool is_named = std::ranges::binary_search(at, i);
    as_step = as_step && is_named == (i % e.every == e.phase);
    if (!is_named) others.push_back(i);
  }
  if (as_step) return;
  e.every = 1;
  e.phase = 0;
  e.dense_at = std::move(others);
}

/// Experts of `intermediate_size`, one of which all tokens pass, and other MLPs of `intermediate_size_mlp`; chunks of
/// attention are read_chunks's (transformers, configuration_llama4.py, modeling_llama4.py: Llama4TextMoe).
TransformerConfig read_llama4(Object& o) {
  o.allow({"intermediate_size", "intermediate_size_mlp"});
  TransformerConfig m = read_family(o, {.states_kv_heads = true, .states_ffn = false});
  Experts& e = m.experts;
  o.required("intermediate_size_mlp", m.ffn, AsCount{});
  o.required("intermediate_size", e.ffn, AsCount{});
  o.required("num_local_experts", e.count, AsCount{});
  o.required("num_experts_per_tok", e.top_k, AsCount{});
  e.shared_ffn = e.ffn;
  read_llama4_expert_layers(o, m.layers, e);
  return m;
}

/// DeepSeek's experts: shared ones count in widths of one; those of all groups alike, whatever n_group, says greedy.
void read_deepseek_experts(Object& o, Experts& e) {
  o.required("num_experts_per_tok", e.top_k, AsCount{});
  o.required("moe_intermediate_size", e.ffn, AsCount{});
  int shared = 0;
  if (o.optional("n_shared_experts", shared, AsCount{0, max_count}))
    e.shared_ffn = o.is_elsewhere("n_shared_experts") ? shared : shared * e.ffn;  // a scenario has their width
  o.optional("first_k_dense_replace", e.dense_layers, AsCount{0, max_count});
  o.optional("moe_layer_freq", e.every, AsCount{});
  std::string method;
  o.optional("topk_method", method, AsText{});
  int groups = 1, of_token = 1;
  if (o.optional("n_group", groups, AsCount{})) o.required("topk_group", of_token, AsCount{});
  if (method == "greedy") return;
  e.groups = groups;
  e.group_top_k = of_token;
}

/// GLM-4.5: ordinary attention before DeepSeek-V3's experts (transformers, modular_glm4_moe.py: Glm4MoeMoE).
TransformerConfig read_glm4_moe(Object& o) {
  TransformerConfig m = read_qwen3(o);
  o.required("n_routed_experts", m.experts.count, AsCount{});
  o.required("n_shared_experts", m.experts.shared_ffn, AsCount{0, max_count});
  o.required("first_k_dense_replace", m.experts.dense_layers, AsCount{0, max_count});
  read_deepseek_experts(o, m.experts);
  return m;
}

/// Latent attention; without n_routed_experts a dense model. A null q_lora_rank: queries are not compressed.
TransformerConfig read_deepseek(Object& o) {
  TransformerConfig m = read_llama(o);
  LatentAttention& a = m.latent;
  // All are near each other: none is a slip of one that is absent.
  o.allow({"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"});
  o.optional("q_lora_rank", a.q_rank, AsCount{});
  o.required("kv_lora_rank", a.kv_rank, AsCount{});
  o.required("qk_nope_head_dim", a.nope, AsCount{});
  o.required("qk_rope_head_dim", a.rope, AsCount{});
  o.required("v_head_dim", a.value, AsCount{});
  // Every head has keys and values of its own, out of the small rank.
  m.kv_heads = m.heads;
  m.head_dim = a.nope + a.rope;
  Experts& e = m.experts;
  if (!o.optional("n_routed_experts", e.count, AsCount{})) return m;
  read_deepseek_experts(o, e);
  return m;
}

/// The same with an indexer that chooses the keys of each query, in every layer.
TransformerConfig read_deepseek_sparse(Object& o) {
  SparseAttention a;
  // These are near each other, too.
  o.allow({"index_n_heads", "index_head_dim", "index_topk"});
  o.required("index_n_heads", a.heads, AsCount{});
  o.required("index_head_dim", a.dim, AsCount{});
  o.required("index_topk", a.top_k, AsCount{});
  TransformerConfig m = read_deepseek(o);
  m.sparse = a;
  return m;
}

/// LayerNorm, plain MLP, learned positions, tied embeddings, dropout in training.
TransformerConfig read_gpt2(Object& o) {
  TransformerConfig m;
  m.biases = true;
  m.tied_embeddings = true;
  m.dropout = 0.1;
  o.required("n_layer", m.layers, AsCount{});
  o.required("n_embd", m.hidden, AsCount{});
  o.required("n_head", m.heads, AsCount{});
  o.required("vocab_size", m.vocab, AsCount{});
  o.required("n_positions", m.learned_positions, AsCount{});
  o.optional("tie_word_embeddings", m.tied_embeddings, AsTruth{});
  o.optional("resid_pdrop", m.dropout, dropout);
  if (!o.optional("n_inner", m.ffn, AsCount{}) && m.hidden > 0) m.ffn = 4 * m.hidden;
  return m;
}

/// LayerNorm, plain MLP, rotary positions; attention and MLP read the output of one norm, and the TP ranks sum up once
/// (mesh-transformer-jax, mesh_transformer/layers.py: one psum of both).
TransformerConfig read_gptj(Object& o) {
  TransformerConfig m;
  m.biases = true;
  m.parallel_mlp = {1, true};
  o.required("n_layer", m.layers, AsCount{});
  o.required("n_embd", m.hidden, AsCount{});
  o.required("n_head", m.heads, AsCount{});
  o.required("vocab_size", m.vocab, AsCount{});
  o.optional("tie_word_embeddings", m.tied_embeddings, AsTruth{});
  o.optional("resid_pdrop", m.dropout, dropout);
  if (!o.optional("n_inner", m.ffn, AsCount{}) && m.hidden > 0) m.ffn = 4 * m.hidden;
  return m;
}

/// LayerNorm, plain MLP, rotary positions; by default attention and MLP read the same input, each through a norm of its
/// own, and the TP ranks sum up once (GPT-NeoX library, megatron/model/transformer.py: gpt_j_residual).
TransformerConfig read_gpt_neox(Object& o) {
  TransformerConfig m;
  bool beside = true;
  m.biases = true;
  o.optional("use_parallel_residual", beside, AsTruth{});
  m.parallel_mlp.norms = beside ? 2 : 0;
  o.required("num_hidden_layers", m.layers, AsCount{});
  o.required("hidden_size", m.hidden, AsCount{});
  o.required("num_attention_heads", m.heads, AsCount{});
  o.required("intermediate_size", m.ffn, AsCount{});
  o.required("vocab_size", m.vocab, AsCount{});
  o.optional("tie_word_embeddings", m.tied_embeddings, AsTruth{});
  o.optional("hidden_dropout", m.dropout, dropout);
  return m;
}

/// LayerNorm, plain MLP, tied embeddings; one key and value head for all queries before the decoder of Falcon 40B,
/// which states how many. ALiBi or rotary positions: neither has weights. Attention and MLP read the same input through
/// one norm, in the new decoder through two unless it says otherwise; the TP ranks sum up once (vLLM,
/// vllm/model_executor/models/falcon.py: reduce_row_parallel_results).
TransformerConfig read_falcon(Object& o) {
  TransformerConfig m;
  m.tied_embeddings = true;
  bool beside = true;
  int norms = 0;
  o.optional("parallel_attn", beside, AsTruth{});
  o.optional("num_ln_in_parallel_attn", norms, AsCount{1, 2});
  bool states_kv_heads = false, shares_kv_head = true;
  o.required("num_hidden_layers", m.layers, AsCount{});
  o.required("hidden_size", m.hidden, AsCount{});
  o.required("num_attention_heads", m.heads, AsCount{});
  o.required("vocab_size", m.vocab, AsCount{});
  o.optional("new_decoder_architecture", states_kv_heads, AsTruth{});
  o.optional("multi_query", shares_kv_head, AsTruth{});
  o.optional("num_kv_heads", m.kv_heads, AsCount{});
  if (!states_kv_heads && shares_kv_head) m.kv_heads = 1;
  if (states_kv_heads)
    m.parallel_mlp.norms = norms > 0 ? norms : 2;
  else if (beside)
    m.parallel_mlp.norms = 1;
  o.optional("bias", m.biases, AsTruth{});
  o.optional("tie_word_embeddings", m.tied_embeddings, AsTruth{});
  o.optional("hidden_dropout", m.dropout, dropout);
  if (!o.optional("ffn_hidden_size", m.ffn, AsCount{}) && m.hidden > 0) m.ffn = 4 * m.hidden;
  return m;
}

/// Falcon as it was first published: that of 40B states its key and value heads and has two norms, others have one of
/// each for all queries where they say so (tiiuae/falcon-7b and -40b, configuration_RW.py, modelling_RW.py).
TransformerConfig read_refined_web(Object& o) {
  TransformerConfig m;
  m.tied_embeddings = true;
  bool shares_kv_head = false, beside = false;
  o.required("n_layer", m.layers, AsCount{});
  o.required("hidden_size", m.hidden, AsCount{});
  o.required("n_head", m.heads, AsCount{});
  o.required("vocab_size", m.vocab, AsCount{});
  o.optional("multi_query", shares_kv_head, AsTruth{});
  o.optional("parallel_attn", beside, AsTruth{});
  if (o.optional("n_head_kv", m.kv_heads, AsCount{}))
    m.parallel_mlp.norms = 2;
  else if (beside)
    m.parallel_mlp.norms = 1;
  if (m.kv_heads == 0 && shares_kv_head) m.kv_heads = 1;
  o.optional("bias", m.biases, AsTruth{});
  o.optional("hidden_dropout", m.dropout, dropout);
  m.ffn = 4 * m.hidden;
  return m;
}

/// LayerNorm, plain MLP, tied embeddings, ALiBi.
TransformerConfig read_mpt(Object& o) {
  TransformerConfig m;
  bool no_bias = true;
  int expansion = 4;
  m.tied_embeddings = true;
  o.required("n_layers", m.layers, AsCount{});
  o.required("d_model", m.hidden, AsCount{});
  o.required("n_heads", m.heads, AsCount{});
  o.required("vocab_size", m.vocab, AsCount{});
  o.optional("expansion_ratio", expansion, AsCount{1, 100});
  o.optional("no_bias", no_bias, AsTruth{});
  o.optional("tie_word_embeddings", m.tied_embeddings, AsTruth{});
  o.optional("resid_pdrop", m.dropout, dropout);
  m.biases = !no_bias;
  m.ffn = expansion * m.hidden;
  return m;
}

constexpr Windows no_windows{}, all_layers{4096, 0, false, true}, if_stated{0, 0, false, true},
    alternating{4096, 2, false, true}, one_in_four{4096, 4, false, true}, one_in_six{4096, 6, false, true},
    short_alternating{128, 2, false, true}, if_asked{4096, 0, true, true};

constexpr const char* experts_width = "experts.ffn";

}  // namespace

std::vector<Architecture> supported_architectures() {
  return {{"LlamaForCausalLM", "llama", read_llama},
          {"MistralForCausalLM", "mistral", read_mistral, all_layers},
          {"Llama4ForCausalLM", "llama4_text", read_llama4, no_windows, read_chunks, experts_width},
          {"Olmo2ForCausalLM", "olmo2", read_llama},
          {"Phi3ForCausalLM", "phi3", read_llama, if_stated},
          {"Qwen2ForCausalLM", "qwen2", read_mistral, if_asked},
          {"Qwen3ForCausalLM", "qwen3", read_qwen3, if_asked},
          {"GemmaForCausalLM", "gemma", read_gemma},
          {"Gemma2ForCausalLM", "gemma2", read_gemma, alternating},
          {"Gemma3ForCausalLM", "gemma3_text", read_gemma3, one_in_six},
          {"CohereForCausalLM", "cohere", read_cohere},
          {"Cohere2ForCausalLM", "cohere2", read_cohere, one_in_four},
          {"NemotronForCausalLM", "nemotron", read_nemotron},
          {"NemotronHForCausalLM", "nemotron_h", read_nemotron_h, no_windows, read_hybrid_layers},
          {"MixtralForCausalLM", "mixtral", read_mixtral, if_stated, nullptr, experts_width},
          {"MiniMaxM2ForCausalLM", "minimax_m2", read_mixtral_with_heads, no_windows, nullptr, experts_width},
          {"GptOssForCausalLM", "gpt_oss", read_gpt_oss, short_alternating, nullptr, experts_width},
          {"Grok1ModelForCausalLM", "grok-1", read_grok, no_windows, nullptr, experts_width},
          {"Qwen2MoeForCausalLM", "qwen2_moe", read_qwen2_moe, if_asked},
          {"Qwen3MoeForCausalLM", "qwen3_moe", read_qwen3_moe, if_asked},
          {"Qwen3NextForCausalLM", "qwen3_next", read_qwen3_next, no_windows, read_linear_attention},
          {"Qwen3_5ForCausalLM", "qwen3_5_text", read_qwen3, no_windows, read_linear_attention},
          {"Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", read_qwen35_moe, no_windows, read_linear_attention},
          {"Qwen3_5ForConditionalGeneration", "qwen3_5", read_qwen3, no_windows, read_linear_attention},
          {"Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", read_qwen35_moe, no_windows, read_linear_attention},
          {"DeepseekV2ForCausalLM", "deepseek_v2", read_deepseek},
          {"DeepseekV3ForCausalLM", "deepseek_v3", read_deepseek},
          {"DeepseekV32ForCausalLM", "deepseek_v32", read_deepseek_sparse},
          {"GlmMoeDsaForCausalLM", "glm_moe_dsa", read_deepseek_sparse},
          {"Glm4MoeForCausalLM", "glm4_moe", read_glm4_moe},
          {"GPT2LMHeadModel", "gpt2", read_gpt2},
          {"GPTJForCausalLM", "gptj", read_gptj},
          {"GPTNeoXForCausalLM", "gpt_neox", read_gpt_neox},
          {"FalconForCausalLM", "falcon", read_falcon},
          {"RWForCausalLM", "RefinedWebModel", read_refined_web},
          {"MPTForCausalLM", "mpt", read_mpt}};
}

bool is_type_of(const Architecture& of, std::string_view model_type) {
  // Kimi K2 is DeepSeek-V3 by another name; Falcon 40B was published under another than 7B.
  static constexpr std::pair<std::string_view, std::string_view> others[] = {{"DeepseekV3ForCausalLM", "kimi_k2"},
                                                                             {"RWForCausalLM", "RefinedWeb"}};
  return of.model_type == model_type || std::ranges::find(others, std::pair<std::string_view, std::string_view>(
                                                                      of.name, model_type)) != std::end(others);
}

}  // namespace collcast::input
