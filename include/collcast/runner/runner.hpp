// Runs collectives here and times them: what `collcast measure` calls.
//
// A plan says what to run. A library that is driven by one process per rank is either started here (`launch`:
// k processes on this machine that are gone when it returns) or joined (`run_rank`: one process of a world that
// torchrun, srun or mpirun started). A library whose ranks only its own starter can start, as MPI's mpirun, is launched
// under that: the starter runs this program again, and each rank reports to the first one (`report_rank`). Rows come
// back one by one while the sweep runs, so that what is finished is kept whatever happens next.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/collective/collective.hpp"
#include "collcast/report/measured.hpp"

namespace collcast {

using Environment = std::map<std::string, std::string>;

/// What to measure. Kinds, datatype and algorithm are ones that the backend has.
struct MeasurePlan {
  std::string backend;
  std::vector<CollectiveKind> kinds;
  std::vector<Bytes> sizes;
  std::string datatype = "float";
  std::string algorithm;  ///< empty: each kind's default
  int root = 0;
  int warmup = 5;
  int repetitions = 20;
  int calls = 1;           ///< back to back in one repetition, whose time is divided by them
  bool graph = false;      ///< the calls of a repetition as one CUDA graph
  bool share_gpu = false;  ///< several ranks on one GPU: to see that it works, not how fast
  std::chrono::milliseconds timeout{30'000};
  std::vector<std::string> words;  ///< of the command line: a starter of ranks runs this program again with them
};

/// One process of a world that something else started.
struct Membership {
  int rank = 0, ranks = 1;
  int local_rank = 0;      ///< among the processes of its node
  std::string started_by;  ///< torchrun, srun, mpirun
  std::string host;        ///< where rank 0 listens
  int port = 0;
};

/// The world that the environment describes, or nothing where there is none. `rendezvous` is HOST:PORT or
/// empty: MASTER_ADDR and MASTER_PORT.
Result<std::optional<Membership>> membership(const Environment&, const std::string& rendezvous);
/// The same of ranks that the library brings together: mpirun's and srun's, which need no address.
Result<std::optional<Membership>> mpi_membership(const Environment&);
/// Set for ranks that a starter started for this program: where they report to, and to nobody else.
inline constexpr const char* reporting_variable = "COLLCAST_RANK_REPORTS_TO";

enum class Ending {
  finished,
  wrong,    ///< a result was not what it must be
  broken,   ///< a rank or the library failed
  stopped,  ///< by a signal, or because `row` asked for it
  refused,  ///< the ranks were started in a way that cannot work
  lacking   ///< this machine lacks what is needed
};

struct MeasureOutcome {
  Ending ending = Ending::finished;
  std::vector<std::string> problems;
  int signal = 0;  ///< that stopped it
  /// A thread is still inside the library and cannot be stopped: the process must end without destructors.
  bool library_busy = false;
};

/// Where results go. Called in the process of rank 0, or in the one that launched the ranks.
struct MeasureSink {
  std::function<void(const MeasuredSystem&)> system;
  std::function<void(CollectiveKind, Bytes)> begin;  ///< a size begins
  std::function<bool(const MeasuredRow&)> row;       ///< a size is done; false: stop
  std::function<void(const std::string&)> note;
};

/// Every backend this program knows, whether built in or not, and what is missing here to use it.
BackendsReport backends();
/// True for the name of a datatype that some backend has.
bool is_datatype(const std::string& name);
/// Those that measure.
std::vector<std::string> measuring_backends();
/// One of those; the machine is asked about this one alone.
BackendEntry measuring_backend(const std::string& name);

/// True where one process drives all ranks: no processes are started.
bool one_process_drives_all(const MeasurePlan&);

/// Starts `ranks` processes here, or drives all ranks in this one, and waits for them.
MeasureOutcome launch(const MeasurePlan&, int ranks, const MeasureSink&);
/// Is one process of a world. Only rank 0 calls the sink.
MeasureOutcome run_rank(const MeasurePlan&, const Membership&, const MeasureSink&);
/// Is one rank of those that `launch` had a starter start; `where` is what `reporting_variable` holds. What it returns
/// has been reported, unless it is refused.
MeasureOutcome report_rank(const MeasurePlan&, const Membership&, const std::string& where);

/// What a table's sidecar says beyond the report.
struct TableFacts {
  std::string id, system, command, date;
  Environment environment;  ///< only steering variables
  int warmup = 0, calls = 1;
  bool graph = false;
};
/// Variables that steer NCCL, Gloo and MPI. Values that are paths, hosts or addresses are left out.
Environment steering_variables(const Environment&);

/// The YAML beside a table (the report's CSV): the keys of published nccl-tests tables, then what this program
/// adds. The report has rows of one kind.
std::string sidecar(const TableFacts&, const MeasureReport&);

}  // namespace collcast
