#include "scenario/hf_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "scenario/parse.hpp"

namespace collcast::input {

namespace {

/// The layers that `layer_types` says are not of the word that sets some apart, as a pattern where there is one.
struct OtherLayers {
  int every = 0;        ///< of so many the last
  std::vector<int> at;  ///< where there is no pattern
  bool all = false;
};
OtherLayers others_than(const std::string& word, const std::vector<std::string>& types) {
  std::vector<int> full;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i] != word) full.push_back(static_cast<int>(i));
  if (full.size() == types.size()) return {0, {}, true};
  if (full.empty()) return {};
  const auto every = static_cast<std::size_t>(full.front()) + 1;
  bool pattern = full.size() == types.size() / every;
  for (std::size_t i = 0; i < full.size() && pattern; ++i)
    pattern = static_cast<std::size_t>(full[i]) + 1 == (i + 1) * every;
  if (pattern) return {static_cast<int>(every), {}};
  return {0, full};
}

void check_types(Reader& reader, const Node& at, const std::vector<std::string>& types, const std::string& word,
                 int layers) {
  if (layers > 0 && static_cast<int>(types.size()) != layers)
    reader.error({at.at.location(),
                  fmt::format("layer_types names {} layers, num_hidden_layers {}", types.size(), layers),
                  "expected one word for each layer"});
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] == word || types[i] == "full_attention") continue;
    reader.warn({at.items[i].at.location(), fmt::format("'{}' is not modelled", shown(types[i])),
                 "the layer is taken as one whose queries meet all keys"});
    break;
  }
}

/// `hybrid_override_pattern` as it is, or `layers_block_type` in its letters.
void read_pattern(Reader& reader, Object& o, TransformerConfig& m) {
  o.allow({"layers_block_type", "hybrid_override_pattern"});
  const Node* types = o.node().find("layers_block_type");
  if (types == nullptr || o.node().find("hybrid_override_pattern") != nullptr) {
    o.required("hybrid_override_pattern", m.pattern, AsText{});
    return;
  }
  constexpr std::pair<const char*, char> words[] = {{"mamba", 'M'}, {"attention", '*'}, {"mlp", '-'}, {"moe", 'E'}};
  std::vector<std::string> read;
  if (!o.optional("layers_block_type", read, AsList<AsText, std::string>{{}})) return;
  for (std::size_t i = 0; i < read.size(); ++i) {
    const auto* word = std::ranges::find(words, read[i], [](const auto& w) { return std::string(w.first); });
    if (word == std::end(words))
      reader.error({types->items[i].at.location(), fmt::format("unknown kind of layer '{}'", shown(read[i])),
                    "expected mamba, attention, mlp or moe"});
    else
      m.pattern += word->second;
  }
}

}  // namespace

void read_hybrid_layers(Reader& reader, Object& o, TransformerConfig& m) {
  read_pattern(reader, o, m);
  o.optional("attention_head_dim", m.head_dim, AsCount{});
  LinearAttention& l = m.linear;
  if (m.pattern.find('M') != std::string::npos) {
    o.required("mamba_num_heads", l.value_heads, AsCount{});
    o.required("mamba_head_dim", l.value_dim, AsCount{});
    o.required("n_groups", l.key_heads, AsCount{});
    o.required("ssm_state_size", l.key_dim, AsCount{});
    o.optional("conv_kernel", l.conv, AsCount{});
    l.rule = LinearRule::ssd;
  }
  if (m.pattern.find('E') == std::string::npos) return;
  Experts& e = m.experts;
  o.required("n_routed_experts", e.count, AsCount{});
  o.required("num_experts_per_tok", e.top_k, AsCount{});
  o.required("moe_intermediate_size", e.ffn, AsCount{});
  o.optional("moe_shared_expert_intermediate_size", e.shared_ffn, AsCount{0, max_count});
  o.optional("moe_latent_size", e.latent, AsCount{0, max_count});
  o.optional("n_group", e.groups, AsCount{});
  o.optional("topk_group", e.group_top_k, AsCount{});
}

