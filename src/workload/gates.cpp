#include "collcast/workload/gates.hpp"

#include <algorithm>
#include <array>

namespace collcast {

std::string_view to_string(Bound bound) { return bound == Bound::max ? "max" : "min"; }

std::span<const GateFigure> gate_figures() {
  using R = const StepResult&;
  using Of = GateFigure::Of;
  static constexpr std::array<GateFigure, 15> figures{{
      {"step_s", Bound::max, Of::all, [](R r) { return r.step.count(); }},
      {"tokens_per_s_per_gpu", Bound::min, Of::models, [](R r) { return r.tokens_per_s_per_gpu; }},
      {"model_flops_per_s_per_gpu", Bound::min, Of::training, [](R r) { return r.model_flops_per_gpu.value(); }},
      {"mfu", Bound::min, Of::training, [](R r) { return r.mfu; }},
      {"hfu", Bound::min, Of::training, [](R r) { return r.hfu; }},
      {"peak_bytes", Bound::max, Of::models, [](R r) { return static_cast<double>(r.memory.peak().value()); }},
      {"tp_exposed_s", Bound::max, Of::all, [](R r) { return r.breakdown.tp_exposed.count(); }},
      {"pp_exposed_s", Bound::max, Of::all, [](R r) { return r.breakdown.pp_exposed.count(); }},
      {"cp_exposed_s", Bound::max, Of::models, [](R r) { return r.breakdown.cp_exposed.count(); }},
      {"ep_exposed_s", Bound::max, Of::models, [](R r) { return r.breakdown.ep_exposed.count(); }},
      {"dp_exposed_s", Bound::max, Of::all, [](R r) { return r.breakdown.dp_exposed.count(); }},
      {"bubble_s", Bound::max, Of::all, [](R r) { return r.breakdown.bubble.count(); }},
      {"ttft_s", Bound::max, Of::inference, [](R r) { return r.inference->prefill.time().count(); }},
      {"tpot_s", Bound::max, Of::inference, [](R r) { return r.inference->decode.time().count(); }},
      {"tokens_per_s", Bound::min, Of::inference, [](R r) { return r.inference->tokens_per_s; }},
  }};
  return figures;
}

std::vector<GateResult> check_gates(std::span<const Gate> gates, const StepResult& result) {
  const auto figures = gate_figures();
  std::vector<GateResult> out;
  for (const Gate& gate : gates) {
    const auto figure =
        std::find_if(figures.begin(), figures.end(), [&](const GateFigure& f) { return f.name == gate.figure; });
    check(figure != figures.end(), "a gate is on a figure that can have one");
    out.push_back({gate, figure->bound, figure->value(result)});
  }
  return out;
}

}  // namespace collcast
