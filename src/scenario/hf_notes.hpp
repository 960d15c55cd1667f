// What a Hugging Face config.json says and a TransformerConfig does not hold.
#pragma once

#include <optional>
#include <string>

#include "collcast/workload/config.hpp"
#include "scenario/reader.hpp"

namespace collcast::input {

/// Weights in fewer bits than the model computes in (`quantization_config`): which is said of a server's precision, as
/// the scenario has it.
struct Quantization {
  Location where;
  std::string method;     ///< "gptq"
  std::string precision;  ///< of inference.precision, which has as many bits; empty: none is known to
};

/// Of the file, or of its part that describes the model of text.
std::optional<Quantization> quantization_of(const Node& file, const Node& text);

/// What a server of quantized weights should have for its precision, unless it has.
void warn_of_quantization(Reader&, const Quantization&, const std::string& precision);
/// The same of frozen weights beside which adapters are trained.
void warn_of_quantized_base(Reader&, const Quantization&, const LowRankAdapters&);

/// Biases of a model whose kind has none: `biases` would count two vectors for each norm as well, and those of matrices
/// that have none.
void warn_of_biases(Reader&, const Node&, const TransformerConfig&);

}  // namespace collcast::input
