// Closed forms of many layouts on one machine that is not as described: what a search asks of faults and placements.
//
// A form is that of forecast_faulty_step: each stage as its slowest ranks, through the periods of faults that come and
// go, of jitter the means. The machine is worked out once for all layouts, prices once for those that ask alike.
#pragma once

#include <memory>

#include "collcast/workload/faulty_step.hpp"
#include "collcast/workload/search.hpp"

namespace collcast {

/// By the periods of its faults, for jobs of equally many ranks.
class MachineAsItIs {
 public:
  /// The fabric must outlive it. Fails as with_faults and with_placement do.
  static Result<MachineAsItIs> build(const Fabric& as_described, const MachineState&, int ranks);
  ~MachineAsItIs();
  MachineAsItIs(MachineAsItIs&&) noexcept;
  MachineAsItIs& operator=(MachineAsItIs&&) noexcept;

 private:
  friend class FaultyLayouts;
  struct Parts;
  explicit MachineAsItIs(std::unique_ptr<const Parts>);
  std::unique_ptr<const Parts> parts_;
};

/// A layout on both machines.
struct FaultyEstimate {
  LayoutEstimate as_described, as_it_is;
};

class FaultyLayouts {
 public:
  /// The machine must outlive it. Where `goes_on` says no, estimates fail.
  FaultyLayouts(const MachineAsItIs&, const CollectivePolicy&, const GoesOn& goes_on = {});
  ~FaultyLayouts();
  FaultyLayouts(FaultyLayouts&&) noexcept;
  FaultyLayouts& operator=(FaultyLayouts&&) noexcept;

  /// Of inputs that check_step accepts, with the machine's number of ranks. Not for several threads at once: each has
  /// its own, and all say the same.
  Result<FaultyEstimate> estimate(const StepInputs&);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace collcast
