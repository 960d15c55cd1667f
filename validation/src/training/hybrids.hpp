// Models of published rows whose layers are of several kinds, which no column of the tables says.
#pragma once

#include <optional>
#include <string>

#include "collcast/workload/config.hpp"

namespace collcast {

struct HybridModel {
  TransformerConfig model;
  std::string left_out;  ///< of it, in words; empty: nothing
};
/// By the names of Megatron-Bridge's tables of results; nothing for other models.
std::optional<HybridModel> hybrid_model(const std::string& model_id);

}  // namespace collcast
