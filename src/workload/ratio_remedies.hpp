// What would make a layer compute longer for each second that it communicates: changes, each tried by closed form.
//
// Tried are the layer's own times, of the stage that the warning is about: who lies beside whom (the order of ranks),
// how context and experts are exchanged and whether beside computing, and smaller degrees for more replicas. A change
// that no longer fits the memory is none, nor is one that needs other GPUs. Left out: what a change does to the rest of
// the step.
#pragma once

#include <string>

#include "collcast/topology/fabric.hpp"
#include "collcast/workload/step.hpp"

namespace collcast::workload {

/// "0.59".
std::string ratio_text(double ratio);

/// "layout.order: tp-pp-dp (3.12) would raise it": up to three changes, those first that make the ratio 2 or more, in
/// the order of what they change; where none does, the one that raises it most.
std::string what_would_raise(const StepInputs&, const Fabric&, int stage, const CollectiveTime& time);

}  // namespace collcast::workload
