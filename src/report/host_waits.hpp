// What of a training step's computing its passes wait for the host: launches of its kernels, and copies of activations
// to its memory and back.
#pragma once

#include <optional>
#include <string>

#include "collcast/report/documents.hpp"

namespace collcast {

/// Whether kernels wait for the host that launches them (training.launch).
bool has_launches(const StepInputs&);
/// As `explain step` sums them up. Kernels that are slowed beside DP's collectives let passes wait that much less: it
/// is the most then. Nothing: nobody waits for the host in such a step, or faults come, go or are drawn meanwhile.
std::optional<Seconds> host_waits(const StepReport&);
/// "of compute 12 ms (8.0% of the step) are waits for the host's launches of kernels", or "for them" behind copies;
/// empty: there are none of a length to speak of.
std::string host_waits_text(const StepReport&);

}  // namespace collcast
