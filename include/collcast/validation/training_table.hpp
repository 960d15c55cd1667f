// Tables of published training steps: one row per measured configuration, as CSV with quoting (RFC 4180).
//
// What a file holds is told by its columns: rows of training steps, `models.csv` (dimensions by model_id, for what a
// row leaves empty) or `sources.csv` (titles by source_id). An empty cell is a value that nobody states. The columns
// are described in validation/data/training/README.md.
#pragma once

#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collcast/base/diagnostic.hpp"

namespace collcast {

/// Texts are as the source has them; numbers are in the unit of their names.
struct TrainingRow {
  Location where;
  std::string row_id, source_id, tier, date, framework, task, model_id;
  std::string gpu, intra_net, precision, vpp, zero, recompute, schedule, overlap;
  std::string tflops_kind, mem_kind, published, notes;
  std::optional<int> layers, hidden, ffn, heads, kv_heads, head_dim, vocab, seq, gated_mlp, experts, topk;
  /// Of models.csv only: experts, and latent attention.
  std::optional<int> moe_ffn, shared_experts, dense_layers, q_lora, kv_lora, qk_nope, qk_rope, v_head;
  std::optional<int> gpus, gpus_per_node, tp, sp, pp, cp, ep, etp, dp, mbs, gbs;
  std::optional<double> params_b, inter_gbps_per_gpu;
  std::optional<double> iter_s, tok_s_gpu, samples_s, tflops_gpu, mfu_pct, hfu_pct, mem_gib;

  /// It ended for want of memory: `published` is "oom", in small or capital letters.
  bool out_of_memory() const;
};

/// No table has more.
inline constexpr std::size_t most_training_rows = 1'000'000;

struct TrainingTables {
  std::vector<TrainingRow> rows;               ///< as read, dimensions of their model filled in
  std::map<std::string, std::string> sources;  ///< title by source_id
  Diagnostics warnings;                        ///< unknown columns, files of a folder that hold something else
};

/// Files, and folders with every table in them by name; row_ids are unlike over all of them. `asked_by` is the place of
/// a path that cannot be read. Every bad cell is an error at its place.
Result<TrainingTables> load_training(const std::vector<std::string>& paths, const Location& asked_by);
/// One table of training steps, without models and sources; `file` is for messages.
Result<TrainingTables> read_training_csv(std::istream&, const std::string& file);

}  // namespace collcast
