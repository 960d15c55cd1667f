// Machines that rows of published training steps, servers and kernels are put on, to be forecast and scored.
#pragma once

#include <string>
#include <vector>

#include "collcast/scenario/scenario.hpp"
#include "collcast/validation/training_table.hpp"
#include "collcast/workload/step.hpp"

namespace collcast {

/// Where a row ran: the machine whose GPU, GPUs per node and network are likest, its network at the rate that the row
/// states.
struct ScoredPlace {
  TopologySpec machine;
  KernelModel kernels;
  bool measured = true;  ///< kernels are of its GPU, not what stands in for them
  int nodes = 1;
  std::string remark;  ///< what of it is assumed; empty: nothing
};

class ScoredMachines {
 public:
  /// Machines with GPUs; a single one is for all rows. Those without a kernel table have the one that stands in, and
  /// are for rows that no other machine is like.
  static Result<ScoredMachines> load(const std::vector<TopologySpec>& machines, const SearchPath&);
  /// Or why there is none.
  Result<ScoredPlace> place(const TrainingRow&) const;
  bool is_single() const { return only_one_; }  ///< one machine is for all rows
  /// Whether that is so, and it has another GPU than this name of a row's says.
  bool has_other_gpu(const std::string& gpu) const;
  /// A warning for each of these names, one of a row, of which that is so.
  Diagnostics other_gpus(const std::vector<std::string>& of_rows, const Location& asked_by) const;

 private:
  struct Known {
    TopologySpec spec;
    KernelModel kernels;
    bool measured = true;  ///< the table is of its GPU
  };
  /// Of the same chip with nodes of the row's size, where the machine with its GPU has others; nullptr: none is needed,
  /// or there is none.
  const Known* nodes_for(const TrainingRow&, const Known& gpu) const;
  std::vector<Known> known_;
  bool only_one_ = false;
};

}  // namespace collcast
