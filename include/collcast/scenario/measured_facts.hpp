// What is known of a measured table beside its rows: the YAML sidecar of published nccl-tests results and of
// `collcast measure`. Keys that this program does not know are passed over, as sidecars come from many hands, and kept
// by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"

namespace collcast {

/// Whether the source itself calls the set-up sound; unknown: nobody said.
enum class Health { yes, no, unknown };
std::string_view to_string(Health);

struct MeasuredFacts {
  std::string id;
  std::string collective;  ///< nccl-tests' word, whether it is one of ours or not
  std::string system;      ///< the name that topologies list
  std::string gpu, nvlink, nics;
  std::string nccl_version, source, note;
  std::string datatype;   ///< in nccl-tests' words, "several types" of rows that have unlike ones; empty: not said
  std::string backend;    ///< the library that ran, in the words of `collcast backends`; empty: not said
  std::string algorithm;  ///< that ran, in the library's words; empty: not said
  Health health = Health::unknown;
  int nodes = 0, ranks = 0;                                      ///< 0: not said
  int ranks_per_node = 0;                                        ///< 0: ranks / nodes
  int gpus_per_node = 0;                                         ///< that a node has
  bool one_process = false;                                      ///< a node's ranks are threads or GPUs of one process
  int nvlink_domain = 0;                                         ///< GPUs that share one NVLink network across nodes
  std::vector<std::pair<std::string, std::string>> environment;  ///< variables that were set, with their values
  std::vector<std::string> unknown_keys;                         ///< of the sidecar
  std::string doubt;          ///< why `ranks` cannot be right; empty: nothing speaks against it
  std::string contradiction;  ///< why the sidecar that these are from is another table's; empty: it may be this one's
  Location contradicting{};   ///< where the sidecar says that
  std::vector<std::pair<std::string, Location>> places;  ///< of the sidecar's values, by their keys
  bool complete = true;  ///< the test finished, and no row was left out as wrong or without a usable time
  /// Of one row over its repetitions, where the tool that measured wrote it.
  struct Spread {
    Bytes size{};
    bool in_place = false;
    Seconds least{}, median{}, p95{}, most{};
  };
  std::vector<Spread> spread;
  /// What rows say of their collective themselves.
  struct Rows {
    double ratio = 0;                        ///< busbw over algbw; 0: not said
    double least_ratio = 0, most_ratio = 0;  ///< that its rounding leaves
    std::string operation;  ///< "none", or reduced by, "several operations" too; empty: not said, or both
    Location where{};       ///< of the ratio, else of the first operation
  };
  Rows rows;
  /// Nowhere for what no sidecar says.
  Location place_of(std::string_view key) const;
};

Result<MeasuredFacts> parse_measured_facts(std::string_view text, std::string_view file_name);
/// From a file; errors that keep it from being read are at `asked_by`.
Result<MeasuredFacts> load_measured_facts(const std::string& file, const Location& asked_by);

}  // namespace collcast
