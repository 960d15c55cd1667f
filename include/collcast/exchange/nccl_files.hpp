// Files that NCCL's variables name: channel graphs and tables of its example tuner.
#pragma once

#include <string>
#include <string_view>

#include "collcast/base/diagnostic.hpp"
#include "collcast/nccl/graph.hpp"

namespace collcast::exchange {

struct ReadGraphs {
  nccl::GraphFile file;
  Diagnostics warnings;
};
/// NCCL_GRAPH_FILE and what NCCL_GRAPH_DUMP_FILE writes.
Result<ReadGraphs> read_nccl_graphs(std::string_view text, const std::string& file);

/// NCCL_TUNER_CONFIG_FILE of NCCL's example tuner. What the example passes over in silence is an error here.
Result<nccl::TunerFile> read_tuner_table(std::string_view text, const std::string& file);

}  // namespace collcast::exchange
