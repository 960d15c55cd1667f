// Measurements as plain values, and what the measuring libraries can do: the documents of `collcast measure`
// and `collcast backends`.
//
// A row is one size of one collective: the time of the slowest rank of each repetition, summed up over the
// repetitions. Unlike a forecast it differs from run to run; like every document it names no host and no path.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collcast/base/quantity.hpp"
#include "collcast/collective/collective.hpp"
#include "collcast/report/documents.hpp"

namespace collcast {

/// What one size took. Each repetition counts the slowest rank; the summary is over repetitions.
struct MeasuredRow {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::string algorithm;  ///< the library's name for it; empty: it chooses
  Bytes size{};           ///< nccl-tests' size
  bool in_place = false;
  int repetitions = 0;
  Seconds mean{}, least{}, median{}, p95{}, most{};
  std::optional<Seconds> device;  ///< mean by the device's own clock
};

/// Where and with what it was measured.
struct MeasuredSystem {
  std::string backend, library_version;
  std::string device;  ///< GPU model, or the processor where ranks are CPU processes
  std::string driver;  ///< of the GPU; empty: none
  std::string nccl_version;
  bool gpu = false;
  int nodes = 1;
  int ranks_per_node = 1;
  std::vector<std::string> notes;  ///< that qualify every figure
};

// --- collcast.measure.v1 --------------------------------------------------------------------------------

struct MeasureReport {
  MeasuredSystem system;
  int ranks = 0;
  std::string datatype;
  std::vector<MeasuredRow> rows;
  std::vector<std::string> notes;     ///< what was left out, and why
  std::vector<std::string> problems;  ///< wrong results, and why it broke off
  bool complete = false;              ///< every size was measured
};

/// As nccl-tests has them, by the mean; 0: no time.
Bandwidth algbw(const MeasuredRow&);
Bandwidth busbw(const MeasuredRow&, int ranks);
/// That the mean of some rows is mostly waiting for a processor; empty where it is not.
std::string unsteady_text(const MeasureReport&);

// --- collcast.backends.v1 -------------------------------------------------------------------------------

/// What one library can do, and what is missing here to use it; and whether it can be forecast, which needs nothing.
struct BackendEntry {
  std::string name, what;
  bool runs = true;                    ///< moves data for real; else it is only forecast
  std::vector<std::string> forecasts;  ///< algorithms that `--library` of its name forecasts anywhere; empty: none
  bool built = false;
  std::string version;  ///< empty: unknown until it runs
  struct Kind {
    CollectiveKind kind;
    std::vector<std::string> algorithms;  ///< to choose from; the first is the default
    bool in_place = false, out_of_place = false;
    std::vector<std::string> in_place_only;  ///< algorithms that have no other way
  };
  std::vector<Kind> kinds;
  std::vector<std::string> datatypes;
  std::string steering;              ///< what steers a choice of algorithm that is the library's, such as "NCCL_ALGO"
  int default_calls = 1;             ///< per repetition, where the user gives none
  std::optional<int> devices;        ///< GPUs here; nothing where ranks are processes
  std::vector<std::string> lacking;  ///< empty: ready
};

struct BackendsReport {
  std::vector<BackendEntry> entries;
};

std::string json(const MeasureReport&);
std::string json(const BackendsReport&);
/// The columns of published nccl-tests tables: collective, size_bytes, time_us, algbw_gbps, busbw_gbps, inplace.
Table csv(const MeasureReport&);
Table csv(const BackendsReport&);
Page page(const MeasureReport&);
Page page(const BackendsReport&);

}  // namespace collcast
