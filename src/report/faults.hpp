// Faults of a machine, and what they cost a step, in documents and on pages.
#pragma once

#include <span>

#include "collcast/report/documents.hpp"
#include "report/document.hpp"

namespace collcast {

/// "node0.nic3: failed; gpu 12: 80% of its compute".
std::string faults_text(std::span<const MachineFault>);
/// "link: node0.nic3, bandwidth: 50%": on average, as --fault of a collective takes it.
std::string fault_argument(const LinkFault&);
Json faults_json(std::span<const MachineFault>);
Json placement_json(const Placement&);
Json effect_json(const FaultEffect&, const StepResult&);
/// "the faults", "the placement", "the faults and the placement".
std::string cause_text(const MachineState&);
/// The step without and with them, and who waits for whom.
void add_effect(Page&, const FaultEffect&, const StepResult&);

/// Its second half: the ranks of the step's stage, class by class.
Table classes_table(const FaultEffect&, const StepResult&);
/// That there are more of them; empty: there are not.
std::string more_classes(const FaultEffect&);

}  // namespace collcast
