// The `model` section of a scenario: a config.json, dimensions in its place or besides, and parts that only some models
// have. What does not fit the layout or the machine is check_step's question.
#include <fmt/format.h>

#include <tuple>

#include "collcast/workload/limits.hpp"
#include "scenario/files.hpp"
#include "scenario/parse.hpp"

namespace collcast::input {

Result<std::string> read_named(std::string& name, const Location& where, const std::string& folder,
                               const std::vector<std::string>& scenarios) {
  std::string file = beside(folder, name);
  Result<std::string> text = read_file(file, where);
  for (std::size_t i = 0; !text && i < scenarios.size(); ++i) {
    const std::string other = beside(scenarios[i], name);
    Result<std::string> found = read_file(other, where);
    if (!found) continue;
    file = other;
    text = std::move(found);
  }
  name = file;
  return text;
}

std::string seen_at(const Reader& reader, const std::string& path) {
  return reader.origins().knows(path) ? fmt::format(" ({})", to_text(reader.origins().of(path))) : std::string();
}

namespace {

Result<std::optional<TransformerConfig>> load_config(std::string name, const Location& where, const std::string& folder,
                                                     const std::vector<std::string>& scenarios, const Node& beside,
                                                     Origins& origins, Diagnostics& warnings,
                                                     std::optional<Quantization>& quantized) {
  const Result<std::string> text = read_named(name, where, folder, scenarios);
  if (!text) return text.errors();
  return read_hf_config(*text, name, beside, origins, warnings, quantized);
}

/// Head sizes that follow from the others unless they were given, by the scenario or by the config.json of `base`.
void complete_model(Reader& reader, const Object& o, TransformerConfig& m, const TransformerConfig& base,
                    bool states_head_dim) {
  const Origins& origins = reader.origins();
  if (m.latent.kv_rank > 0) return;
  if (!origins.good("model.heads") || !origins.good("model.kv_heads") || m.heads < 1) return;
  // What the file lacks and the scenario gives is in `base`, too, and head_dim of the file is of it.
  const bool reshaped = m.hidden != base.hidden || m.heads != base.heads;
  if (!o.has("kv_heads") && (base.kv_heads == 0 || base.kv_heads == base.heads)) m.kv_heads = m.heads;
  if (!o.has("head_dim") && (base.head_dim == 0 || (reshaped && !states_head_dim)) && origins.good("model.hidden")) {
    if (m.hidden % m.heads != 0) {
      reader.error({origins.of("model.hidden"),
                    fmt::format("model.hidden {} is not a multiple of model.heads {}{}", m.hidden, m.heads,
                                seen_at(reader, "model.heads")),
                    "correct one of them, or give model.head_dim"});
      reader.spoil("model.head_dim");
    }
    m.head_dim = m.hidden / m.heads;
  }
  if (m.heads % m.kv_heads != 0) {
    reader.error({origins.of("model.kv_heads"),
                  fmt::format("model.kv_heads {} does not divide model.heads {}{}", m.kv_heads, m.heads,
                              seen_at(reader, "model.heads")),
                  "each key and value head serves the same number of heads"});
    reader.spoil("model.kv_heads");
  }
}

/// What the config.json of a model says of it, if it names one.
struct FromConfig {
  TransformerConfig model;
  bool is_named = false;
  bool is_read = false;
  std::optional<Location> left_out;  ///< layers that predict further tokens
  Origins places;

