// Tables of measured servers: one row per run of a load, as CSV with quoting (RFC 4180).
//
// What a file holds is told by its columns: rows of servers, `models.csv` (which description a model's name stands
// for, and the precision that its checkpoint has where a row names none), or `servers.csv` (how servers were started).
// An empty cell, and a degree of 0, is a value that nobody states. The columns are described in
// validation/data/inference/README.md.
#pragma once

#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/validation/server_settings.hpp"

namespace collcast {

/// GPUs that serve together: all of a server's, or those of its prompts or of its tokens.
struct ServingWorker {
  std::optional<int> workers;  ///< of this kind; an aggregated server is one
  std::optional<int> tp, pp, attention_dp, moe_tp, moe_ep;
};

/// Texts are as the source has them.
struct InferenceRow {
  Location where;
  std::string row_id, source, backend, backend_version, model, system, precision, mode;
  std::string gemm_quant_mode, moe_quant_mode;
  std::optional<int> isl, osl;     ///< tokens of a prompt and of an answer
  std::optional<int> concurrency;  ///< requests in flight
  std::optional<int> batch_size;   ///< of them on one replica of the attention
  ServingWorker server;            ///< mode agg
  ServingWorker prefill, decode;   ///< mode disagg
  std::optional<double> ttft_ms, tpot_ms;
};

/// What a name of a model stands for.
struct ServedModel {
  std::string config;     ///< folder of scenarios/models
  std::string precision;  ///< of the checkpoint; empty: not known
  Location where = {};    ///< the row that says so
};

/// No table has more.
inline constexpr std::size_t most_inference_rows = 1'000'000;

struct InferenceTables {
  std::vector<InferenceRow> rows;             ///< as read
  std::vector<InferenceRow> beside;           ///< of files that lend their words alone: servers that there are, too
  std::map<std::string, ServedModel> models;  ///< by name
  std::vector<ServerSettings> servers;        ///< as read
  Diagnostics warnings;                       ///< unknown columns, files of a folder that hold something else
};

/// Files, and folders with every table in them by name; row_ids are unlike over all of them. Models and
/// settings are those of all of `more` too, files that need not be there; rows of these are beside. `asked_by` is the
/// place of a path that cannot be read. Every bad cell is an error at its place.
Result<InferenceTables> load_inference(const std::vector<std::string>& paths, const std::vector<std::string>& more,
                                       const Location& asked_by);
/// One table of servers, of what is in memory; `file` is for messages. As read_training_csv, for programs that have
/// their rows from elsewhere.
Result<InferenceTables> read_inference_csv(std::istream&, const std::string& file);

}  // namespace collcast
