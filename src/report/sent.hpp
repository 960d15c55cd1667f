// What a step sends otherwise than as it is, as pages and documents tell it.
#pragma once

#include "collcast/report/table.hpp"
#include "collcast/workload/step.hpp"
#include "report/document.hpp"

namespace collcast {

/// Without rows where all is sent as it is.
Table sent_table(const StepInputs&, const StageTerms&);
Json sent_json(const StepInputs&, const StageTerms&);

}  // namespace collcast
