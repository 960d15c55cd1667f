#include "workload/faults/fault_periods.hpp"

#include <algorithm>
#include <utility>

#include "collcast/base/check.hpp"

namespace collcast::workload {

namespace {

std::vector<Seconds> begins_of(std::span<const MachineFault> faults) {
  std::vector<Seconds> begins{Seconds{}};
  for (const MachineFault& fault : faults) {
    begins.push_back(fault.from);
    if (fault.until) begins.push_back(*fault.until);
  }
  std::sort(begins.begin(), begins.end());
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  return begins;
}

/// The machine's number of a rank's GPU.
int gpu_of(const Fabric& fabric, int rank) {
  return static_cast<int>(fabric.on_machine(Rank(static_cast<std::uint32_t>(rank))).value());
}

FaultyMachine machine_of(int ranks, const Fabric& fabric, const Fabric& faulty, std::span<const MachineFault> faults) {
  FaultyMachine machine{&fabric, std::vector<double>(static_cast<std::size_t>(ranks), 1), {}, nullptr};
  // Products of several depend on their order in the last bit.
  std::vector<const GpuFault*> slow;
  for (const MachineFault& fault : faults)
    if (fault.gpu() != nullptr) slow.push_back(fault.gpu());
  std::stable_sort(slow.begin(), slow.end(),
                   [](const GpuFault* a, const GpuFault* b) { return a->compute < b->compute; });
  for (const GpuFault* gpu : slow) {
    for (int rank = 0; rank < ranks; ++rank)
      if (gpu->gpus.has(gpu_of(faulty, rank), fabric.ranks_per_node()))
        machine.speed[static_cast<std::size_t>(rank)] *= gpu->compute;
  }
  machine.is_placed = faulty.is_placed();
  if (faulty.is_placed()) machine.touched.assign(static_cast<std::size_t>(fabric.nodes()), true);
  if (faulty.is_placed() || !any_of_links(faults)) return machine;
  std::vector<bool> touched = touched_nodes(fabric, faulty);
  if (std::find(touched.begin(), touched.end(), true) != touched.end()) machine.touched = std::move(touched);
  return machine;
}

/// What is wrong with a fault is wrong in all its periods, and said once.
void append_new(Diagnostics& errors, const Diagnostics& more) {
  for (const Diagnostic& one : more)
    if (std::none_of(errors.begin(), errors.end(), [&](const Diagnostic& known) {
          return known.message == one.message && to_text(known.where) == to_text(one.where);
        }))
      errors.push_back(one);
}

Breakdown scaled(const Breakdown& parts, double by) {
  return {by * parts.compute,    by * parts.tp_exposed, by * parts.pp_exposed,
          by * parts.cp_exposed, by * parts.ep_exposed, by * parts.dp_exposed,
          by * parts.bubble,     by * parts.optimizer,  by * parts.other};
}

Breakdown sum(const Breakdown& a, const Breakdown& b) {
  return {a.compute + b.compute,       a.tp_exposed + b.tp_exposed, a.pp_exposed + b.pp_exposed,
          a.cp_exposed + b.cp_exposed, a.ep_exposed + b.ep_exposed, a.dp_exposed + b.dp_exposed,
          a.bubble + b.bubble,         a.optimizer + b.optimizer,   a.other + b.other};
}

Result<Period> period_with(int ranks, const Fabric& fabric, const MachineState& state,
                           std::span<const MachineFault> here, Seconds begin) {
  const int needed = (ranks + fabric.ranks_per_node() - 1) / fabric.ranks_per_node();
  Result<Fabric> faulty = with_faults(fabric, here);
  if (faulty) faulty = with_placement(*faulty, state.placement, needed);
  if (!faulty) return faulty.errors();
  FaultyMachine machine = machine_of(ranks, fabric, *faulty, here);
  return Period{begin, std::move(faulty).value(), std::move(machine)};
}

}  // namespace

std::vector<MachineFault> faults_at(std::span<const MachineFault> faults, Seconds at) {
  std::vector<MachineFault> here;
  for (const MachineFault& fault : faults)
    if (fault.holds_at(at)) here.push_back(fault);
  return here;
}

Result<std::vector<Period>> periods_of(int ranks, const Fabric& fabric, const MachineState& state) {
  std::vector<Period> out;
  Diagnostics errors;
  for (const Seconds begin : begins_of(state.faults)) {
    Result<Period> period = period_with(ranks, fabric, state, faults_at(state.faults, begin), begin);
    append_new(errors, period.errors());
    if (period) out.push_back(std::move(period).value());
  }
  if (!errors.empty()) return errors;
  return out;
}

std::vector<RankJitter> jitters_of(int ranks, const Fabric& fabric, std::span<const MachineFault> faults,
                                   std::span<const Period> periods) {
  std::vector<RankJitter> out;
  for (const MachineFault& fault : faults) {
    const GpuFault* gpu = fault.gpu();
    if (gpu == nullptr || !gpu->jitter || gpu->jitter->spread == 0) continue;
    RankJitter one{*gpu->jitter, {}, {}};
    for (int rank = 0; rank < ranks; ++rank)
      one.ranks.push_back(gpu->gpus.has(gpu_of(periods.front().fabric, rank), fabric.ranks_per_node()));
    for (const Period& period : periods) one.periods.push_back(fault.holds_at(period.begin));
    if (std::find(one.ranks.begin(), one.ranks.end(), true) != one.ranks.end()) out.push_back(std::move(one));
  }
  return out;
}

Result<LinkVariants> link_variants_of(int ranks, const Fabric& fabric, const MachineState& state,
                                      std::span<const Period> periods) {
  constexpr double widest = 0.5;  // a link of no time has no price
  LinkVariants out;
  for (const MachineFault& fault : state.faults) {
    if (fault.link() == nullptr || fault.jitter() == nullptr || fault.jitter()->spread == 0) continue;
    LinkJitter one{*fault.jitter(), fault.link()->link, std::min(widest, fault.jitter()->spread), {}};
    for (std::size_t p = 0; p < periods.size(); ++p) {
      one.slower.push_back(fault.holds_at(periods[p].begin) ? static_cast<int>(out.machines.size()) : -1);
      if (one.slower.back() < 0) continue;
      for (const double factor : {1 + one.knot, 1 - one.knot}) {
        std::vector<MachineFault> here = faults_at(state.faults, periods[p].begin);
        LinkFault moved;
        moved.link = one.link;
        moved.share = 1 / factor;
        here.push_back({moved, fault.where});
        Result<Period> varied = period_with(ranks, fabric, state, here, periods[p].begin);
        if (!varied) return varied.errors();
        out.machines.push_back(std::move(varied).value());
        out.machines.back().machine.varies = static_cast<int>(p);
      }
    }
    out.jitters.push_back(std::move(one));
  }
  return out;
}

PacedEstimate paced_estimate(const std::vector<ClassedPlan>& plans, std::span<const Period> periods) {
  PacedEstimate out;
  double left = 1;  // of the step
  for (std::size_t p = 0; p < plans.size(); ++p) {
    out.by_period.push_back(estimate_step(plans[p].plan));
    const StepEstimate& here = out.by_period.back();
    const bool last = p + 1 == plans.size() || periods[p].begin + left * here.total <= periods[p + 1].begin;
    const double share = last ? left : (periods[p + 1].begin - periods[p].begin) / here.total;
    out.breakdown = p == 0 && last ? here.breakdown : sum(out.breakdown, scaled(here.breakdown, share));
    out.shares.push_back(share);
    left -= share;
    if (!last) continue;
    out.total = p == 0 ? here.total : periods[p].begin + share * here.total;
    return out;
  }
  check(false, "the last period ends with the step");
  return out;
}

std::size_t worst_period(const std::vector<ClassedPlan>& plans, std::span<const Period> periods, Seconds end) {
  std::size_t worst = 0;
  Seconds longest{};
  for (std::size_t p = 0; p < plans.size() && (p == 0 || periods[p].begin < end); ++p) {
    const Seconds total = estimate_step(plans[p].plan).total;
    if (total <= longest) continue;
    longest = total;
    worst = p;
  }
  return worst;
}

}  // namespace collcast::workload
