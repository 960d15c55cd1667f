// The passes of a unit as stretches: its kernels and collectives one after the other, each with what runs beside it.
// What a plan is made of and what a search sums up are the same stretches.
#pragma once

#include <functional>
#include <vector>

#include "workload/layer/segments.hpp"
#include "workload/plan.hpp"

namespace collcast::workload {

/// A time and what it is made of.
struct PricedTime {
  Seconds time{};
  Uses uses = {};
  bool slows = true;  ///< the kernels beside it (slowdown.hpp)
};
PricedTime operator+(PricedTime, const PricedTime&);
PricedTime operator*(int times, PricedTime one);

/// What collectives of the unit's groups take. `each`: so many of them, one after the other, are in a segment.
struct StretchPrices {
  std::function<PricedTime(CollectiveKind, double bytes, int each)> tp, cp;
  std::function<PricedTime(const ExpertExchange&)> experts;
  bool named = true;  ///< false: stretches of kernels and collectives have no names, for who sums them up only
};

/// Without the exchange of its gradients and weights. `has_loss`: the head's. Kernels go at the pace of `Pace::own`.
UnitWork unit_work(const StepInputs&, const Segments&, bool has_loss, Pace, const StretchPrices&);

}  // namespace collcast::workload
