// What a forecast step has to keep: limits on its figures, as a scenario's `gates` states them.
//
// A figure has one direction: a time or a memory must not be above its limit, a rate or a utilisation not below it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/workload/step.hpp"

namespace collcast {

enum class Bound { max, min };
std::string_view to_string(Bound);

/// A figure of a step that can have a gate. `name` is its key in collcast.step.v1 and carries its unit.
struct GateFigure {
  std::string_view name;
  Bound bound;
  enum class Of { all, models, training, inference } of;  ///< which scenarios have it: measured tasks have no model
  double (*value)(const StepResult&);
};
std::span<const GateFigure> gate_figures();

struct Gate {
  std::string figure;  ///< one of gate_figures
  double limit = 0;    ///< in the unit of the figure's name
  Location where;
};

struct GateResult {
  Gate gate;
  Bound bound = Bound::max;
  double value = 0;
  bool kept() const { return bound == Bound::max ? value <= gate.limit : value >= gate.limit; }
  /// How far the value may still move; negative where the gate is broken.
  double margin() const { return bound == Bound::max ? gate.limit - value : value - gate.limit; }
};
std::vector<GateResult> check_gates(std::span<const Gate>, const StepResult&);

}  // namespace collcast
