// Hugging Face config.json -> TransformerConfig.
//
// The Llama family (Llama, Mistral, Qwen2, Qwen3, Gemma) shares one set of keys, to which mixtures of experts (Mixtral,
// MiniMax-M2, gpt-oss, Grok-1, Qwen2-MoE, Qwen3-MoE, Qwen3-Next, DeepSeek-V2, -V3 and -V3.2, GLM-5) and Nemotron-H add
// theirs; GPT-2, GPT-NeoX, Falcon and MPT have their own. Defaults are those of the transformers library, because
// config.json leaves them out. Other keys are not looked at, unless they are nearly one of ours that is absent, or
// another tool's name for it, or among those of hf_notes.hpp. Left out: Qwen2's biases on Q, K, V (counted as none),
// Qwen3's and Gemma 3's Q and K norms, DeepSeek-V3's biases of the router, layers that predict further tokens (the main
// model alone is read; model.mtp_num_layers of a scenario adds them), gpt-oss' biases of attention and sinks, Gemma 2's
// and 3's norms behind attention and MLP and caps of logits.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>

#include "scenario/files.hpp"
#include "scenario/hf_layers.hpp"
#include "scenario/hf_notes.hpp"
#include "scenario/parse.hpp"

namespace collcast {

namespace {

using input::AsCount;
using input::AsList;
using input::AsNumber;
using input::AsText;
using input::AsTruth;
using input::Entry;
using input::Node;
using input::Object;
using input::read_hybrid_layers;
using input::read_linear_attention;
using input::Reader;

constexpr AsNumber dropout{0, 1, false, true};

/// What members of the Llama family do not share: keys whose default in transformers is the first model's of its kind,
/// so that they must be there, and whether the output layer is the embedding where the file does not say.
struct LlamaFamily {
  bool states_kv_heads = false;
  bool states_head_dim = false;
  bool tied = false;
  bool states_ffn = true;
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
  count("num_attention_heads", true, m.heads);
  count("num_key_value_heads", family.states_kv_heads, m.kv_heads);
  count("head_dim", family.states_head_dim, m.head_dim);
  if (family.states_ffn) count("intermediate_size", true, m.ffn);
  count("vocab_size", true, m.vocab);
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
TransformerConfig read_experts(Object& o, TransformerConfig m, const char* count) {
  o.required(count, m.experts.count, AsCount{});
  o.required("num_experts_per_tok", m.experts.top_k, AsCount{});
  m.experts.ffn = m.ffn;
  return m;
}
TransformerConfig read_mixtral(Object& o) { return read_experts(o, read_mistral(o), "num_local_experts"); }
TransformerConfig read_grok(Object& o) { return read_experts(o, read_mistral(o), "num_experts"); }
/// Heads have a size of their own (MiniMax-M2, gpt-oss).
TransformerConfig read_mixtral_with_heads(Object& o) { return read_experts(o, read_qwen3(o), "num_local_experts"); }
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
  o.optional("mlp_only_layers", e.dense_at, AsList<AsCount, int>{{0, input::max_count}});
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
  o.required("num_experts_per_tok", e.top_k, AsCount{});
  o.required("moe_intermediate_size", e.ffn, AsCount{});
  int shared = 0;
  if (o.optional("n_shared_experts", shared, AsCount{})) e.shared_ffn = shared * e.ffn;
  o.optional("first_k_dense_replace", e.dense_layers, AsCount{0, input::max_count});
  o.optional("moe_layer_freq", e.every, AsCount{});
  // Of all experts alike, whatever the groups, says greedy.
  std::string method;
  o.optional("topk_method", method, AsText{});
  int groups = 1, of_token = 1;
  if (o.optional("n_group", groups, AsCount{})) o.required("topk_group", of_token, AsCount{});
  if (method != "greedy") {
    e.groups = groups;
    e.group_top_k = of_token;
  }
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

/// Names of the same things in other families, in Meta's params.json, Megatron and Mistral's own files.
void know_other_names(Object& o) {
  const std::vector<std::string> layers{"num_layers", "n_layers", "n_layer", "num_hidden_layers"},
      hidden{"d_model", "dim", "n_embd", "model_dim", "hidden_dim", "hidden_size"},
      heads{"num_heads", "n_heads", "n_head", "num_attention_heads"},
      ffn{"ffn_hidden_size", "ffn_dim", "d_ff", "n_inner", "intermediate_dim", "intermediate_size"};
  for (const char* key : {"num_hidden_layers", "n_layer", "n_layers"}) o.also_called(key, layers);
  for (const char* key : {"hidden_size", "n_embd", "d_model"}) o.also_called(key, hidden);
  for (const char* key : {"num_attention_heads", "n_head", "n_heads"}) o.also_called(key, heads);
  for (const char* key : {"intermediate_size", "n_inner"}) o.also_called(key, ffn);
  o.also_called("num_key_value_heads", {"num_kv_heads", "n_kv_heads", "kv_heads", "n_head_kv", "num_query_groups"});
  o.also_called("head_dim", {"head_dimension", "head_size", "kv_channels", "attention_head_dim"});
  o.also_called("vocab_size", {"n_vocab", "padded_vocab_size", "vocabulary_size"});
  o.also_called("tie_word_embeddings", {"tie_embeddings", "tied_embeddings", "tie_embedding", "share_embeddings"});
}

bool says_several_experts(const Entry& entry) {
  const bool count = entry.key == "num_local_experts" || entry.key == "num_experts" ||
                     entry.key == "n_routed_experts" || entry.key == "moe_num_experts";
  return count && entry.value.kind == Node::Kind::scalar && entry.value.text != "0" && entry.value.text != "1";
}

/// Layers that take over another's choice (GLM-5.2's IndexShare; an IndexCache of servers) are read as others.
void warn_of_shared_choices(Reader& reader, const Node& tree, const TransformerConfig& model) {
  if (model.sparse.top_k == 0) return;
  for (const Entry& entry : tree.entries) {
    const bool every = entry.value.kind == Node::Kind::null || entry.value.text == "1";
    if ((entry.key == "index_topk_freq" || entry.key == "index_topk_pattern" || entry.key == "indexer_types") && !every)
      reader.warn({entry.at.location(), fmt::format("key '{}' is not read", shown(entry.key)),
                   "every layer is taken to choose its keys by an indexer of its own"});
  }
}

/// A mixture of experts under the name of a dense model would be forecast as its one expert.
void warn_of_experts(Reader& reader, const Node& tree, const TransformerConfig& model) {
  if (model.experts.count > 0) return;
  for (const Entry& entry : tree.entries) {
    if (says_several_experts(entry))
      reader.warn({entry.at.location(), fmt::format("key '{}' is not read", shown(entry.key)),
                   "the model is read as the dense one that 'architectures' says it is"});
  }
}

using input::Windows;
constexpr Windows no_windows{}, all_layers{4096, 0, false, true}, if_stated{0, 0, false, true},
    alternating{4096, 2, false, true}, one_in_four{4096, 4, false, true}, one_in_six{4096, 6, false, true},
    short_alternating{128, 2, false, true}, if_asked{4096, 0, true, true};

struct Architecture {
  std::string name;
  std::string model_type;
  TransformerConfig (*read)(Object&);
  Windows windows = no_windows;
  void (*layers)(Reader&, Object&, TransformerConfig&) = nullptr;  ///< of linear attention, or of one part each
};

std::vector<Architecture> supported() {
  return {{"LlamaForCausalLM", "llama", read_llama},
          {"MistralForCausalLM", "mistral", read_mistral, all_layers},
          {"Phi3ForCausalLM", "phi3", read_llama, if_stated},
          {"Qwen2ForCausalLM", "qwen2", read_mistral, if_asked},
          {"Qwen3ForCausalLM", "qwen3", read_qwen3, if_asked},
          {"GemmaForCausalLM", "gemma", read_gemma},
          {"Gemma2ForCausalLM", "gemma2", read_gemma, alternating},
          {"Gemma3ForCausalLM", "gemma3_text", read_gemma, one_in_six},
          {"CohereForCausalLM", "cohere", read_cohere},
          {"Cohere2ForCausalLM", "cohere2", read_cohere, one_in_four},
          {"NemotronForCausalLM", "nemotron", read_nemotron},
          {"NemotronHForCausalLM", "nemotron_h", read_nemotron_h, no_windows, read_hybrid_layers},
          {"MixtralForCausalLM", "mixtral", read_mixtral, if_stated},
          {"MiniMaxM2ForCausalLM", "minimax_m2", read_mixtral_with_heads},
          {"GptOssForCausalLM", "gpt_oss", read_gpt_oss, short_alternating},
          {"Grok1ModelForCausalLM", "grok-1", read_grok},
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
          {"GPT2LMHeadModel", "gpt2", read_gpt2},
          {"GPTJForCausalLM", "gptj", read_gptj},
          {"GPTNeoXForCausalLM", "gpt_neox", read_gpt_neox},
          {"FalconForCausalLM", "falcon", read_falcon},
          {"MPTForCausalLM", "mpt", read_mpt}};
}

std::vector<std::string> supported_names() {
  std::vector<std::string> names;
  for (const Architecture& a : supported()) names.push_back(a.name);
  return names;
}

/// Why an architecture is not read, and what the fields of the nearest that is would still have to say.
Diagnostic unsupported(const Node& tree, const Node& stated, const std::string& name) {
  const bool experts = std::any_of(tree.entries.begin(), tree.entries.end(), says_several_experts);
  std::vector<std::string> wanted{"num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size",
                                  "vocab_size"};
  if (experts) wanted.insert(wanted.end(), {"num_experts_per_tok", "moe_intermediate_size"});
  std::vector<std::string> missing;
  for (const std::string& key : wanted)
    if (tree.find(key) == nullptr) missing.push_back(key);
  const char* kind = experts ? "a mixture of experts" : "a dense transformer";
  const std::string fields = missing.empty()
                                 ? fmt::format("it has the fields of {}: give them inline under 'model'", kind)
                                 : fmt::format("of the fields of {} it lacks: {}", kind, fmt::join(missing, ", "));
  return {stated.at.location(), fmt::format("architecture '{}' is not supported", shown(name)),
          fmt::format("supported: {}; {}", fmt::join(supported_names(), ", "), fields)};
}

/// What the file says it is: the word of `architectures`, else of `model_type`; nullptr: neither.
const Node* stated_architecture(const Node& tree) {
  const Node* stated = tree.find("architectures");
  if (stated != nullptr && stated->kind == Node::Kind::list && !stated->items.empty()) stated = &stated->items.front();
  if (stated == nullptr || stated->kind != Node::Kind::scalar) stated = tree.find("model_type");
  return stated != nullptr && stated->kind == Node::Kind::scalar ? stated : nullptr;
}

/// `described` has the fields of what `tree` says it is.
Result<Architecture> architecture_of(const Node& tree, const Node& described) {
  const Node* stated = stated_architecture(tree);
  if (stated == nullptr)
    return Diagnostic{tree.at.location(), "required key 'architectures' is missing",
                      fmt::format("expected a list with one of: {}", fmt::join(supported_names(), ", "))};
  for (const Architecture& a : supported()) {
    if (a.name == stated->text || a.model_type == stated->text) return a;
  }
  return unsupported(described, *stated, stated->text);
}

/// The part of a file that describes the model of text: the file itself, or what a model of images and text says of it.
struct TextModel {
  const Node& node;
  Architecture architecture;
};
Result<TextModel> text_model(Reader& reader, const Node& tree) {
  const Node* text = tree.find("text_config");
  const bool has_text = text != nullptr && text->kind == Node::Kind::map;
  Result<Architecture> whole = architecture_of(tree, has_text ? *text : tree);
  if (!has_text) {
    if (!whole) return whole.errors();
    return TextModel{tree, std::move(whole).value()};
  }
  // A part that does not say what it is is of the kind that the whole is.
  Result<Architecture> inner = stated_architecture(*text) != nullptr ? architecture_of(*text, *text) : whole;
  if (!inner && !whole) return inner.errors();
  reader.warn({text->at.location(), "the model of text alone is read",
               "encoders of images and what else the file describes is left out"});
  return TextModel{*text, inner ? std::move(inner).value() : std::move(whole).value()};
}

/// The folder of the file, as model repositories are laid out; else what kind of model it is.
std::string model_name(const std::string& file, const Architecture& architecture) {
  const std::string folder = input::folder_of(file);
  const std::string name = folder.substr(folder.rfind('/') + 1);
  return name.empty() || name == "." || name == ".." ? architecture.model_type : name;
}

/// Where each of our values comes from: the first of these keys that the file has, as the readers above take them.
void note_places(const Node& tree, Origins& origins) {
  const std::vector<std::pair<const char*, std::vector<const char*>>> keys{
      {"layers", {"num_hidden_layers", "n_layer", "n_layers"}},
      {"hidden", {"hidden_size", "n_embd", "d_model"}},
      {"heads", {"num_attention_heads", "n_head", "n_heads"}},
      {"kv_heads", {"num_key_value_heads", "num_kv_heads", "num_attention_heads", "n_head", "n_heads"}},
      {"head_dim", {"head_dim", "attention_head_dim", "hidden_size", "n_embd", "d_model"}},
      {"ffn", {"intermediate_size", "n_inner", "ffn_hidden_size", "n_embd", "hidden_size", "d_model"}},
      {"vocab", {"vocab_size"}},
      {"learned_positions", {"n_positions"}},
      {"experts.count", {"num_local_experts", "num_experts", "n_routed_experts"}},
      {"experts.top_k", {"num_experts_per_tok"}},
      {"experts.ffn", {"moe_intermediate_size", "intermediate_size"}},
      {"experts.shared_ffn",
       {"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "n_shared_experts"}},
      {"experts.dense_layers", {"first_k_dense_replace"}},
      {"experts.every", {"decoder_sparse_step", "moe_layer_freq"}},
      {"experts.groups", {"n_group"}},
      {"experts.latent", {"moe_latent_size"}},
      {"experts.group_top_k", {"topk_group"}},
      {"mla.q_rank", {"q_lora_rank"}},
      {"mla.kv_rank", {"kv_lora_rank"}},
      {"mla.nope", {"qk_nope_head_dim"}},
      {"mla.rope", {"qk_rope_head_dim"}},
      {"mla.value", {"v_head_dim"}},
      {"linear_attention", {"linear_num_key_heads", "mamba_num_heads"}},
      {"linear_attention.key_heads", {"linear_num_key_heads", "n_groups"}},
      {"linear_attention.value_heads", {"linear_num_value_heads", "mamba_num_heads"}},
      {"linear_attention.key_dim", {"linear_key_head_dim", "ssm_state_size"}},
      {"linear_attention.value_dim", {"linear_value_head_dim", "mamba_head_dim"}},
      {"linear_attention.conv", {"linear_conv_kernel_dim", "conv_kernel"}},
      {"hybrid_layer_pattern", {"hybrid_override_pattern", "layers_block_type"}},
      {"linear_attention.full_every", {"full_attention_interval", "linear_num_key_heads"}},
      {"attention_gate", {"attn_output_gate"}},
      {"sparse_attention", {"index_topk"}},
      {"sparse_attention.heads", {"index_n_heads"}},
      {"sparse_attention.dim", {"index_head_dim"}},
      {"sparse_attention.top_k", {"index_topk"}},
      {"window", {"sliding_window"}},
      {"window.tokens", {"sliding_window"}},
      {"window.full_every", {"sliding_window_pattern", "_sliding_window_pattern", "sliding_window"}},
      {"window.full_first", {"max_window_layers", "sliding_window"}},
      {"parallel_mlp", {"use_parallel_residual", "parallel_attn", "new_decoder_architecture"}},
      {"dropout", {"resid_pdrop", "hidden_dropout"}}};
  for (const auto& [ours, theirs] : keys) {
    const auto has = [&](const char* key) {
      const Node* node = tree.find(key);
      return node != nullptr && (node->kind == Node::Kind::scalar || std::string_view(key) == "layers_block_type");
    };
    const auto found = std::find_if(theirs.begin(), theirs.end(), has);
    if (found != theirs.end()) origins.set(fmt::format("model.{}", ours), tree.find(*found)->at.location());
  }
}

/// Where some are said to be: layers that predict further tokens, which are left out.
void note_further_layers(const Node& tree, Origins& origins) {
  for (const char* key : {"num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp_num_layers"}) {
    const Node* node = tree.find(key);
    int count = 0;
    if (node == nullptr || node->kind != Node::Kind::scalar) continue;
    const std::string& text = node->text;
    if (std::from_chars(text.data(), text.data() + text.size(), count).ec == std::errc() && count > 0)
      return origins.set("model.mtp_num_layers", node->at.location());
  }
}

void complete_heads(Reader& reader, const Node& tree, TransformerConfig& m) {
  if (!reader.ok()) return;
  Origins origins(tree.at.location());
  note_places(tree, origins);
  if (m.kv_heads == 0) m.kv_heads = m.heads;
  if (m.heads % m.kv_heads != 0)
    reader.error({origins.of("model.kv_heads"),
                  fmt::format("{} key and value heads do not divide {} heads ({})", m.kv_heads, m.heads,
                              to_text(origins.of("model.heads"))),
                  "num_attention_heads is a multiple of num_key_value_heads"});
  if (m.head_dim != 0) return;
  if (m.hidden % m.heads != 0)
    reader.error({origins.of("model.hidden"),
                  fmt::format("hidden size {} is not a multiple of {} heads ({})", m.hidden, m.heads,
                              to_text(origins.of("model.heads"))),
                  "correct one of them, or give head_dim"});
  m.head_dim = m.hidden / m.heads;
}

}  // namespace

namespace input {

Result<TransformerConfig> read_hf_config(std::string_view text, const std::string& file, Origins& origins,
                                         Diagnostics& warnings, std::optional<Quantization>& quantized) {
  const Result<Node> tree = input::parse_json(text, file);
  if (!tree) return tree.errors();
  Reader reader;
  reader.error(repeated_keys(*tree));
  Object outer(reader, *tree, "", Null::is_missing);
  if (tree->kind != Node::Kind::map) return reader.take();
  const Result<TextModel> text_part = text_model(reader, *tree);
  if (!text_part) {
    reader.error(text_part.errors());
    return reader.take();
  }
  const Node& node = text_part->node;
  const Architecture& architecture = text_part->architecture;
  Object o(reader, node, "", Null::is_missing);
  know_other_names(o);
  TransformerConfig model = architecture.read(o);
  // A model of text and images says this of the whole.
  if (&node != &*tree && node.find("tie_word_embeddings") == nullptr)
    outer.optional("tie_word_embeddings", model.tied_embeddings, AsTruth{});
  if (architecture.layers != nullptr) architecture.layers(reader, o, model);
  input::read_windows(reader, o, architecture.windows, model);
  warn_of_experts(reader, node, model);
  warn_of_shared_choices(reader, node, model);
  warn_of_biases(reader, node, model);
  quantized = quantization_of(*tree, node);
  model.name = model_name(file, architecture);
  complete_heads(reader, node, model);
  if (!reader.ok()) return reader.take();
  note_places(node, origins);
  note_further_layers(node, origins);
  append(warnings, reader.warnings());
  return model;
}

}  // namespace input

Result<TransformerConfig> parse_hf_config(std::string_view text, std::string_view file_name) {
  Origins unused;
  Diagnostics passed_over;
  std::optional<input::Quantization> not_asked;
  return input::read_hf_config(text, std::string(file_name), unused, passed_over, not_asked);
}

}  // namespace collcast
