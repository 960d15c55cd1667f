// YAML and Hugging Face config.json in, typed and validated values out, or every reason why not.
//
// No YAML leaves this layer. Every Diagnostic carries file, line and column. Units are mandatory, unknown
// keys are errors. docs/formats.md describes the files.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collcast/base/origins.hpp"
#include "collcast/evaluate/evaluate.hpp"
#include "collcast/scenario/sweep.hpp"
#include "collcast/topology/faults.hpp"
#include "collcast/topology/placement.hpp"
#include "collcast/topology/spec.hpp"
#include "collcast/workload/gates.hpp"
#include "collcast/workload/own_schedule.hpp"
#include "collcast/workload/search.hpp"
#include "collcast/workload/step.hpp"

namespace collcast {

/// Ranks of a scenario's job: no job has as many.
inline constexpr int most_job_ranks = 10'000'000;

/// `path=value` overrides (--set, what_if): the dotted path of a key in the file, the value as YAML.
struct Override {
  std::string path;
  std::string value;
  Location where;        ///< of the path
  Location value_where;  ///< of the value; without a file: as `where`
};

/// Most chunks and channels of a collective that are read, in files and options.
inline constexpr int most_chunks = 1 << 20;
inline constexpr int most_channels = 64;

/// Where shipped files are looked up, and how deep includes may go.
struct SearchPath {
  std::vector<std::string> topologies;  ///< directories, first hit wins
  std::vector<std::string> scenarios;
  std::vector<std::string> measured = {};   ///< folders of measured tables
  std::vector<std::string> training = {};   ///< folders of measured training steps
  std::vector<std::string> inference = {};  ///< folders of measured servers
};

Result<TopologySpec> parse_topology(std::string_view text, std::string_view file_name,
                                    const std::vector<Override>& overrides = {});
/// Follows `extends:` as from the present folder.
Result<TopologySpec> parse_topology(std::string_view text, std::string_view file_name, const SearchPath&,
                                    const std::vector<Override>& overrides);
/// A shipped name or a file; follows `extends:`.
Result<TopologySpec> load_topology(const std::string& name_or_file, const SearchPath&,
                                   const std::vector<Override>& overrides = {});
/// The description as a file that parse_topology reads back to the same values; `remarks` stand at its top.
std::string topology_text(const TopologySpec&, const std::vector<std::string>& remarks = {});
/// Shipped machines: name, title; sorted.
struct TopologyEntry {
  std::string name, title, file;
};
std::vector<TopologyEntry> list_topologies(const SearchPath&);
/// By which a shipped machine's file is looked up; of any other file itself.
std::string topology_name(const std::string& file, const SearchPath&);

Result<KernelModel> parse_kernels(std::string_view text, std::string_view file_name);
Result<KernelModel> load_kernels(const std::string& name, const SearchPath&);
/// The table that a machine names, which may stand beside it; errors are at the key that names it.
Result<KernelModel> load_kernels(const TopologySpec&, const SearchPath&);
/// The table that stands in where nothing was measured on a GPU; errors are at `asked_by`.
Result<KernelModel> stand_in_kernels(const SearchPath&, const Location& asked_by);
/// "the table 'data-sheet' stands in, medians of ...".
std::string stand_in_text();

/// Hugging Face config.json of Llama, Mistral, Qwen2, Qwen3, GPT-2, GPT-NeoX; others are named, with what is missing.
Result<TransformerConfig> parse_hf_config(std::string_view text, std::string_view file_name);

/// A pipeline schedule that a user brings: a file of this program, or with the ending .csv one of PyTorch's
/// torch.distributed.pipelining. It is in order, or every reason why not is given.
Result<OwnSchedule> parse_schedule(std::string_view text, std::string_view file_name);
/// As a file that parse_schedule reads back, of either form; `remarks` stand at its top.
std::string schedule_text(const OwnSchedule&, const std::vector<std::string>& remarks = {});
std::string schedule_csv(const OwnSchedule&);

struct Scenario {
  std::string name, title, file;
  TopologySpec topology;
  int nodes = 0;                   ///< 0: as many as the layout needs
  int ranks = 0;                   ///< the job has the first so many GPUs of its nodes; 0: all
  std::optional<StepInputs> step;  ///< one of these two
  std::optional<TaskGraph> tasks;
  SearchSpace search;                ///< what a planner may vary `step` by
  std::vector<Gate> gates;           ///< that its step has to keep
  std::vector<MachineFault> faults;  ///< of the machine that its step runs on
  Placement placement;               ///< of its nodes there
  CollectivePolicy collectives;
  /// By a calibration: between which multiples of the forecast 8 of 10 measurements were, as CollectivePolicy::stretch.
  struct Spread {
    std::array<double, 3> low{1, 1, 1}, high{1, 1, 1};
  };
  std::optional<Spread> spread = {};
  /// What a fit has seen; a forecast of other sizes, ranks, nodes or collectives is beyond it.
  struct FittedTo {
    Bytes least_size{}, most_size{};
    int least_ranks = 0, most_ranks = 0;
    int least_nodes = 0, most_nodes = 0;  ///< that a group is on; 0: an older file does not say
    std::vector<std::string> collectives;
  };
  std::optional<FittedTo> fitted_to = {};  ///< by a calibration that says so
  bool library_stated = false;  ///< in the file or a setting; else collectives has what people run on the machine
  Sharing sharing = Sharing::max_min;
  Origins origins;                    ///< of every value read, those of the machine under "topology."
  std::vector<std::string> what_if;   ///< names of the variants
  std::vector<std::string> settings;  ///< paths that the variant and the overrides set
  std::vector<SweepAxis> sweep = {};  ///< what the file wants the step run with
  Diagnostics warnings;               ///< what is probably a slip in its files
  std::string schedule_file;          ///< of a schedule of one's own
  std::vector<Override> machine;      ///< what the variant and the overrides set in the topology's file
};

struct ScenarioOptions {
  SearchPath search;
  std::string what_if;                   ///< variant to apply; empty: the base
  std::optional<std::string> topology;   ///< --topology instead of the file's
  std::vector<Override> overrides;       ///< paths beginning with "topology." go to the topology
  std::vector<std::string> faults = {};  ///< of --fault, added to the file's
  /// What `topology` is where it is no file's name: the text of one, called so.
  std::optional<std::string> machine = {};
  std::vector<SweepAxis> sweep = {};    ///< of --sweep, whose values are checked
  bool checks_values_of_sweep = false;  ///< those of the file's sweep are, too
};
Result<Scenario> parse_scenario(std::string_view text, std::string_view file_name, const ScenarioOptions& = {});
Result<Scenario> load_scenario(const std::string& name_or_file, const ScenarioOptions& = {});
std::vector<TopologyEntry> list_scenarios(const SearchPath&);

/// "gpu: 12, compute: 80%" and the like, as given to --fault.
Result<std::vector<MachineFault>> parse_faults(const std::vector<std::string>& texts);

/// "gpu.memory=80GB" and the like, as given to --set.
Result<Override> parse_override(std::string_view text);

}  // namespace collcast
