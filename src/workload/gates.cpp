#include "collcast/workload/gates.hpp"

#include <algorithm>
#include <array>

namespace collcast {

std::string_view to_string(Bound bound) { return bound == Bound::max ? "max" : "min"; }

namespace {

template <TimeSpread LoadTimes::*times, Seconds TimeSpread::*statistic>
double of_run(const StepResult& r) {
  check(r.inference && r.inference->load, "a gate on times of a run is on a step that has one");
  return ((*r.inference->load).*times.*statistic).count();
}

}  // namespace

std::span<const GateFigure> gate_figures() {
  using R = const StepResult&;
  using Of = GateFigure::Of;
  static constexpr std::array<GateFigure, 23> figures{{
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
      {"ttft.p50_s", Bound::max, Of::load, of_run<&LoadTimes::ttft, &TimeSpread::p50>, "ttft_s", "p50"},
      {"ttft.p90_s", Bound::max, Of::load, of_run<&LoadTimes::ttft, &TimeSpread::p90>, "ttft_s", "p90"},
      {"ttft.p99_s", Bound::max, Of::load, of_run<&LoadTimes::ttft, &TimeSpread::p99>, "ttft_s", "p99"},
      {"ttft.longest_s", Bound::max, Of::load, of_run<&LoadTimes::ttft, &TimeSpread::longest>, "ttft_s", "longest"},
      {"tpot.p50_s", Bound::max, Of::load, of_run<&LoadTimes::tpot, &TimeSpread::p50>, "tpot_s", "p50"},
      {"tpot.p90_s", Bound::max, Of::load, of_run<&LoadTimes::tpot, &TimeSpread::p90>, "tpot_s", "p90"},
      {"tpot.p99_s", Bound::max, Of::load, of_run<&LoadTimes::tpot, &TimeSpread::p99>, "tpot_s", "p99"},
      {"tpot.longest_s", Bound::max, Of::load, of_run<&LoadTimes::tpot, &TimeSpread::longest>, "tpot_s", "longest"},
  }};
  return figures;
}

const GateFigure& gate_figure(std::string_view name) {
  const auto figures = gate_figures();
  const auto found = std::ranges::find(figures, name, &GateFigure::name);
  check(found != figures.end(), "a gate is on a figure that can have one");
  return *found;
}

std::vector<GateResult> check_gates(std::span<const Gate> gates, const StepResult& result) {
  std::vector<GateResult> out;
  for (const Gate& gate : gates) {
    const GateFigure& figure = gate_figure(gate.figure);
    out.push_back({gate, figure.bound, figure.value(result)});
  }
  return out;
}

}  // namespace collcast
