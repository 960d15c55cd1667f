// A step's gates in its document: as JSON, and as a table.
#pragma once

#include "collcast/report/documents.hpp"
#include "report/document.hpp"

namespace collcast {

Json gates_json(const std::vector<GateResult>&);
Table gates_table(const std::vector<GateResult>&);

}  // namespace collcast