  /// Not made of hidden and heads: by a key of its own, or by the family.
  bool states_head_dim() const {
    if (model.heads == 0 || model.head_dim * model.heads != model.hidden) return model.head_dim != 0;
    const Location own = places.of("model.head_dim"), of_hidden = places.of("model.hidden");
    return places.knows("model.head_dim") &&
           std::tie(own.file, own.line, own.column) != std::tie(of_hidden.file, of_hidden.line, of_hidden.column);
  }
};
FromConfig read_config(Reader& reader, Object& o, bool trains, const std::string& file,
                       const std::vector<std::string>& scenarios, std::optional<Quantization>& quantized) {
  FromConfig out;
  std::string config;
  out.is_named = o.optional("config", config, AsText{});
  if (!out.is_named) return out;
  Origins origins;
  Diagnostics warnings;
  const Location where = o.node().find("config")->at.location();
  const Result<std::optional<TransformerConfig>> loaded =
      load_config(config, where, folder_of(where, file), scenarios, o.node(), origins, warnings, quantized);
  for (const Diagnostic& warning : warnings) reader.warn(warning);
  if (loaded && *loaded) {
    out.model = **loaded;
    out.is_read = true;
    reader.found(origins);
    out.places = origins;
    if (trains && origins.knows("model.mtp_num_layers")) out.left_out = origins.of("model.mtp_num_layers");
  } else {
    reader.error(loaded.errors());
    reader.spoil("model");
  }
  return out;
}

/// A width of MLPs that is no width of experts, beside a config.json that has all it needs: an inline model has one
/// anyway, and so may a file that must.
void warn_of_unused_width(Reader& reader, const Object& o, const FromConfig& from, const TransformerConfig& m) {
  const Node* width = o.node().find("ffn");
  if (width == nullptr || !from.is_read || !reader.good("model") || m.layers > most_layers || mlp_layers(m) > 0) return;
  const Location here = width->at.location(), taken = from.places.of("model.ffn");
  if (here.file == taken.file && here.line == taken.line && here.column == taken.column) return;
  const int experts = expert_layers(m);
  reader.warn({here,
               fmt::format("model.ffn has no effect: {}",
                           experts == m.all_layers() ? "every layer has experts" : "no layer has an MLP"),
               experts > 0 ? "the width of an expert is model.experts.ffn" : "leave it out"});
}

/// A part of the model that is either described or not there: whether it is begun here. One beside a config.json that
/// could not be read may be described there.
enum class Part { given, begun };
Part part_of(const Object& model, const char* key, const FromConfig& from, bool known) {
  return model.has(key) && !known && from.is_named == from.is_read ? Part::begun : Part::given;
}

/// A key that a part cannot be without.
template <class T, class As>
void figure(Object& o, Part part, const char* key, T& out, const As& as) {
  if (part == Part::begun)
    o.required(key, out, as);
  else
    o.optional(key, out, as);
}

void read_experts(Reader& reader, const Node& node, Part part, Experts& e) {
  Object o(reader, node, "model.experts");
  figure(o, part, "count", e.count, AsCount{});
  figure(o, part, "top_k", e.top_k, AsCount{});
  figure(o, part, "ffn", e.ffn, AsCount{});
  o.optional("shared_ffn", e.shared_ffn, AsCount{0, max_count});
  o.optional("shared_gate", e.shared_gate, AsTruth{});
  o.optional("dense_layers", e.dense_layers, AsCount{0, max_count});
  o.optional("every", e.every, AsCount{});
  o.optional("groups", e.groups, AsCount{});
  o.optional("group_top_k", e.group_top_k, AsCount{});
  o.optional("latent", e.latent, AsCount{0, max_count});
  o.optional("biases", e.biases, AsTruth{});
  o.optional("clamp", e.clamp, AsTruth{});
  o.finish();
}

void read_latent(Reader& reader, const Node& node, Part part, LatentAttention& a) {
  Object o(reader, node, "model.mla");
  o.optional("q_rank", a.q_rank, AsCount{0, max_count});
  figure(o, part, "kv_rank", a.kv_rank, AsCount{});
  figure(o, part, "nope", a.nope, AsCount{});
  figure(o, part, "rope", a.rope, AsCount{});
  figure(o, part, "value", a.value, AsCount{});
  o.finish();
}

/// Layers that attend to all tokens, by their numbers.
void read_full_at(Reader& reader, Object& o, const std::string& section, int layers, std::vector<int>& at) {
  if (!o.optional("full_at", at, AsList<AsCount, int>{{0, max_count}}) || !reader.good("model.layers")) return;
  for (std::size_t i = 0; i < at.size(); ++i)
    if (at[i] >= layers) {
      reader.error({o.node().find("full_at")->items[i].at.location(),
                    fmt::format("{}.full_at names layer {}, the model has layers 0 to {}{}", section, at[i], layers - 1,
                                seen_at(reader, "model.layers")),
                    "leave it out"});
      reader.spoil(section + ".full_at");
    }
}

void read_window(Reader& reader, const Node& node, Part part, int layers, SlidingWindow& w) {
  Object o(reader, node, "model.window");
  figure(o, part, "tokens", w.tokens, AsCount{0, max_count});
  // Without a window nothing is left of a pattern that config.json has; one beside it here is held to it.
  if (o.has("tokens") && w.tokens == 0) w = {};
  o.optional("full_every", w.full_every, AsCount{0, max_count});
  o.optional("full_first", w.full_first, AsCount{0, max_count});
  read_full_at(reader, o, "model.window", layers, w.full_at);
  o.finish();
}

void read_linear(Reader& reader, const Node& node, Part part, int layers, LinearAttention& l) {
  Object o(reader, node, "model.linear_attention");
  figure(o, part, "key_heads", l.key_heads, AsCount{});
  figure(o, part, "value_heads", l.value_heads, AsCount{});
  figure(o, part, "key_dim", l.key_dim, AsCount{});
  figure(o, part, "value_dim", l.value_dim, AsCount{});
  o.optional("conv", l.conv, AsCount{});
  o.optional("rule", l.rule, as_word<LinearRule>({LinearRule::gated_delta, LinearRule::ssd}));
  o.optional("full_every", l.full_every, AsCount{0, max_count});
  read_full_at(reader, o, "model.linear_attention", layers, l.full_at);
  o.finish();
}

void read_sparse_attention(Reader& reader, const Node& node, Part part, SparseAttention& a) {
  Object o(reader, node, "model.sparse_attention");
  figure(o, part, "heads", a.heads, AsCount{});
  figure(o, part, "dim", a.dim, AsCount{});
  figure(o, part, "top_k", a.top_k, AsCount{});
  o.finish();
}

void read_parallel_mlp(Reader& reader, const Node& node, ParallelMlp& p) {
  Object o(reader, node, "model.parallel_mlp");
  o.optional("norms", p.norms, AsCount{0, 2});
  o.optional("one_reduce", p.one_reduce, AsTruth{});
  o.finish();
}

}  // namespace

TransformerConfig read_model(Reader& reader, const Node& node, bool trains, const std::string& file,
                             const std::vector<std::string>& scenarios, std::optional<Quantization>& quantized) {
  Object o(reader, node, "model");
  const FromConfig from = read_config(reader, o, trains, file, scenarios, quantized);
  const TransformerConfig& base = from.model;
  TransformerConfig m = base;
  const auto dimension = [&](const char* key, int& out, int most = max_count) {
    return from.is_named ? o.optional(key, out, AsCount{1, most}) : o.required(key, out, AsCount{1, most});
  };
  o.optional("name", m.name, AsText{});
  dimension("layers", m.layers, most_layers);  // which counts for a config.json, too
  dimension("hidden", m.hidden);
  dimension("heads", m.heads);
  o.optional("kv_heads", m.kv_heads, AsCount{});
  o.optional("head_dim", m.head_dim, AsCount{});
  dimension("ffn", m.ffn);
  dimension("vocab", m.vocab);
  o.optional("gated_mlp", m.gated_mlp, AsTruth{});
  o.optional("tied_embeddings", m.tied_embeddings, AsTruth{});
  o.optional("biases", m.biases, AsTruth{});
  o.optional("causal", m.causal, AsTruth{});
  o.optional("learned_positions", m.learned_positions, AsCount{0, max_count});
  o.optional("dropout", m.dropout, AsNumber{0, 1, false, true});
  read_experts(reader, o.section("experts"), part_of(o, "experts", from, m.experts.count > 0), m.experts);
  read_latent(reader, o.section("mla"), part_of(o, "mla", from, m.latent.kv_rank > 0), m.latent);
  read_window(reader, o.section("window"), part_of(o, "window", from, m.window.tokens > 0), m.layers, m.window);
  read_linear(reader, o.section("linear_attention"), part_of(o, "linear_attention", from, m.linear.key_heads > 0),
              m.layers, m.linear);
  o.optional("attention_gate", m.attention_gate, AsTruth{});
  o.optional("hybrid_layer_pattern", m.pattern, AsText{});
  if (!o.optional("mtp_num_layers", m.mtp_layers, AsCount{0, most_mtp_layers}) && from.left_out)
    reader.warn({*from.left_out, "the layers that predict further tokens are left out",
                 "give model.mtp_num_layers, or 0 where they are not trained"});
  read_sparse_attention(reader, o.section("sparse_attention"),
                        part_of(o, "sparse_attention", from, m.sparse.is_given()), m.sparse);
  read_parallel_mlp(reader, o.section("parallel_mlp"), m.parallel_mlp);
  o.finish();
  // Every head has keys and values of its own, out of the small rank.
  if (m.latent.kv_rank > 0 && !o.has("kv_heads")) m.kv_heads = m.heads;
  if (m.latent.kv_rank > 0 && !o.has("head_dim")) {
    m.head_dim = m.latent.nope + m.latent.rope;
    if (!reader.good("model.mla.nope") || !reader.good("model.mla.rope")) reader.spoil("model.head_dim");
  }
  complete_model(reader, o, m, base, from.states_head_dim());
  warn_of_unused_width(reader, o, from, m);
  if (m.name.empty()) m.name = "model";
  return m;
}

}  // namespace collcast::input
