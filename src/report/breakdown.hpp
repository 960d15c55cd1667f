// The parts of a step's time, as pages and documents call them.
#pragma once

#include <array>

#include "collcast/workload/step.hpp"

namespace collcast {

struct BreakdownPart {
  const char* name;  ///< of a row
  const char* key;   ///< of JSON
  Seconds Breakdown::*time;
};
inline constexpr std::array breakdown_parts{BreakdownPart{"compute", "compute_s", &Breakdown::compute},
                                            BreakdownPart{"TP exposed", "tp_exposed_s", &Breakdown::tp_exposed},
                                            BreakdownPart{"PP exposed", "pp_exposed_s", &Breakdown::pp_exposed},
                                            BreakdownPart{"CP exposed", "cp_exposed_s", &Breakdown::cp_exposed},
                                            BreakdownPart{"EP exposed", "ep_exposed_s", &Breakdown::ep_exposed},
                                            BreakdownPart{"DP exposed", "dp_exposed_s", &Breakdown::dp_exposed},
                                            BreakdownPart{"bubble", "bubble_s", &Breakdown::bubble},
                                            BreakdownPart{"optimizer", "optimizer_s", &Breakdown::optimizer},
                                            BreakdownPart{"other", "other_s", &Breakdown::other}};

}  // namespace collcast
