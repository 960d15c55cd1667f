// Architectures that config.json may name, and how the fields of each are read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenario/hf_layers.hpp"
#include "scenario/reader.hpp"

namespace collcast::input {

struct Architecture {
  std::string name;
  std::string model_type;
  TransformerConfig (*read)(Object&);
  Windows windows = {};
  void (*layers)(Reader&, Object&, TransformerConfig&) = nullptr;  ///< of linear attention, or of one part each
  const char* width = "ffn";  ///< what `intermediate_size` is of model: where all MLPs are experts, theirs
};

std::vector<Architecture> supported_architectures();
/// Its own, or what published files of it say.
bool is_type_of(const Architecture&, std::string_view model_type);

}  // namespace collcast::input
