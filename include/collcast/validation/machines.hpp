// Which machine a table was measured on, and where its ranks sit on it.
//
// A table names its system; every topology file lists the published systems that it stands for. A table of an unknown
// system goes by its GPU, NVLink, NICs and GPUs per node: by the likest machine that is described, with what its
// sidecar says otherwise put right, and says so. Ranks fill a node's first GPUs, node by node;
// where a machine's node is a rack of several servers (one NVLink domain), servers fill it in order.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collcast/collective/collective.hpp"
#include "collcast/nccl/environment.hpp"
#include "collcast/report/validate_document.hpp"
#include "collcast/scenario/overlay.hpp"
#include "collcast/scenario/scenario.hpp"
#include "collcast/topology/fabric.hpp"
#include "collcast/validation/measured_table.hpp"

namespace collcast {

/// That a calibration was fitted on another description of the machine than this one, with what was set then and what
/// is set now ("path=value"); empty where it is the same, or where the overlay does not say.
std::string other_description(const Calibration&, const TopologySpec& described, const std::vector<std::string>& set);

/// A table on its machine: all that a prediction may depend on.
struct PlacedTable {
  const MeasuredTable* table = nullptr;
  std::string topology;
  std::string matched_by;                  ///< "system", "gpu", "derived" or "option"
  std::optional<Derivation> derived = {};  ///< where it is by GPU or derived
  std::shared_ptr<const Fabric> fabric;
  CollectiveKind kind = CollectiveKind::all_reduce;
  Group group;
  std::string algorithm = "auto";  ///< or the one that ran, where the table names one that is known here
  bool calibrated = false;
  Seconds base_latency{};           ///< of the calibration
  nccl::Environment environment{};  ///< that the table was measured with, as far as NCCL has its variables
  std::string remark;               ///< what speaks against this machine, or that it is a guess; empty: nothing
  std::string overlay_remark = {};  ///< of other_description

  CollectiveRequest request(Bytes size) const { return {kind, group, size, 0, {}}; }
};

class Machines {
 public:
  /// Every machine of the search path.
  static Result<Machines> shipped(const SearchPath&);
  /// These machines.
  static Machines among(std::vector<TopologySpec>);
  /// One machine for every table; `set` is what --set changed in its description, as "path=value".
  static Machines only(TopologySpec, std::vector<std::string> set = {});

  /// From here on machines that the overlay names have its parameters for that library.
  void calibrate(Overlay, Library = Library::ideal);

  /// Makes the machines of tables whose system is unknown, so that names() has them.
  void derive(const std::vector<MeasuredTable>&);

  /// Also of machines that were derived.
  std::vector<std::string> names() const;
  const std::vector<TopologySpec>& specs() const { return specs_; }
  const std::vector<std::string>& set() const { return set_; }
  /// The table on its machine, or why it cannot be put there. The table must outlive the answer.
  Result<PlacedTable> place(const MeasuredTable&);

 private:
  struct Choice {
    const TopologySpec* spec = nullptr;
    std::string matched_by;
    std::string remark;
    std::optional<Derivation> derived;
  };
  Result<Choice> choose(const MeasuredFacts&);
  Result<std::shared_ptr<const Fabric>> built(const TopologySpec&, int nodes);

  std::vector<TopologySpec> specs_;
  std::map<std::string, TopologySpec> derived_;
  std::vector<std::string> set_;
  Overlay overlay_;
  Library library_ = Library::ideal;
  bool only_one_ = false;
  std::map<std::pair<std::string, int>, std::shared_ptr<const Fabric>> fabrics_;
};

/// What forecasts on machines leave out, whatever is measured there; each once.
class MachineWarnings {
 public:
  explicit MachineWarnings(std::string library) : library_(std::move(library)) {}
  void add(const Fabric&);
  const Diagnostics& all() const { return all_; }

 private:
  std::string library_;
  std::set<std::string> seen_;
  Diagnostics all_;
};
/// Of those that tables are of.
Diagnostics machine_warnings(const std::vector<MeasuredTable>&, Machines&, Library);

/// nccl where any of the tables was measured on a machine that runs it.
Library usual_library(const std::vector<MeasuredTable>&, Machines&);

/// What is said of tables, each remark once with all tables that it is of.
class Remarks {
 public:
  void add(const std::string& table, const std::string& remark);
  std::vector<std::string> texts() const;

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> of_;
};

}  // namespace collcast
