#include "scenario/hf_notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "collcast/base/text.hpp"

namespace collcast::input {

namespace {

/// Empty where there is no such key, or it holds no word.
std::string text_of(const Node& map, const char* key) {
  const Node* node = map.find(key);
  return node == nullptr || node->kind != Node::Kind::scalar ? std::string() : node->text;
}

bool is_true(const Node& map, const char* key) { return text_of(map, key) == "true"; }

bool holds(std::string text, std::string_view word) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text.find(word) != std::string::npos;
}

/// Bits of a weight, as the formats of transformers say them. Groups of compressed-tensors have theirs each, of which
/// the first is taken.
std::string bits_of(const Node& config) {
  for (const char* key : {"bits", "w_bit", "weight_bits", "nbits"})
    if (std::string bits = text_of(config, key); !bits.empty()) return bits;
  for (const char* key : {"load_in_4bit", "_load_in_4bit"})
    if (is_true(config, key)) return "4";
  for (const char* key : {"load_in_8bit", "_load_in_8bit"})
    if (is_true(config, key)) return "8";
  const Node* groups = config.find("config_groups");
  if (groups == nullptr || groups->entries.empty()) return {};
  const Node* weights = groups->entries.front().value.find("weights");
  return weights == nullptr ? std::string() : text_of(*weights, "num_bits");
}

std::string precision_of(const Node& config) {
  for (const char* key : {"quant_method", "quant_algo", "format"}) {
    const std::string said = text_of(config, key);
    if (holds(said, "nvfp4")) return "fp4";
    if (holds(said, "mxfp4")) return "int4";  // of weights alone, as int4 is
    if (holds(said, "fp8")) return "fp8";
  }
  const std::string bits = bits_of(config);
  if (bits == "4") return "int4";
  return bits == "8" ? "fp8" : "";  // of eight bits all take as many bytes
}

}  // namespace

std::optional<Quantization> quantization_of(const Node& file, const Node& text) {
  for (const Node* node : {&text, &file})
    for (const char* key : {"quantization_config", "compression_config"}) {
      const Node* config = node->find(key);
      if (config == nullptr || config->kind != Node::Kind::map) continue;
      return Quantization{config->at.location(), text_of(*config, "quant_method"), precision_of(*config)};
    }
  return {};
}

namespace {

std::string weights_of(const Quantization& q) {
  return q.method.empty() ? "the quantized weights" : fmt::format("the weights of '{}'", shown(q.method));
}

}  // namespace

void warn_of_quantization(Reader& reader, const Quantization& q, const std::string& precision) {
  const bool is_set = reader.origins().knows("inference.precision");
  const bool in_four = precision == "int4" || precision == "fp4";
  if (q.precision.empty() ? is_set : precision == q.precision || (in_four && q.precision == "int4")) return;
  reader.warn({q.where,
               fmt::format("'quantization_config' is not read: {} are counted in {}", weights_of(q), precision),
               q.precision.empty() ? "set inference.precision to that of the weights"
                                   : fmt::format("set inference.precision: {}", q.precision)});
}

void warn_of_quantized_base(Reader& reader, const Quantization& q, const LowRankAdapters& lora) {
  if (q.precision != "int4" || lora.rank == 0 || lora.base_weights == BaseWeights::nf4) return;
  reader.warn({q.where,
               fmt::format("'quantization_config' is not read: {} are counted as they are computed", weights_of(q)),
               "set training.lora.base_weights: nf4"});
}

void warn_of_biases(Reader& reader, const Node& node, const TransformerConfig& model) {
  if (model.biases) return;
  for (const char* key : {"attention_bias", "mlp_bias", "qkv_bias", "use_bias"}) {
    if (is_true(node, key))
      reader.warn({node.find(key)->at.location(),
                   fmt::format("key '{}' is not read: these biases are not counted", key),
                   "model.biases: true counts those of all matrices, and a second vector for each norm"});
  }
}

}  // namespace collcast::input