void read_linear_attention(Reader& reader, Object& o, TransformerConfig& m) {
  LinearAttention& l = m.linear;
  o.allow({"full_attention_interval", "layer_types", "linear_conv_kernel_dim", "linear_key_head_dim",
           "linear_num_key_heads", "linear_num_value_heads", "linear_value_head_dim", "attn_output_gate"});
  o.required("linear_num_key_heads", l.key_heads, AsCount{});
  o.required("linear_num_value_heads", l.value_heads, AsCount{});
  o.required("linear_key_head_dim", l.key_dim, AsCount{});
  o.required("linear_value_head_dim", l.value_dim, AsCount{});
  o.optional("linear_conv_kernel_dim", l.conv, AsCount{});
  l.full_every = 4;
  o.optional("full_attention_interval", l.full_every, AsCount{});
  m.attention_gate = true;
  o.optional("attn_output_gate", m.attention_gate, AsTruth{});
  std::vector<std::string> types;
  if (!o.optional("layer_types", types, AsList<AsText, std::string>{{}})) return;
  check_types(reader, *o.node().find("layer_types"), types, "linear_attention", m.layers);
  const OtherLayers full = others_than("linear_attention", types);
  l.full_every = full.every;
  l.full_at = full.at;
  if (full.all) l = {};
}

void read_chunks(Reader& reader, Object& o, TransformerConfig& m) {
  o.allow({"attention_chunk_size", "no_rope_layers", "no_rope_layer_interval", "layer_types"});
  SlidingWindow w;
  w.tokens = o.node().find("attention_chunk_size") == nullptr ? 8192 : 0;
  w.full_every = 4;
  o.optional("attention_chunk_size", w.tokens, AsCount{});
  o.optional("no_rope_layer_interval", w.full_every, AsCount{});
  // Layers without positions attend to all tokens. An empty list is none; layer_types come before it.
  std::vector<int> turns;
  std::vector<std::string> types;
  o.optional("no_rope_layers", turns, AsList<AsCount, int>{{0, 1}});
  if (o.optional("layer_types", types, AsList<AsText, std::string>{{}}))
    check_types(reader, *o.node().find("layer_types"), types, "chunked_attention", m.layers);
  else
    for (std::size_t i = 0; i < turns.size() && i < static_cast<std::size_t>(std::max(m.layers, 0)); ++i)
      types.emplace_back(turns[i] == 1 ? "chunked_attention" : "full_attention");
  if (!types.empty()) {
    const OtherLayers full = others_than("chunked_attention", types);
    w.full_every = full.every;
    w.full_at = full.at;
    if (full.all) w.tokens = 0;
  }
  if (w.tokens > 0 && w.full_every != 1) m.window = w;
}

void read_windows(Reader& reader, Object& o, const Windows& windows, TransformerConfig& m) {
  if (!windows.any) return;
  SlidingWindow w;
  w.tokens = o.node().find("sliding_window") == nullptr ? windows.tokens : 0;
  // These are near each other, and an absent one is no slip of another.
  o.allow({"sliding_window", "use_sliding_window", "sliding_window_pattern", "_sliding_window_pattern",
           "max_window_layers", "layer_types"});
  bool asked = !windows.asked;
  int first = 28;
  std::vector<std::string> types;
  o.optional("sliding_window", w.tokens, AsCount{});
  o.optional("use_sliding_window", asked, AsTruth{});
  if (windows.asked) {
    o.optional("max_window_layers", first, AsCount{0, max_count});
    w.full_first = first;
  }
  const bool typed = o.optional("layer_types", types, AsList<AsText, std::string>{{}});
  int every = windows.full_every;
  for (const char* key : {"sliding_window_pattern", "_sliding_window_pattern"})
    if (windows.full_every > 0) o.optional(key, every, AsCount{});
  if (!asked || w.tokens == 0 || w.full_first >= std::max(m.layers, 1)) return;
  w.full_every = every;
  if (typed) {
    check_types(reader, *o.node().find("layer_types"), types, "sliding_attention", m.layers);
    const OtherLayers full = others_than("sliding_attention", types);
    w.full_first = 0;
    w.full_every = full.every;
    w.full_at = full.at;
    if (full.all) w.tokens = 0;
  }
  if (w.tokens > 0) m.window = w;
}

}  // namespace collcast::input
