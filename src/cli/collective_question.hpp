// What `collective` and `explain collective` answer: a collective on a machine, and how it is to be priced.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/patience.hpp"
#include "cli/session.hpp"
#include "collcast/collective/msccl.hpp"
#include "collcast/evaluate/evaluate.hpp"
#include "collcast/nccl/environment.hpp"
#include "collcast/report/documents.hpp"
#include "collcast/scenario/overlay.hpp"
#include "collcast/workload/step.hpp"

namespace collcast::cli {

/// A collective that is asked for: options as they are understood.
struct CollectiveQuestion {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Fabric fabric;
  std::vector<Group> groups;
  std::vector<Bytes> sizes;
  int root = 0;
  bool all_algorithms = false;
  CollectivePolicy policy;
  Method method = Method::both;
  bool method_given = false;  ///< else the simulation is left out where it is not quick
  EngineOptions engine;
  bool concurrent = false;
  std::optional<Calibration> calibration;
  Diagnostics warnings;                ///< on it
  std::vector<MachineFault> faults{};  ///< that the fabric has
  Library library = Library::ideal;
  nccl::Environment environment{};                ///< of library nccl
  std::optional<nccl::Algorithm> nccl_algorithm;  ///< that --algorithm names under it
  std::optional<msccl::Algorithm> brought = {};   ///< that --algorithm msccl:FILE names
  const Patience* patience = nullptr;             ///< with its watch in `engine`; null: simulations end when they end

  bool estimates() const { return method != Method::simulate; }
  bool simulates() const { return method != Method::estimate; }

  bool is_over() const { return patience != nullptr && patience->is_over(); }
  GoesOn closed_forms_go_on() const;
  bool closed_forms_are_over() const { return patience != nullptr && patience->is_over_for_closed_forms(); }

  Seconds base_latency() const { return calibration ? calibration->base_latency : Seconds(0); }
  /// Of one group; with the other groups alongside if all run at once.
  CollectiveRequest request(std::size_t group, Bytes size) const;
  CollectiveRequest request_alone(std::size_t group, Bytes size) const { return {kind, groups[group], size, root, {}}; }

  /// As of choose(); by simulation between near candidates where the groups are simulated one at a time.
  Result<std::vector<Choice>> choices(const CollectiveRequest&, const CollectivePolicy&) const;
  /// What `auto` did not look at of the largest group; empty: it looked at all.
  std::string passed_over() const;
};

/// What was asked, without rows; `environment` is of library nccl, as it is run.
CollectiveReport begin_report(const CollectiveQuestion&, bool links, std::optional<std::string> environment = {});

/// A warning where the chunks that were asked for come out smaller than a byte, at the smallest of them.
Diagnostics fine_chunks(const std::string& given, const std::vector<std::pair<Bytes, const Pattern*>>& sizes);

/// The note of a row whose closed form stands alone because its simulation failed.
std::string not_simulated(const std::string& algorithm, Bytes size, const Diagnostics& errors);

/// Where 8 of 10 measurements like this row's were, by the calibration; nothing where it does not say.
std::optional<TimeRange> interval_of(const CollectiveQuestion&, const CollectiveRow&);
std::optional<TimeRange> interval_of(const CollectiveQuestion&, Bytes, std::optional<Seconds> time);
/// That the machine is calibrated, and what of the rows is beyond what the calibration has seen.
void add_calibration_notes(const CollectiveQuestion&, CollectiveReport&);
/// In which way what is asked is beyond what the calibration has seen; empty: in none, or there is no calibration.
std::string beyond_calibration(const CollectiveQuestion&);

}  // namespace collcast::cli
