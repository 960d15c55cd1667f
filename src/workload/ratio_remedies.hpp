// What would make a layer compute longer for each second that it communicates, and a step wait for less of it: changes,
// each tried by closed form.
//
// Of a layer tried are who lies beside whom (the order of ranks), how context and experts are exchanged and whether
// beside computing, and smaller degrees for more replicas or stages. The ratio is the one that a forecast of the
// changed layout tells, of its own slowest stage. A change that no longer fits the memory is none, nor is one that
// needs other GPUs or makes the step no shorter.
//
// Of a server the same degrees and orders, tp halved for replicas that share the batch, and larger batches.
//
// Of the step as a whole the same are tried, and what bears on gradients, sharded weights and stages: overlap, how
// often ZeRO-3 gathers and reduces and among whom, gradients sent in bf16, more TP or stages for fewer replicas, larger
// micro-batches (these and less sharding with full recomputation where they do not fit without) and, last, larger
// batches. A sample must take less time by it.
//
// Changes are tried in the order in which they are offered, until as many are enough as are named. What forecasts take
// grows with the turns of their schedules: all together have a million, or four times the step's own, and changes for
// which that does not do are left out, which is said.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collcast/topology/fabric.hpp"
#include "collcast/workload/step.hpp"

namespace collcast::workload {

/// "0.59".
std::string ratio_text(double ratio);

/// "layout.order: tp-pp-dp (3.12) would raise it": up to three changes, those first that make the ratio 2 or more, in
/// the order of what they change; where none does, the one that raises it most. Only changes that make the step
/// shorter.
std::string what_would_raise(const StepInputs&, const Fabric&, const CollectiveTime& time);

/// The same of a server, from the prompts to the last token; none of the changes brings fewer tokens a second.
std::string what_would_raise_served(const StepInputs&, const Fabric&, const CollectiveTime& time);

/// "86 %".
std::string share_text(double share);

/// Of a step; above a third of it is warned about, which for a layer is a ratio below 2.
double exposed_share(const Breakdown&);
inline constexpr double most_exposed = 1.0 / 3;

/// "training.overlap_dp: true (12 %) would lower it": as what_would_raise, of the share of the step that is exposed.
std::string what_would_lower(const StepInputs&, const Fabric&, const CollectiveTime& time);

/// "training.overlap_dp: false (2 %) would shorten it": where what gradients slow beside the backward adds up along the
/// stages of a pipeline to more than they hide there, by at least half a percent of the step.
std::optional<std::string> slower_beside_backward(const StepInputs&, const Fabric&, const CollectiveTime& time);

/// "training.overlap_tp: none (18 %) would shorten it": where TP's collectives beside products cost more than they
/// hide, by at least half a percent of the step.
std::optional<std::string> slower_by_overlap_tp(const StepInputs&, const Fabric&, const CollectiveTime& time);

/// "training.precision: bf16 (11 %) would shorten it": where a narrower precision or format of what is sent costs more
/// casts and launches than it saves, by at least half a percent of the step; one of each.
std::vector<std::string> slower_by_narrow_formats(const StepInputs&, const Fabric&, const CollectiveTime& time);

}  // namespace collcast::workload
