// What a forecast step has to keep: limits on its figures, as a scenario's `gates` states them.
//
// A figure has one direction: a time or a memory must not be above its limit, a rate or a utilisation not below it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/workload/step.hpp"

namespace collcast {

enum class Bound { max, min };
std::string_view to_string(Bound);

/// A figure of a step that can have a gate. `name` is its key in collcast.step.v1 and carries its unit: of the times of
/// a run of requests "ttft.p99_s", behind that document's inference.load.
struct GateFigure {
  std::string_view name;
  Bound bound;
  /// Which scenarios have it: measured tasks have no model, and a load those servers that have a run of requests.
  enum class Of { all, models, training, inference, load } of;
  double (*value)(const StepResult&);
  /// Of a run of requests: the figure whose limits it stands among, "ttft_s", and its name there, "p99".
  std::string_view among = {}, statistic = {};
};
std::span<const GateFigure> gate_figures();
/// That of a name, which is one of them.
const GateFigure& gate_figure(std::string_view name);

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
