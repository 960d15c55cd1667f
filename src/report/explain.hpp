// The parts of a step's explanation, private to this layer. Every term has its formula, the formula with numbers
// that give the figure (to the digits shown), the figure, and where the numbers come from.
#pragma once

#include <string>
#include <vector>

#include "collcast/report/documents.hpp"

namespace collcast {

// --- memory and FLOPs: explain_memory.cpp, explain_rates.cpp ---
std::vector<Section> memory_sections(const StepInputs&, const StepResult&, int gpus_per_node);
Section rates_section(const StepInputs&, const StepResult&);

// --- time: explain_time.cpp ---
Section collectives_section(const StepReport&);
Section stage_section(const StepReport&);
Section closed_form_section(const StepReport&);
Section step_section(const StepReport&);

// --- gradients and gathered weights: explain_exchange.cpp ---
Term gradients_term(const GradientTerms&);
/// ZeRO-3.
Term sharding_term(const ShardingTerms&, bool overlap);

// --- a machine that is not as described: explain_faults.cpp ---
Section faults_section(const StepReport&);
/// Whether the machine is the same all the step long, so that its parts are multiples of what a micro-batch takes.
bool is_steady(const StepReport&);

/// A count, unrounded.
std::string exact(double);
/// Enough digits for the difference of two long times.
std::string precise(Seconds);

}  // namespace collcast
