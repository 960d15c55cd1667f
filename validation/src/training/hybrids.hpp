// Models of published rows whose layers are of several kinds, which no column of the tables says.
#pragma once

#include <optional>
#include <string>

#include "collcast/workload/config.hpp"

namespace collcast {

/// By the names of Megatron-Bridge's tables of results; nothing for other models.
std::optional<TransformerConfig> hybrid_model(const std::string& model_id);

}  // namespace collcast
