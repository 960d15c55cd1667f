#include "report/gates.hpp"

#include <fmt/format.h>

#include "report/metrics.hpp"

namespace collcast {

Json gates_json(const std::vector<GateResult>& gates) {
  Json out = Json::array();
  for (const GateResult& g : gates) {
    out.push_back({{"figure", g.gate.figure},
                   {"bound", to_string(g.bound)},
                   {"limit", g.gate.limit},
                   {"value", g.value},
                   {"margin", g.margin()},
                   {"kept", g.kept()}});
  }
  return out;
}

Table gates_table(const std::vector<GateResult>& gates) {
  Table out{"gates",
            {{"figure", "", Align::left},
             {"value", "", Align::right},
             {"limit", "", Align::right},
             {"margin", "", Align::right},
             {"", "", Align::right},
             {"", "", Align::left}},
            {}};
  for (const GateResult& g : gates) {
    const Unit unit = unit_of(g.gate.figure);
    const double limit = g.gate.limit;
    out.rows.push_back(
        {g.gate.figure, value_text(g.value, unit), fmt::format("{} {}", to_string(g.bound), value_text(limit, unit)),
         change_text(g.margin(), unit), relative_text(limit, limit + g.margin()), g.kept() ? "kept" : "BROKEN"});
  }
  return out;
}

Diagnostics broken_gates(const StepReport& report) {
  Diagnostics out;
  for (const GateResult& g : report.gates) {
    if (g.kept()) continue;
    const Unit unit = unit_of(g.gate.figure);
    out.push_back(
        {g.gate.where, fmt::format("gate broken: {} is {}", g.gate.figure, value_text(g.value, unit)),
         fmt::format("expected at {} {}", g.bound == Bound::max ? "most" : "least", value_text(g.gate.limit, unit))});
  }
  return out;
}

}  // namespace collcast
