// Hugging Face config.json -> TransformerConfig: which part of the file describes the model, what its architecture is,
// and where each value comes from. What the members of each family say: hf_families.cpp.
//
// Other keys are not looked at, unless they are nearly one of ours that is absent, or another tool's name for it, or
// among those of hf_notes.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "collcast/base/check.hpp"
#include "scenario/files.hpp"
#include "scenario/hf_families.hpp"
#include "scenario/hf_layers.hpp"
#include "scenario/hf_notes.hpp"
#include "scenario/parse.hpp"

namespace collcast {

namespace {

using input::Architecture;
using input::AsCount;
using input::AsText;
using input::AsTruth;
using input::Entry;
using input::is_type_of;
using input::max_count;
using input::Node;
using input::Object;
using input::read_chunks;
using input::Reader;
using input::supported_architectures;

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

/// What a scenario may give where the file lacks it: counts and text under one name of ours, and those of the families.
struct OwnName {
  const char* ours;
  std::vector<const char*> theirs;
  int least = 1;  ///< that the scenario's section takes
  bool is_text = false;
};
std::vector<OwnName> own_names(const Architecture& architecture) {
  return {{architecture.width, {"intermediate_size"}},
          {"layers", {"num_hidden_layers", "n_layer", "n_layers"}},
          {"hidden", {"hidden_size", "n_embd", "d_model"}},
          {"heads", {"num_attention_heads", "n_head", "n_heads"}},
          {"kv_heads", {"num_key_value_heads"}},
          {"head_dim", {"head_dim"}},
          {"ffn", {"intermediate_size_mlp"}},
          {"vocab", {"vocab_size"}},
          {"learned_positions", {"n_positions"}},
          {"experts.count", {"num_local_experts", "num_experts", "n_routed_experts"}},
          {"experts.top_k", {"num_experts_per_tok"}},
          {"experts.ffn", {"moe_intermediate_size"}},
          {"experts.shared_ffn", {"shared_expert_intermediate_size"}, 0},
          {"experts.shared_ffn", {"n_shared_experts"}, 0},
          {"experts.dense_layers", {"first_k_dense_replace"}, 0},
          {"experts.group_top_k", {"topk_group"}},
          {"mla.kv_rank", {"kv_lora_rank"}},
          {"mla.nope", {"qk_nope_head_dim"}},
          {"mla.rope", {"qk_rope_head_dim"}},
          {"mla.value", {"v_head_dim"}},
          {"linear_attention.key_heads", {"linear_num_key_heads", "n_groups"}},
          {"linear_attention.value_heads", {"linear_num_value_heads", "mamba_num_heads"}},
          {"linear_attention.key_dim", {"linear_key_head_dim", "ssm_state_size"}},
          {"linear_attention.value_dim", {"linear_value_head_dim", "mamba_head_dim"}},
          {"sparse_attention.heads", {"index_n_heads"}},
          {"sparse_attention.dim", {"index_head_dim"}},
          {"sparse_attention.top_k", {"index_topk"}},
          {"hybrid_layer_pattern", {"hybrid_override_pattern"}, 0, true}};
}

/// What a section has at a name, or around it what is no map; nullptr: nothing.
const Node* given_beside(const Node& section, const OwnName& name) {
  const std::string_view path = name.ours;
  const Node* node = &section;
  for (std::size_t from = 0; node != nullptr && from <= path.size();) {
    if (from > 0 && node->kind != Node::Kind::map) break;
    const std::size_t end = std::min(path.find('.', from), path.size());
    node = node->find(path.substr(from, end - from));
    from = end + 1;
  }
  return node;
}

bool can_be_read(const Node& node, const OwnName& name) {
  Reader unheard;
  int value = 0;
  std::string text;
  return name.is_text ? AsText{}(unheard, node, name.ours, text)
                      : AsCount{name.least, max_count}(unheard, node, name.ours, value);
}

/// A key of ours has its value beside the file where this lacks it.
void know_what_is_beside(Object& o, const Node& section, const Architecture& architecture) {
  for (const OwnName& name : own_names(architecture)) {
    const Node* given = given_beside(section, name);
    const std::string path = fmt::format("model.{}", name.ours);
    for (const char* key : name.theirs) {
      if (given == nullptr || can_be_read(*given, name))
        o.may_come_from(key, path, given);
      else
        o.is_wrong_elsewhere(key, path);
    }
  }
}

/// What was taken from beside the file is from there.
void note_what_was_beside(const Reader& reader, const Object& o, const Architecture& architecture, Origins& origins) {
  for (const OwnName& name : own_names(architecture))
    for (const char* key : name.theirs)
      if (o.is_elsewhere(key) && reader.origins().knows(key))
        origins.set(fmt::format("model.{}", name.ours), reader.origins().of(key));
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

/// Unless the scenario has windows of its own, or none.
void warn_of_chunks(Reader& reader, const Node& tree, const Architecture& architecture, const Node& beside,
                    const TransformerConfig& model) {
  if (architecture.layers != read_chunks || model.window.tokens == 0) return;
  if (given_beside(beside, {"window.tokens", {}, 0}) != nullptr) return;
  const Node* said = tree.find("attention_chunk_size");
  reader.warn({said == nullptr ? tree.at.location() : said->at.location(),
               fmt::format("chunks of {} tokens are taken as a sliding window of as many", model.window.tokens),
               "the same up to so many tokens; of longer sequences the last keys of a chunk meet fewer"});
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

std::vector<std::string> supported_names() {
  std::vector<std::string> names;
  for (const Architecture& a : supported_architectures()) names.push_back(a.name);
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

/// The file's two words for what it is say different things.
void warn_of_other_type(Reader& reader, const Node& tree, const Architecture& read) {
  const Node* type = tree.find("model_type");
  if (type == nullptr || type->kind != Node::Kind::scalar || is_type_of(read, type->text)) return;
  reader.warn({type->at.location(),
               fmt::format("model_type '{}' is not that of architecture '{}', which is '{}'", shown(type->text),
                           read.name, read.model_type),
               "the model is read as its architecture says; one of the two is wrong"});
}

/// Of a file that does not say what it is: counts that no architecture could read.
void read_counts(Reader& reader, const Node& tree) {
  for (const OwnName& name : own_names({}))
    for (const char* key : name.theirs)
      if (const Node* node = tree.find(key);
          node != nullptr && node->kind != Node::Kind::null && node->kind != Node::Kind::list && !name.is_text) {
        int unused = 0;
        AsCount{name.least, max_count}(reader, *node, key, unused);
      }
}

/// `described` has the fields of what `tree` says it is.
Result<Architecture> architecture_of(Reader& reader, const Node& tree, const Node& described) {
  const Node* stated = stated_architecture(tree);
  if (stated == nullptr) {
    const Node* list = tree.find("architectures");
    const bool is_there = list != nullptr && list->kind != Node::Kind::null;
    return Diagnostic{is_there ? list->at.location() : tree.at.location(),
                      is_there ? "architectures names none" : "required key 'architectures' is missing",
                      fmt::format("expected a list with one of: {}", fmt::join(supported_names(), ", "))};
  }
  for (const Architecture& a : supported_architectures()) {
    if (a.name != stated->text && a.model_type != stated->text) continue;
    warn_of_other_type(reader, tree, a);
    return a;
  }
  return unsupported(described, *stated, stated->text);
}

/// The part of a file that describes the model of text: the file itself, or what a model of images and text says of it.
struct TextModel {
  const Node& node;
  Architecture architecture;
};
const Node& text_of(const Node& tree) {
  const Node* text = tree.find("text_config");
  return text != nullptr && text->kind == Node::Kind::map ? *text : tree;
}
Result<TextModel> text_model(Reader& reader, const Node& tree) {
  const Node* text = &text_of(tree);
  Result<Architecture> whole = architecture_of(reader, tree, *text);
  if (text == &tree) {
    if (!whole) return whole.errors();
    return TextModel{tree, std::move(whole).value()};
  }
  // A part that does not say what it is is of the kind that the whole is.
  Result<Architecture> inner = stated_architecture(*text) != nullptr ? architecture_of(reader, *text, *text) : whole;
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

/// Where each of our values comes from: the first of these keys that the file has, as the readers of hf_families.cpp
/// take them.
void note_places(const Node& tree, Origins& origins) {
  const std::vector<std::pair<const char*, std::vector<const char*>>> keys{
      {"layers", {"num_hidden_layers", "n_layer", "n_layers"}},
      {"hidden", {"hidden_size", "n_embd", "d_model"}},
      {"heads", {"num_attention_heads", "n_head", "n_heads"}},
      {"kv_heads", {"num_key_value_heads", "num_kv_heads", "n_head_kv", "num_attention_heads", "n_head", "n_heads"}},
      {"head_dim", {"head_dim", "attention_head_dim", "hidden_size", "n_embd", "d_model"}},
      {"ffn",
       {"intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_hidden_size", "n_embd", "hidden_size",
        "d_model"}},
      {"vocab", {"vocab_size"}},
      {"learned_positions", {"n_positions"}},
      {"experts.count", {"num_local_experts", "num_experts", "n_routed_experts"}},
      {"experts.top_k", {"num_experts_per_tok"}},
      {"experts.ffn", {"moe_intermediate_size", "intermediate_size"}},
      {"experts.shared_ffn",
       {"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "n_shared_experts",
        "intermediate_size"}},
      {"experts.dense_layers", {"first_k_dense_replace"}},
      {"experts.every", {"decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step"}},
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
      {"window", {"sliding_window", "attention_chunk_size"}},
      {"window.tokens", {"sliding_window", "attention_chunk_size"}},
      {"window.full_every",
       {"sliding_window_pattern", "_sliding_window_pattern", "no_rope_layer_interval", "sliding_window",
        "attention_chunk_size"}},
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
  const auto known = [&](const std::vector<const char*>& keys, int value) {
    return value > 0 && std::all_of(keys.begin(), keys.end(), [&](const char* key) { return reader.good(key); });
  };
  if (!known({"num_attention_heads", "n_head", "n_heads"}, m.heads)) return;
  Origins origins(tree.at.location());
  note_places(tree, origins);
  if (m.kv_heads == 0) m.kv_heads = m.heads;
  if (known({"num_key_value_heads", "num_kv_heads", "n_head_kv"}, m.kv_heads) && m.heads % m.kv_heads != 0)
    reader.error({origins.of("model.kv_heads"),
                  fmt::format("{} key and value heads do not divide {} heads ({})", m.kv_heads, m.heads,
                              to_text(origins.of("model.heads"))),
                  "num_attention_heads is a multiple of num_key_value_heads"});
  if (m.head_dim != 0 || !reader.good("head_dim") || !known({"hidden_size", "n_embd", "d_model"}, m.hidden)) return;
  if (m.hidden % m.heads != 0)
    reader.error({origins.of("model.hidden"),
                  fmt::format("hidden size {} is not a multiple of {} heads ({})", m.hidden, m.heads,
                              to_text(origins.of("model.heads"))),
                  "correct one of them, or give head_dim"});
  m.head_dim = m.hidden / m.heads;
}

}  // namespace

namespace input {

Result<std::optional<TransformerConfig>> read_hf_config(std::string_view text, const std::string& file,
                                                        const Node& beside, Origins& origins, Diagnostics& warnings,
                                                        std::optional<Quantization>& quantized) {
  const Result<Node> tree = input::parse_json(text, file);
  if (!tree) return tree.errors();
  Reader reader;
  reader.error(repeated_keys(*tree));
  Object outer(reader, *tree, "", Null::is_missing);
  if (tree->kind != Node::Kind::map) return reader.take();
  const Result<TextModel> text_part = text_model(reader, *tree);
  if (!text_part) {
    reader.error(text_part.errors());
    if (stated_architecture(*tree) == nullptr) read_counts(reader, text_of(*tree));
    return reader.take();
  }
  const Node& node = text_part->node;
  const Architecture& architecture = text_part->architecture;
  Object o(reader, node, "", Null::is_missing);
  know_other_names(o);
  know_what_is_beside(o, beside, architecture);
  TransformerConfig model = architecture.read(o);
  // A model of text and images says this of the whole.
  if (&node != &*tree && node.find("tie_word_embeddings") == nullptr)
    outer.optional("tie_word_embeddings", model.tied_embeddings, AsTruth{});
  if (architecture.layers != nullptr) architecture.layers(reader, o, model);
  input::read_windows(reader, o, architecture.windows, model);
  warn_of_experts(reader, node, model);
  warn_of_shared_choices(reader, node, model);
  warn_of_chunks(reader, node, architecture, beside, model);
  warn_of_biases(reader, node, model);
  quantized = quantization_of(*tree, node);
  model.name = model_name(file, architecture);
  complete_heads(reader, node, model);
  if (!reader.ok()) return reader.take();
  if (!reader.origins().all_good()) return std::optional<TransformerConfig>();
  note_places(node, origins);
  note_what_was_beside(reader, o, architecture, origins);
  note_further_layers(node, origins);
  append(warnings, reader.warnings());
  return std::optional(std::move(model));
}

}  // namespace input

Result<TransformerConfig> parse_hf_config(std::string_view text, std::string_view file_name) {
  Origins unused;
  Diagnostics passed_over;
  std::optional<input::Quantization> not_asked;
  const auto read = input::read_hf_config(text, std::string(file_name), {}, unused, passed_over, not_asked);
  if (!read) return read.errors();
  check(read->has_value(), "nothing is wrong beside a file that stands alone");
  return **read;
}

}  // namespace collcast
