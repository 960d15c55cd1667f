// Names and files: where a shipped machine, kernel table or scenario is found, and the readers of each format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collcast/scenario/scenario.hpp"
#include "scenario/hf_notes.hpp"
#include "scenario/reader.hpp"

namespace collcast::input {

/// The data types that peaks and kernel tables are given for.
const std::vector<std::string>& precisions();

/// In the order of Wiring.
const std::vector<std::string>& wiring_words();

/// Reads `schema`. False if the file is of another kind, so that nothing else in it is worth a message.
bool read_schema(Reader&, Object& file, const std::string& schema);

TopologySpec read_topology(Reader&, const Node& tree, const std::string& file);
KernelModel read_kernels(Reader&, const Node& tree, const std::string& file);

/// What asks for a file: where it says so, and the folder that relative paths start from.
struct Request {
  std::string name_or_file;
  std::string folder;  ///< empty: the working directory
  Location where;
  std::optional<std::string> text = {};  ///< of what is read already; the name is what it is called by
};

/// With a slash or a .yaml ending it is a file, else a name to be found in one of `folders`. `what` is for
/// messages: "machine", "scenario", "kernel table".
Result<std::string> find_file(const Request&, const std::vector<std::string>& folders, const std::string& what);
std::string folder_of(const std::string& file);
/// Where a file is sought that is named at `named_at` of what was read from `file`: what a person types, from where
/// they are.
std::string folder_of(const Location& named_at, const std::string& file);
/// `file` as seen from `folder`.
std::string beside(const std::string& folder, const std::string& file);
/// Stems of the .yaml files of the folders, sorted, each with the file that wins.
std::vector<TopologyEntry> list_files(const std::vector<std::string>& folders);
std::vector<std::string> kernel_folders(const SearchPath&);

/// A machine and where its values stand.
struct Machine {
  TopologySpec spec;
  Origins origins;
};
/// `prefix` stands before the settings' paths where the user wrote them, and before those of the origins. Of a file
/// that has errors `as_far` gets what could be read.
Result<Machine> load_topology(const Request&, const SearchPath&, const std::vector<Setting>&, const std::string& prefix,
                              Machine* as_far = nullptr);
Result<KernelModel> load_kernels(const Request&, const SearchPath&);

/// parse_hf_config, with the places of what it gives ("model.layers" and so on), keys that are probably misspelt, and
/// how the file says that weights are quantized. What it lacks `beside` may give: the section of a scenario that names
/// it. None where all that is missing is wrong there, which the section's own reader says.
Result<std::optional<TransformerConfig>> read_hf_config(std::string_view text, const std::string& file,
                                                        const Node& beside, Origins&, Diagnostics& warnings,
                                                        std::optional<Quantization>& quantized);

/// Overrides with their values parsed.
Result<std::vector<Setting>> to_settings(const std::vector<Override>&);

/// A scenario whose settings have been applied; `machine` are those that go to its topology file.
Scenario read_scenario(Reader&, const Node& tree, const std::string& file, const ScenarioOptions&,
                       const std::vector<Setting>& machine);
/// Sections of a scenario.
/// A file that a scenario names: beside the scenario, or in a folder of the search path. Puts where it was into `name`.
Result<std::string> read_named(std::string& name, const Location& where, const std::string& folder,
                               const std::vector<std::string>& scenarios);
/// " (place)" of a value that another one does not fit.
std::string seen_at(const Reader&, const std::string& path);
/// `trains`: what a config.json says of multi-token prediction is of use, unless the section says it.
TransformerConfig read_model(Reader&, const Node&, bool trains, const std::string& file,
                             const std::vector<std::string>& scenarios, std::optional<Quantization>& quantized);
/// `serves`: of inference, which has no degrees and orders that only training has.
/// `file`: of the scenario; a schedule that it names is beside it, one of the command line beside the person.
ParallelLayout read_layout(Reader&, const Node&, const std::string& file, const std::vector<std::string>& scenarios,
                           bool serves);
/// A pipeline schedule of one's own, and whether a value of `layout.schedule` names one.
OwnSchedule read_schedule(Reader&, const Node& tree, const std::string& file);
bool is_schedule_file(std::string_view text);
Batch read_batch(Reader&, const Node&, const ParallelLayout&);
TrainingOptions read_training(Reader&, const Node&);
/// `inference`, in the place of a batch and training; sets the options of its passes.
Serving read_inference(Reader&, const Node&, const ParallelLayout&, TrainingOptions&);
/// `serves`: of layouts of a server.
SearchSpace read_search(Reader&, const Node&, bool serves);
/// A scenario has no gates on what its kind has not: measured tasks (no step) nothing that needs a model.
std::vector<Gate> read_gates(Reader&, const Node&, const std::optional<StepInputs>&);
TaskGraph read_tasks(Reader&, const Node&);
Placement read_placement(Reader&, const Node&);
std::vector<MachineFault> read_faults(Reader&, const Node& list);
MachineFault read_fault(Reader&, const Node&, const std::string& path);
/// Those of --fault that can be parsed.
std::vector<Node> fault_nodes(const std::vector<std::string>& texts, Diagnostics& errors);
/// One `what_if`.
struct Variant {
  std::string name, title;
  std::vector<Setting> settings;
};
std::vector<Variant> read_variants(Reader&, const Node& what_if);
std::vector<SweepAxis> read_sweep(Reader&, const Node& sweep);

}  // namespace collcast::input
