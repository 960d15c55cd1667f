// Whether a table and the sidecar beside it are of one run: what both say must agree.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collcast/validation/measured_table.hpp"
#include "rank_count.hpp"

namespace collcast {

/// Why `sidecar` cannot be that of `table`, which has its facts, and where it says so; nothing where nothing speaks
/// against it. `kinds`: all that the file has tables of.
std::optional<Diagnostic> sidecar_contradiction(const MeasuredFacts& sidecar, const MeasuredTable& table,
                                                const std::vector<std::string>& kinds, const RankEvidence&);

}  // namespace collcast
