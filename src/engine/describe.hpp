// Operations as people know them, for error messages.
#pragma once

#include <string>

#include "collcast/base/diagnostic.hpp"
#include "collcast/schedule/schedule.hpp"

namespace collcast::engine {

/// "rank 5's part of ring".
std::string describe(const Pattern& pattern, int participant);
/// "operation 12 'dp bucket 3' (rank 5's part of ring)".
std::string describe(const Schedule& schedule, OpId op);

Diagnostic simulation_error(std::string message, std::string hint = {});

}  // namespace collcast::engine
