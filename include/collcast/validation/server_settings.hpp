// How servers of measured tables were started: what a table of rows does not say, from the scripts of its benchmark.
//
// `servers.csv`, one line per case: of the lines whose words a row has (an empty cell is any), the last one counts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collcast/base/diagnostic.hpp"

namespace collcast {

struct InferenceRow;

struct ServerSettings {
  Location where = {};
  // Whose: names of models are separated by '|'.
  std::string backend = {}, system = {}, precision = {};
  std::vector<std::string> models = {};
  std::optional<int> tp = {}, isl = {}, osl = {};
  std::optional<int> concurrency_from = {};  ///< the least that the line is for
  // What: an empty one is as where nothing is known.
  std::optional<int> max_running = {};         ///< requests that have a place at once
  std::optional<int> max_batched_tokens = {};  ///< of one pass
  std::optional<int> recv_interval = {};       ///< passes of tokens alone from one look for requests to the next
  std::optional<double> kv_bytes = {};         ///< of an element of kept keys and values
  std::optional<double> state_bytes = {};      ///< of an element of kept states of linear attention
  std::string source = {};
  std::string said = {};  ///< all of that but the source, as written: "backend=sglang, tp=4, max_running=32"
};

/// Nothing: no line is for the row. `precision` is the row's, or its checkpoint's.
const ServerSettings* settings_of(const std::vector<ServerSettings>&, const InferenceRow&,
                                  const std::string& precision);

}  // namespace collcast
